//! How many cache lines accesses of a wave touch.

use super::scope::{data, of, room};
use super::{InstPlace, Tool, ToolError, ToolRequests, ToolScope};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::{Argument, Mask, Variables};
use flipwave_hooks::rewrite::When;
use flipwave_isa::{Inst, MemorySpace};
use serde::Serialize;

/// Counts the cache lines that each access of a wave touches: accesses by lanes to global memory,
/// flat addresses and buffers.
#[derive(Clone, Debug)]
pub struct AddressDivergence {
    sites: Vec<InstIndex>,
}

/// Cache lines that the accesses of an instruction touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LineCounts {
    /// Executions by waves with a lane running.
    pub accesses: u64,
    /// Different lines of 64 bytes, summed over the accesses.
    pub lines_64: u64,
    /// Different lines of 128 bytes, summed over the accesses.
    pub lines_128: u64,
}

/// Bytes of the cache lines that are counted, each by a source of its own.
const LINES: [u64; 2] = [64, 128];

/// Bytes of `struct divergence` of `address_divergence.c`.
const COUNTER: usize = 16;

/// Whether lanes of a wave may touch lines of their own, one or two each.
fn is_counted(inst: &Inst) -> bool {
    let spaces = [MemorySpace::Global, MemorySpace::Flat, MemorySpace::Buffer];
    inst.memory()
        .is_some_and(|access| spaces.contains(&access.space) && (1..=64).contains(&access.bytes))
}

impl Tool for AddressDivergence {
    type Row = (InstPlace, LineCounts);

    const COLUMNS: &[&str] =
        &["function", "pc", "instruction", "accesses", "lines_64", "lines_128"];

    fn ask(asking: &mut ToolRequests<'_, '_>) -> Result<AddressDivergence, ToolError> {
        let sites = asking.scope().select(is_counted);
        for line in LINES {
            let macros = [("COUNTERS", room(sites.len())), ("LINE", line)];
            let source = asking.source("address_divergence", &macros)?;
            for (&at, number) in sites.iter().zip(0..) {
                let counter = data("counters", COUNTER * number);
                let arguments = vec![Argument::MemoryAddress, Argument::MemoryBytes, counter];
                asking.call((at, When::Before), (source, "access"), Mask::Guest, arguments);
            }
        }
        Ok(AddressDivergence { sites })
    }

    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstPlace, LineCounts)>, ToolError> {
        let [small, large] =
            [0, 1].map(|at| of(variables.get(at..).unwrap_or_default(), "counters"));
        let (small, large) = (small?, large?);
        let counts = small.as_chunks().0.iter().zip(large.as_chunks().0);
        let row = |(&at, (&[accesses, lines_64], &[_, lines_128])): (
            &InstIndex,
            (&[u64; 2], &[u64; 2]),
        )| {
            Some((scope.place(at)?, LineCounts { accesses, lines_64, lines_128 }))
        };
        Ok(self.sites.iter().zip(counts).filter_map(row).collect())
    }
}
