//! Emulated instructions in PTX modules.
//!
//! A proxy is any instruction of PTX, usually from inline assembly. `.pragma "flipwave.proxy NAME";` before it marks
//! it as the proxy of an emulated instruction. Pragmas have no effect on the semantics of PTX (PTX ISA, ".pragma"),
//! so that modules with proxies remain valid for other tools.

mod mark;
mod pattern;
mod replacer;
mod scan;
mod wrapper;

pub use mark::PRAGMA;
pub use pattern::PtxPatternError;
pub use replacer::PtxEmulator;
pub use scan::{PtxProxy, PtxScan};
