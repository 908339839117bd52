//! How often each operation is executed.

use super::{
    Cells, InstructionCount, NOT_COUNTED, Observed, ObservedExecutions, Options, Tool, ToolError,
    ToolRequests, ToolScope,
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

/// How often waves execute an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpcodeCount {
    /// The operation, one name across encodings.
    pub operation: String,
    /// Their number, whatever EXEC is; never 0.
    pub executions: u64,
}

impl Tool for OpcodeHistogram {
    type Row = OpcodeCount;

    const COLUMNS: &[&str] = &["operation", "executions"];

    fn ask(asking: &mut ToolRequests<'_, '_>) -> Result<OpcodeHistogram, ToolError> {
        Ok(OpcodeHistogram { count: InstructionCount::ask(asking)? })
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

    fn marked(scope: &ToolScope<'_>) -> Vec<Cells> {
        let operations = unknown(scope).into_iter();
        operations.map(|own| vec![own.to_owned(), NOT_COUNTED.to_owned()]).collect()
    }
}

/// Operations of instructions that were not counted: how often they are executed is not known.
fn unknown<'a>(scope: &ToolScope<'a>) -> BTreeSet<&'a str> {
    scope.not_counted().filter_map(|at| scope.operation(at)).collect()
}

impl Observed for OpcodeHistogram {
    type Observer = ObservedExecutions;

    fn observer(_: &Options) -> ObservedExecutions {
        ObservedExecutions::default()
    }

    fn observed(scope: &ToolScope<'_>, seen: &ObservedExecutions) -> Vec<OpcodeCount> {
        histogram(scope, seen.counts(scope))
    }
}

/// The rows of instructions that were counted.
fn histogram(scope: &ToolScope<'_>, counts: Vec<(InstIndex, u64)>) -> Vec<OpcodeCount> {
    let mut operations: BTreeMap<&str, u64> = BTreeMap::new();
    for (at, count) in counts {
        if let Some(operation) = scope.operation(at).filter(|_| count > 0) {
            *operations.entry(operation).or_default() += count;
        }
    }
    let unknown = unknown(scope);
    operations.retain(|operation, _| !unknown.contains(operation));
    let row = |(operation, executions): (&str, u64)| OpcodeCount {
        operation: operation.to_owned(),
        executions,
    };
    operations.into_iter().map(row).collect()
}
