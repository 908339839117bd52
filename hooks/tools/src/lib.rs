//! Instrumentation tools: instruction counts, memory traces, divergence, bank conflicts, wave clocks.
//!
//! A [`Tool`] requests hooks in a code object and builds a table from the variables that the hooks write.
//! [`measure()`] instruments the code of a list of dispatches with a tool and runs them. For an
//! [`ObservableTool`], the embedded GPU can build the same table without hooks.

mod address_divergence;
mod bank_conflicts;
mod branch_divergence;
mod columns;
mod csv_lines;
mod dispatch_control;
mod emulated;
mod error;
mod guest;
mod instruction_count;
mod kernel_clock;
mod measure;
mod memory_trace;
mod not_counted;
mod observed;
mod opcode_histogram;
mod scope;

pub use address_divergence::{AddressDivergence, LineCounts};
pub use bank_conflicts::{BankConflicts, ConflictCounts};
pub use branch_divergence::{BranchCounts, BranchDivergence};
pub use columns::{DispatchColumns, InstLocation, WavePosition};
pub use csv_lines::{Header, csv_lines};
pub use dispatch_control::{ControlRule, DispatchControl, ModuleVersions};
pub use emulated::{EmulatedInst, EmulatedInsts, Replacements, Replacer};
pub use error::ToolError;
pub use guest::Guest;
pub use instruction_count::{Executions, InstructionCount};
pub use kernel_clock::{KernelClock, WaveClock};
pub use measure::{DispatchTable, Instrumented, Measurement, measure, measure_with};
pub use memory_trace::{MemoryTrace, TracedAccess};
pub use not_counted::{
    Cells, NOT_COUNTED, NotCounted, refusal_reasons, refused_sites, uncounted_dispatch,
};
pub use observed::{ObservableTool, ObservedAccesses, ObservedExecutions};
pub use opcode_histogram::{OpcodeCount, OpcodeHistogram};
pub use scope::{ToolRequests, ToolScope};

use flipwave_hooks::flow::{IndexRange, InstIndex};
use flipwave_hooks::hook::Variables;
use flipwave_hooks::layout::Placement;
use serde::{Deserialize, Serialize};

/// A tool that instruments one code object.
pub trait Tool: Sized {
    /// A row of the tool's table.
    type Row: Serialize;

    /// The names of the columns of a row, after those of [`DispatchColumns`].
    const COLUMNS: &[&str];

    /// Requests the tool's hooks.
    ///
    /// # Errors
    /// [`ToolError`] if the hooks do not compile.
    fn request_hooks(requests: &mut ToolRequests<'_, '_>) -> Result<Self, ToolError>;

    /// Builds the table of a dispatch for the code in `scope`. `variables` has the variables of each hook
    /// source after the dispatch, in the order in which the sources were added.
    ///
    /// # Errors
    /// [`ToolError::Variable`] if the variables are not those of this tool's hooks.
    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<Self::Row>, ToolError>;

    /// The instructions that are counted by the hook at instruction `at`.
    fn counted_at(&self, at: InstIndex) -> IndexRange<InstIndex> {
        IndexRange::new(at, at.next())
    }

    /// Rows for the instructions that could not be counted, with [`NOT_COUNTED`] in place of numbers.
    fn uncounted_rows(scope: &ToolScope<'_>) -> Vec<Cells> {
        not_counted::uncounted_instructions::<Self>(scope)
    }

    /// The number of records that are missing in the table because the record buffer was full.
    ///
    /// # Errors
    /// As [`Tool::rows`].
    fn lost_records(&self, variables: &[Variables<'_>]) -> Result<u64, ToolError> {
        let _ = variables;
        Ok(0)
    }
}

/// The granularity at which executions are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// One counter per basic block, since all instructions of a block execute equally often.
    #[default]
    Block,
    /// One counter per instruction.
    Instruction,
}

/// Options of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The kernel to instrument, with the functions that it may call; `None` for all kernels.
    pub kernel: Option<String>,
    /// The granularity at which executions are counted.
    pub per: Per,
    /// The capacity of the record buffer of a code object, in records.
    pub records: u32,
    /// The placement of hooks in all functions; `None` lets the engine choose.
    pub placement: Option<Placement>,
}

impl Default for Options {
    fn default() -> Options {
        Options { kernel: None, per: Per::default(), records: 1 << 20, placement: None }
    }
}
