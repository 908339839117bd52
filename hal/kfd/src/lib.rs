//! A stand-in for libhsakmt, the library by which AMD's runtime talks to the kernel driver: the whole
//! stack above it runs on the embedded GPU as it is.
//!
//! The interface is that of `hsakmt.h` as ROCr 5.2 uses it. GPU and application have the same memory
//! at the same addresses; what the GPU may touch of it is what the runtime has mapped for it.
//!
//! Everything that GPU code can write is untrusted: every address from there is looked up first.

mod abi;
mod aql;
mod clock;
mod code;
mod driver;
mod engine;
mod events;
mod ioctl;
mod machine;
mod map;
mod memory;
mod opened;
mod queue;
mod refusal;
mod sdma;
mod shared;
mod signal;
mod stall;
mod submissions;
mod svm;
mod sysfs;
mod thunk;
mod topology;

pub use driver::{CopyWatch, DispatchedKernel, Driver, KernelDispatch};
pub use engine::start;
pub use ioctl::{open_device, request_device};
pub use machine::{Machine, MachineError};
pub use memory::host_address;
pub use opened::{note_submissions, on_open};
pub use refusal::{QueueError, Refusal};
pub use sysfs::{DeviceFile, FileContent, device_files};
pub use topology::processors;
