//! The tool `opcode-histogram`: executions of each operation.

use super::{
    Cells, InstructionCount, NOT_COUNTED, ObservableTool, ObservedExecutions, Options, Tool,
    ToolError, ToolRequests, ToolScope,
};
use flipwave_hooks::flow::{IndexRange, InstIndex};
use flipwave_hooks::hook::Variables;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Counts the executions of each operation by waves.
#[derive(Clone, Debug)]
pub struct OpcodeHistogram {
    count: InstructionCount,
}

/// The number of executions of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpcodeCount {
    /// The name of the operation, the same for all of its encodings.
    pub operation: String,
    /// Executions by waves, independent of EXEC; never 0.
    pub executions: u64,
}

impl Tool for OpcodeHistogram {
    type Row = OpcodeCount;

    const COLUMNS: &[&str] = &["operation", "executions"];

    fn request_hooks(requests: &mut ToolRequests<'_, '_>) -> Result<OpcodeHistogram, ToolError> {
        Ok(OpcodeHistogram { count: InstructionCount::request_hooks(requests)? })
    }

    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<OpcodeCount>, ToolError> {
        Ok(histogram(scope, self.count.counts(scope, variables)?))
    }

    fn counted_at(&self, at: InstIndex) -> IndexRange<InstIndex> {
        self.count.counted_at(at)
    }

    fn uncounted_rows(scope: &ToolScope<'_>) -> Vec<Cells> {
        let operations = uncounted_operations(scope).into_iter();
        operations.map(|name| vec![name.to_owned(), NOT_COUNTED.to_owned()]).collect()
    }
}

/// The operations of instructions that could not be counted, whose totals are therefore unknown.
fn uncounted_operations<'a>(scope: &ToolScope<'a>) -> BTreeSet<&'a str> {
    scope.not_counted().filter_map(|at| scope.operation(at)).collect()
}

impl ObservableTool for OpcodeHistogram {
    type Observer = ObservedExecutions;

    fn observer(_: &Options) -> ObservedExecutions {
        ObservedExecutions::default()
    }

    fn observed_rows(scope: &ToolScope<'_>, observer: &ObservedExecutions) -> Vec<OpcodeCount> {
        histogram(scope, observer.counts(scope))
    }
}

/// Builds the rows of the counted operations.
fn histogram(scope: &ToolScope<'_>, counts: Vec<(InstIndex, u64)>) -> Vec<OpcodeCount> {
    let mut operations: BTreeMap<&str, u64> = BTreeMap::new();
    for (at, count) in counts {
        if let Some(operation) = scope.operation(at).filter(|_| count > 0) {
            *operations.entry(operation).or_default() += count;
        }
    }
    let uncounted = uncounted_operations(scope);
    operations.retain(|operation, _| !uncounted.contains(operation));
    let row = |(operation, executions): (&str, u64)| OpcodeCount {
        operation: operation.to_owned(),
        executions,
    };
    operations.into_iter().map(row).collect()
}
