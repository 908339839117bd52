//! Hypothetical instructions: code has a proxy in their place, an instruction that the target has
//! and that means nothing there, and a hook in C says what they do.
//!
//! A pattern distinguishes proxies from other instructions. [`Scan`] finds them in a code object and
//! says what is in the way, before anything is changed; [`Scan::replace`] asks the instrumentation
//! engine to remove each and to call the hook instead, with the registers and constants of the
//! proxy's operands.

mod beside;
mod error;
mod instruction;
mod mark;
mod pattern;
mod scan;
mod signature;

pub use beside::Emulator;
pub use error::{EmulateError, NearMiss};
pub use instruction::{Instruction, Lanes, Matching};
pub use pattern::{Binding, File, Kind, PatternError};
pub use scan::{Emulated, Scan};
