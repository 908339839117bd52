//! Engines: the threads that execute the packets of queues. One thread executes all kernels, one
//! after another and in an order that depends on the program alone where possible; another makes
//! all copies.
//!
//! The compute engine takes the oldest packet first, whichever queue it is in. A later packet
//! overtakes it only if the oldest still waits after all copies that can be made were made: the
//! host has to do something, which may in turn depend on what was submitted later. As it is
//! unpredictable how long the host takes, it gets some time before a packet is overtaken.

mod compute;
mod copies;
mod gpu;
#[cfg(test)]
mod hostile;

use crate::dispatch::{CopyObserver, DispatchDriver};
use crate::machine::{Machine, MachineError};
use compute::ComputeEngine;
use copies::CopyEngine;
use flipwave_device::DeviceError;
use flipwave_isa::Target;
use std::sync::Arc;

/// Starts a machine with GPUs of these targets. `driver` drives its dispatches, `copy_observer`
/// sees its copies. `fail` is called on errors that no hardware has, after which the application
/// cannot go on.
///
/// # Errors
/// [`MachineError`].
pub fn start(
    targets: &[Target],
    driver: Box<dyn DispatchDriver>,
    copy_observer: Option<Arc<dyn CopyObserver>>,
    fail: fn(&DeviceError),
) -> Result<Arc<Machine>, MachineError> {
    let (machine, devices) = Machine::without_engines(targets, copy_observer)?;
    let copies = Arc::new(CopyEngine::new(&machine));
    let mut compute = ComputeEngine::new(&machine, &copies, devices, driver, fail);
    let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
        let spawned = std::thread::Builder::new().name(name.into()).spawn(run);
        spawned.map(drop).map_err(MachineError::Thread)
    };
    spawn("flipwave kernels", Box::new(move || compute.run()))?;
    spawn("flipwave copies", Box::new(move || copies.run()))?;
    Ok(machine)
}
