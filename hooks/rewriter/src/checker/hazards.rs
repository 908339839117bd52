//! Rule 5: on no path is an instruction too close to another one, where one of the two was
//! inserted.
//!
//! Two original instructions are as far from each other as they were, or further, unless an
//! instruction between them was removed; so a breach counts where it involves inserted code, be it
//! one of the two, or what must lie between them.

use super::Question;
use super::code::{ClaimedCode, ClaimedInst, ClaimedInstIndex};
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

/// Paths back from one instruction that are looked at. What inserted code adds to a program has
/// far fewer branches within the reach of a hazard.
const MOST_PATHS: usize = 4096;

/// Wait states that are looked back over for hazards that wait states do not end: more than the rewriter
/// looks back over, as jumps to code elsewhere have been added since.
const FAR: u8 = 2 * LOOKBACK_WAIT_STATES;

/// Looks at all instructions whose hazards reach inserted code; gives their number.
pub fn check(
    question: &Question<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    findings: &mut Vec<Finding>,
) -> usize {
    let mut rows = HazardIndex::new(&question.rules);
    let mut known: FxHashMap<*const Facts, HazardRoles> = FxHashMap::default();
    let roles: IndexVec<ClaimedInstIndex, HazardRoles> = code
        .items()
        .iter()
        .map(|item| {
            let role = || rows.roles(&item.facts.inst);
            *known.entry(Arc::as_ptr(&item.facts)).or_insert_with(role)
        })
        .collect();
    rows.narrow(&roles);
    let (mut all, mut inserted) = (HazardRoles::default(), HazardRoles::default());
    for (at, item) in code.items().enumerated() {
        all = all.with_triggers(&roles[at]);
        if item.is_inserted() {
            inserted = inserted.with_triggers(&roles[at]).with_intervening(&roles[at]);
        }
    }
    let mut looked_at = 0;
    for (at, item) in code.items().enumerated() {
        let inst = &item.facts.inst;
        let victim = roles[at];
        if !victim.is_victim() {
            continue;
        }
        let open = match item.is_inserted() {
            true => rows.open_hazards(&victim, &all),
            false => rows.open_hazards_from_inserted(&victim, &all, &inserted),
        };
        let mut search = PathSearch { code, flow, rows: &rows, roles: &roles, victim, paths: 0 };
        let mut breach: Option<String> = None;
        let mut visit = |path: &Path<'_>, open: OpenHazards| {
            let before: Vec<Preceding<'_>> = path.iter().map(PathStep::preceding).collect();
            let families = rows.families().iter();
            for found in families.flat_map(|family| violations(family, &before, inst)) {
                let trigger = path[found.trigger].item;
                let is_completed = || {
                    let own = path.iter().filter(|own| !own.item.is_inserted());
                    let own = own.map(|own| &own.item.facts.inst);
                    is_completed_by_insertion(&found, &trigger.facts.inst, inst, own)
                };
                if item.is_inserted() || trigger.is_inserted() || is_completed() {
                    breach.get_or_insert_with(|| {
                        format!(
                            "`{inst}` too close to `{}` at {:#x}: {}",
                            trigger.facts.inst, trigger.pc, found.hazard.name
                        )
                    });
                }
            }
            for hazard in rows.hazards(open).filter(|own| own.may_predate(&before)) {
                breach.get_or_insert_with(|| {
                    format!("nothing on a way to `{inst}` prevents this: {}", hazard.name)
                });
            }
        };
        let start = PathEnd { at, distance: 0, open };
        search.back(start, item.is_inserted(), &mut Vec::new(), &mut visit);
        looked_at += 1;
        if let Some(what) = breach {
            let mut finding = Finding::at(CheckRule::Hazards, item.pc, what);
            finding.old = code.original(at).map(|index| question.old(index));
            findings.push(finding);
        }
    }
    looked_at
}

/// An instruction on a path back.
struct PathStep<'a> {
    item: &'a ClaimedInst,
    roles: &'a HazardRoles,
    /// Wait states between it and the one that the path is to.
    distance: u8,
}

/// A path back, the nearest instruction first.
type Path<'a> = Vec<PathStep<'a>>;

/// Where a path back is to be extended.
#[derive(Clone, Copy)]
struct PathEnd {
    /// The instruction before which.
    at: ClaimedInstIndex,
    /// Wait states from there.
    distance: u8,
    /// Hazards that may have begun before it.
    open: OpenHazards,
}

impl<'a> PathStep<'a> {
    fn preceding(&self) -> Preceding<'a> {
        Preceding { inst: &self.item.facts.inst, distance: self.distance }
    }
}

/// A search through everything that may have been executed before an instruction.
struct PathSearch<'a> {
    code: &'a ClaimedCode,
    flow: &'a Flow,
    rows: &'a HazardIndex,
    roles: &'a IndexVec<ClaimedInstIndex, HazardRoles>,
    /// What may happen to the instruction.
    victim: HazardRoles,
    paths: usize,
}

impl<'a> PathSearch<'a> {
    /// Extends the path backwards from its end; visits it where it is long enough, if anything on it
    /// that was inserted may matter, or anything before it. `is_inserted`: the victim was, so that
    /// anything matters.
    fn back(
        &mut self,
        end: PathEnd,
        is_inserted: bool,
        path: &mut Path<'a>,
        visit: &mut dyn FnMut(&Path<'a>, OpenHazards),
    ) {
        let before = self.flow.predecessors(end.at);
        let limit = if end.open.is_empty() { MAX_WAIT_STATES } else { FAR };
        if end.distance >= limit || before.is_empty() || self.paths >= MOST_PATHS {
            self.paths += 1;
            let inserted = path.iter().filter(|own| own.item.is_inserted());
            let across =
                inserted.fold(HazardRoles::default(), |all, own| all.with_intervening(own.roles));
            let is_any = is_inserted || self.rows.may_intervene(&self.victim, &across);
            let matters = path.iter().any(|own| {
                (is_any || own.item.is_inserted())
                    && self.rows.may_conflict(&self.victim, own.roles, own.distance.into())
            });
            let open = if before.is_empty() { OpenHazards::default() } else { end.open };
            if matters || !open.is_empty() {
                visit(path, open);
            }
            return;
        }
        for previous in before {
            let (item, roles) = (&self.code.items()[*previous], &self.roles[*previous]);
            path.push(PathStep { item, roles, distance: end.distance });
            let distance = end.distance.saturating_add(item.facts.wait_states);
            let mut open = end.open;
            self.rows.step_back(&mut open, roles);
            self.back(PathEnd { at: *previous, distance, open }, is_inserted, path, visit);
            path.pop();
        }
    }
}
