//! The tool `address-divergence`: cache lines touched by each access of a wave.

use super::scope::{counter_array_length, counters, variable_address};
use super::{InstLocation, Tool, ToolError, ToolRequests, ToolScope};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::{Argument, Mask, Variables};
use flipwave_isa::{Inst, MemorySpace};
use serde::Serialize;

/// Counts the cache lines that each per-lane access of a wave touches: global, flat and buffer accesses.
#[derive(Clone, Debug)]
pub struct AddressDivergence {
    sites: Vec<InstIndex>,
}

/// The cache lines touched by the accesses of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LineCounts {
    /// Executions by waves with at least one active lane.
    pub accesses: u64,
    /// Distinct 64-byte lines per access, summed over all accesses.
    pub lines_64: u64,
    /// Distinct 128-byte lines per access, summed over all accesses.
    pub lines_128: u64,
}

/// The counted cache line sizes in bytes; each has a separate hook source.
const LINES: [u64; 2] = [64, 128];

/// The size of `struct divergence` of `address_divergence.c` in bytes.
const COUNTER: usize = 16;

/// Returns `true` for accesses in which each lane has an address and touches one or two lines.
fn is_counted(inst: &Inst) -> bool {
    let spaces = [MemorySpace::Global, MemorySpace::Flat, MemorySpace::Buffer];
    inst.memory()
        .is_some_and(|access| spaces.contains(&access.space) && (1..=64).contains(&access.bytes))
}

impl Tool for AddressDivergence {
    type Row = (InstLocation, LineCounts);

    const COLUMNS: &[&str] =
        &["function", "pc", "instruction", "accesses", "lines_64", "lines_128"];

    fn request_hooks(requests: &mut ToolRequests<'_, '_>) -> Result<AddressDivergence, ToolError> {
        let sites = requests.scope().select(is_counted);
        for line in LINES {
            let macros = [("COUNTERS", counter_array_length(sites.len())), ("LINE", line)];
            let source = requests.source("address_divergence", &macros)?;
            for (&at, number) in sites.iter().zip(0..) {
                let counter = variable_address("counters", COUNTER * number);
                let arguments = vec![Argument::MemoryAddress, Argument::MemoryBytes, counter];
                requests.call_before(at, source, "access", Mask::Guest, arguments);
            }
        }
        Ok(AddressDivergence { sites })
    }

    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstLocation, LineCounts)>, ToolError> {
        let counters_of =
            |source: usize| counters(variables.get(source..).unwrap_or_default(), "counters");
        let (counters_64, counters_128) = (counters_of(0)?, counters_of(1)?);
        let counts = counters_64.as_chunks().0.iter().zip(counters_128.as_chunks().0);
        let mut rows = Vec::new();
        for (at, (&[accesses, lines_64], &[_, lines_128])) in self.sites.iter().zip(counts) {
            if let Some(location) = scope.location(*at) {
                rows.push((location, LineCounts { accesses, lines_64, lines_128 }));
            }
        }
        Ok(rows)
    }
}
