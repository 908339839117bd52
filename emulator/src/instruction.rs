//! Definitions of emulated instructions.

use crate::Binding;
use flipwave_hooks::hook::Source;

/// An emulated instruction: its proxy and its implementation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The name of the instruction in reports.
    pub name: String,
    /// The proxy in assembly syntax, with operand names in place of registers.
    pub proxy: String,
    /// The named operands.
    pub operands: Vec<(String, Binding)>,
    /// The source of the hook.
    pub source: Source,
    /// The name of the hook function. Its parameters have the names of the operands that it reads. Its
    /// result is assigned to the destination operands, in the proxy's order.
    pub function: String,
    /// The lanes that execute the hook.
    pub lanes: Lanes,
    /// The instructions that count as proxies.
    pub matching: Matching,
}

/// The lanes that execute a hook. Results are written in the active lanes in either case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lanes {
    /// The active lanes, each of which computes its result.
    #[default]
    Active,
    /// All lanes of the wave. The hook can read the values of all lanes, and a parameter named `exec`
    /// holds the mask of active lanes.
    All,
}

/// The instructions matching a proxy pattern that count as proxies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matching {
    /// Instructions marked by `FLIPWAVE_PROXY` of `flipwave.h`. Unmarked matches are collisions.
    #[default]
    Marked,
    /// All matching instructions, to replace native instructions.
    All,
}
