//! The tool `memory-trace`: the addresses of all memory accesses.

use super::scope::{first_source, wave_position};
use super::{
    InstLocation, ObservableTool, ObservedAccesses, Options, Tool, ToolError, ToolRequests,
    ToolScope, WavePosition,
};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::{Argument, Mask, Record, Variables};
use flipwave_isa::{Inst, MemorySpace};
use serde::Serialize;

/// Records every memory access: global, flat, buffer, LDS, scratch and scalar.
#[derive(Clone, Debug)]
pub struct MemoryTrace {
    sites: Vec<InstIndex>,
}

/// A memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TracedAccess {
    /// The lane; `None` for scalar accesses, which a wave makes as a whole.
    pub lane: Option<u8>,
    /// The virtual address, for buffers before the range check. For LDS the offset in the workgroup's LDS,
    /// for scratch that in the lane's scratch.
    pub address: u64,
    /// The number of bytes accessed.
    pub bytes: u8,
}

/// The record that the hook writes: `struct access` of `memory_trace.c`.
struct AccessRecord {
    address: u64,
    site: u32,
    lane: u32,
    wave: WavePosition,
}

impl Record for AccessRecord {
    const SIZE: usize = 32;

    fn from_bytes(bytes: &[u8]) -> AccessRecord {
        let (words, _) = bytes.as_chunks();
        let word = |at: usize| words.get(at).map_or(0, |word| u32::from_le_bytes(*word));
        AccessRecord {
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

/// The size of an element in bytes, and the distance of each element from the first. Two-address
/// operations have two elements.
fn elements(inst: &Inst) -> Option<(u8, Vec<i64>)> {
    let operand = inst.memory_operand()?;
    let first = *operand.offsets.first()?;
    let count = operand.offsets.len() as u8;
    let bytes = operand.access.bytes.checked_div(count)?;
    Some((bytes, operand.offsets.iter().map(|offset| offset - first).collect()))
}

/// The capacity of the record buffer, at least 1 because the channel is an array.
fn capacity(options: &Options) -> u32 {
    options.records.max(1)
}

fn is_scalar(inst: &Inst) -> bool {
    inst.memory().is_some_and(|access| access.space == MemorySpace::Scalar)
}

impl Tool for MemoryTrace {
    /// Rows of one wave are in execution order; the order of waves depends on the device.
    type Row = (InstLocation, WavePosition, TracedAccess);

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

    fn request_hooks(requests: &mut ToolRequests<'_, '_>) -> Result<MemoryTrace, ToolError> {
        let program = requests.scope().program();
        let sites = requests.scope().select(|inst| elements(inst).is_some());
        let records = capacity(requests.options()).into();
        let source = requests.source("memory_trace", &[("RECORDS", records)])?;
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
                arguments.extend(wave_position());
                requests.call_before(at, source, function, mask, arguments);
            }
        }
        Ok(MemoryTrace { sites })
    }

    fn rows(
        &self,
        scope: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(InstLocation, WavePosition, TracedAccess)>, ToolError> {
        let variables = first_source(variables, "accesses")?;
        let trace = variables.channel("accesses", AccessRecord::SIZE)?;
        let row = |record: AccessRecord| {
            let at = *self.sites.get(record.site as usize)?;
            let inst = scope.program().inst(at)?;
            let (bytes, _) = elements(inst)?;
            let lane = (!is_scalar(inst)).then_some(record.lane as u8);
            let access = TracedAccess { lane, address: record.address, bytes };
            Some((scope.location(at)?, record.wave, access))
        };
        Ok(trace.read::<AccessRecord>().into_iter().flatten().filter_map(row).collect())
    }

    fn lost_records(&self, variables: &[Variables<'_>]) -> Result<u64, ToolError> {
        let variables = first_source(variables, "accesses")?;
        Ok(variables.channel("accesses", AccessRecord::SIZE)?.lost())
    }
}

impl ObservableTool for MemoryTrace {
    type Observer = ObservedAccesses;

    fn observer(options: &Options) -> ObservedAccesses {
        ObservedAccesses::new(capacity(options))
    }

    fn observed_rows(
        scope: &ToolScope<'_>,
        observer: &ObservedAccesses,
    ) -> Vec<(InstLocation, WavePosition, TracedAccess)> {
        observer.rows(scope)
    }

    fn lost_observations(observer: &ObservedAccesses) -> u64 {
        observer.lost()
    }
}
