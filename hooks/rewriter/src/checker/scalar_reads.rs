//! Rule 5 for delayed accesses to scalar registers: no instruction accesses one while an earlier access
//! may be pending, unless the original program does so itself.

use super::code::{ClaimedCode, ClaimedInst, ClaimedInstIndex};
use super::context::CheckContext;
use super::finding::{CheckRule, Finding};
use super::flow::Flow;
use crate::flow::IndexVec;
use flipwave_isa::hazard::{InstrumentedSgprState, Origin, SgprHazardState};

/// Computes the pending accesses on all paths, and checks each instruction.
pub fn check(
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    findings: &mut Vec<Finding>,
) {
    let Some(initial) = context.rules.sgpr_hazards else { return };
    let states = entry_states(context, initial, code, flow);
    for (at, item) in code.items().enumerated() {
        let Some(mut state) = states[at] else { continue };
        skip_removed(&mut state, context, code, at);
        let missing = state.required_wait(&item.facts.inst, origin(item));
        if !missing.is_empty() {
            let wait = initial.mitigation(missing).text();
            let message = format!("missing `{wait}` before `{}`", item.facts.inst);
            let mut finding = Finding::at(CheckRule::Hazards, item.pc, message);
            finding.old = code.original(at).map(|index| context.old_pc(index));
            findings.push(finding);
        }
    }
}

/// The state before each reachable instruction.
fn entry_states(
    context: &CheckContext<'_>,
    initial: SgprHazardState,
    code: &ClaimedCode,
    flow: &Flow,
) -> IndexVec<ClaimedInstIndex, Option<InstrumentedSgprState>> {
    let mut states: IndexVec<ClaimedInstIndex, Option<InstrumentedSgprState>> =
        IndexVec::filled(None, code.items().len());
    // States are joined where paths begin or meet, and replaced elsewhere.
    let mut is_root = IndexVec::filled(false, code.items().len());
    let mut waiting = Vec::new();
    let inserted = code.items().iter().filter(|item| item.is_inserted());
    let called = InstrumentedSgprState::entered(initial, inserted.map(|item| &item.facts.inst));
    let roots = flow.kernels.iter().map(|entry| (entry.first, InstrumentedSgprState::new(initial)));
    let others = flow.entered_from_unknown().map(|first| (first, called));
    for (first, state) in roots.chain(others) {
        states[first].get_or_insert(state).join(&state);
        is_root[first] = true;
        waiting.push(first);
    }
    while let Some(at) = waiting.pop() {
        let Some(mut state) = states[at] else { continue };
        let item = &code.items()[at];
        skip_removed(&mut state, context, code, at);
        // A missing wait is assumed to be present afterwards, so that it is only reported once.
        state = state.after_wait(state.required_wait(&item.facts.inst, origin(item)));
        state.execute(&item.facts.inst, origin(item));
        for next in flow.successors(at) {
            let is_joined = is_root[*next] || flow.predecessors(*next).len() > 1;
            let has_changed = match &mut states[*next] {
                Some(known) if is_joined => known.join(&state),
                known => known.replace(state) != Some(state),
            };
            if has_changed {
                waiting.push(*next);
            }
        }
    }
    states
}

fn origin(item: &ClaimedInst) -> Origin {
    if item.is_inserted() { Origin::Inserted } else { Origin::Original }
}

/// Skips the removed original instructions directly before an original instruction. The code inserted in
/// their place cannot rely on the pending accesses that they would have completed.
fn skip_removed(
    state: &mut InstrumentedSgprState,
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    at: ClaimedInstIndex,
) {
    let Some(index) = code.original(at) else { return };
    let block = context.program.blocks[context.program.block_of(index)].instructions;
    let mut before = index;
    while let Some(previous) = before.previous() {
        if !block.contains(previous) || context.new_pc(previous).is_some() {
            break;
        }
        state.skip_removed(&context.program.instructions[previous]);
        before = previous;
    }
}
