//! Scalar registers that may be read before they are written.

use super::facts::Facts;
use super::violation::Finding;
use flipwave_isa::hazard::SgprHazardState;
use flipwave_isa::{Register, RegisterRange};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Scalar hazard state of a wave.
#[derive(Debug)]
pub struct Scalars {
    known: SgprHazardState,
    /// Last writer of each register.
    writers: FxHashMap<Register, Arc<Facts>>,
}

impl Scalars {
    /// State of a starting wave.
    pub fn new(known: SgprHazardState) -> Scalars {
        Scalars { known, writers: FxHashMap::default() }
    }

    /// Returns a register that an instruction reads before its value has arrived.
    pub fn check(&self, facts: &Facts) -> Option<Finding> {
        let (registers, needed) = self.known.stale_reads(&facts.inst).next()?;
        let writer = registers.iter().find_map(|register| self.writers.get(&register))?;
        let needed = self.known.mitigation(needed);
        Some(Finding::ReadLate { registers, needed, writer: writer.instruction() })
    }

    /// Records the execution of an instruction. Its stale reads are not reported again.
    pub fn push(&mut self, facts: &Arc<Facts>) {
        let inst = &facts.inst;
        let late: Vec<RegisterRange> =
            self.known.stale_reads(inst).map(|(range, _)| range).collect();
        self.known = late.into_iter().fold(self.known, SgprHazardState::with_arrived);
        self.known.execute(inst);
        self.known = self.known.after_leaving(inst);
        let written = facts.inst.writes.iter().flat_map(|range| range.iter());
        for register in written.filter(|written_register| !written_register.is_per_lane()) {
            self.writers.insert(register, Arc::clone(facts));
        }
    }
}
