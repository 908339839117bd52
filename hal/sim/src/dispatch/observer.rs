//! Observers of waves: profiles, traces and fault injection.

use crate::dispatch::wave_state::WaveState;
use crate::instruction::Stretch;
use flipwave_device::WaveId;
use flipwave_isa::{Inst, LaneMask, Operation, Pc};
use flipwave_machine::Watch;

/// Receives the instructions that waves execute, and may change the state of the wave between them.
///
/// An unobserved wave runs at full speed, and an observed wave nearly does between the instructions
/// that the observer is interested in. Each call goes through the trait object, so that the
/// interpreter is compiled once for all observers.
pub trait Observer {
    /// Returns `true` to observe this wave from its first instruction on.
    fn watches(&mut self, wave: WaveId) -> bool;

    /// Instructions of observed waves at which the observer is called. Asked whenever such a wave
    /// has its turn.
    fn interest(&self) -> Interest {
        Interest::Every
    }

    /// Receiver of blocks that observed waves execute as compiled code, if the observer does not
    /// need to be called at each of their instructions.
    fn of_stretches(&mut self) -> Option<&mut dyn StretchObserver> {
        None
    }

    /// Called before an instruction of an observed wave.
    fn before(&mut self, _inst: &Inst, _wave: WaveId, _state: &mut WaveState<'_>) {}

    /// Called after an instruction of an observed wave that did not fault.
    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch;
}

/// Receives blocks that observed waves execute as compiled code.
pub trait StretchObserver {
    /// Number of times in a row that a wave, which has executed `executed` instructions, may
    /// execute a block; zero if the observer must be called at its instructions.
    fn allows(&mut self, wave: WaveId, executed: u64, stretch: Stretch<'_>) -> u64;

    /// Called after a wave has executed [parts](Stretch::parts) of a block `times` times. `lanes`
    /// has the active lanes of the first part, and of the part after EXEC has changed.
    fn executed(&mut self, wave: WaveId, stretch: Stretch<'_>, times: u64, lanes: [LaneMask; 2]);

    /// Called after a wave has executed one instruction of a block, see [`Executed::lanes`].
    fn executed_one(&mut self, wave: WaveId, inst: &Inst, lanes: LaneMask);
}

/// Instructions at which an observer is called, as they are in memory (see
/// [`WaveState::replace_instruction`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Every instruction.
    Every,
    /// The instruction at an ELF virtual address of its code object.
    Address(Pc),
    /// Instructions of one operation.
    Operation(Operation),
}

/// One executed instruction.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// The executed instruction, which may differ from the one in memory (see
    /// [`WaveState::replace_instruction`]); its `pc` is the code object's ELF virtual address.
    pub inst: &'a Inst,
    /// The wave that executed it.
    pub wave: WaveId,
    /// Lanes whose per-lane destinations were written: EXEC as it was before the instruction,
    /// except for instructions that choose their lanes themselves.
    pub lanes: LaneMask,
}

/// The observer that observes no wave.
pub struct Unobserved;

impl Observer for Unobserved {
    fn watches(&mut self, _: WaveId) -> bool {
        false
    }

    fn after(&mut self, _: &Executed<'_>, _: &mut WaveState<'_>) -> Watch {
        Watch::Off
    }
}
