//! Instructions that can be duplicated.

use crate::Reason;
use flipwave_arch::Pc;
use std::collections::{BTreeMap, BTreeSet};

/// An instruction that can be duplicated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The instruction in assembly syntax.
    pub text: String,
    /// The number of instructions added by the copy.
    pub copy: u32,
    /// The number of instructions added by the comparison of the results, including waits for loads.
    pub comparison: u32,
    /// The instructions that read the result. If all of them are duplicated too, the result need not be
    /// compared. `None` if there may be other readers, or none.
    pub readers: Option<BTreeSet<Pc>>,
}

/// The instructions of a module that can be duplicated.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// The instructions that can be duplicated, by address.
    pub instructions: BTreeMap<Pc, Candidate>,
    /// The other instructions, with the reason.
    pub others: BTreeMap<Pc, Reason>,
}
