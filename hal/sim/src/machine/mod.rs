//! The embedded GPU in the terms that are common to all instruction sets: as a
//! [`Machine`](flipwave_machine::Machine) with observers.

mod architecture;
mod checks;
mod execution;
mod gpu;
mod observer;
mod original;
mod wave;

pub use architecture::Amdgpu;
pub use observer::MachineObserver;
pub use original::{OriginalCode, OriginalView, Originals};
