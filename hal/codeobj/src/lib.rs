//! AMDGPU code objects: kernels, descriptors, metadata, symbols, line tables.
