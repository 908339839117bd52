//! Hardening by selective instruction duplication: chosen instructions are executed twice, their results
//! are compared, and each wave counts at its end whether it has detected a difference.
//!
//! [`Candidates`] lists the instructions of a code object that can be duplicated, and the cost of each.
//! [`harden`] creates a code object with chosen instructions duplicated. A fault in the result of a
//! duplicated instruction has no effect or is counted, since instructions that read the result before it
//! is compared are duplicated too.

mod candidates;
mod chains;
mod duplicate;
mod error;
mod harden;
mod plan;

pub use candidates::{Candidate, Candidates};
pub use error::{HardenError, Reason};
pub use harden::{DETECTED, Duplicated, Hardened, Hardening, harden};
pub use plan::Comparing;
