//! Hints about following instructions, which are removed if these instructions are edited:
//!
//! - `s_clause` declares the next instructions as a clause of memory operations of one kind, which must
//!   not be interrupted (RDNA 3 ISA, "S_CLAUSE").
//! - `s_delay_alu` tells on which earlier results the next instructions depend; it affects only
//!   performance (RDNA 3 ISA, "S_DELAY_ALU").
//! - `s_sendmsg` with MSG_DEALLOC_VGPRS releases the wave's VGPRs before its end (RDNA 3 ISA,
//!   "S_SENDMSG"); code after it must not use VGPRs.

use super::{Edits, Placement};
use crate::flow::{Disassembly, FunctionIndex, IndexRange, IndexVec, InstIndex};
use crate::point::ProgramPoint;
use flipwave_isa::{Encoding, Generation, Inst, Opcode};
use std::collections::BTreeSet;

/// Message number of MSG_DEALLOC_VGPRS (LLVM's `SIDefines.h`, `SendMsg`).
const DEALLOC_VGPRS: i64 = 3;

/// Number of instructions after the hint `inst` that it refers to; zero for other instructions.
pub(super) fn group(inst: &Inst) -> u32 {
    if inst.encoding != Encoding::Sopp {
        return 0;
    }
    let field = inst.immediate.unwrap_or_default() as u16;
    match inst.operation.opcode() {
        // SIMM16[5:0] is the length minus one.
        Opcode::SClause => u32::from(field & 0x3f) + 1,
        // SIMM16[6:4] is the distance from the first to the second instruction; SIMM16[10:7] is zero if
        // there is no second.
        Opcode::SDelayAlu => match field >> 7 & 0xf {
            0 => 1,
            _ => u32::from(field >> 4 & 7) + 1,
        },
        _ => 0,
    }
}

/// Returns `true` if a split before `at` separates a hint, other than those in `dropped`, from an
/// instruction that it refers to.
pub(super) fn splits(
    program: &Disassembly,
    function: IndexRange<InstIndex>,
    dropped: &BTreeSet<InstIndex>,
    at: InstIndex,
) -> bool {
    // The longest group: 64 members of a clause.
    let near = InstIndex(at.0.saturating_sub(64)).max(function.start);
    let near = IndexRange::new(near, at);
    let mut hints = program.insts_of(near).filter(|(hint, _)| !dropped.contains(hint));
    hints.any(|(hint, inst)| at.0 - hint.0 <= group(inst))
}

/// The hints that edits invalidate. In a function that stays, this includes displaced hints, which are
/// separated from their groups.
pub(super) fn dropped(
    program: &Disassembly,
    edits: &Edits,
    placements: &IndexVec<FunctionIndex, Placement>,
) -> BTreeSet<InstIndex> {
    let mut dropped = BTreeSet::new();
    for (function, placement) in program.functions.iter().zip(placements) {
        let stays = *placement == Placement::Trampoline;
        let end = function.instructions.end;
        for (index, inst) in program.insts_of(function.instructions) {
            if edits.code.contains_key(&ProgramPoint::instead(index)) {
                continue;
            }
            let is_broken = match group(inst) {
                0 if releases_vgprs(inst, program) => {
                    is_edited_before_end(program, edits, index, end)
                }
                0 => false,
                count => {
                    let members = InstIndex(index.0.saturating_add(1).saturating_add(count));
                    edits.code.contains_key(&ProgramPoint::after(index))
                        || stays && edits.touches(index)
                        || edits.touches_any(IndexRange::new(index.next(), members.min(end)))
                }
            };
            if is_broken {
                dropped.insert(index);
            }
        }
    }
    dropped
}

fn releases_vgprs(inst: &Inst, program: &Disassembly) -> bool {
    inst.encoding == Encoding::Sopp
        && inst.operation.opcode() == Opcode::SSendmsg
        && program.target.generation() >= Generation::Gfx11
        && inst.immediate.is_some_and(|field| field & 0xff == DEALLOC_VGPRS)
}

/// Returns `true` if code is inserted between the release of VGPRs at `index` and the end of the wave.
/// Compilers emit no branch in between.
fn is_edited_before_end(
    program: &Disassembly,
    edits: &Edits,
    index: InstIndex,
    end: InstIndex,
) -> bool {
    let falls_through = |inst: &Inst| program.control(inst).may_fall_through();
    let mut rest = program.insts_of(IndexRange::new(index.next(), end));
    match rest.find(|(_, inst)| inst.flags.branch || !falls_through(inst)) {
        Some((last, inst)) if inst.ends_wave() => {
            edits.code.contains_key(&ProgramPoint::after(index))
                || edits.touches_any(IndexRange::new(index.next(), last.next()))
        }
        // Compilers do not emit this; remove the hint to be safe.
        _ => true,
    }
}
