//! Barriers with separate signal and wait instructions (RDNA 4 ISA, "Barriers"). The accesses that
//! a wave has started before its signal must be complete before others continue after their waits.

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

/// Number of signals and waits of a wave at its workgroup's barrier.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phase {
    /// Number of signals.
    pub signals: u32,
    /// Number of waits.
    pub waits: u32,
}

/// Returns `true` if an instruction operates on the workgroup's barrier.
pub fn names_workgroup(wave: &Wave, op: &Op, operation: SplitBarrier) -> bool {
    barrier_request(wave, op, operation).is_of_workgroup()
}

/// Executes a signal or a wait; reports a wait at another instruction than the matching wait of
/// another wave.
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
            let unfinished = state.pending.lds();
            let unfinished =
                unfinished.map(|operation| Unfinished::of(wave, operation, signals)).collect();
            lds.signal(wave, signals, unfinished);
            None
        }
        SplitBarrier::Wait => {
            phase.waits += 1;
            state.barrier = Some(Arc::clone(facts));
            let (first_wave, place) = lds.wait(phase.waits, wave, facts);
            let is_same = place.inst.pc == facts.inst.pc && place.module == facts.module;
            (!is_same)
                .then(|| Finding::OtherBarrier { barrier: place.instruction(), wave: first_wave })
        }
        SplitBarrier::State | SplitBarrier::Init | SplitBarrier::Join | SplitBarrier::Leave => None,
    }
}
