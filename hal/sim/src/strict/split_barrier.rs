//! Barriers whose signal and wait are instructions of their own (RDNA 4 ISA, "Barriers"). What a
//! wave has begun before its signal must have ended before others go on after their waits.

use super::WaveState;
use super::facts::Facts;
use super::lds::{LdsState, Unfinished};
use super::violation::Finding;
use crate::execute::control::barrier_request;
use crate::instruction::Op;
use crate::instruction::control::SplitBarrier;
use crate::wave::Wave;
use flipwave_device::WaveId;
use std::sync::Arc;

/// How often a wave has signalled the barrier of its workgroup, and come to a wait for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phase {
    /// Signals.
    pub signals: u32,
    /// Waits.
    pub waits: u32,
}

/// Whether an instruction is about the barrier of the workgroup.
pub fn names_workgroup(wave: &Wave, op: &Op, operation: SplitBarrier) -> bool {
    barrier_request(wave, op, operation).is_of_workgroup()
}

/// Follows a signal or a wait: a wait that is not the one at which another wave waits as often.
pub fn follow(
    state: &mut WaveState,
    lds: &mut LdsState,
    wave: WaveId,
    operation: SplitBarrier,
    facts: &Arc<Facts>,
) -> Option<Finding> {
    let phase = &mut state.split_barrier;
    match operation {
        SplitBarrier::Signal | SplitBarrier::SignalIsFirst => {
            phase.signals += 1;
            let signals = phase.signals;
            let unfinished = state.under_way.lds();
            let unfinished = unfinished.map(|own| Unfinished::of(wave, own, signals)).collect();
            lds.signal(wave, signals, unfinished);
            None
        }
        SplitBarrier::Wait => {
            phase.waits += 1;
            state.barrier = Some(Arc::clone(facts));
            let (other, place) = lds.wait(phase.waits, wave, facts);
            let is_same = place.inst.pc == facts.inst.pc && place.module == facts.module;
            (!is_same).then(|| Finding::OtherBarrier { other: place.instruction(), wave: other })
        }
        SplitBarrier::State | SplitBarrier::Init | SplitBarrier::Join => None,
    }
}
