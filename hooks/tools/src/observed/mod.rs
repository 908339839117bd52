//! Tables of tools from observers inside the embedded GPU, which executes the original code. They are the
//! reference that the tables from hooks are tested against.

mod accesses;
mod executions;

pub use accesses::ObservedAccesses;
pub use executions::ObservedExecutions;

use super::stream::MOST_AT_ONCE;
use super::{Cell, InstLocation, Row, ToolScope, WavePosition};
use flipwave_device::WaveId;
use flipwave_sim::Observer;
use std::collections::BTreeMap;

/// The content of a table without hooks, for the shipped tools that support it.
pub trait ObservableTool {
    /// The observer of one dispatch.
    type Observer: Observer + Send;

    /// The name of the shipped tool.
    const NAME: &str;
    /// The names of the columns, after those of [`DispatchColumns`](super::DispatchColumns).
    const COLUMNS: &[&str];

    /// Creates an observer for a dispatch that keeps at most `records` records if these are less than a wave may
    /// append at once.
    fn observer(records: u32) -> Self::Observer;

    /// Builds the table of the observed dispatch. Records are in the order in which waves executed them. With
    /// hooks, whose instructions also count for scheduling, waves alternate at different points, so only
    /// records of the same wave are in the same order.
    fn observed_rows(scope: &ToolScope<'_>, observer: &Self::Observer) -> Vec<Row>;

    /// The number of records missing because the record buffer was full.
    fn lost_observations(observer: &Self::Observer) -> u64 {
        let _ = observer;
        0
    }
}

/// The shipped tool `instruction-count`.
#[derive(Clone, Copy, Debug)]
pub struct InstructionCount;

/// The shipped tool `opcode-histogram`.
#[derive(Clone, Copy, Debug)]
pub struct OpcodeHistogram;

/// The shipped tool `memory-trace`.
#[derive(Clone, Copy, Debug)]
pub struct MemoryTrace;

impl ObservableTool for InstructionCount {
    type Observer = ObservedExecutions;

    const NAME: &str = "instruction-count";
    const COLUMNS: &[&str] = &["function", "pc", "instruction", "executions"];

    fn observer(_: u32) -> ObservedExecutions {
        ObservedExecutions::default()
    }

    fn observed_rows(scope: &ToolScope<'_>, observer: &ObservedExecutions) -> Vec<Row> {
        let row = |(at, executions)| {
            let mut row = Vec::from(scope.location(at)?.cells());
            row.push(Cell::Unsigned(executions));
            Some(row)
        };
        observer.counts(scope).into_iter().filter_map(row).collect()
    }
}

impl ObservableTool for OpcodeHistogram {
    type Observer = ObservedExecutions;

    const NAME: &str = "opcode-histogram";
    const COLUMNS: &[&str] = &["operation", "executions"];

    fn observer(_: u32) -> ObservedExecutions {
        ObservedExecutions::default()
    }

    fn observed_rows(scope: &ToolScope<'_>, observer: &ObservedExecutions) -> Vec<Row> {
        let mut operations: BTreeMap<&str, u64> = BTreeMap::new();
        for (at, count) in observer.counts(scope) {
            if let Some(operation) = scope.operation(at).filter(|_| count > 0) {
                *operations.entry(operation).or_default() += count;
            }
        }
        let row = |(name, count): (&str, u64)| vec![Cell::text(name), Cell::Unsigned(count)];
        operations.into_iter().map(row).collect()
    }
}

impl ObservableTool for MemoryTrace {
    type Observer = ObservedAccesses;

    const NAME: &str = "memory-trace";
    const COLUMNS: &[&str] = &[
        "function",
        "pc",
        "instruction",
        "workgroup_x",
        "workgroup_y",
        "workgroup_z",
        "wave",
        "lane",
        "address",
        "bytes",
    ];

    fn observer(records: u32) -> ObservedAccesses {
        // As with hooks, nothing is lost if waves can wait for space in a ring of this size.
        let is_limited = u64::from(records) < MOST_AT_ONCE;
        ObservedAccesses::new(is_limited.then_some(records.max(1)))
    }

    fn observed_rows(scope: &ToolScope<'_>, observer: &ObservedAccesses) -> Vec<Row> {
        observer.rows(scope)
    }

    fn lost_observations(observer: &ObservedAccesses) -> u64 {
        observer.lost()
    }
}

impl InstLocation {
    /// The cells of the columns function, PC and instruction.
    pub fn cells(&self) -> [Cell; 3] {
        let pc = Cell::text(&self.pc.to_string());
        [Cell::text(&self.function), pc, Cell::text(&self.instruction)]
    }
}

impl From<WaveId> for WavePosition {
    fn from(id: WaveId) -> WavePosition {
        let [workgroup_x, workgroup_y, workgroup_z] = id.workgroup;
        WavePosition { workgroup_x, workgroup_y, workgroup_z, wave: id.wave }
    }
}
