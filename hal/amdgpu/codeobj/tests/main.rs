//! Reading and writing of code objects, compared with LLVM's tools.

mod bundles;
mod common;
mod descriptor;
mod extract;
mod from_memory;
mod image;
mod lines;
mod mutations;
mod reading;
mod writing;
mod writing_debug;
