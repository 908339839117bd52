//! Programs that call CUDA's driver and runtime, compiled by clang without NVIDIA's headers.

mod common;
mod driver;
mod runtime;
