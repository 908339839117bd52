//! Def-use pruning: whether the golden run reads a register's value before it is overwritten or the
//! wave ends.
//!
//! A fault in a value that is never read is masked: until the value is read, the faulty run equals the
//! golden run.

use flipwave_arch::{Instruction, LaneMask, RegisterId};
use flipwave_device::WaveId;
use std::collections::HashMap;

/// The next use of a value after the fault site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextUse {
    /// An instruction reads the value, or may read it.
    Read,
    /// The value is overwritten before any read.
    Overwritten,
    /// The wave ends before any read.
    Dead,
}

/// Values of waves being followed, each with the index of its injection.
#[derive(Debug, Default)]
pub(crate) struct NextUses {
    waves: HashMap<WaveId, Vec<Followed>>,
    decided: Vec<(u64, NextUse)>,
}

#[derive(Clone, Copy, Debug)]
struct Followed {
    index: u64,
    register: RegisterId,
    /// For a per-lane register, the lanes that still hold the value.
    lanes: LaneMask,
}

impl NextUses {
    /// Follows the value currently held by a wave's register in the given lanes.
    pub fn follow(&mut self, index: u64, wave: WaveId, register: RegisterId, lanes: LaneMask) {
        let lanes = if register.is_per_lane() { lanes } else { LaneMask(1) };
        self.waves.entry(wave).or_default().push(Followed { index, register, lanes });
    }

    /// Returns `true` if any value of the wave is followed.
    pub fn follows(&self, wave: WaveId) -> bool {
        self.waves.get(&wave).is_some_and(|followed| !followed.is_empty())
    }

    /// Updates the values of a wave after it executed an instruction. Returns `true` if any of them is
    /// still followed.
    pub fn observe(&mut self, wave: WaveId, effect: &Effect<'_>) -> bool {
        let Some(followed) = self.waves.get_mut(&wave) else { return false };
        let decided = &mut self.decided;
        followed.retain_mut(|value| match value.step(effect) {
            Some(next_use) => {
                decided.push((value.index, next_use));
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

    /// Ends all waves and returns the next use of each value.
    pub fn into_decided(mut self) -> Vec<(u64, NextUse)> {
        let left = self.waves.into_values().flatten();
        self.decided.extend(left.map(|value| (value.index, NextUse::Dead)));
        self.decided
    }
}

impl Followed {
    fn step(&mut self, effect: &Effect<'_>) -> Option<NextUse> {
        let is_read =
            effect.reads_unknown_registers() || self.lanes.0 & effect.reads(self.register).0 != 0;
        if is_read {
            return Some(NextUse::Read);
        }
        self.lanes.0 &= !effect.overwrites(self.register).0;
        (self.lanes == LaneMask::EMPTY).then_some(NextUse::Overwritten)
    }
}

/// Effect of one execution of an instruction on register values.
pub(crate) struct Effect<'a> {
    pub inst: &'a dyn Instruction,
    /// EXEC before the instruction.
    pub exec: LaneMask,
    /// Lanes that the instruction ran on.
    pub written: LaneMask,
}

impl Effect<'_> {
    /// Lanes whose value of a register is read; for scalar registers, all or none.
    pub fn reads(&self, register: RegisterId) -> LaneMask {
        let mut is_read = false;
        self.inst.for_each_read(&mut |read| is_read |= read == register);
        match register.is_per_lane() {
            _ if !is_read => LaneMask::EMPTY,
            true if !self.inst.reads_other_lanes() => self.exec,
            _ => LaneMask::FULL,
        }
    }

    /// Lanes whose value of a register is certainly overwritten; for scalar registers, all or none.
    pub fn overwrites(&self, register: RegisterId) -> LaneMask {
        let mut is_written = false;
        self.inst.for_each_written(&mut |written| is_written |= written == register);
        match register.is_per_lane() {
            _ if !is_written => LaneMask::EMPTY,
            false => LaneMask::FULL,
            true if self.inst.overwrites_some_lanes() => LaneMask::EMPTY,
            true => self.written,
        }
    }

    /// Returns `true` if the instruction may read any register.
    pub fn reads_unknown_registers(&self) -> bool {
        self.inst.reaches_unknown_registers()
    }
}
