//! What becomes of a value in the fault-free run: whether anything reads it before it is gone.
//!
//! A fault in a value that nothing reads changes nothing: until the value is read the faulty run
//! is the fault-free one.

use flipwave_device::WaveId;
use flipwave_isa::{Family, Inst, LaneMask, LanesWritten, Opcode, Register, RegisterRange};
use std::collections::HashMap;

/// What becomes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// An instruction reads it, or may.
    Read,
    /// It is overwritten before anything reads it.
    Overwritten,
    /// The wave ends before anything reads it.
    Dead,
}

/// Values of waves that are followed, each under the index of its injection.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    waves: HashMap<WaveId, Vec<Followed>>,
    decided: Vec<(u64, Fate)>,
}

#[derive(Clone, Copy, Debug)]
struct Followed {
    index: u64,
    register: Register,
    /// Of a per-lane register, the lanes whose values are still there.
    lanes: LaneMask,
}

/// Registers whose readers are all known: each instruction says so in its register list.
pub(crate) fn can_be_followed(register: Register) -> bool {
    !matches!(register, Register::FlatScratchLo | Register::FlatScratchHi)
}

impl Fates {
    /// Follows the value that a register of a wave, of these lanes, has from now on.
    pub fn follow(&mut self, index: u64, wave: WaveId, register: Register, lanes: LaneMask) {
        let lanes = if register.is_per_lane() { lanes } else { LaneMask(1) };
        self.waves.entry(wave).or_default().push(Followed { index, register, lanes });
    }

    /// Whether values of a wave are followed.
    pub fn follows(&self, wave: WaveId) -> bool {
        self.waves.get(&wave).is_some_and(|followed| !followed.is_empty())
    }

    /// A wave has executed an instruction; whether values of it are followed further.
    pub fn see(&mut self, wave: WaveId, effect: &Effect<'_>) -> bool {
        let Some(followed) = self.waves.get_mut(&wave) else { return false };
        let decided = &mut self.decided;
        followed.retain_mut(|own| match own.step(effect) {
            Some(fate) => {
                decided.push((own.index, fate));
                false
            }
            None => true,
        });
        let is_followed = !followed.is_empty();
        if !is_followed {
            self.waves.remove(&wave);
        }
        is_followed
    }

    /// The waves have ended: what became of each value.
    pub fn into_decided(mut self) -> Vec<(u64, Fate)> {
        let left = self.waves.into_values().flatten();
        self.decided.extend(left.map(|own| (own.index, Fate::Dead)));
        self.decided
    }
}

impl Followed {
    fn step(&mut self, effect: &Effect<'_>) -> Option<Fate> {
        let is_read =
            effect.reads_unknown_registers() || self.lanes.0 & effect.reads(self.register).0 != 0;
        if is_read {
            return Some(Fate::Read);
        }
        self.lanes.0 &= !effect.overwrites(self.register).0;
        (self.lanes == LaneMask::EMPTY).then_some(Fate::Overwritten)
    }
}

/// What one execution of an instruction does to values of registers.
pub(crate) struct Effect<'a> {
    pub inst: &'a Inst,
    /// EXEC before it.
    pub exec: LaneMask,
    /// The lanes that it ran on.
    pub written: LaneMask,
}

impl Effect<'_> {
    /// The lanes whose values of a register it reads; of what lanes share, all or none.
    pub fn reads(&self, register: Register) -> LaneMask {
        match register.is_per_lane() {
            _ if !self.registers_read().any(|own| own == register) => LaneMask::EMPTY,
            true if !self.inst.reads_other_lanes() => self.exec,
            _ => LaneMask::FULL,
        }
    }

    /// The lanes whose values of a register it certainly overwrites; of what lanes share, all or none.
    pub fn overwrites(&self, register: Register) -> LaneMask {
        match (register.is_per_lane(), self.inst.lanes_written()) {
            _ if !self.registers_written().any(|own| own == register) => LaneMask::EMPTY,
            (false, _) => LaneMask::FULL,
            (true, LanesWritten::Some) => LaneMask::EMPTY,
            (true, _) => self.written,
        }
    }

    /// The registers that it reads.
    pub fn registers_read(&self) -> impl Iterator<Item = Register> {
        self.inst.reads.iter().flat_map(|range| flags_as_masks(*range).iter())
    }

    /// The registers that it writes.
    pub fn registers_written(&self) -> impl Iterator<Item = Register> {
        self.inst.writes.iter().flat_map(|range| flags_as_masks(*range).iter())
    }

    /// Whether it may read any register.
    pub fn reads_unknown_registers(&self) -> bool {
        reaches_unknown_registers(self.inst)
    }
}

/// Flags that are made of a mask read the mask.
fn flags_as_masks(range: RegisterRange) -> RegisterRange {
    match range.first {
        Register::Vccz => RegisterRange::new(Register::VccLo, 2),
        Register::Execz => RegisterRange::new(Register::ExecLo, 2),
        _ => range,
    }
}

/// Whether an instruction, or those that it changes the meaning of, reach registers that they do
/// not name: by an index in M0, in GPR-index mode, or not at all where vector instructions are
/// skipped.
fn reaches_unknown_registers(inst: &Inst) -> bool {
    inst.indexes_registers()
        || inst.operation.is(Family::GprIndex)
        || inst.operation.opcode() == Opcode::SSetvskip
}
