//! How often each instruction is executed.

use super::scope::{data, of, room};
use super::{
    InstPlace, Observed, ObservedExecutions, Options, Per, Tool, ToolError, ToolRequests, ToolScope,
};
use flipwave_hooks::flow::{IndexRange, InstIndex};
use flipwave_hooks::hook::{Argument, Mask, Variables};
use flipwave_hooks::rewrite::When;
use serde::Serialize;

/// Counts the executions of each instruction by waves.
#[derive(Clone, Debug)]
pub struct InstructionCount {
    /// The instructions that each counter is for; it stands before the first.
    counted: Vec<IndexRange<InstIndex>>,
}

/// How often waves execute an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Executions {
    /// Their number, whatever EXEC is.
    pub executions: u64,
}

impl InstructionCount {
    /// The count of each instruction of a scope that is counted.
    pub(super) fn counts(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstIndex, u64)>, ToolError> {
        let counters = of(variables, "counters")?;
        let counted = self.counted.iter().zip(counters);
        let each = counted.flat_map(|(range, count)| range.iter().map(move |at| (at, count)));
        Ok(each.filter(|(at, _)| scope.contains(*at)).collect())
    }
}

impl Tool for InstructionCount {
    type Row = (InstPlace, Executions);

    const COLUMNS: &[&str] = &["function", "pc", "instruction", "executions"];

    fn ask(asking: &mut ToolRequests<'_, '_>) -> Result<InstructionCount, ToolError> {
        let scope = asking.scope();
        let counted: Vec<IndexRange<InstIndex>> = match asking.options().per {
            Per::Block => {
                let blocks = scope.program().blocks.iter().map(|block| block.instructions);
                blocks.filter(|range| scope.contains(range.start)).collect()
            }
            Per::Instruction => {
                scope.all().into_iter().map(|at| IndexRange::new(at, at.next())).collect()
            }
        };
        let source = asking.source("count", &[("COUNTERS", room(counted.len()))])?;
        for (range, number) in counted.iter().zip(0u64..) {
            let site = (range.start, When::Before);
            let arguments = vec![data("counters", 0), Argument::LaneConstant(8 * number)];
            asking.call(site, (source, "count"), Mask::Single, arguments);
        }
        Ok(InstructionCount { counted })
    }

    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstPlace, Executions)>, ToolError> {
        Ok(rows(scope, self.counts(scope, variables)?))
    }

    fn counted_at(&self, at: InstIndex) -> IndexRange<InstIndex> {
        let single = IndexRange::new(at, at.next());
        let found = self.counted.binary_search_by_key(&at, |own| own.start);
        found.map_or(single, |own| self.counted[own])
    }
}

impl Observed for InstructionCount {
    type Observer = ObservedExecutions;

    fn observer(_: &Options) -> ObservedExecutions {
        ObservedExecutions::default()
    }

    fn observed(scope: &ToolScope<'_>, seen: &ObservedExecutions) -> Vec<(InstPlace, Executions)> {
        rows(scope, seen.counts(scope))
    }
}

/// The rows of instructions that were counted.
fn rows(scope: &ToolScope<'_>, counts: Vec<(InstIndex, u64)>) -> Vec<(InstPlace, Executions)> {
    let row = |(at, executions)| Some((scope.place(at)?, Executions { executions }));
    counts.into_iter().filter_map(row).collect()
}
