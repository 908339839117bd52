//! Detection of kernels whose waves all wait forever, although the host and copies may still change
//! memory.

use crate::machine::Machine;
use flipwave_device::{Address, DeviceFault, FaultCause};
use flipwave_sim::StallReport;
use std::time::{Duration, Instant};

/// Time that all resident waves may spend in wait loops, while more workgroups wait for free slots,
/// before the dispatch is taken for hung: long enough for the host to start a copy that ends the
/// wait.
const GRACE: Duration = Duration::from_secs(2);

/// Tracks the stall reports of a dispatch.
#[derive(Default)]
pub struct StallWatch {
    /// The first report of the current stall.
    first: Option<FirstReport>,
}

/// The first report of a stall.
struct FirstReport {
    time: Instant,
    /// Workgroups that had ended.
    ended: u64,
    /// Copies that had changed memory of GPUs: each may be what waves wait for.
    copies: u64,
}

impl StallWatch {
    /// Returns the fault to end the dispatch with, if the reported stall has lasted too long.
    ///
    /// Waves that poll host memory wait for the host, which may take any time. So may a grid that
    /// is resident as a whole. What remains are workgroups that wait in GPU memory for other
    /// workgroups, for which there is no free slot.
    pub fn check(&mut self, report: Option<StallReport>, machine: &Machine) -> Option<DeviceFault> {
        let StallReport { fault, pages } = report?;
        let FaultCause::Stalled(stall) = &fault.cause else { return None };
        if stall.not_started() == 0 || pages.iter().any(|page| machine.is_on_host(Address(*page))) {
            return None;
        }
        let (ended, copies) = (stall.ended, machine.copies_to_gpus());
        match &self.first {
            Some(first) if (first.ended, first.copies) == (ended, copies) => {
                (first.time.elapsed() >= GRACE).then_some(fault)
            }
            _ => {
                self.first = Some(FirstReport { time: Instant::now(), ended, copies });
                None
            }
        }
    }
}
