//! The tool `instruction-count`: executions of each instruction.

use super::scope::{counter_array_length, counters, variable_address};
use super::{
    InstLocation, ObservableTool, ObservedExecutions, Options, Per, Tool, ToolError, ToolRequests,
    ToolScope,
};
use flipwave_hooks::flow::{IndexRange, InstIndex};
use flipwave_hooks::hook::{Argument, Mask, Variables};
use serde::Serialize;

/// Counts the executions of each instruction by waves.
#[derive(Clone, Debug)]
pub struct InstructionCount {
    /// The instructions of each counter, which is incremented before the first of them.
    counted: Vec<IndexRange<InstIndex>>,
}

/// The number of executions of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Executions {
    /// Executions by waves, independent of EXEC.
    pub executions: u64,
}

impl InstructionCount {
    /// The number of executions of each counted instruction in a scope.
    pub(super) fn counts(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstIndex, u64)>, ToolError> {
        let counters = counters(variables, "counters")?;
        let counted = self.counted.iter().zip(counters);
        let each = counted.flat_map(|(range, count)| range.iter().map(move |at| (at, count)));
        Ok(each.filter(|(at, _)| scope.contains(*at)).collect())
    }
}

impl Tool for InstructionCount {
    type Row = (InstLocation, Executions);

    const COLUMNS: &[&str] = &["function", "pc", "instruction", "executions"];

    fn request_hooks(requests: &mut ToolRequests<'_, '_>) -> Result<InstructionCount, ToolError> {
        let scope = requests.scope();
        let counted: Vec<IndexRange<InstIndex>> = match requests.options().per {
            Per::Block => {
                let blocks = scope.program().blocks.iter().map(|block| block.instructions);
                blocks.filter(|range| scope.contains(range.start)).collect()
            }
            Per::Instruction => {
                scope.all().into_iter().map(|at| IndexRange::new(at, at.next())).collect()
            }
        };
        let macros = [("COUNTERS", counter_array_length(counted.len()))];
        let source = requests.source("count", &macros)?;
        for (range, number) in counted.iter().zip(0u64..) {
            let counters = variable_address("counters", 0);
            let arguments = vec![counters, Argument::LaneConstant(8 * number)];
            requests.call_before(range.start, source, "count", Mask::Single, arguments);
        }
        Ok(InstructionCount { counted })
    }

    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstLocation, Executions)>, ToolError> {
        Ok(rows(scope, self.counts(scope, variables)?))
    }

    fn counted_at(&self, at: InstIndex) -> IndexRange<InstIndex> {
        let single = IndexRange::new(at, at.next());
        let counter = self.counted.binary_search_by_key(&at, |range| range.start);
        counter.map_or(single, |counter| self.counted[counter])
    }
}

impl ObservableTool for InstructionCount {
    type Observer = ObservedExecutions;

    fn observer(_: &Options) -> ObservedExecutions {
        ObservedExecutions::default()
    }

    fn observed_rows(
        scope: &ToolScope<'_>,
        observer: &ObservedExecutions,
    ) -> Vec<(InstLocation, Executions)> {
        rows(scope, observer.counts(scope))
    }
}

/// Builds the rows of the counted instructions.
fn rows(scope: &ToolScope<'_>, counts: Vec<(InstIndex, u64)>) -> Vec<(InstLocation, Executions)> {
    let row = |(at, executions)| Some((scope.location(at)?, Executions { executions }));
    counts.into_iter().filter_map(row).collect()
}
