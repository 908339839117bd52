//! A fault injected by hooks in an application's kernels, which the tools library puts there: as on
//! hardware.

mod plan;
mod striking;

pub use plan::{HookPlan, HookedSession, PlannedCode};

pub(crate) use striking::Striking;
