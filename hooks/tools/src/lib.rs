//! Tools made of hooks: what a program executes, where it goes to memory, where its lanes part.
//!
//! A [`Tool`] asks for hooks in a code object and makes a table of what they leave in their
//! variables. [`measure()`] puts one into all code of a list of dispatches and runs them. Of an
//! [`Observed`] tool the embedded GPU gives the same table without hooks.

mod address_divergence;
mod bank_conflicts;
mod branch_divergence;
mod dispatch_control;
mod error;
mod guest;
mod instruction_count;
mod kernel_clock;
mod measure;
mod memory_trace;
mod not_counted;
mod observed;
mod opcode_histogram;
mod place;
mod scope;
mod substitute;
mod table;

pub use address_divergence::{AddressDivergence, LineCounts};
pub use bank_conflicts::{BankConflicts, ConflictCounts};
pub use branch_divergence::{BranchCounts, BranchDivergence};
pub use dispatch_control::{ControlRule, DispatchControl, ModuleVersions};
pub use error::ToolError;
pub use guest::{Guest, GuestView};
pub use instruction_count::{Executions, InstructionCount};
pub use kernel_clock::{KernelClock, WaveClock};
pub use measure::{DispatchTable, Instrumented, Measurement, measure, measure_beside};
pub use memory_trace::{MemoryTrace, TracedAccess};
pub use not_counted::{
    Cells, NOT_COUNTED, NotCounted, marked_dispatch, refusal_reasons, refused_sites,
};
pub use observed::{Observed, ObservedAccesses, ObservedExecutions};
pub use opcode_histogram::{OpcodeCount, OpcodeHistogram};
pub use place::{DispatchColumns, InstPlace, WavePosition};
pub use scope::{ToolRequests, ToolScope};
pub use substitute::{Beside, Replacement, Substitute, Substitutes};
pub use table::{Header, lines};

use flipwave_hooks::flow::{IndexRange, InstIndex};
use flipwave_hooks::hook::Variables;
use flipwave_hooks::layout::Placement;
use serde::{Deserialize, Serialize};

/// A tool in a code object.
pub trait Tool: Sized {
    /// A row of its table.
    type Row: Serialize;

    /// The columns of a row, after those of [`DispatchColumns`].
    const COLUMNS: &[&str];

    /// Asks for its hooks.
    ///
    /// # Errors
    /// [`ToolError`] where the hooks do not compile.
    fn ask(asking: &mut ToolRequests<'_, '_>) -> Result<Self, ToolError>;

    /// The table of a dispatch: of what can be reached from its kernel, with what the hooks left
    /// in the variables of each source, in the order they were added.
    ///
    /// # Errors
    /// [`ToolError::Variable`] where the variables are not the tool's.
    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<Self::Row>, ToolError>;

    /// The instructions that a hook at an instruction counts.
    fn counted_at(&self, at: InstIndex) -> IndexRange<InstIndex> {
        IndexRange::new(at, at.next())
    }

    /// Rows for what could not be counted in a dispatch, [`NOT_COUNTED`] in place of numbers.
    fn marked(scope: &ToolScope<'_>) -> Vec<Cells> {
        not_counted::marked_places::<Self>(scope)
    }

    /// How many records found no place, and are missing in the table.
    ///
    /// # Errors
    /// As [`Tool::rows`].
    fn lost(&self, variables: &[Variables<'_>]) -> Result<u64, ToolError> {
        let _ = variables;
        Ok(0)
    }
}

/// Where instructions are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// Once for each basic block, whose instructions all execute as often as its first.
    #[default]
    Block,
    /// At each instruction.
    Instruction,
}

/// Options of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The only kernel to be looked at, with the functions that it may call; all if there is none.
    pub kernel: Option<String>,
    /// Where instructions are counted.
    pub per: Per,
    /// Room for records, per code object.
    pub records: u32,
    /// Where the code of all functions goes, if that is not for the engine to choose.
    pub placement: Option<Placement>,
}

impl Default for Options {
    fn default() -> Options {
        Options { kernel: None, per: Per::default(), records: 1 << 20, placement: None }
    }
}
