//! Code objects read and written, against LLVM's own tools.

mod bundles;
mod common;
mod descriptor;
mod image;
mod lines;
mod loaded;
mod mutations;
mod reading;
mod reduced;
mod writing;
mod writing_debug;
