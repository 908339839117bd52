//! Kernels all of whose waves wait while the host and copies may still change memory.

use crate::machine::Machine;
use flipwave_device::{Address, DeviceFault, FaultCause};
use flipwave_sim::StallReport;
use std::time::{Duration, Instant};

/// How long waves may go round in loops for ever, with more workgroups waiting for their places, before
/// nobody is believed to help them: long for a copy that the host has still to start.
const GRACE: Duration = Duration::from_secs(2);

/// What was found of a dispatch.
#[derive(Default)]
pub struct StallWatch {
    /// When its waves were first found to wait, and how many workgroups had ended then.
    first: Option<(Instant, u64)>,
}

impl StallWatch {
    /// Whether a dispatch is to be ended of which this was found, if anything was.
    ///
    /// Waves that look at the host's memory wait for the host, which has all the time in the world;
    /// so do those of a grid that is resident as a whole. What is left are workgroups that wait in the
    /// GPU's memory for others which have no place.
    pub fn judge(&mut self, found: Option<StallReport>, machine: &Machine) -> Option<DeviceFault> {
        let StallReport { fault, pages } = found?;
        let FaultCause::Stalled(stall) = &fault.cause else { return None };
        if stall.left() == 0 || pages.iter().any(|page| machine.is_on_host(Address(*page))) {
            return None;
        }
        match self.first {
            Some((since, ended)) if ended == stall.ended => {
                (since.elapsed() >= GRACE).then_some(fault)
            }
            _ => {
                self.first = Some((Instant::now(), stall.ended));
                None
            }
        }
    }
}
