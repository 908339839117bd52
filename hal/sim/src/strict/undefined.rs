//! Where an undefined value matters: addresses, EXEC, branches, jumps, register indices. Data that
//! is stored does not: compilers store the undefined parts of vectors and structures.

use super::shadow::Shadow;
use super::violation::{Finding, Purpose};
use crate::instruction::control::{Condition, Control};
use crate::instruction::lds::LdsAccess;
use crate::instruction::scalar_memory;
use crate::instruction::vector_memory::Space;
use crate::instruction::{Op, Run, Word};
use crate::wave::{Machine, RowIndex, ScalarIndex, Wave};
use flipwave_isa::{AccVgpr, Generation, LaneMask, Register, RegisterRange, Sgpr, Vgpr};

/// What an instruction decides by undefined values, and in which lanes.
pub fn check(shadow: &Shadow, wave: &Wave, op: &Op) -> Option<(Finding, LaneMask)> {
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
                    // Elsewhere the hardware sets it up, or s_setreg.
                    if wave.machine.flat_scratch == ScalarIndex::FLAT_SCRATCH {
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
                LdsAccess::Permute | LdsAccess::BackwardPermute | LdsAccess::Swizzle => {}
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
                Condition::VccZero(_) if vcc_is_undecided(shadow, wave) => {
                    words.extend(scalars(ScalarIndex::VCC, wave.machine.lanes / 32));
                }
                _ => {}
            }
            Purpose::Condition
        }
        Run::Control(Control::SetPc | Control::SwapPc) => {
            words.extend(op.sources[0].words);
            Purpose::Target
        }
        _ if is_indexed(wave, op) => {
            if shadow.scalars[usize::from(ScalarIndex::M0.0)] & index_bits(wave) != 0 {
                words.push(Word::Scalar(ScalarIndex::M0));
            }
            Purpose::Index
        }
        _ => return None,
    };
    let is_per_lane = matches!(op.run, Run::VectorMemory(_) | Run::Lds(_));
    let active = if is_per_lane { wave.exec() } else { LaneMask::FULL };
    let mut lanes = 0;
    let mut registers: Vec<RegisterRange> = Vec::new();
    for word in words {
        let undefined = shadow.undefined_lanes(word).0 & active.0;
        if undefined == 0 {
            continue;
        }
        lanes |= undefined;
        let range = register(word, wave.machine).map(|register| RegisterRange::new(register, 1));
        registers.extend(range.filter(|range| !registers.contains(range)));
    }
    if lanes == 0 {
        return None;
    }
    let lanes = if is_per_lane { LaneMask(lanes) } else { LaneMask::EMPTY };
    Some((Finding::Undefined { registers, purpose }, lanes))
}

/// EXEC of which bits are undefined. It then counts as what it is.
pub fn exec(shadow: &mut Shadow) -> Option<(Finding, LaneMask)> {
    let exec = usize::from(ScalarIndex::EXEC.0);
    let lanes = u64::from(shadow.scalars[exec]) | u64::from(shadow.scalars[exec + 1]) << 32;
    shadow.scalars[exec..].fill(0);
    let registers = vec![RegisterRange::new(Register::ExecLo, 2)];
    let finding = Finding::Undefined { registers, purpose: Purpose::Exec };
    (lanes != 0).then_some((finding, LaneMask(lanes)))
}

/// Whether VCC may be zero or not, by its undefined bits.
fn vcc_is_undecided(shadow: &Shadow, wave: &Wave) -> bool {
    let vcc = usize::from(ScalarIndex::VCC.0);
    let undefined = u64::from(shadow.scalars[vcc]) | u64::from(shadow.scalars[vcc + 1]) << 32;
    let undefined = undefined & wave.machine.all_lanes().0;
    undefined != 0 && wave.vcc() & !undefined == 0
}

fn is_indexed(wave: &Wave, op: &Op) -> bool {
    let moves = matches!(op.run, Run::Vector(_) | Run::Whole(_)) && wave.mode.indexes_vgprs();
    moves || op.inst.indexes_registers()
}

/// The bits of M0 that decide which register is meant: in GPR-index mode an index and which operands
/// it moves (MI200 ISA, "S_SET_GPR_IDX_ON"), which is all that the instructions of this mode write.
fn index_bits(wave: &Wave) -> u32 {
    if wave.mode.indexes_vgprs() { 0xf0ff } else { u32::MAX }
}

/// The register that a word of a source names.
fn register(word: Word, machine: Machine) -> Option<Register> {
    let sgprs = if machine.generation < Generation::Gfx10 { 102 } else { 106 };
    match word {
        Word::Row(RowIndex(row)) => Some(match row.checked_sub(machine.accumulation.0) {
            Some(number) => Register::AccVgpr(AccVgpr(number as u8)),
            None => Register::Vgpr(Vgpr(row as u8)),
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
        .find(|register| ScalarIndex::of(*register) == Some(index)),
        Word::Scc => Some(Register::Scc),
        _ => None,
    }
}
