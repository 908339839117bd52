//! What tracking the addresses of a function starts from, and what it finds.

use super::block::JumpTarget;
use flipwave_isa::{Generation, Pc, Register, RegisterSet, Sgpr};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the rest of the program.
pub struct Surroundings<'a> {
    /// The target's generation.
    pub generation: Generation,
    /// What relocations put where: ELF virtual addresses by place.
    pub relocated: &'a BTreeMap<u64, u64>,
    /// What functions write, by where they begin. Of others, what LLVM's calling convention says
    /// is believed.
    pub written: &'a BTreeMap<u64, RegisterSet>,
    /// The pair that holds the return address at the start; nothing for kernels.
    pub return_pair: Option<Sgpr>,
}

/// An address chain; instructions are counted from the function's first.
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
    /// Where it goes, if that is known.
    pub target: Option<Pc>,
    /// The pair that it puts the return address into.
    pub pair: Option<Sgpr>,
}

/// What was found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub chains: BTreeSet<LocalChain>,
    pub calls: BTreeMap<usize, LocalCall>,
    pub jumps: BTreeMap<usize, JumpTarget>,
    /// `s_getpc_b64` whose results go into something that is not understood.
    pub unresolved: BTreeMap<usize, String>,
    /// Addresses that are used for something else than a call or a load.
    pub escaped: BTreeSet<u64>,
}
