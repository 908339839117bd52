//! Explanation of faults for people: faulting lanes, operands, and the call chain. Nothing here runs
//! unless a wave has faulted or waits forever.

mod call_chain;
mod frames;
mod function;
mod lanes;
mod operands;
mod probe;
mod registers;
mod stopped_wave;

pub use frames::user_line;
pub use stopped_wave::{LoadedCode, StoppedWave};

use crate::memory::Memory;
use flipwave_device::{FaultCause, FaultContext};
use flipwave_isa::Lane;

/// Explains a fault. The device's memory must be as it was at the fault; it is not changed.
pub fn explain(
    stopped: &StoppedWave,
    cause: &FaultCause,
    code: LoadedCode<'_>,
    memory: &mut dyn Memory,
) -> FaultContext {
    let StoppedWave { wave, pc, replacement, .. } = stopped;
    let found =
        code.at(*pc).and_then(|(program, _)| program.of_banks(wave.banks()).fetch(*pc).ok());
    let op = replacement.as_deref().or(found);
    let mut context = FaultContext { exec: wave.exec(), ..FaultContext::default() };
    // A deadlock has many waves, whose instructions the cause lists.
    if let Some(op) = op.filter(|_| !matches!(cause, FaultCause::Stalled(_))) {
        context.instruction = op.inst.text.trim().into();
        context.lanes = lanes::faulting_lanes(stopped, op, cause, memory);
        if !cause.is_hang() {
            let lanes: Vec<Lane> = match &context.lanes[..] {
                [] => wave.exec().lanes().collect(),
                faulting => faulting.iter().map(|faulting| faulting.lane).collect(),
            };
            context.operands = operands::operand_values(wave, &op.inst, &lanes);
        }
    }
    let (places, end) = call_chain::call_chain(stopped, code, memory);
    context.frames = frames::frames(&places, &end, code);
    context.chain_end = end;
    context
}
