//! The lanes whose accesses fault.

use super::probe::Probe;
use super::stopped_wave::StoppedWave;
use crate::execute::control::Step;
use crate::execute::step::step;
use crate::instruction::Op;
use crate::memory::Memory;
use flipwave_device::{Address, FaultCause, FaultingLane};
use flipwave_isa::{Lane, LaneMask};

/// The lane that an access of one lane faults in, and the address.
fn faulting_lane(cause: &FaultCause) -> Option<FaultingLane> {
    let (lane, address): (Option<Lane>, Address) = match cause {
        FaultCause::MemoryViolation { address, lane, .. }
        | FaultCause::Misaligned { address, lane, .. } => (*lane, *address),
        _ => return None,
    };
    lane.map(|lane| FaultingLane { lane, address })
}

/// All lanes that fault like the first one. The instruction is executed again for each later lane alone:
/// a wave stops at its first faulting lane. Empty if the fault belongs to the whole wave.
pub fn faulting_lanes(
    stopped: &StoppedWave,
    op: &Op,
    cause: &FaultCause,
    memory: &mut dyn Memory,
) -> Vec<FaultingLane> {
    let Some(first) = faulting_lane(cause) else { return Vec::new() };
    let (mut wave, mut lds) = (stopped.wave.clone(), stopped.lds.clone());
    let mut probe = Probe::new(memory);
    let mut faulting = vec![first];
    for lane in stopped.wave.exec().lanes().filter(|lane| *lane > first.lane) {
        wave.set_exec(LaneMask(1 << lane.0));
        if let Step::Fault(found) = step(&mut wave, op, &mut probe, &mut lds)
            && found.kind() == cause.kind()
        {
            faulting.extend(faulting_lane(&found));
        }
    }
    faulting
}
