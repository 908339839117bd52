//! Rule 5, where scalar registers may be read late: on no path does an instruction read one that may
//! not have arrived, unless the original program alone would.

use super::Question;
use super::code::{ClaimedCode, ClaimedInstIndex};
use super::finding::{CheckRule, Finding};
use super::flow::Flow;
use crate::dataflow::LateScalars;
use crate::flow::IndexVec;
use flipwave_isa::hazard::{ScalarReads, ScalarWait};

/// Follows all paths and checks each instruction.
pub fn check(
    question: &Question<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    findings: &mut Vec<Finding>,
) {
    let Some(begin) = question.rules.scalar_reads else { return };
    let late = LateScalars::of(question.program, begin, &|index| flow.is_entered(index));
    let known = entries(begin, code, flow, &late);
    for (at, item) in code.items().enumerated() {
        let Some(known) = known[at] else { continue };
        let missing = missing(&known, code, at, &late);
        if !missing.is_empty() {
            let wait = begin.mitigation(missing).text();
            let what = format!("`{}` without `{wait}` before it", item.facts.inst);
            let mut finding = Finding::at(CheckRule::Hazards, item.pc, what);
            finding.old = code.original(at).map(|index| question.old(index));
            findings.push(finding);
        }
    }
}

/// What is known before each instruction that control comes to.
fn entries(
    begin: ScalarReads,
    code: &ClaimedCode,
    flow: &Flow,
    late: &LateScalars,
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
        // Whoever finds a wait missing says so once.
        state = state.after(missing(&state, code, at, late));
        state.execute(&item.facts.inst);
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

/// What is missing before an instruction, besides what the program itself lacks.
fn missing(
    state: &ScalarReads,
    code: &ClaimedCode,
    at: ClaimedInstIndex,
    late: &LateScalars,
) -> ScalarWait {
    let inst = &code.items()[at].facts.inst;
    match code.original(at) {
        Some(index) => late.missing(index, state, inst),
        None => state.needed(inst),
    }
}
