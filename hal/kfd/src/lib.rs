//! Stand-in for the kernel driver of AMD GPUs (KFD, amdgpu): AMD's unmodified user-space runtime
//! runs on the embedded GPU.
//!
//! [`open_device`], [`map_device`] and [`request_device`] implement the interface of `/dev/kfd` and
//! of the render nodes; [`device_files`] gives the files below `/dev` and `/sys` that programs
//! read. Behind them is a [`Machine`] with memory, events and queues, and engine threads that execute
//! the queues' packets. A GPU may access exactly the memory that the runtime has mapped for
//! it.
//!
//! Everything that GPU code can write is untrusted: each address found there is looked up in the
//! map of accessible memory before it is used.

mod aql;
mod clock;
mod comparison;
mod dispatch;
mod engine;
mod events;
mod instance;
mod ioctl;
mod ip_discovery;
mod loader;
mod machine;
mod map;
mod memory;
mod notifier;
mod pm4;
mod program_images;
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
mod unmapped;
mod user_memory;

pub use dispatch::{
    Board, CopyObserver, CountedKernels, DispatchDriver, DispatchedKernel, KernelDispatch,
};
pub use engine::start;
pub use instance::{enter_range, note_submissions, on_open, virtual_mappings, wait_until};
pub use ioctl::{map_device, open_device, request_device};
pub use machine::{Machine, MachineError};
pub use refusal::{QueueError, Refusal};
pub use store::Mapping;
pub use sysfs::{DeviceFile, FileContent, device_files};
pub use topology::{TopologyError, processors};
