//! Rule 6: clauses are contiguous, and delay hints precede the instructions they describe.

use super::code::{ClaimedCode, ClaimedInst};
use super::context::CheckContext;
use super::finding::{CheckRule, Finding};
use crate::flow::Key;
use flipwave_isa::{Class, Opcode};

/// Checks original and inserted groups of the new code.
pub fn check(context: &CheckContext<'_>, code: &ClaimedCode, findings: &mut Vec<Finding>) {
    for (at, item) in code.items().enumerated() {
        let (length, name) = match item.facts.opcode() {
            Opcode::SClause => (clause_length(item), "clause"),
            Opcode::SDelayAlu => (delay_length(item), "delay hint"),
            _ => continue,
        };
        let members = code.items().iter().skip(at.number() + 1).take(length);
        let mut end = item.end();
        let is_whole = members.clone().count() == length
            && members.clone().all(|member| {
                // An inserted instruction must not split an original group, and vice versa.
                let follows = member.pc == end && member.is_inserted() == item.is_inserted();
                end = member.end();
                follows && (item.facts.opcode() != Opcode::SClause || is_memory(member))
            });
        if !is_whole {
            let message = format!("{name} for {length} instructions is split");
            let mut finding = Finding::at(CheckRule::Groups, item.pc, message);
            finding.old = code.original(at).map(|index| context.old_pc(index));
            findings.push(finding);
        }
    }
}

/// Number of instructions in a clause. Bits 5:0 are the length minus one (RDNA 3 ISA, "S_CLAUSE").
fn clause_length(item: &ClaimedInst) -> usize {
    (item.facts.inst.immediate.unwrap_or_default() & 0x3f) as usize + 1
}

fn is_memory(item: &ClaimedInst) -> bool {
    matches!(item.facts.inst.class(), Class::Vmem | Class::Smem | Class::Lds | Class::Image)
}

/// Number of instructions that a delay hint spans. The first delay applies to the next instruction. If
/// bits 10:7 encode a second delay, bits 6:4 select its instruction: 0 is the same one, 1 the next one,
/// and 2 to 5 skip one to four instructions (RDNA 3 ISA, "S_DELAY_ALU").
fn delay_length(item: &ClaimedInst) -> usize {
    let field = item.facts.inst.immediate.unwrap_or_default() as usize;
    let has_second = field >> 7 & 0xf != 0;
    if has_second { 1 + (field >> 4 & 7) } else { 1 }
}
