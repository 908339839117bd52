//! A stand-in for the kernel driver of AMD GPUs: the vendor's whole stack above it runs on the embedded
//! GPU as it is.
//!
//! [`open_device`], [`map_device`] and [`request_device`] are the interface, that of `/dev/kfd` and of render nodes;
//! [`device_files`] is what programs read of the machine. Behind them are the machine, which has
//! memory, events and queues, and its engines, which do what queues ask for. What a GPU may touch of
//! memory is what the runtime has mapped for it.
//!
//! Everything that GPU code can write is untrusted: every address from there is looked up first.

mod aql;
mod clock;
mod code;
mod driver;
mod engine;
mod events;
mod ioctl;
mod lost;
mod machine;
mod map;
mod memory;
mod notifier;
mod opened;
mod program;
mod queue;
mod refusal;
mod sdma;
mod shared;
mod signal;
mod stall;
mod store;
mod submissions;
mod svm;
mod sysfs;
mod topology;

pub use driver::{CopyWatch, DispatchedKernel, Driver, KernelDispatch};
pub use engine::start;
pub use ioctl::{map_device, open_device, request_device};
pub use machine::{Machine, MachineError};
pub use opened::{enter_range, note_submissions, on_open, virtual_mappings, wait_until};
pub use refusal::{QueueError, Refusal};
pub use store::Mapping;
pub use sysfs::{DeviceFile, FileContent, device_files};
pub use topology::{TopologyError, processors};
