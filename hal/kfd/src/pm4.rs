//! PM4 packets: the commands of AMD's packet processors, in a compute queue's ring or in indirect
//! buffers (Linux, `nvd.h` and `soc15d.h`). They start kernels from registers, without a dispatch
//! packet and without a kernel descriptor.
//!
//! Packets are in memory that GPU code can write. Each address in them is looked up in the map of
//! accessible memory, and each packet is copied before it is decoded.

mod launch;
mod packet;
mod processor;
mod registers;

pub use launch::{LaunchRecord, RegisterLaunch};
pub use processor::{Blocked, IndirectBuffer, Processor, Step};
