//! Engines: the threads that execute the packets of queues. Each GPU has a compute engine, which
//! executes its kernels one after another; another thread makes all copies.
//!
//! Compute engines work in turns, in an order that depends on the program alone where possible. The
//! oldest packet comes first, whichever queue it is in. A later packet overtakes it only if the
//! oldest still waits after all copies that can be made were made: the host has to do something,
//! which may in turn depend on what was submitted later. As it is unpredictable how long the host
//! takes, it gets some time before a packet is overtaken.
//!
//! A kernel has the first turn for itself. If it has not ended then, the GPUs that are idle start
//! their next kernels, and all running kernels advance in short turns, because each may wait for
//! another one.

mod compute;
mod copies;
mod gpu;
mod host_waits;
#[cfg(test)]
mod hostile;
mod turns;

use crate::dispatch::{Board, CopyObserver};
use crate::machine::{Machine, MachineError};
use compute::ComputeEngine;
use copies::CopyEngine;
use flipwave_device::DeviceError;
use flipwave_isa::Target;
use gpu::Gpus;
use std::sync::Arc;
use turns::Turns;

/// Starts a machine with these GPUs. `copy_observer` sees its copies. `fail` is called on errors
/// that no hardware has, after which the application cannot go on.
///
/// # Errors
/// [`MachineError`].
pub fn start(
    boards: Vec<Board>,
    copy_observer: Option<Arc<dyn CopyObserver>>,
    fail: fn(&DeviceError),
) -> Result<Arc<Machine>, MachineError> {
    let targets: Vec<Target> = boards.iter().map(|board| board.target.clone()).collect();
    let (machine, devices) = Machine::without_engines(&targets, copy_observer)?;
    let copies = Arc::new(CopyEngine::new(&machine));
    let gpus = Arc::new(Turns::new(Gpus::new(devices)));
    let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
        let spawned = std::thread::Builder::new().name(name.into()).spawn(run);
        spawned.map(drop).map_err(MachineError::Thread)
    };
    for (node, board) in (1..).zip(boards) {
        let mut compute = ComputeEngine::new(&machine, &copies, &gpus, node, board, fail);
        spawn("flipwave kernels", Box::new(move || compute.run()))?;
    }
    spawn("flipwave copies", Box::new(move || copies.run()))?;
    Ok(machine)
}
