//! Addresses for the code, without the sites that turn out not to be reachable.

use super::Build;
use super::insert::Insertions;
use crate::flow::InstIndex;
use crate::layout::{self, CodeLayout, LayoutError, Placement};
use crate::point::{ProgramPoint, When};
use crate::rewrite::{Instrumentation, RewriteError, hazards};
use flipwave_isa::Pc;
use std::collections::BTreeMap;

impl Build<'_> {
    /// Pads the code and gives it addresses; sites that turn out not to be reachable are left out.
    pub(super) fn lay_out(
        &mut self,
        insertions: &mut Insertions<'_>,
        address: Pc,
    ) -> Result<CodeLayout, RewriteError> {
        let Instrumentation { rules, object, program, .. } = self.instrumentation;
        let isa = program.isa()?;
        loop {
            let stays =
                insertions.edits.placements.values().any(|own| *own == Placement::Trampoline);
            // Only where code stays are there sites that cannot be reached, and a next round.
            let mut edits = match stays {
                true => insertions.edits.clone(),
                false => std::mem::take(&mut insertions.edits),
            };
            let padding = hazards::pad(*rules, program, &mut edits, &isa)?;
            match layout::relayout(object, program, &edits, address) {
                Err(LayoutError::Sites(refused)) if stays => {
                    let sites: BTreeMap<InstIndex, String> = refused
                        .iter()
                        .filter_map(|(pc, reason)| {
                            Some((self.site(insertions, *pc)?, reason.clone()))
                        })
                        .collect();
                    if sites.is_empty() {
                        return Err(LayoutError::Sites(refused).into());
                    }
                    for (at, reason) in sites {
                        self.leave_out(insertions, at, &reason);
                    }
                }
                other => {
                    self.report.padding = padding;
                    let layout = other?;
                    return match layout.stale.first() {
                        Some(at) => Err(self.stale(*at)),
                        None => Ok(layout),
                    };
                }
            }
        }
    }

    /// An instruction of a function that stays leads to the old code of one that moved.
    fn stale(&self, at: InstIndex) -> RewriteError {
        let program = &self.instrumentation.program;
        let name = |at: InstIndex| program.functions[program.function_of(at)].name.to_string();
        let chain = program.addresses.iter().find(|chain| chain.getpc == at);
        let inst = &program.instructions[at];
        let to = chain.map(|chain| chain.target).or(inst.branch_target);
        RewriteError::Stale {
            pc: inst.pc,
            from: name(at),
            to: to.and_then(|to| program.at(to)).map_or_else(String::new, name),
        }
    }

    /// The site that is to blame for an instruction that cannot be displaced: itself or, where
    /// only padding stands before it, the nearest.
    fn site(&self, insertions: &Insertions<'_>, pc: Pc) -> Option<InstIndex> {
        let program = &self.instrumentation.program;
        let at = program.at(pc)?;
        let function = &program.functions[program.function_of(at)];
        insertions.edits.nearest(at, function.instructions)
    }

    /// Takes a site out that has turned out not to be reachable.
    fn leave_out(&mut self, insertions: &mut Insertions<'_>, at: InstIndex, reason: &str) {
        for when in [When::Before, When::After, When::Instead] {
            let point = ProgramPoint::new(at, when);
            if insertions.edits.code.remove(&point).is_none() {
                continue;
            }
            let calls = insertions.calls.remove(&point).unwrap_or_default();
            if calls.is_empty() {
                // Instructions inserted as text.
                self.refuse(point, "", reason.to_owned());
            }
            for call in calls {
                self.refuse(point, call.hook, reason.to_owned());
            }
        }
    }
}
