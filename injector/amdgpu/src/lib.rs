//! Parts of fault injection that only AMD's instruction set has: faults injected by hooks in rewritten
//! code objects, and golden runs on the strict level.

mod fault_function;
mod hooks;
mod strict;

pub use fault_function::{read_function, register_function};

pub use hooks::{
    HookInjector, HookedCode, LaunchShape, OrderError, Refusal, SiteHooks, load_apart, supports,
    unreached_by_hooks,
};
pub use strict::golden_strict;
