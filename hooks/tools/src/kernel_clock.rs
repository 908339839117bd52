//! The tool `kernel-clock`: the run time of each wave.

use super::scope::{first_source, wave_position};
use super::{Cells, Tool, ToolError, ToolRequests, ToolScope, WavePosition, uncounted_dispatch};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::{Argument, Mask, Record, Variables};
use flipwave_isa::Inst;
use serde::Serialize;
use std::collections::BTreeMap;

/// Reads two clocks at the start and at the end of each wave: the shader clock, which counts cycles
/// (`s_memtime`; on gfx11 its lower 20 bits, `SHADER_CYCLES`, on gfx12 all bits), and the constant-rate
/// clock (`s_memrealtime`, or the message `GET_REALTIME`).
#[derive(Clone, Debug)]
pub struct KernelClock;

/// The clocks of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WaveClock {
    /// Run time in cycles of the shader clock.
    pub cycles: u64,
    /// Run time in ticks of the constant-rate clock.
    pub ticks: u64,
    /// The shader clock at the start of the wave.
    pub begin_cycles: u64,
    /// The shader clock at the end of the wave.
    pub end_cycles: u64,
    /// The constant-rate clock at the start of the wave.
    pub begin_ticks: u64,
    /// The constant-rate clock at the end of the wave.
    pub end_ticks: u64,
}

/// The record that the hook writes: `struct reading` of `kernel_clock.c`.
struct Reading {
    cycles: u64,
    ticks: u64,
    wave: WavePosition,
    is_end: bool,
}

impl Record for Reading {
    const SIZE: usize = 40;

    fn from_bytes(bytes: &[u8]) -> Reading {
        let (words, _) = bytes.as_chunks();
        let word = |at: usize| words.get(at).map_or(0, |word| u32::from_le_bytes(*word));
        let wide = |at: usize| u64::from(word(at)) | u64::from(word(at + 1)) << 32;
        Reading {
            cycles: wide(0),
            ticks: wide(2),
            wave: WavePosition {
                workgroup_x: word(4),
                workgroup_y: word(5),
                workgroup_z: word(6),
                wave: word(7),
            },
            is_end: word(8) != 0,
        }
    }
}

impl Tool for KernelClock {
    /// Rows are sorted by wave. A wave that does not reach an `s_endpgm` has no row.
    type Row = (WavePosition, WaveClock);

    const COLUMNS: &[&str] = &[
        "workgroup_x",
        "workgroup_y",
        "workgroup_z",
        "wave",
        "cycles",
        "ticks",
        "begin_cycles",
        "end_cycles",
        "begin_ticks",
        "end_ticks",
    ];

    fn request_hooks(requests: &mut ToolRequests<'_, '_>) -> Result<KernelClock, ToolError> {
        let scope = requests.scope();
        let program = scope.program();
        let kernels = program.functions.iter().filter(|function| function.kernel.is_some());
        let starts = kernels.map(|function| function.instructions.start);
        let mut sites: Vec<(InstIndex, u64)> =
            starts.filter(|at| scope.contains(*at)).map(|at| (at, 0)).collect();
        sites.extend(scope.select(Inst::ends_wave).into_iter().map(|at| (at, 1)));
        let records = requests.options().records.max(1).into();
        let source = requests.source("kernel_clock", &[("RECORDS", records)])?;
        for (at, is_end) in sites {
            let mut arguments = vec![Argument::Constant(is_end)];
            arguments.extend(wave_position());
            requests.call_before(at, source, "read_clocks", Mask::Single, arguments);
        }
        Ok(KernelClock)
    }

    fn rows(
        &self,
        _: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(WavePosition, WaveClock)>, ToolError> {
        let variables = first_source(variables, "readings")?;
        let readings = variables.channel("readings", Reading::SIZE)?;
        let readings = readings.read::<Reading>().into_iter().flatten();
        let (ends, begins): (Vec<Reading>, Vec<Reading>) =
            readings.partition(|reading| reading.is_end);
        let ends: BTreeMap<WavePosition, Reading> =
            ends.into_iter().map(|reading| (reading.wave, reading)).collect();
        let mut rows: Vec<(WavePosition, WaveClock)> = begins
            .iter()
            .filter_map(|begin| {
                let end = ends.get(&begin.wave)?;
                let clock = WaveClock {
                    cycles: end.cycles.wrapping_sub(begin.cycles),
                    ticks: end.ticks.wrapping_sub(begin.ticks),
                    begin_cycles: begin.cycles,
                    end_cycles: end.cycles,
                    begin_ticks: begin.ticks,
                    end_ticks: end.ticks,
                };
                Some((begin.wave, clock))
            })
            .collect();
        rows.sort_by_key(|(wave, _)| *wave);
        Ok(rows)
    }

    /// One row for the whole dispatch, since it is unknown which waves are missing.
    fn uncounted_rows(scope: &ToolScope<'_>) -> Vec<Cells> {
        scope.not_counted().take(1).map(|_| uncounted_dispatch::<KernelClock>()).collect()
    }

    fn lost_records(&self, variables: &[Variables<'_>]) -> Result<u64, ToolError> {
        let variables = first_source(variables, "readings")?;
        Ok(variables.channel("readings", Reading::SIZE)?.lost())
    }
}
