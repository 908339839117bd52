//! Preload shim (LD_PRELOAD): intercepts the functions of the C library that open, inspect, control
//! and map files. Accesses to the kernel driver of AMD GPUs are handled by Flipwave; all others are
//! passed on. The functions for named ranges (ROCTX) are also intercepted, and passed on.
//!
//! Paths of the driver below `/dev` and `/sys` are redirected to a folder, `FLIPWAVE_DEVICES`. An
//! opened device is a file in memory: programs can duplicate and close it without the shim. The
//! shim recognizes it by its inode.
//!
//! Each process enters itself in the table of the application's process tree when it starts.
//!
//! The shim is small, as it is in every process that an application starts. The embedded GPU is in
//! another library, the agent, which is loaded when a device is first opened.

mod agent;
mod device;
mod directory;
mod open;
mod paths;
mod process_tree;
mod ranges;
mod real;
mod status;
