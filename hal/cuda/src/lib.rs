//! A stand-in for CUDA's driver and runtime, so that applications run on the simulated GPU for PTX.
//!
//! The library exports functions of CUDA's driver API (`libcuda.so.1`) and runtime API (`libcudart.so`) with the
//! names and types of NVIDIA's documentation ("CUDA Driver API", "CUDA Runtime API"). The functions that compilers
//! call for kernels and variables are those that clang calls (`CGCUDANV.cpp`). Interfaces without documentation,
//! such as the driver's export tables, are not implemented: a program that asks for one gets an error.
//!
//! One thread executes all work in the order in which the application submits it. Every address that GPU code uses
//! is checked against the map of what it may access; handles of the application are numbers that are looked up.
//! The bytes at an address that the application passes are accessed like those of any C library.

mod api;
mod device;
mod driver;
mod execution;
mod fat_binary;
mod handles;
mod launch;
mod loading;
mod memory;
mod module;
mod output;
mod queue;
mod status;

pub use driver::{Configuration, on_open};
pub use launch::{
    FaultedLaunch, KernelLaunch, LaunchDriver, LoadedCode, MemoryMap, PlainLaunchDriver,
};
pub use loading::load_again;
pub use module::{Image, ImageError, module_of};

/// Names under which programs look for the library.
pub const LIBRARY_NAMES: [&str; 6] = [
    "libcuda.so.1",
    "libcuda.so",
    "libcudart.so",
    "libcudart.so.11.0",
    "libcudart.so.12",
    "libcudart.so.13",
];
