//! Execution of PTX, compared with the host.

mod common;
mod control;
mod kernels;
