//! Instrumentation tools: a C file with hooks, their places in the code, and a table.
//!
//! A [`ToolFile`] is compiled for the GPU, which executes its hooks, and for the host, where a separate process
//! decides where hooks are inserted and computes rows. [`measure()`] instruments the code of a list of
//! dispatches with a [`Tool`] and runs them. For some of the shipped tools, an [`ObservableTool`] builds the
//! same table inside the embedded GPU without hooks.

mod amdgpu_request;
mod cell;
mod code;
mod columns;
mod csv_lines;
mod dispatch_control;
mod emulated;
mod error;
mod executions;
mod facts;
mod fault_model;
mod file;
mod guest;
mod host;
mod inst_facts;
mod measure;
mod observed;
mod output;
mod ptx;
mod recording;
mod refusals;
mod request;
mod scope;
mod stream;
mod tool;

pub use cell::{Cell, NOT_COUNTED, Row};
pub use code::{ToolCode, uncounted_dispatch};
pub use columns::{DispatchColumns, InstLocation, WavePosition};
pub use csv_lines::{csv_header, csv_lines};
pub use dispatch_control::{ControlRule, DispatchControl, ModuleVersions};
pub use emulated::{EmulatedInst, EmulatedInsts, Replacements, Replacer};
pub use error::ToolError;
pub use executions::{InstExecutions, count_executions};
pub use fault_model::{FaultFacts, FaultModelFile, FaultModelFunction};
pub use file::ToolFile;
pub use guest::Guest;
pub use host::PTX_HEADER;
pub use measure::{
    DISPATCH_NUMBER, DispatchTable, Instrumented, Measurement, measure, measure_with, wave_size,
};
pub use observed::{
    InstructionCount, MemoryTrace, ObservableTool, ObservedAccesses, ObservedExecutions,
    OpcodeHistogram,
};
pub use ptx::{
    InstrumentedModule, InstrumentedPtx, PtxDevice, PtxObservation, PtxReplacements, PtxReplacer,
    PtxRunner, PtxTool, RunningRecords, measure_ptx,
};
pub use recording::{CodeScope, HookVariables};
pub use refusals::{refusal_reasons, refused_sites};
pub use scope::ToolScope;
pub use stream::{LoadedStreams, StreamMemory, TakenRecords};
pub use tool::{DispatchFacts, Recorded, TableRows, Tool};

use flipwave_hooks::layout::Placement;
use serde::{Deserialize, Serialize};

/// Options of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The kernel to instrument, with the functions that it may call; `None` for all kernels.
    pub kernel: Option<String>,
    /// The capacity of each stream of a code object, in records.
    pub records: u32,
    /// The placement of hooks in all functions; `None` lets the engine choose.
    pub placement: Option<Placement>,
}

impl Default for Options {
    fn default() -> Options {
        Options { kernel: None, records: 1 << 20, placement: None }
    }
}
