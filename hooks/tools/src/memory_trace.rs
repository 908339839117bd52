//! Which addresses are accessed.

use super::scope::{first, wave};
use super::{
    InstPlace, Observed, ObservedAccesses, Options, Tool, ToolError, ToolRequests, ToolScope,
    WavePosition,
};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::{Argument, Mask, Record, Variables};
use flipwave_hooks::rewrite::When;
use flipwave_isa::{Inst, MemorySpace};
use serde::Serialize;

/// Writes down every access to memory: global and flat, buffers, LDS, scratch and scalar.
#[derive(Clone, Debug)]
pub struct MemoryTrace {
    sites: Vec<InstIndex>,
}

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TracedAccess {
    /// The lane; none for scalar memory, which is accessed by the wave.
    pub lane: Option<u8>,
    /// Of LDS and scratch: the offset from the beginning of the workgroup's LDS, of the lane's
    /// scratch. Of buffers: the virtual address, before the range check. Of all others: the
    /// virtual address.
    pub address: u64,
    /// Bytes that are moved.
    pub bytes: u8,
}

/// What the hook writes: `struct access` of `memory_trace.c`.
struct Written {
    address: u64,
    site: u32,
    lane: u32,
    wave: WavePosition,
}

impl Record for Written {
    const SIZE: usize = 32;

    fn from_bytes(bytes: &[u8]) -> Written {
        let (words, _) = bytes.as_chunks();
        let word = |at: usize| words.get(at).map_or(0, |word| u32::from_le_bytes(*word));
        Written {
            address: u64::from(word(0)) | u64::from(word(1)) << 32,
            site: word(2),
            lane: word(3),
            wave: WavePosition {
                workgroup_x: word(4),
                workgroup_y: word(5),
                workgroup_z: word(6),
                wave: word(7),
            },
        }
    }
}

/// Bytes of one element, and the way from the first to each: two-address operations have two.
fn elements(inst: &Inst) -> Option<(u8, Vec<i64>)> {
    let operand = inst.memory_operand()?;
    let first = *operand.offsets.first()?;
    let count = operand.offsets.len() as u8;
    let bytes = operand.access.bytes.checked_div(count)?;
    Some((bytes, operand.offsets.iter().map(|offset| offset - first).collect()))
}

/// How many records are kept: never none, as the channel has an array of them.
fn room(options: &Options) -> u32 {
    options.records.max(1)
}

fn is_scalar(inst: &Inst) -> bool {
    inst.memory().is_some_and(|access| access.space == MemorySpace::Scalar)
}

impl Tool for MemoryTrace {
    /// In the order of each wave; which wave comes first is up to the device.
    type Row = (InstPlace, WavePosition, TracedAccess);

    const COLUMNS: &[&str] = &[
        "function",
        "pc",
        "instruction",
        "workgroup_x",
        "workgroup_y",
        "workgroup_z",
        "wave",
        "lane",
        "address",
        "bytes",
    ];

    fn ask(asking: &mut ToolRequests<'_, '_>) -> Result<MemoryTrace, ToolError> {
        let program = asking.scope().program();
        let sites = asking.scope().select(|inst| elements(inst).is_some());
        let records = room(asking.options()).into();
        let source = asking.source("memory_trace", &[("RECORDS", records)])?;
        for (&at, number) in sites.iter().zip(0u64..) {
            let Some(inst) = program.inst(at) else { continue };
            let mask = if is_scalar(inst) { Mask::Single } else { Mask::Guest };
            for distance in elements(inst).map(|(_, distances)| distances).unwrap_or_default() {
                let (function, mut arguments) = match distance {
                    0 => ("trace", vec![Argument::MemoryAddress]),
                    distance => {
                        let distance = Argument::Constant(distance as u64);
                        ("trace_second", vec![Argument::MemoryAddress, distance])
                    }
                };
                arguments.push(Argument::Constant(number));
                arguments.extend(wave());
                asking.call((at, When::Before), (source, function), mask, arguments);
            }
        }
        Ok(MemoryTrace { sites })
    }

    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstPlace, WavePosition, TracedAccess)>, ToolError> {
        let trace = first(variables, "accesses")?.channel("accesses", Written::SIZE)?;
        let row = |written: Written| {
            let at = *self.sites.get(written.site as usize)?;
            let inst = scope.program().inst(at)?;
            let (bytes, _) = elements(inst)?;
            let lane = (!is_scalar(inst)).then_some(written.lane as u8);
            let access = TracedAccess { lane, address: written.address, bytes };
            Some((scope.place(at)?, written.wave, access))
        };
        Ok(trace.read::<Written>().into_iter().flatten().filter_map(row).collect())
    }

    fn lost(&self, variables: &[Variables<'_>]) -> Result<u64, ToolError> {
        Ok(first(variables, "accesses")?.channel("accesses", Written::SIZE)?.lost())
    }
}

impl Observed for MemoryTrace {
    type Observer = ObservedAccesses;

    fn observer(options: &Options) -> ObservedAccesses {
        ObservedAccesses::new(room(options))
    }

    fn observed(
        scope: &ToolScope<'_>,
        seen: &ObservedAccesses,
    ) -> Vec<(InstPlace, WavePosition, TracedAccess)> {
        seen.rows(scope)
    }

    fn unrecorded(seen: &ObservedAccesses) -> u64 {
        seen.lost()
    }
}
