//! How often lanes of a wave want different words of the same LDS bank.

use super::scope::{data, of, room};
use super::{InstPlace, Tool, ToolError, ToolRequests, ToolScope};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::{Argument, Mask, Variables};
use flipwave_hooks::rewrite::When;
use flipwave_isa::{Inst, MemoryOperand, MemorySpace};
use serde::Serialize;

/// Counts bank conflicts.
///
/// LDS has 32 banks of a word of four bytes each, and gives 128 bytes at once: to 32 lanes a word
/// each, to 16 lanes two, to 8 lanes four. Such a group of lanes takes as many turns as there are
/// different words in the bank that has the most; all but the first are conflicts. The counts are
/// exact for this model; which lanes hardware takes together is not documented for all widths. A
/// two-address operation is two accesses.
#[derive(Clone, Debug)]
pub struct BankConflicts {
    sites: Vec<InstIndex>,
}

/// Conflicts of the LDS accesses of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ConflictCounts {
    /// Accesses by waves with a lane running.
    pub accesses: u64,
    /// Turns that they take beyond the first of each group of lanes.
    pub conflicts: u64,
}

/// Bytes of `struct conflicts` of `bank_conflicts.c`.
const COUNTER: usize = 16;

/// The access of an instruction that has an LDS address for each lane.
fn access(inst: &Inst) -> Option<MemoryOperand> {
    let operand = inst.memory_operand()?;
    (operand.access.space == MemorySpace::Lds
        && !(operand.address_in_m0 && operand.vaddr.is_none()))
    .then_some(operand)
}

impl Tool for BankConflicts {
    type Row = (InstPlace, ConflictCounts);

    const COLUMNS: &[&str] = &["function", "pc", "instruction", "accesses", "conflicts"];

    fn ask(asking: &mut ToolRequests<'_, '_>) -> Result<BankConflicts, ToolError> {
        let program = asking.scope().program();
        let sites = asking.scope().select(|inst| access(inst).is_some());
        let source = asking.source("bank_conflicts", &[("COUNTERS", room(sites.len()))])?;
        for (&at, number) in sites.iter().zip(0..) {
            let Some(operand) = program.inst(at).and_then(access) else { continue };
            let elements = operand.offsets.len().max(1) as u64;
            let bytes = Argument::Constant(u64::from(operand.access.bytes) / elements);
            let counter = data("counters", COUNTER * number);
            let first = vec![Argument::MemoryAddress, bytes.clone(), counter.clone()];
            asking.call((at, When::Before), (source, "lds_access"), Mask::Guest, first);
            if let [one, other] = operand.offsets.as_slice() {
                let distance = Argument::Constant((other - one) as u64);
                let second = vec![Argument::MemoryAddress, distance, bytes, counter];
                asking.call((at, When::Before), (source, "second_lds_access"), Mask::Guest, second);
            }
        }
        Ok(BankConflicts { sites })
    }

    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstPlace, ConflictCounts)>, ToolError> {
        let numbers = of(variables, "counters")?;
        let (counts, _) = numbers.as_chunks();
        let row = |(&at, &[accesses, conflicts]): (&InstIndex, &[u64; 2])| {
            Some((scope.place(at)?, ConflictCounts { accesses, conflicts }))
        };
        Ok(self.sites.iter().zip(counts).filter_map(row).collect())
    }
}
