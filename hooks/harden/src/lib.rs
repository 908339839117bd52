//! Hardened code: chosen instructions are executed twice, their results are compared, and a wave that
//! has seen a difference counts it when it ends.
//!
//! [`Candidates`] says which instructions of a code object can be, and what each takes; [`harden`]
//! makes the code object in which some of them are. A fault in the result of one of them is either
//! without consequence or counted: what uses the result before it is compared is executed twice, too.

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
