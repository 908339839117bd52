//! A fault injected by hooks in an application's kernels, which the tools library puts there: as on
//! hardware.

mod interceptor;
mod plan;

pub use plan::{HookPlan, HookedSession, PlannedCode};

pub(crate) use interceptor::HookedFault;
