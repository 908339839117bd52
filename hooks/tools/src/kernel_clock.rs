//! How long each wave runs.

use super::scope::{first, wave};
use super::{Cells, Tool, ToolError, ToolRequests, ToolScope, WavePosition, marked_dispatch};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::{Argument, Mask, Record, Variables};
use flipwave_hooks::rewrite::When;
use flipwave_isa::Inst;
use serde::Serialize;
use std::collections::BTreeMap;

/// Reads the clocks where a wave begins and where it ends: that of the shader, which counts cycles
/// (`s_memtime`; on gfx11 the lower 20 bits of it, `SHADER_CYCLES`, on gfx12 all of it), and the
/// constant one (`s_memrealtime`, the message `GET_REALTIME`).
#[derive(Clone, Debug)]
pub struct KernelClock;

/// The clocks of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WaveClock {
    /// Cycles of the shader's clock from begin to end.
    pub cycles: u64,
    /// Ticks of the constant clock from begin to end.
    pub ticks: u64,
    /// The shader's clock at the begin.
    pub begin_cycles: u64,
    /// The shader's clock at the end.
    pub end_cycles: u64,
    /// The constant clock at the begin.
    pub begin_ticks: u64,
    /// The constant clock at the end.
    pub end_ticks: u64,
}

/// What the hook writes: `struct reading` of `kernel_clock.c`.
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
    /// By ascending number of the wave. A wave that does not come to an `s_endpgm` has no row.
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

    fn ask(asking: &mut ToolRequests<'_, '_>) -> Result<KernelClock, ToolError> {
        let scope = asking.scope();
        let program = scope.program();
        let kernels = program.functions.iter().filter(|function| function.kernel.is_some());
        let begins = kernels.map(|function| function.instructions.start);
        let mut sites: Vec<(InstIndex, u64)> =
            begins.filter(|at| scope.contains(*at)).map(|at| (at, 0)).collect();
        sites.extend(scope.select(Inst::ends_wave).into_iter().map(|at| (at, 1)));
        let records = asking.options().records.max(1).into();
        let source = asking.source("kernel_clock", &[("RECORDS", records)])?;
        for (at, is_end) in sites {
            let mut arguments = vec![Argument::Constant(is_end)];
            arguments.extend(wave());
            asking.call((at, When::Before), (source, "read_clocks"), Mask::Single, arguments);
        }
        Ok(KernelClock)
    }

    fn rows(
        &self,
        _: &ToolScope<'_>,
        variables: &[Variables<'_>],
    ) -> Result<Vec<(WavePosition, WaveClock)>, ToolError> {
        let readings = first(variables, "readings")?.channel("readings", Reading::SIZE)?;
        let readings = readings.read::<Reading>().into_iter().flatten();
        let (ends, begins): (Vec<Reading>, Vec<Reading>) =
            readings.partition(|reading| reading.is_end);
        let ends: BTreeMap<WavePosition, Reading> =
            ends.into_iter().map(|own| (own.wave, own)).collect();
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

    /// Which waves are missing is not known.
    fn marked(scope: &ToolScope<'_>) -> Vec<Cells> {
        scope.not_counted().take(1).map(|_| marked_dispatch::<KernelClock>()).collect()
    }

    fn lost(&self, variables: &[Variables<'_>]) -> Result<u64, ToolError> {
        Ok(first(variables, "readings")?.channel("readings", Reading::SIZE)?.lost())
    }
}
