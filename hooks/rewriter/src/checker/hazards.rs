//! Rule 5: no instruction follows another one too closely, if one of the two is inserted.
//!
//! The distance between two original instructions only shrinks if an instruction between them was
//! removed. A violation is therefore reported if inserted code is the trigger or the victim of a
//! hazard, or completes one that needs an instruction between the two.

use super::code::{ClaimedCode, ClaimedInst, ClaimedInstIndex};
use super::context::CheckContext;
use super::facts::Facts;
use super::finding::{CheckRule, Finding};
use super::flow::Flow;
use crate::flow::IndexVec;
use flipwave_isa::hazard::{
    HazardIndex, HazardRoles, LOOKBACK_WAIT_STATES, MAX_WAIT_STATES, OpenHazards, Preceding,
    is_completed_by_insertion, violations,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Most paths searched backwards from one instruction. Inserted code has far fewer branches within the
/// reach of a hazard.
const MAX_PATHS: usize = 4096;

/// Wait states searched backwards for hazards that wait states do not resolve. The limit is higher than
/// the rewriter's, because layout adds jumps after the rewriter's search.
const MAX_LOOKBACK: u8 = 2 * LOOKBACK_WAIT_STATES;

/// Checks all instructions that may be victims of hazards. Returns their number.
pub fn check(
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    findings: &mut Vec<Finding>,
) -> usize {
    let mut hazards = HazardIndex::new(&context.rules);
    let mut known: FxHashMap<*const Facts, HazardRoles> = FxHashMap::default();
    let roles: IndexVec<ClaimedInstIndex, HazardRoles> = code
        .items()
        .iter()
        .map(|item| {
            let compute = || hazards.roles(&item.facts.inst);
            *known.entry(Arc::as_ptr(&item.facts)).or_insert_with(compute)
        })
        .collect();
    hazards.narrow(&roles);
    let (mut all, mut inserted) = (HazardRoles::default(), HazardRoles::default());
    for (at, item) in code.items().enumerated() {
        all = all.with_triggers(&roles[at]);
        if item.is_inserted() {
            inserted = inserted.with_triggers(&roles[at]).with_intervening(&roles[at]);
        }
    }
    let mut checked = 0;
    for (at, item) in code.items().enumerated() {
        let inst = &item.facts.inst;
        let victim = roles[at];
        if !victim.is_victim() {
            continue;
        }
        let open = if item.is_inserted() {
            hazards.open_hazards(&victim, &all)
        } else {
            hazards.open_hazards_from_inserted(&victim, &all, &inserted)
        };
        let mut search =
            PathSearch { code, flow, hazards: &hazards, roles: &roles, victim, paths: 0 };
        let mut violation: Option<String> = None;
        let mut visit = |path: &Path<'_>, open: OpenHazards| {
            let before: Vec<Preceding<'_>> = path.iter().map(PathStep::preceding).collect();
            let families = hazards.families().iter();
            for found in families.flat_map(|family| violations(family, &before, inst)) {
                let trigger = path[found.trigger].item;
                let is_completed = || {
                    let originals = path.iter().filter(|step| !step.item.is_inserted());
                    let originals = originals.map(|step| &step.item.facts.inst);
                    is_completed_by_insertion(&found, &trigger.facts.inst, inst, originals)
                };
                if item.is_inserted() || trigger.is_inserted() || is_completed() {
                    violation.get_or_insert_with(|| {
                        format!(
                            "`{inst}` too close to `{}` at {:#x}: {}",
                            trigger.facts.inst, trigger.pc, found.hazard.name
                        )
                    });
                }
            }
            for hazard in hazards.hazards(open).filter(|hazard| hazard.may_predate(&before)) {
                violation.get_or_insert_with(|| {
                    format!("hazard not prevented on a path to `{inst}`: {}", hazard.name)
                });
            }
        };
        let start = PathEnd { at, distance: 0, open };
        search.extend(start, item.is_inserted(), &mut Vec::new(), &mut visit);
        checked += 1;
        if let Some(message) = violation {
            let mut finding = Finding::at(CheckRule::Hazards, item.pc, message);
            finding.old = code.original(at).map(|index| context.old_pc(index));
            findings.push(finding);
        }
    }
    checked
}

/// An instruction on a path searched backwards.
struct PathStep<'a> {
    item: &'a ClaimedInst,
    roles: &'a HazardRoles,
    /// Wait states between this instruction and the victim.
    distance: u8,
}

/// A path searched backwards, with the nearest instruction first.
type Path<'a> = Vec<PathStep<'a>>;

/// The far end of a path, where the search continues.
#[derive(Clone, Copy)]
struct PathEnd {
    /// The search continues with the predecessors of this instruction.
    at: ClaimedInstIndex,
    /// Wait states between the predecessors and the victim.
    distance: u8,
    /// Hazards that may have been triggered before the end of the path.
    open: OpenHazards,
}

impl<'a> PathStep<'a> {
    fn preceding(&self) -> Preceding<'a> {
        Preceding { inst: &self.item.facts.inst, distance: self.distance }
    }
}

/// A search of all paths that lead to an instruction.
struct PathSearch<'a> {
    code: &'a ClaimedCode,
    flow: &'a Flow,
    hazards: &'a HazardIndex,
    roles: &'a IndexVec<ClaimedInstIndex, HazardRoles>,
    /// Hazards that may affect the instruction.
    victim: HazardRoles,
    paths: usize,
}

impl<'a> PathSearch<'a> {
    /// Extends `path` backwards from `end`. Calls `visit` with each complete path on which a hazard may
    /// involve inserted code. If `is_inserted`, the victim is inserted, and all hazards are relevant.
    fn extend(
        &mut self,
        end: PathEnd,
        is_inserted: bool,
        path: &mut Path<'a>,
        visit: &mut dyn FnMut(&Path<'a>, OpenHazards),
    ) {
        let before = self.flow.predecessors(end.at);
        let limit = if end.open.is_empty() { MAX_WAIT_STATES } else { MAX_LOOKBACK };
        if end.distance >= limit || before.is_empty() || self.paths >= MAX_PATHS {
            self.paths += 1;
            let inserted = path.iter().filter(|step| step.item.is_inserted());
            let intervening = inserted
                .fold(HazardRoles::default(), |roles, step| roles.with_intervening(step.roles));
            let is_any = is_inserted || self.hazards.may_intervene(&self.victim, &intervening);
            let is_relevant = path.iter().any(|step| {
                (is_any || step.item.is_inserted())
                    && self.hazards.may_conflict(&self.victim, step.roles, step.distance.into())
            });
            let open = if before.is_empty() { OpenHazards::default() } else { end.open };
            if is_relevant || !open.is_empty() {
                visit(path, open);
            }
            return;
        }
        for previous in before {
            let (item, roles) = (&self.code.items()[*previous], &self.roles[*previous]);
            path.push(PathStep { item, roles, distance: end.distance });
            let distance = end.distance.saturating_add(item.facts.wait_states);
            let mut open = end.open;
            self.hazards.step_back(&mut open, roles);
            self.extend(PathEnd { at: *previous, distance, open }, is_inserted, path, visit);
            path.pop();
        }
    }
}
