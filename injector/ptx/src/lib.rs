//! Faults injected by hooks in rewritten PTX modules, on the simulated GPU that executes PTX, or through NVIDIA's
//! driver ([`HookDevice`]).
//!
//! Only the instruction of the site has hooks, in code that only the dispatch of the site runs. The simulated GPU
//! does not count inserted instructions ([`flipwave_ptx_sim::PtxGpu::load_rewritten`]), so that a run with hooks is
//! the run with an observer ([`flipwave_injector::inject`]), also for waves that share memory, and for the watchdog.
//!
//! A hook runs in the lanes that reach an instruction. Registers of lanes that have taken another way, or that have
//! ended, are out of its reach: a fault in them is refused.

mod calls;
mod device;
mod hooked;
mod injector;
mod library;
mod reach;
mod refusal;
mod request;
mod rewriting;

pub use device::HookDevice;
pub use hooked::{ArmError, HookedCode, LoadedHooks, Strike};
pub use injector::{LaneReach, PtxHookInjector};
pub use reach::unreached_by_hooks;
pub use refusal::{Refusal, supports};
