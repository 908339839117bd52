//! How often each operation is executed.

use super::{
    InstructionCount, Observed, ObservedExecutions, Options, Tool, ToolError, ToolRequests,
    ToolScope,
};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::Variables;
use serde::Serialize;
use std::collections::BTreeMap;

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
    let row = |(operation, executions): (&str, u64)| OpcodeCount {
        operation: operation.to_owned(),
        executions,
    };
    operations.into_iter().map(row).collect()
}
