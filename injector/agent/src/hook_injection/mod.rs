//! Injects a fault with hooks in an application's kernels, on the embedded GPU or on hardware.

mod hook_injector;
mod plan;

pub use plan::{HookInjectionSession, HookPlan, PlannedCode};

pub(crate) use hook_injector::HookInjector;
