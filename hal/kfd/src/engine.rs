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
use crate::events::{AccessFault, MemoryFault};
use crate::machine::{Machine, MachineError};
use crate::memory::PAGE;
use crate::notifier::{Notifier, poll_interval};
use crate::queue::Queue;
use compute::ComputeEngine;
use copies::CopyEngine;
use flipwave_device::DeviceError;
use flipwave_isa::Target;
use std::sync::Arc;
use std::time::Instant;

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

/// Calls `advance` forever, and sleeps between calls that found no work until the notifier is
/// notified. The runtime also submits work without a call that notifies, so that the thread polls
/// as well.
fn serve(notifier: &Notifier, mut advance: impl FnMut() -> bool) {
    let mut idle = Instant::now();
    loop {
        let seen = notifier.count();
        if advance() {
            idle = Instant::now();
        } else {
            notifier.wait(seen, poll_interval(idle.elapsed()));
        }
    }
}

/// Stops a queue, and reports to the runtime an access to memory that the GPU may not make.
fn report_memory_fault(machine: &Machine, queue: &Queue, address: u64, reason: AccessFault) {
    queue.stop();
    let address = address & !(PAGE - 1);
    machine.events.set_memory_fault(MemoryFault { node: queue.node, address, reason });
}
