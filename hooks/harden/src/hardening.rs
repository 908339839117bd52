//! Requests for hardened code, and what was duplicated.

use flipwave_arch::{Pc, RegisterId};
use std::collections::BTreeSet;

/// Name of the 64-bit counter of detected differences: of waves, or of lanes in PTX.
pub const DETECTED: &str = "detected";

/// The request for hardening a module.
#[derive(Clone, Copy, Debug)]
pub struct Hardening<'a> {
    /// The addresses of the instructions to duplicate.
    pub instructions: &'a BTreeSet<Pc>,
    /// The selection of results that are compared.
    pub comparing: Comparing,
}

/// The selection of results that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparing {
    /// Compares every result immediately.
    Each,
    /// Compares only the ends of chains: results that are read only by duplicated instructions are not
    /// compared, because the results of those instructions are.
    Ends,
    /// Compares every result with itself, which detects nothing; the negative control of tests.
    Nothing,
}

/// A duplicated instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicated {
    /// The registers of the instruction's results.
    pub results: Vec<RegisterId>,
    /// The number of added instructions, without waits.
    pub instructions: u32,
}
