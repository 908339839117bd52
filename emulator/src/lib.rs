//! Emulates instructions that no chip has. Code contains a proxy in place of each emulated instruction, an
//! otherwise unused instruction of the target; a hook in C implements the emulated instruction.
//!
//! A pattern distinguishes proxies from other instructions. [`Scan`] finds the proxies in a code object and
//! reports errors before anything is changed. [`Scan::replace`] requests that the instrumentation engine
//! replace each proxy by a call of the hook, with the registers and constants of the proxy's operands.

mod error;
mod instruction;
mod mark;
mod pattern;
mod ptx;
mod replacer;
mod scan;
mod signature;
mod sites;

pub use error::{ClosestMatch, EmulateError};
pub use instruction::{Instruction, Lanes, Matching};
pub use pattern::{Binding, File, Kind, PatternError};
pub use ptx::{PRAGMA, PtxEmulator, PtxPatternError, PtxProxy, PtxScan};
pub use replacer::Emulator;
pub use scan::{Proxy, Scan};
