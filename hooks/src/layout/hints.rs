//! Hints about the instructions that follow them: they must go where those are edited.
//!
//! - `s_clause` says that the next instructions are memory operations of one kind, and how many;
//!   nothing else may stand between them (RDNA 3 ISA, "S_CLAUSE").
//! - `s_delay_alu` says on which earlier results one or two of the next instructions wait; it
//!   only saves time (RDNA 3 ISA, "S_DELAY_ALU").
//! - `s_sendmsg` of MSG_DEALLOC_VGPRS gives the wave's VGPRs back before its end (RDNA 3 ISA,
//!   "S_SENDMSG"); code behind it has none.

use super::{Edits, Placement};
use crate::flow::{InstIndex, Program};
use flipwave_isa::{Encoding, Generation, Inst, Opcode};
use std::collections::BTreeSet;
use std::ops::Range;

/// MSG_DEALLOC_VGPRS among the messages of gfx11 (LLVM's `SIDefines.h`, `SendMsg`).
const DEALLOC_VGPRS: i64 = 3;

/// The number of instructions behind `inst` that it speaks of.
pub(super) fn group(inst: &Inst) -> u32 {
    if inst.encoding != Encoding::Sopp {
        return 0;
    }
    let field = inst.immediate.unwrap_or_default() as u16;
    match inst.operation.opcode() {
        // SIMM16[5:0] is the length less one.
        Opcode::SClause => u32::from(field & 0x3f) + 1,
        // SIMM16[6:4]: the second instruction is the first itself, the next, or one further on;
        // SIMM16[10:7] is zero where there is no second.
        Opcode::SDelayAlu => match field >> 7 & 0xf {
            0 => 1,
            _ => u32::from(field >> 4 & 7) + 1,
        },
        _ => 0,
    }
}

/// Whether a hint of a function, none that is `dropped`, and what it speaks of are on two sides of
/// the place before an instruction.
pub(super) fn splits(
    program: &Program,
    function: &Range<u32>,
    dropped: &BTreeSet<InstIndex>,
    at: u32,
) -> bool {
    // The longest group: 64 members of a clause.
    let near = at.saturating_sub(64).max(function.start)..at;
    let mut hints = program.insts_of(&near).filter(|(hint, _)| !dropped.contains(hint));
    hints.any(|(InstIndex(hint), inst)| at - hint <= group(inst))
}

/// The hints that do not hold any more. Where a function stays, one that is displaced leaves its
/// group behind.
pub(super) fn dropped(
    program: &Program,
    edits: &Edits,
    placements: &[Placement],
) -> BTreeSet<InstIndex> {
    let mut dropped = BTreeSet::new();
    for (function, placement) in program.functions.iter().zip(placements) {
        let stays = *placement == Placement::Trampoline;
        for index in function.instructions.clone() {
            let Some(inst) = program.instructions.get(index as usize) else { continue };
            if edits.replaced.contains_key(&InstIndex(index)) {
                continue;
            }
            let behind = index + 1..function.instructions.end;
            let members = index + 1..index.saturating_add(1).saturating_add(group(inst));
            let is_broken = match group(inst) {
                0 if gives_registers_back(inst, program) => {
                    is_edited_before_end(program, edits, index, behind.end)
                }
                0 => false,
                _ => {
                    edits.after.contains_key(&InstIndex(index))
                        || stays && edits.touches(InstIndex(index))
                        || edits.touches_any(members.start..members.end.min(behind.end))
                }
            };
            if is_broken {
                dropped.insert(InstIndex(index));
            }
        }
    }
    dropped
}

fn gives_registers_back(inst: &Inst, program: &Program) -> bool {
    inst.encoding == Encoding::Sopp
        && inst.operation.opcode() == Opcode::SSendmsg
        && program.target.generation() >= Generation::Gfx11
        && inst.immediate.is_some_and(|field| field & 0xff == DEALLOC_VGPRS)
}

/// Whether code is inserted between an instruction and the end of the wave, which follows without
/// a branch wherever a compiler gives registers back.
fn is_edited_before_end(program: &Program, edits: &Edits, index: u32, end: u32) -> bool {
    let goes_on = |inst: &Inst| program.control(inst).may_go_on();
    let rest = program.instructions.get(index as usize + 1..end as usize).unwrap_or_default();
    let last = rest.iter().position(|inst| inst.flags.branch || !goes_on(inst));
    match last.and_then(|last| Some((last, rest.get(last)?))) {
        Some((last, inst)) if inst.ends_wave() => {
            edits.after.contains_key(&InstIndex(index))
                || edits.touches_any(index + 1..index + 2 + last as u32)
        }
        // A compiler does not do this; be careful.
        _ => true,
    }
}
