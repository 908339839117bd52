//! The embedded GPU: executes AMDGPU machine code, functionally exact and deterministic.
