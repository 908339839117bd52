//! Instrumentation of code objects: requests, and the rewritten code object.

mod build;
mod error;
mod extract;
mod growth;
mod hazards;
mod instrumentation;
mod jumps;
mod placements;
mod prologue;
mod report;
mod reserve;
mod selection;
mod side_by_side;
mod split;
#[cfg(test)]
mod tests;

pub use crate::point::{ProgramPoint, When};
pub use error::RewriteError;
pub use extract::alone;
pub use instrumentation::{HookCall, Instrumentation, Rewritten, SourceIndex};
pub use report::{KernelReport, Refused, Report};
pub use reserve::ValueStorage;
pub use selection::{Position, Selection};
pub use side_by_side::{SideBySide, SideBySideError};
