//! Rule 5, where scalar registers may be read late: on no path does an instruction read one that may
//! not have arrived, unless the original program alone would.

use super::Question;
use super::code::{ClaimedCode, ClaimedInst, ClaimedInstIndex};
use super::finding::{CheckRule, Finding};
use super::flow::Flow;
use crate::flow::IndexVec;
use flipwave_isa::hazard::{InstrumentedSgprState, Origin, SgprHazardState};

/// Follows all paths and checks each instruction.
pub fn check(
    question: &Question<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    findings: &mut Vec<Finding>,
) {
    let Some(begin) = question.rules.sgpr_hazards else { return };
    let known = entries(question, begin, code, flow);
    for (at, item) in code.items().enumerated() {
        let Some(mut known) = known[at] else { continue };
        pass_removed(&mut known, question, code, at);
        let missing = known.required_wait(&item.facts.inst, author(item));
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
    question: &Question<'_>,
    begin: SgprHazardState,
    code: &ClaimedCode,
    flow: &Flow,
) -> IndexVec<ClaimedInstIndex, Option<InstrumentedSgprState>> {
    let mut known: IndexVec<ClaimedInstIndex, Option<InstrumentedSgprState>> =
        IndexVec::filled(None, code.items().len());
    // Where paths meet or begin, all of them count; elsewhere it follows from what is before.
    let mut begins = IndexVec::filled(false, code.items().len());
    let mut waiting = Vec::new();
    let inserted = code.items().iter().filter(|item| item.is_inserted());
    let called = InstrumentedSgprState::entered(begin, inserted.map(|item| &item.facts.inst));
    let roots = flow.kernels.iter().map(|(_, first)| (*first, InstrumentedSgprState::new(begin)));
    let others = flow.entered_from_elsewhere().map(|first| (first, called));
    for (first, state) in roots.chain(others) {
        known[first].get_or_insert(state).join(&state);
        begins[first] = true;
        waiting.push(first);
    }
    while let Some(at) = waiting.pop() {
        let Some(mut state) = known[at] else { continue };
        let item = &code.items()[at];
        pass_removed(&mut state, question, code, at);
        // Whoever finds a wait missing says so once.
        state = state.after_wait(state.required_wait(&item.facts.inst, author(item)));
        state.execute(&item.facts.inst, author(item));
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

fn author(item: &ClaimedInst) -> Origin {
    if item.is_inserted() { Origin::Inserted } else { Origin::Original }
}

/// Passes over the instructions of the program that were between one and the last before it, and are gone.
/// What was inserted in their places stands before the one, and cannot have relied on what they ended.
fn pass_removed(
    state: &mut InstrumentedSgprState,
    question: &Question<'_>,
    code: &ClaimedCode,
    at: ClaimedInstIndex,
) {
    let Some(index) = code.original(at) else { return };
    let block = question.program.blocks[question.program.block_of(index)].instructions;
    let mut before = index;
    while let Some(previous) = before.previous() {
        if !block.contains(previous) || question.place(previous).is_some() {
            break;
        }
        state.skip_removed(&question.program.instructions[previous]);
        before = previous;
    }
}
