//! Clauses: the instructions after an `s_clause` must be of one kind.

use super::facts::Facts;
use super::violation::Finding;
use std::sync::Arc;

/// The current clause of a wave.
#[derive(Debug, Default)]
pub struct Clause {
    /// The `s_clause`, and the number of remaining instructions.
    open: Option<(Arc<Facts>, u8)>,
    /// The first instruction of the clause, which determines its kind.
    first: Option<Arc<Facts>>,
}

impl Clause {
    /// Executes an instruction; returns the violation if it breaks the clause. A broken clause
    /// ends.
    pub fn follow(&mut self, facts: &Arc<Facts>) -> Option<Finding> {
        let broken = self.open.take().and_then(|(start, left)| {
            let of_another_kind = facts.clause.kind.is_none()
                || self.first.as_ref().is_some_and(|first| first.clause.kind != facts.clause.kind);
            if of_another_kind && !facts.clause.is_internal {
                let kind = self.first.as_ref().and_then(|first| first.clause.kind);
                return Some(Finding::BreaksClause { clause: start.instruction(), kind });
            }
            if !facts.clause.is_internal {
                self.first.get_or_insert_with(|| Arc::clone(facts));
            }
            self.open = (left > 1).then_some((start, left - 1));
            None
        });
        if self.open.is_none() {
            self.first = None;
            self.open = facts.clause.length.map(|length| (Arc::clone(facts), length));
        }
        broken
    }
}
