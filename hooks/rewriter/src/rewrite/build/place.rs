//! Layout of the edited code, without edits whose trampolines cannot be reached.

use super::Build;
use super::insert::Insertions;
use crate::flow::InstIndex;
use crate::layout::{self, CodeLayout, LayoutError, Placement};
use crate::point::{ProgramPoint, When};
use crate::rewrite::{Instrumentation, RewriteError, hazards};
use flipwave_isa::Pc;
use std::collections::BTreeMap;

impl Build<'_> {
    /// Pads the code against hazards and lays it out. Edits whose trampolines cannot be reached are removed
    /// and reported as refused.
    pub(super) fn lay_out(
        &mut self,
        insertions: &mut Insertions<'_>,
        address: Pc,
    ) -> Result<CodeLayout, RewriteError> {
        let Instrumentation { rules, object, program, .. } = self.instrumentation;
        let isa = program.isa()?;
        loop {
            let mut placements = insertions.edits.placements.values();
            let has_trampolines = placements.any(|placement| *placement == Placement::Trampoline);
            // Only trampolines can be unreachable, which requires another round.
            let mut edits = if has_trampolines {
                insertions.edits.clone()
            } else {
                std::mem::take(&mut insertions.edits)
            };
            let padding = hazards::pad(*rules, program, &mut edits, &isa)?;
            match layout::relayout(object, program, &edits, address) {
                Err(LayoutError::Sites(refused)) if has_trampolines => {
                    let sites: BTreeMap<InstIndex, String> = refused
                        .iter()
                        .filter_map(|(pc, reason)| {
                            Some((self.nearest_edit(insertions, *pc)?, reason.clone()))
                        })
                        .collect();
                    if sites.is_empty() {
                        return Err(LayoutError::Sites(refused).into());
                    }
                    for (at, reason) in sites {
                        self.remove_edits(insertions, at, &reason);
                    }
                }
                layout => {
                    self.report.padding = padding;
                    let layout = layout?;
                    return match layout.stale.first() {
                        Some(at) => Err(self.stale(*at)),
                        None => Ok(layout),
                    };
                }
            }
        }
    }

    /// The error for a reference at `at` that cannot be redirected.
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

    /// The edited instruction because of which the instruction at `pc` is displaced: itself or, if only
    /// padding is inserted there, the nearest one.
    fn nearest_edit(&self, insertions: &Insertions<'_>, pc: Pc) -> Option<InstIndex> {
        let program = &self.instrumentation.program;
        let at = program.at(pc)?;
        let function = &program.functions[program.function_of(at)];
        insertions.edits.nearest(at, function.instructions)
    }

    /// Removes the edits of an instruction and reports them as refused.
    fn remove_edits(&mut self, insertions: &mut Insertions<'_>, at: InstIndex, reason: &str) {
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
