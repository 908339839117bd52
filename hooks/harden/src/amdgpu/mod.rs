//! Hardening of AMD code objects.
//!
//! Copies write to registers that the program does not use. A VGPR sums up the differences of each lane, and
//! each wave counts at its end whether it has detected a difference.

mod candidates;
mod chains;
mod duplicate;
mod harden;
mod plan;

pub use candidates::candidates;
pub use harden::{Hardened, harden};
