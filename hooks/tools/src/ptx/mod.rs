//! Tools on PTX modules.
//!
//! The C file of a tool is the same as for AMD GPUs. Each requested call becomes a call of a wrapper, which passes
//! the arguments to the tool's hook: a function of the module that the lanes of a wave execute together.

mod access;
mod emulated;
mod facts;
mod instrumented;
mod measure;
mod module;
mod observed;
mod request;
mod scope;
mod wrapper;

pub use emulated::{PtxReplacements, PtxReplacer};
pub use instrumented::InstrumentedPtx;
pub use measure::{PtxRunner, measure_ptx};
pub use module::{InstrumentedModule, PtxDevice, RunningRecords};
pub use observed::PtxObservation;
pub use request::PtxTool;
