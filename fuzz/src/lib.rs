//! Entry points of the fuzzers: a function of bytes for each component that must accept arbitrary bytes.
//!
//! `make fuzz` runs all of them. libFuzzer calls the parsers; the workspace in the folder `libfuzzer`
//! builds these programs. The rewriter, the tiers and the queues of the kernel driver take random
//! numbers instead, because their code is not instrumented for coverage.

mod campaign;
mod capture;
mod choices;
mod code_object;
#[cfg(test)]
mod driver;
mod fat_binary;
mod metadata;
mod ptx;
mod rewriter;
mod site;
#[cfg(test)]
mod smoke;
mod tiers;

pub use campaign::campaign;
pub use capture::capture;
pub use code_object::code_object;
pub use fat_binary::fat_binary;
pub use metadata::metadata;
pub use ptx::ptx;
pub use rewriter::rewriter;
pub use site::site;
pub use tiers::tiers;
