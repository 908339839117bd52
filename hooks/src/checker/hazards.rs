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
use flipwave_isa::hazard::{MOST_WAIT_STATES, Preceding, Roles, Rows, breaches, is_completed};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Paths back from one instruction that are looked at. What inserted code adds to a program has
/// far fewer branches within the reach of a hazard.
const MOST_PATHS: usize = 4096;

/// Looks at all instructions whose hazards reach inserted code; gives their number.
pub fn check(
    question: &Question<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    findings: &mut Vec<Finding>,
) -> usize {
    let mut rows = Rows::new(&question.rules);
    let mut known: FxHashMap<*const Facts, Roles> = FxHashMap::default();
    let roles: IndexVec<ClaimedInstIndex, Roles> = code
        .items()
        .iter()
        .map(|item| {
            let role = || rows.roles(&item.facts.inst);
            *known.entry(Arc::as_ptr(&item.facts)).or_insert_with(role)
        })
        .collect();
    rows.narrow(&roles);
    let mut looked_at = 0;
    for (at, item) in code.items().enumerated() {
        let inst = &item.facts.inst;
        let victim = roles[at];
        if !victim.is_victim() {
            continue;
        }
        let mut search = PathSearch { code, flow, rows: &rows, roles: &roles, victim, paths: 0 };
        let mut path = Vec::new();
        let mut breach: Option<(String, u64)> = None;
        search.back(
            at,
            item.is_inserted(),
            0,
            &mut path,
            &mut |before: &[Preceding<'_>], items: &[&ClaimedInst]| {
                let families = rows.families().iter();
                for found in families.flat_map(|family| breaches(family, before, inst)) {
                    let trigger = items[found.trigger];
                    let is_completed = || {
                        let own = items.iter().filter(|own| !own.is_inserted());
                        let own = own.map(|own| &own.facts.inst);
                        is_completed(&found, &trigger.facts.inst, inst, own)
                    };
                    if item.is_inserted() || trigger.is_inserted() || is_completed() {
                        let what = format!(
                            "`{inst}` too close to `{}` at {:#x}: {}",
                            trigger.facts.inst, trigger.pc, found.hazard.name
                        );
                        breach.get_or_insert((what, trigger.pc));
                    }
                }
            },
        );
        looked_at += 1;
        if let Some((what, _)) = breach {
            let mut finding = Finding::at(CheckRule::Hazards, item.pc, what);
            finding.old = code.original(at).map(|index| question.old(index));
            findings.push(finding);
        }
    }
    looked_at
}

/// A search through everything that may have been executed before an instruction.
struct PathSearch<'a> {
    code: &'a ClaimedCode,
    flow: &'a Flow,
    rows: &'a Rows,
    roles: &'a IndexVec<ClaimedInstIndex, Roles>,
    /// What may happen to the instruction.
    victim: Roles,
    paths: usize,
}

impl<'a> PathSearch<'a> {
    /// Extends the path backwards from `at`; visits it where it ends, if anything on it that was
    /// inserted may matter. `is_inserted`: the victim was, so that anything matters.
    fn back(
        &mut self,
        at: ClaimedInstIndex,
        is_inserted: bool,
        distance: u8,
        path: &mut Vec<(&'a ClaimedInst, u8, &'a Roles)>,
        visit: &mut dyn FnMut(&[Preceding<'_>], &[&ClaimedInst]),
    ) {
        let before = self.flow.predecessors(at);
        // What is further back matters only where wait states do not help; such hazards are
        // looked for as far back again.
        let limit =
            if self.rows.has_far(&self.victim) { 2 * MOST_WAIT_STATES } else { MOST_WAIT_STATES };
        if distance >= limit || before.is_empty() {
            self.paths += 1;
            let inserted = path.iter().filter(|(item, ..)| item.is_inserted());
            let across = inserted.fold(Roles::default(), |all, (.., own)| all.with_across(own));
            let is_any = is_inserted || self.rows.may_lie_across(&self.victim, &across);
            let matters = path.iter().any(|(item, distance, own)| {
                (is_any || item.is_inserted())
                    && self.rows.may_meet(&self.victim, own, (*distance).into())
            });
            if matters {
                let items: Vec<&ClaimedInst> = path.iter().map(|(item, ..)| *item).collect();
                let before: Vec<Preceding<'_>> = (path.iter())
                    .map(|(item, distance, _)| Preceding {
                        inst: &item.facts.inst,
                        distance: *distance,
                    })
                    .collect();
                visit(&before, &items);
            }
            return;
        }
        for previous in before {
            if self.paths >= MOST_PATHS {
                return;
            }
            let item = &self.code.items()[*previous];
            path.push((item, distance, &self.roles[*previous]));
            let further = distance.saturating_add(item.facts.wait_states);
            self.back(*previous, is_inserted, further, path, visit);
            path.pop();
        }
    }
}
