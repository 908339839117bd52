//! Watching execution: profiles, traces and flips are observers of waves.

use crate::wave::Wave;
use flipwave_device::WaveId;
use flipwave_isa::{Inst, Lane, LaneMask, Register};

/// Sees the instructions that waves execute, and may change registers between them.
///
/// A wave that is not watched runs at full speed, as if there were no observer at all.
pub trait Observer {
    /// Whether this wave is to be watched from its first instruction on.
    fn watches(&mut self, wave: WaveId) -> bool;

    /// Called before each instruction of a watched wave. An observer that does nothing here costs
    /// nothing.
    #[inline(always)]
    fn before(&mut self, _inst: &Inst, _wave: WaveId, _registers: &mut Registers<'_>) {}

    /// Called after each instruction of a watched wave that did not fault.
    fn after(&mut self, executed: &Executed<'_>, registers: &mut Registers<'_>) -> Watch;
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
    /// The instruction; its `pc` is the code object's ELF virtual address.
    pub inst: &'a Inst,
    /// The wave that executed it.
    pub wave: WaveId,
    /// Lanes whose per-lane destinations were written: EXEC as it was before the instruction,
    /// except for instructions that choose their lanes themselves.
    pub lanes: LaneMask,
}

/// The registers of a wave, between two instructions.
pub struct Registers<'a> {
    wave: &'a mut Wave,
}

impl<'a> Registers<'a> {
    pub(crate) fn new(wave: &'a mut Wave) -> Registers<'a> {
        Registers { wave }
    }

    /// A register's value; `lane` matters for per-lane registers only. Registers outside the
    /// wave's allocation, and flags that are derived, give `None`.
    pub fn read(&self, register: Register, lane: Lane) -> Option<u32> {
        self.wave.read_register(register, lane)
    }

    /// All lanes of a per-lane register. `None` where [`Registers::read`] gives it, and for registers
    /// that lanes share.
    pub fn lanes(&self, register: Register) -> Option<&[u32; 64]> {
        self.wave.read_lanes(register)
    }

    /// Changes a register for good. Gives `false`, and changes nothing, where
    /// [`Registers::read`] gives `None`.
    pub fn write(&mut self, register: Register, lane: Lane, value: u32) -> bool {
        self.wave.write_register(register, lane, value)
    }
}

/// The observer that watches nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn watches(&mut self, _: WaveId) -> bool {
        false
    }

    fn after(&mut self, _: &Executed<'_>, _: &mut Registers<'_>) -> Watch {
        Watch::Off
    }
}
