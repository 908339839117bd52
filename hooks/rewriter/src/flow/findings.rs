//! Inputs and results of tracking addresses in a function.

use super::block::JumpTarget;
use flipwave_isa::{Generation, Pc, Register, RegisterSet, Sgpr};
use std::collections::{BTreeMap, BTreeSet};

/// Facts about the rest of the program.
pub struct ProgramContext<'a> {
    /// The target's generation.
    pub generation: Generation,
    /// Relocated pointers: ELF virtual addresses by location.
    pub relocated: &'a BTreeMap<u64, u64>,
    /// Registers that functions write, by the functions' addresses. Other functions are assumed to follow
    /// LLVM's calling convention.
    pub written: &'a BTreeMap<u64, RegisterSet>,
    /// The register pair that holds the return address at the entry; `None` for kernels.
    pub return_pair: Option<Sgpr>,
}

/// An address chain. Indices of instructions are relative to the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalChain {
    pub getpc: u32,
    pub low: u32,
    pub high: u32,
    pub register: Register,
    pub target: Pc,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalCall {
    /// The called address, if known.
    pub target: Option<Pc>,
    /// The register pair that receives the return address.
    pub pair: Option<Sgpr>,
}

/// Results of tracking addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub chains: BTreeSet<LocalChain>,
    pub calls: BTreeMap<usize, LocalCall>,
    pub jumps: BTreeMap<usize, JumpTarget>,
    /// Instructions `s_getpc_b64` whose results are used in an unsupported way, with the reasons.
    pub unresolved: BTreeMap<usize, String>,
    /// Addresses that are used other than for a call or a load.
    pub escaped: BTreeSet<u64>,
}
