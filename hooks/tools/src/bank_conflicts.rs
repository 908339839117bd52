//! The tool `bank-conflicts`: LDS accesses of lanes to different words of the same bank.

use super::scope::{counter_array_length, counters, variable_address};
use super::{InstLocation, Tool, ToolError, ToolRequests, ToolScope};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::{Argument, Mask, Variables};
use flipwave_isa::{Inst, MemoryOperand, MemorySpace};
use serde::Serialize;

/// Counts LDS bank conflicts.
///
/// LDS has 32 banks of four-byte words and delivers 128 bytes at a time: one word to each of 32 lanes, two to
/// 16 lanes, or four to 8 lanes. Such a group of lanes takes as many passes as the most requested bank has
/// distinct words; all passes but the first are conflicts. The counts are exact for this model, but
/// the grouping of lanes in hardware is not documented for all access widths. A two-address operation
/// counts as two accesses.
#[derive(Clone, Debug)]
pub struct BankConflicts {
    sites: Vec<InstIndex>,
}

/// The conflicts of the LDS accesses of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ConflictCounts {
    /// Accesses by waves with at least one active lane.
    pub accesses: u64,
    /// Passes beyond the first of each group of lanes.
    pub conflicts: u64,
}

/// The size of `struct conflicts` of `bank_conflicts.c` in bytes.
const COUNTER: usize = 16;

/// The memory operand of an LDS instruction with an address per lane.
fn access(inst: &Inst) -> Option<MemoryOperand> {
    let operand = inst.memory_operand()?;
    (operand.access.space == MemorySpace::Lds
        && !(operand.address_in_m0 && operand.vaddr.is_none()))
    .then_some(operand)
}

impl Tool for BankConflicts {
    type Row = (InstLocation, ConflictCounts);

    const COLUMNS: &[&str] = &["function", "pc", "instruction", "accesses", "conflicts"];

    fn request_hooks(requests: &mut ToolRequests<'_, '_>) -> Result<BankConflicts, ToolError> {
        let program = requests.scope().program();
        let sites = requests.scope().select(|inst| access(inst).is_some());
        let macros = [("COUNTERS", counter_array_length(sites.len()))];
        let source = requests.source("bank_conflicts", &macros)?;
        for (&at, number) in sites.iter().zip(0..) {
            let Some(operand) = program.inst(at).and_then(access) else { continue };
            let elements = operand.offsets.len().max(1) as u64;
            let bytes = Argument::Constant(u64::from(operand.access.bytes) / elements);
            let counter = variable_address("counters", COUNTER * number);
            let arguments = vec![Argument::MemoryAddress, bytes.clone(), counter.clone()];
            requests.call_before(at, source, "lds_access", Mask::Guest, arguments);
            if let [first, second] = operand.offsets.as_slice() {
                let distance = Argument::Constant((second - first) as u64);
                let arguments = vec![Argument::MemoryAddress, distance, bytes, counter];
                requests.call_before(at, source, "second_lds_access", Mask::Guest, arguments);
            }
        }
        Ok(BankConflicts { sites })
    }

    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstLocation, ConflictCounts)>, ToolError> {
        let numbers = counters(variables, "counters")?;
        let (counts, _) = numbers.as_chunks();
        let row = |(&at, &[accesses, conflicts]): (&InstIndex, &[u64; 2])| {
            Some((scope.location(at)?, ConflictCounts { accesses, conflicts }))
        };
        Ok(self.sites.iter().zip(counts).filter_map(row).collect())
    }
}
