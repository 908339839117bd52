//! Scalar registers that may be read late.

use super::facts::Facts;
use super::violation::Finding;
use flipwave_isa::hazard::SgprHazardState;
use flipwave_isa::{Register, RegisterRange};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What is known of a wave's.
#[derive(Debug)]
pub struct Scalars {
    known: SgprHazardState,
    /// What wrote each register last.
    writers: FxHashMap<Register, Arc<Facts>>,
}

impl Scalars {
    /// Of a wave that begins.
    pub fn new(known: SgprHazardState) -> Scalars {
        Scalars { known, writers: FxHashMap::default() }
    }

    /// A register that an instruction reads before its value has arrived.
    pub fn check(&self, facts: &Facts) -> Option<Finding> {
        let (registers, needed) = self.known.stale_reads(&facts.inst).next()?;
        let writer = registers.iter().find_map(|own| self.writers.get(&own))?;
        let needed = self.known.mitigation(needed);
        Some(Finding::ReadLate { registers, needed, writer: writer.instruction() })
    }

    /// Notes that an instruction is executed. What it has read late is not complained about again.
    pub fn push(&mut self, facts: &Arc<Facts>) {
        let inst = &facts.inst;
        let late: Vec<RegisterRange> = self.known.stale_reads(inst).map(|(own, _)| own).collect();
        self.known = late.into_iter().fold(self.known, SgprHazardState::with_arrived);
        self.known.execute(inst);
        self.known = self.known.after_leaving(inst);
        let written = facts.inst.writes.iter().flat_map(|range| range.iter());
        for register in written.filter(|own| !own.is_per_lane()) {
            self.writers.insert(register, Arc::clone(facts));
        }
    }
}
