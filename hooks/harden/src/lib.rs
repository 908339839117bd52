//! Hardening by selective instruction duplication: chosen instructions are executed twice, their results
//! are compared, and the program counts detected differences.
//!
//! [`amdgpu`] hardens code objects and [`ptx`] hardens PTX modules. Both list the instructions that can be
//! duplicated with the cost of each ([`Candidates`]), and create a version of the code in which chosen
//! instructions are duplicated ([`Hardening`]). A fault in the result of a duplicated instruction has no
//! effect or is counted, since instructions that read the result before it is compared are duplicated too.

pub mod amdgpu;
mod candidates;
mod error;
mod hardening;
pub mod ptx;

pub use candidates::{Candidate, Candidates};
pub use error::{HardenError, Reason};
pub use hardening::{Comparing, DETECTED, Duplicated, Hardening};
