//! Rule 6: groups of instructions are whole.

use super::Question;
use super::code::{ClaimedCode, ClaimedInst};
use super::finding::{CheckRule, Finding};
use crate::flow::Key;
use flipwave_isa::{Class, Opcode};

/// Checks the groups of the new code, original and inserted.
pub fn check(question: &Question<'_>, code: &ClaimedCode, findings: &mut Vec<Finding>) {
    for (at, item) in code.items().enumerated() {
        let (length, what) = match item.facts.opcode() {
            Opcode::SClause => (clause_length(item), "a clause"),
            Opcode::SDelayAlu => (delay_length(item), "what a delay hint is about"),
            _ => continue,
        };
        let members = code.items().iter().skip(at.number() + 1).take(length);
        let mut end = item.end();
        let is_whole = members.clone().count() == length
            && members.clone().all(|member| {
                // A hook's instruction in the guest's group would split it, and the other way
                // round.
                let follows = member.pc == end && member.is_inserted() == item.is_inserted();
                end = member.end();
                follows && (item.facts.opcode() != Opcode::SClause || is_memory(member))
            });
        if !is_whole {
            let what = format!("{what} of {length} instructions is not whole");
            let mut finding = Finding::at(CheckRule::Groups, item.pc, what);
            finding.old = code.original(at).map(|index| question.old(index));
            findings.push(finding);
        }
    }
}

/// Bits 5:0 are the length less one (RDNA 3 ISA, "S_CLAUSE").
fn clause_length(item: &ClaimedInst) -> usize {
    (item.facts.inst.immediate.unwrap_or_default() & 0x3f) as usize + 1
}

fn is_memory(item: &ClaimedInst) -> bool {
    matches!(item.facts.inst.class(), Class::Vmem | Class::Smem | Class::Lds | Class::Image)
}

/// The first delay is about the next instruction; the second, if bits 10:7 name one, about the one
/// that bits 6:4 say: 0 the same, 1 the next, 2 to 5 with one to four skipped (RDNA 3 ISA,
/// "S_DELAY_ALU").
fn delay_length(item: &ClaimedInst) -> usize {
    let field = item.facts.inst.immediate.unwrap_or_default() as usize;
    let has_second = field >> 7 & 0xf != 0;
    if has_second { 1 + (field >> 4 & 7) } else { 1 }
}
