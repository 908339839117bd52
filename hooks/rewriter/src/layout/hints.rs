//! Hints about the instructions that follow them: they must go where those are edited.
//!
//! - `s_clause` says that the next instructions are memory operations of one kind, and how many;
//!   nothing else may stand between them (RDNA 3 ISA, "S_CLAUSE").
//! - `s_delay_alu` says on which earlier results one or two of the next instructions wait; it
//!   only saves time (RDNA 3 ISA, "S_DELAY_ALU").
//! - `s_sendmsg` of MSG_DEALLOC_VGPRS gives the wave's VGPRs back before its end (RDNA 3 ISA,
//!   "S_SENDMSG"); code after it has none.

use super::{Edits, Placement};
use crate::flow::{Disassembly, FunctionIndex, IndexRange, IndexVec, InstIndex};
use crate::point::ProgramPoint;
use flipwave_isa::{Encoding, Generation, Inst, Opcode};
use std::collections::BTreeSet;

/// MSG_DEALLOC_VGPRS among the messages of gfx11 (LLVM's `SIDefines.h`, `SendMsg`).
const DEALLOC_VGPRS: i64 = 3;

/// The number of instructions after `inst` that it is about.
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

/// The hints that do not hold any more. Where a function stays, one that is displaced leaves its
/// group behind.
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
                0 if gives_registers_back(inst, program) => {
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

fn gives_registers_back(inst: &Inst, program: &Disassembly) -> bool {
    inst.encoding == Encoding::Sopp
        && inst.operation.opcode() == Opcode::SSendmsg
        && program.target.generation() >= Generation::Gfx11
        && inst.immediate.is_some_and(|field| field & 0xff == DEALLOC_VGPRS)
}

/// Whether code is inserted between an instruction and the end of the wave, which follows without
/// a branch wherever a compiler gives registers back.
fn is_edited_before_end(
    program: &Disassembly,
    edits: &Edits,
    index: InstIndex,
    end: InstIndex,
) -> bool {
    let goes_on = |inst: &Inst| program.control(inst).may_fall_through();
    let mut rest = program.insts_of(IndexRange::new(index.next(), end));
    match rest.find(|(_, inst)| inst.flags.branch || !goes_on(inst)) {
        Some((last, inst)) if inst.ends_wave() => {
            edits.code.contains_key(&ProgramPoint::after(index))
                || edits.touches_any(IndexRange::new(index.next(), last.next()))
        }
        // A compiler does not do this; be careful.
        _ => true,
    }
}
