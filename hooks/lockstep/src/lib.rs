//! Lockstep comparison of original and instrumented code on the embedded GPU.
//!
//! Both versions run the same dispatch on copies of one device. Except for removed instructions, each wave
//! must execute the same original instructions in the same order in both versions. Before each of them, all
//! live registers ([`flipwave_hooks::dataflow`]) must have the same values in the lanes in which they are
//! live. At the end, memory must be the same. Addresses in the code object are translated before they are
//! compared.
//!
//! Each wave runs until it waits for other waves or ends, so that the location of scratch and the results
//! of atomic operations do not depend on the number of inserted instructions. Only a wave that spins on
//! memory until another wave writes it may legitimately differ.

mod addresses;
mod compared;
mod comparison;
mod difference;
mod memory;
mod recorder;
mod replaced;
mod run;

pub use comparison::{Lockstep, LockstepReport};
pub use difference::{Difference, LockstepError};
