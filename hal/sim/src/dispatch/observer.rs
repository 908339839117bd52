//! Watching execution: profiles, traces and flips are observers of waves.

use crate::dispatch::wave_state::WaveState;
use crate::instruction::Stretch;
use flipwave_device::WaveId;
use flipwave_isa::{Inst, LaneMask, Operation, Pc};

/// Sees the instructions that waves execute, and may change the state of the wave between them.
///
/// A wave that is not watched runs at full speed, as if there were no observer at all, and so, nearly,
/// does one between the instructions that the observer is interested in. Each call goes through the
/// trait object, so that the interpreter is compiled once for all observers.
pub trait Observer {
    /// Whether this wave is to be watched from its first instruction on.
    fn watches(&mut self, wave: WaveId) -> bool;

    /// At which instructions of watched waves the observer is called. It is asked whenever such a
    /// wave has its turn.
    fn interest(&self) -> Interest {
        Interest::Every
    }

    /// What sees stretches that watched waves execute as compiled code, if the observer can do without
    /// being called at each instruction of them.
    fn of_stretches(&mut self) -> Option<&mut dyn StretchObserver> {
        None
    }

    /// Called before an instruction of a watched wave.
    fn before(&mut self, _inst: &Inst, _wave: WaveId, _state: &mut WaveState<'_>) {}

    /// Called after an instruction of a watched wave that did not fault.
    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch;
}

/// Sees what watched waves execute without the observer being called.
pub trait StretchObserver {
    /// How many times in a row a wave, which has executed so many instructions, may execute a stretch;
    /// zero if the observer is to be called at its instructions.
    fn allows(&mut self, wave: WaveId, executed: u64, stretch: Stretch<'_>) -> u64;

    /// A wave has executed [parts](Stretch::parts) of a stretch so many times: the first ones on these
    /// active lanes, those after EXEC has changed on the others.
    fn executed(&mut self, wave: WaveId, stretch: Stretch<'_>, times: u64, lanes: [LaneMask; 2]);

    /// A wave has executed one instruction of a stretch, see [`Executed::lanes`].
    fn executed_one(&mut self, wave: WaveId, inst: &Inst, lanes: LaneMask);
}

/// Instructions that an observer is called at, as they are in memory (see
/// [`WaveState::replace_instruction`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// All.
    Every,
    /// The one at an ELF virtual address of its code object.
    Address(Pc),
    /// Those of one operation.
    Operation(Operation),
}

/// Whether a wave stays watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Call again after the next instruction.
    On,
    /// This wave need not be watched any more.
    Off,
}

/// One executed instruction.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// The instruction that was executed, which need not be the one in memory (see
    /// [`WaveState::replace_instruction`]); its `pc` is the code object's ELF virtual address.
    pub inst: &'a Inst,
    /// The wave that executed it.
    pub wave: WaveId,
    /// Lanes whose per-lane destinations were written: EXEC as it was before the instruction,
    /// except for instructions that choose their lanes themselves.
    pub lanes: LaneMask,
}

/// The observer that watches nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn watches(&mut self, _: WaveId) -> bool {
        false
    }

    fn after(&mut self, _: &Executed<'_>, _: &mut WaveState<'_>) -> Watch {
        Watch::Off
    }
}
