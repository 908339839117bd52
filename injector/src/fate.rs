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

    /// A wave has executed an instruction, with EXEC as given before it, and wrote `written` lanes;
    /// whether values of it are followed further.
    pub fn see(&mut self, inst: &Inst, wave: WaveId, exec: LaneMask, written: LaneMask) -> bool {
        let Some(followed) = self.waves.get_mut(&wave) else { return false };
        let decided = &mut self.decided;
        followed.retain_mut(|own| match own.step(inst, exec, written) {
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
    fn step(&mut self, inst: &Inst, exec: LaneMask, written: LaneMask) -> Option<Fate> {
        let is_per_lane = self.register.is_per_lane();
        let touches = |ranges: &[RegisterRange]| {
            ranges.iter().any(|range| flags_as_masks(*range).contains(self.register))
        };
        let read_lanes = if inst.reads_other_lanes() { LaneMask::FULL } else { exec };
        let is_read = touches(&inst.reads) && (!is_per_lane || self.lanes.0 & read_lanes.0 != 0);
        if is_read || reaches_unknown_registers(inst) {
            return Some(Fate::Read);
        }
        if touches(&inst.writes) {
            let gone = match (is_per_lane, inst.lanes_written()) {
                (false, _) => LaneMask::FULL,
                (true, LanesWritten::Some) => LaneMask::EMPTY,
                (true, _) => written,
            };
            self.lanes.0 &= !gone.0;
        }
        (self.lanes == LaneMask::EMPTY).then_some(Fate::Overwritten)
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
