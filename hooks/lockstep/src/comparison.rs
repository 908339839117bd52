//! The versions to compare, and the result.

use super::difference::Difference;
use flipwave_device::{Address, Dispatch, Statistics};
use flipwave_hooks::checker::Claims;
use flipwave_hooks::dataflow::Live;
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_isa::RegisterSet;
use flipwave_sim::EmbeddedGpu;
use flipwave_sim::strict::Violation;
use std::collections::BTreeSet;
use std::ops::Range;

/// The code to compare.
pub struct Lockstep<'a> {
    /// The disassembly of the original code.
    pub program: &'a Disassembly,
    /// Returns the live registers before an instruction of the original code.
    pub live: &'a dyn Fn(InstIndex) -> Live,
    /// The locations of original instructions in the instrumented code.
    pub claims: &'a Claims,
    /// A device with both code objects loaded.
    pub gpu: &'a EmbeddedGpu,
    /// The dispatch of the original code.
    pub original: &'a Dispatch,
    /// The dispatch of the instrumented code, with the same arguments.
    pub instrumented: &'a Dispatch,
    /// Registers that hooks intentionally change, which are not compared.
    pub changed: RegisterSet,
    /// Instructions that hooks replace. The original code gets the results of the hooks.
    pub replaced: BTreeSet<InstIndex>,
    /// Memory that hooks write, which is not compared.
    pub ignored: Vec<Range<Address>>,
    /// Also runs both versions at the strict level.
    pub is_strict: bool,
}

/// The result of a lockstep run.
#[derive(Debug, Default)]
pub struct LockstepReport {
    /// The number of original instructions executed by both versions.
    pub instructions: u64,
    /// The number of register values compared; a vector register counts once for all lanes.
    pub registers: u64,
    /// The number of bytes of memory compared at the end.
    pub bytes: u64,
    /// The first difference.
    pub difference: Option<Difference>,
    /// Violations of hardware rules in the instrumented code that the original does not have.
    pub violations: Vec<Violation>,
    /// The statistics of the original code, if it completed.
    pub original: Option<Statistics>,
    /// The statistics of the instrumented code, if it completed.
    pub instrumented: Option<Statistics>,
}

impl LockstepReport {
    /// Returns `true` if there are neither differences nor violations.
    pub fn is_clean(&self) -> bool {
        self.difference.is_none() && self.violations.is_empty()
    }
}
