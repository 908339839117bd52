//! Execution of PTX, compared with the host.

mod common;
mod control;
mod corpus;
mod coverage;
mod fidelity;
mod floats;
mod halves;
mod integers;
mod kernels;
mod matrices;
mod robust;
mod strict;
mod warpgroups;
