//! An instruction that no chip has.

use crate::Binding;
use flipwave_hooks::hook::Source;

/// An instruction that no chip has: what stands in its place, and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its name, in reports.
    pub name: String,
    /// The proxy, as the assembler writes it, with the names of operands in place of registers.
    pub proxy: String,
    /// The operands that have names.
    pub operands: Vec<(String, Binding)>,
    /// Where the hook is.
    pub source: Source,
    /// The hook: its parameters are called as the operands that it reads, its result goes to those
    /// that it writes, in the proxy's order.
    pub function: String,
    /// The lanes that the hook runs in.
    pub lanes: Lanes,
    /// Which instructions that fit the proxy are meant.
    pub matching: Matching,
}

/// The lanes that a hook runs in. Results go to the lanes that EXEC selects either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lanes {
    /// Those that EXEC selects: each computes its own result.
    #[default]
    Active,
    /// All of the wave: the hook sees the values of each, and a parameter called `exec` says which
    /// of them EXEC selects.
    All,
}

/// Which instructions that fit a proxy are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matching {
    /// Those that the code has a mark for, as `FLIPWAVE_PROXY` of `flipwave.h` leaves it. Others
    /// are collisions.
    #[default]
    Marked,
    /// All, as where real instructions are to be replaced.
    All,
}
