//! Scalar registers that vector operations may read late.

use super::facts::Facts;
use super::violation::Finding;
use flipwave_isa::hazard::ScalarReads;
use flipwave_isa::{Opcode, Register};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What is known of a wave's.
#[derive(Debug)]
pub struct Scalars {
    known: ScalarReads,
    /// What wrote each register last.
    writers: FxHashMap<Register, Arc<Facts>>,
}

impl Scalars {
    /// Of a wave that begins.
    pub fn new(known: ScalarReads) -> Scalars {
        Scalars { known, writers: FxHashMap::default() }
    }

    /// A register that an instruction reads before its value has arrived.
    pub fn check(&self, facts: &Facts) -> Option<Finding> {
        let (registers, needed) = self.known.late(&facts.inst).next()?;
        let writer = registers.iter().find_map(|own| self.writers.get(&own))?;
        Some(Finding::ReadLate { registers, needed, writer: writer.instruction() })
    }

    /// Notes that an instruction is executed. What it has read late is not complained about again. The
    /// chain ends where control leaves by an address: there compilers have waited for what came
    /// before, and what the call itself writes has arrived (LLVM, `AMDGPUWaitSGPRHazards`).
    pub fn push(&mut self, facts: &Arc<Facts>) {
        let inst = &facts.inst;
        self.known = self.known.after(self.known.needed(inst));
        self.known.execute(inst);
        if inst.flags.call {
            self.known = self.known.called();
        } else if inst.operation.opcode() == Opcode::SSetpc {
            self.known = self.known.after(self.known.pending());
        }
        let written = facts.inst.writes.iter().flat_map(|range| range.iter());
        for register in written.filter(|own| !own.is_per_lane()) {
            self.writers.insert(register, Arc::clone(facts));
        }
    }
}
