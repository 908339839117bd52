//! Uses of marked values that decide something: addresses, EXEC, branches, jumps, register indices.
//! Stores of marked data are no decisions: compilers store the undefined parts of vectors and
//! structures.

use super::Shadow;
use crate::instruction::control::{Condition, Control};
use crate::instruction::lds::LdsAccess;
use crate::instruction::scalar_memory;
use crate::instruction::vector_memory::Space;
use crate::instruction::{Op, Run, Word};
use crate::wave::{Machine, RowIndex, ScalarIndex, Wave};
use flipwave_isa::{AccVgpr, Generation, LaneMask, Register, RegisterRange, Sgpr, Vgpr};
use std::fmt;

/// A decision of an instruction that depends on marked values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Registers that hold the values.
    pub registers: Vec<RegisterRange>,
    /// The decision.
    pub purpose: Purpose,
    /// Affected lanes; empty if the decision does not concern lanes.
    pub lanes: LaneMask,
}

/// Kind of decision that depends on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Address of a memory or LDS access.
    Address,
    /// Set of active lanes.
    Exec,
    /// Condition of a branch.
    Condition,
    /// Target of a jump.
    Target,
    /// Index of an accessed register.
    Index,
    /// Conversion of a number to an integer.
    Integer,
    /// Estimate of an integer quotient.
    Quotient,
    /// Result of a comparison.
    Comparison,
}

impl Purpose {
    /// First purpose in their order.
    pub const FIRST: Purpose = Purpose::Address;
    /// Last purpose in their order.
    pub const LAST: Purpose = Purpose::Comparison;
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Purpose::Address => "is used as an address",
            Purpose::Exec => "decides which lanes are active",
            Purpose::Condition => "decides a branch",
            Purpose::Target => "is where a jump goes",
            Purpose::Index => "selects a register",
            Purpose::Integer => "is converted to an integer",
            Purpose::Quotient => "is the estimate of a quotient of integers",
            Purpose::Comparison => "is compared",
        })
    }
}

impl Shadow {
    /// Returns the decision of the next instruction that depends on marked values.
    pub fn decision(&self, wave: &Wave, op: &Op) -> Option<Decision> {
        decision(self, wave, op)
    }

    /// Returns a decision about the marked bits of EXEC after an instruction, and unmarks them.
    pub fn decide_exec(&mut self) -> Option<Decision> {
        let exec = usize::from(ScalarIndex::EXEC.0);
        let lanes = u64::from(self.scalars[exec]) | u64::from(self.scalars[exec + 1]) << 32;
        self.scalars[exec..].fill(0);
        let registers = vec![RegisterRange::new(Register::ExecLo, 2)];
        let (purpose, lanes) = (Purpose::Exec, LaneMask(lanes));
        (lanes != LaneMask::EMPTY).then_some(Decision { registers, purpose, lanes })
    }
}

fn decision(shadow: &Shadow, wave: &Wave, op: &Op) -> Option<Decision> {
    let is_vcc = matches!(op.run, Run::Control(Control::Branch(Condition::VccZero(_))));
    let (purpose, words) = match decided_by(op, wave.machine) {
        Some(_) if is_vcc && !vcc_is_undecided(shadow, wave) => return None,
        Some((Purpose::Index, _)) | None if is_indexed(wave, op) => {
            let marked = shadow.scalars[usize::from(ScalarIndex::M0.0)] & index_bits(wave);
            let word = (marked != 0).then_some(Word::Scalar(ScalarIndex::M0));
            (Purpose::Index, word.into_iter().collect())
        }
        decided => decided?,
    };
    let is_per_lane = matches!(op.run, Run::VectorMemory(_) | Run::Lds(_));
    let active = if is_per_lane { wave.exec() } else { LaneMask::FULL };
    let mut lanes = 0;
    let mut registers: Vec<RegisterRange> = Vec::new();
    for word in words {
        let marked = shadow.marked_lanes(word).0 & active.0;
        if marked == 0 {
            continue;
        }
        lanes |= marked;
        let range = register(word, wave.machine).map(|register| RegisterRange::new(register, 1));
        registers.extend(range.filter(|range| !registers.contains(range)));
    }
    if lanes == 0 {
        return None;
    }
    let lanes = if is_per_lane { LaneMask(lanes) } else { LaneMask::EMPTY };
    Some(Decision { registers, purpose, lanes })
}

/// Decision that an instruction makes, and the words that it depends on. For moves between
/// registers selected by an index, only the words that always matter. Decisions about EXEC are made
/// by writing it.
pub fn decided_by(op: &Op, machine: Machine) -> Option<(Purpose, Vec<Word>)> {
    let scalars = |first: ScalarIndex, count: u8| {
        (0..count).map(move |word| Word::Scalar(ScalarIndex((first.0 + word) & 127)))
    };
    let mut words: Vec<Word> = Vec::new();
    let purpose = match op.run {
        Run::VectorMemory(access) => {
            words.extend(op.sources[0].words);
            words.push(op.sources[3].words[0]);
            match (access.space, op.sources[2].words) {
                (Space::Buffer { .. }, [Word::Scalar(first), _]) => words.extend(scalars(first, 4)),
                (Space::Scratch, base) => {
                    words.push(base[0]);
                    // On other targets the hardware or s_setreg initializes it.
                    if machine.flat_scratch == ScalarIndex::FLAT_SCRATCH {
                        words.extend(scalars(ScalarIndex::FLAT_SCRATCH, 2));
                    }
                }
                (_, base) => words.extend(base),
            }
            Purpose::Address
        }
        Run::Lds(access) => {
            match access {
                LdsAccess::Count { .. } | LdsAccess::ReadByThread | LdsAccess::WriteByThread => {
                    words.push(Word::Scalar(ScalarIndex::M0))
                }
                access if access.is_exchange() => {}
                _ => words.push(op.sources[0].words[0]),
            }
            Purpose::Address
        }
        Run::ScalarMemory(access) => {
            match (access.space, op.sources[0].words) {
                (scalar_memory::Space::Buffer, [Word::Scalar(first), _]) => {
                    words.extend(scalars(first, 4));
                }
                _ if access.transfer == scalar_memory::Transfer::Clock => {}
                (_, base) => words.extend(base),
            }
            words.push(op.sources[1].words[0]);
            Purpose::Address
        }
        Run::Control(Control::Branch(condition)) => {
            match condition {
                Condition::Scc(_) => words.push(Word::Scc),
                Condition::VccZero(_) => {
                    words.extend(scalars(ScalarIndex::VCC, machine.lanes / 32));
                }
                _ => {}
            }
            Purpose::Condition
        }
        Run::Control(Control::SetPc | Control::SwapPc) => {
            words.extend(op.sources[0].words);
            Purpose::Target
        }
        _ if op.inst.indexes_registers() => {
            words.push(Word::Scalar(ScalarIndex::M0));
            Purpose::Index
        }
        _ => return None,
    };
    Some((purpose, words))
}

/// Returns `true` if the marked bits of VCC decide whether it is zero.
fn vcc_is_undecided(shadow: &Shadow, wave: &Wave) -> bool {
    let vcc = usize::from(ScalarIndex::VCC.0);
    let marked = u64::from(shadow.scalars[vcc]) | u64::from(shadow.scalars[vcc + 1]) << 32;
    let marked = marked & wave.machine.all_lanes().0;
    marked != 0 && wave.vcc() & !marked == 0
}

fn is_indexed(wave: &Wave, op: &Op) -> bool {
    let moves = matches!(op.run, Run::Vector(_) | Run::Whole(_)) && wave.mode.indexes_vgprs();
    moves || op.inst.indexes_registers()
}

/// Bits of M0 that select a register: in GPR-index mode, the index and the operands it applies to
/// (MI200 ISA, "S_SET_GPR_IDX_ON"), which are the only bits that the instructions of this mode
/// write.
fn index_bits(wave: &Wave) -> u32 {
    if wave.mode.indexes_vgprs() { 0xf0ff } else { u32::MAX }
}

/// Register of a word of a source.
pub fn register(word: Word, machine: Machine) -> Option<Register> {
    let sgprs = if machine.generation < Generation::Gfx10 { 102 } else { 106 };
    match word {
        Word::Row(RowIndex(row)) => Some(match row.checked_sub(machine.accumulation.0) {
            Some(number) => Register::AccVgpr(AccVgpr(number as u8)),
            None => Register::Vgpr(Vgpr(row)),
        }),
        Word::Scalar(ScalarIndex(n)) if n < sgprs => Some(Register::Sgpr(Sgpr(n))),
        Word::Scalar(index) => [
            Register::FlatScratchLo,
            Register::FlatScratchHi,
            Register::VccLo,
            Register::VccHi,
            Register::M0,
            Register::ExecLo,
            Register::ExecHi,
        ]
        .into_iter()
        .find(|register| machine.scalar(*register) == Some(index)),
        Word::Scc => Some(Register::Scc),
        _ => None,
    }
}
