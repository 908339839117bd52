//! Rule 5, where vector operations may read scalar registers late: on no path does an instruction
//! read one that may not have arrived, unless the original program alone would.

use super::Question;
use super::code::{ClaimedCode, ClaimedInst, ClaimedInstIndex};
use super::finding::{CheckRule, Finding};
use super::flow::Flow;
use crate::flow::IndexVec;
use flipwave_isa::Opcode;
use flipwave_isa::hazard::{ScalarReads, ScalarWait};

/// Follows all paths and checks each instruction.
pub fn check(
    question: &Question<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    findings: &mut Vec<Finding>,
) {
    let Some(begin) = question.rules.scalar_reads else { return };
    let new = entries(begin, code, flow, |_| true);
    let original = entries(begin, code, flow, |item| !item.is_inserted());
    for (at, item) in code.items().enumerated() {
        let Some(known) = new[at] else { continue };
        let by_itself = original[at].filter(|_| !item.is_inserted());
        let by_itself = by_itself.map_or(ScalarWait::default(), |own| needed(&own, item));
        let missing = needed(&known, item).without(by_itself);
        if !missing.is_empty() {
            let what = format!("`{}` without `{missing}` before it", item.facts.inst);
            let mut finding = Finding::at(CheckRule::Hazards, item.pc, what);
            finding.old = code.original(at).map(|index| question.old(index));
            findings.push(finding);
        }
    }
}

/// What is known before each instruction that control comes to, where only those are executed of
/// which `counts` holds.
fn entries(
    begin: ScalarReads,
    code: &ClaimedCode,
    flow: &Flow,
    counts: impl Fn(&ClaimedInst) -> bool,
) -> IndexVec<ClaimedInstIndex, Option<ScalarReads>> {
    let mut known: IndexVec<ClaimedInstIndex, Option<ScalarReads>> =
        IndexVec::filled(None, code.items().len());
    // Where paths meet or begin, all of them count; elsewhere it follows from what is before.
    let mut begins = IndexVec::filled(false, code.items().len());
    let mut waiting = Vec::new();
    let roots = flow.kernels.iter().map(|(_, first)| (*first, begin));
    let others = flow.entered_from_elsewhere().map(|first| (first, begin.called()));
    for (first, state) in roots.chain(others) {
        known[first].get_or_insert(state).join(&state);
        begins[first] = true;
        waiting.push(first);
    }
    while let Some(at) = waiting.pop() {
        let Some(mut state) = known[at] else { continue };
        let item = &code.items()[at];
        if counts(item) {
            // Whoever finds a wait missing says so once.
            state = state.after(needed(&state, item));
            state.execute(&item.facts.inst);
        }
        for next in flow.successors(at) {
            let meets = begins[*next] || flow.predecessors(*next).len() > 1;
            let is_more = match &mut known[*next] {
                Some(known) if meets => known.join(&state),
                own => own.replace(state) != Some(state),
            };
            if is_more {
                waiting.push(*next);
            }
        }
    }
    known
}

/// All that was written arrives before control leaves a function, and what an instruction reads
/// before it.
fn needed(state: &ScalarReads, item: &ClaimedInst) -> ScalarWait {
    let leaves = !item.is_inserted()
        && (item.facts.inst.flags.call || item.facts.opcode() == Opcode::SSetpc);
    if leaves { state.pending() } else { state.needed(&item.facts.inst) }
}
