//! The copy engine: executes the packets of all SDMA queues.

use crate::events::AccessFault;
use crate::machine::Machine;
use crate::sdma::{self, StepResult};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The copy engine. It has its own thread; the thread that executes kernels also makes copies when
/// it needs their results.
pub struct CopyEngine {
    machine: Arc<Machine>,
    /// Held while packets are executed: those of a queue are executed one after another.
    turn: Mutex<()>,
    /// `true` if the last pass over the queues found a packet that waits.
    is_blocked: AtomicBool,
}

impl CopyEngine {
    pub fn new(machine: &Arc<Machine>) -> CopyEngine {
        let (turn, is_blocked) = Default::default();
        CopyEngine { machine: Arc::clone(machine), turn, is_blocked }
    }

    /// Runs the engine forever.
    pub fn run(&self) {
        self.machine.copy_notifier.serve(|| {
            let worked = self.advance();
            if worked {
                // Kernels may wait for the copies.
                self.machine.compute_notifier.notify();
            }
            worked
        })
    }

    /// Wakes the thread if it has found a packet that waits, perhaps for the kernel that has ended.
    pub fn kernel_is_done(&self) {
        if self.is_blocked.load(Ordering::Acquire) {
            self.machine.copy_notifier.notify();
        }
    }

    /// Makes all copies that can be made. The packets that remain wait for the host or for kernels.
    pub fn drain(&self) {
        while self.advance() {}
    }

    /// Executes the packets of each queue up to one that waits. Returns `true` if there were any.
    pub fn advance(&self) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut worked, mut is_blocked) = (false, false);
        for queue in self.machine.copy_queues() {
            // Activated one at a time: destroying a queue does not wait for copies of other queues.
            let Some(queue) = queue.activate() else { continue };
            while !queue.is_closed() {
                match sdma::step(&queue, &self.machine) {
                    StepResult::Empty => break,
                    StepResult::Waiting => {
                        is_blocked = true;
                        break;
                    }
                    StepResult::Executed => worked = true,
                    StepResult::Fault(violation) => {
                        let (address, reason) = (violation.address, AccessFault::NotPresent);
                        self.machine.report_memory_fault(&queue, address, reason);
                    }
                }
            }
        }
        self.is_blocked.store(is_blocked, Ordering::Release);
        worked
    }
}
