//! Observers of waves: profiles, traces and fault injection.

use crate::WaveState;
use flipwave_arch::{Instruction, LaneMask, OperationName, Pc};
use flipwave_device::WaveId;

/// Receives the instructions that waves execute, and may change the state of the wave between them.
///
/// An unobserved wave runs at full speed, and an observed wave nearly does between the instructions
/// that the observer is interested in.
pub trait Observer {
    /// Returns `true` to observe this wave from its first instruction on.
    fn watches(&mut self, wave: WaveId) -> bool;

    /// Instructions of observed waves at which the observer is called. Asked whenever such a wave
    /// has its turn.
    fn interest(&self) -> Interest {
        Interest::Every
    }

    /// Receiver of stretches that observed waves execute as a unit, if the observer does not need to be
    /// called at each of their instructions.
    fn of_stretches(&mut self) -> Option<&mut dyn StretchObserver> {
        None
    }

    /// Called before an instruction of an observed wave.
    fn before(&mut self, _inst: &dyn Instruction, _wave: WaveId, _state: &mut dyn WaveState) {}

    /// Called after an instruction of an observed wave that did not fault.
    fn after(&mut self, executed: &Executed<'_>, state: &mut dyn WaveState) -> Watch;
}

/// Receives stretches that observed waves execute as a unit, for example as compiled code.
pub trait StretchObserver {
    /// Number of times in a row that a wave, which has executed `executed` instructions, may
    /// execute a stretch; zero if the observer must be called at its instructions.
    fn allows(&mut self, wave: WaveId, executed: u64, stretch: &dyn Stretch) -> u64;

    /// Called after a wave has executed [parts](Stretch::for_each_part) of a stretch `times` times. `lanes`
    /// has the active lanes of the first part, and of the part after the active lanes have changed.
    fn executed(&mut self, wave: WaveId, stretch: &dyn Stretch, times: u64, lanes: [LaneMask; 2]);

    /// Called after a wave has executed one instruction of a stretch, see [`Executed::lanes`].
    fn executed_one(&mut self, wave: WaveId, inst: &dyn Instruction, lanes: LaneMask);
}

/// An instruction sequence that is executed as a unit.
pub trait Stretch {
    /// Unique number in this process, starting at zero.
    fn number(&self) -> u64;

    /// Returns `true` if the sequence writes to lanes other than the active ones.
    fn has_own_lanes(&self) -> bool;

    /// Number of instructions, at least 1.
    fn instruction_count(&self) -> u64;

    /// Returns `true` if the sequence contains the instruction at an address.
    fn has_instruction_at(&self, pc: Pc) -> bool;

    /// Calls `visit` with each instruction, in order.
    fn for_each_instruction<'s>(&'s self, visit: &mut dyn FnMut(&'s dyn Instruction));

    /// Calls `visit` with each instruction that is observed only as part of the sequence, in order.
    fn for_each_part<'s>(&'s self, visit: &mut dyn FnMut(StretchPart<'s>));
}

/// An instruction that is observed only as part of a stretch.
#[derive(Clone, Copy, Debug)]
pub struct StretchPart<'a> {
    /// The instruction.
    pub inst: &'a dyn Instruction,
    /// `true` if the active lanes have changed in the sequence before it.
    pub is_after_change: bool,
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
    Operation(OperationName),
}

/// Decision whether a wave remains observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Remains observed.
    On,
    /// Ends the observation of this wave.
    Off,
}

/// One executed instruction.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// The executed instruction, which may differ from the one in memory (see
    /// [`WaveState::replace_instruction`]); its address is the code object's ELF virtual address.
    pub inst: &'a dyn Instruction,
    /// The wave that executed it.
    pub wave: WaveId,
    /// Lanes whose per-lane destinations were written: the active lanes as they were before the
    /// instruction, except for instructions that choose their lanes themselves.
    pub lanes: LaneMask,
}

/// The observer that observes no wave.
pub struct Unobserved;

impl Observer for Unobserved {
    fn watches(&mut self, _: WaveId) -> bool {
        false
    }

    fn after(&mut self, _: &Executed<'_>, _: &mut dyn WaveState) -> Watch {
        Watch::Off
    }
}
