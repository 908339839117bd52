//! What the fuzzers call: a function of bytes for each thing that must stand any bytes.
//!
//! `make fuzz` runs all of them. Functions that read bytes are called by libFuzzer, which the
//! folder `libfuzzer` builds; the rewriter and the queues of the kernel driver are run with random
//! numbers, as what they call is not instrumented for it.

mod campaign;
mod capture;
mod choices;
mod code_object;
#[cfg(test)]
mod driver;
mod metadata;
mod rewriter;
mod site;
#[cfg(test)]
mod smoke;
mod tiers;

pub use campaign::campaign;
pub use capture::capture;
pub use code_object::code_object;
pub use metadata::metadata;
pub use rewriter::rewriter;
pub use site::site;
pub use tiers::tiers;
