//! Instructions and traces for unit tests, as a device would execute them.

use crate::fault_space::Execution;
use crate::{CancellationToken, Program, Site, SiteError, Workload};
use flipwave_arch::RegisterId;
use flipwave_device::{Dispatch, ModuleId, WaveId};
use flipwave_isa::{Inst, Isa, LaneMask, Pc, Register, Target};
use flipwave_machine::Simulator;
use flipwave_sim::{Amdgpu, EmbeddedGpu};
use std::collections::HashMap;

/// One execution of an instruction by a wave.
pub(crate) type Event = (WaveId, Inst, LaneMask);

/// The target of all tests.
fn target() -> Target {
    "gfx90a".parse().unwrap()
}

/// The instruction set of all tests.
pub(crate) fn architecture() -> Amdgpu {
    Amdgpu::new(target())
}

/// Parses a site.
pub(crate) fn parse(text: &str) -> Result<Site, SiteError> {
    Site::parse(text, &architecture())
}

/// The site with a valid text.
pub(crate) fn site(text: &str) -> Site {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The register with a name.
pub(crate) fn register(name: &str) -> RegisterId {
    name.parse::<Register>().unwrap().into()
}

/// An empty workload.
pub(crate) fn workload() -> Workload {
    Workload {
        device: Simulator::new(EmbeddedGpu::new(target()).unwrap()),
        program: Program::default(),
        cancellation: CancellationToken::default(),
    }
}

/// A dispatch of two workgroups of one wave.
pub(crate) fn dispatch() -> Dispatch {
    Dispatch {
        module: ModuleId(0),
        kernel: "kernel".to_owned(),
        grid: [128, 1, 1],
        workgroup: [64, 1, 1],
        kernarg: Vec::new(),
        dynamic_lds: 0,
        instruction_limit: u64::MAX,
        queued: None,
        is_cooperative: false,
    }
}

/// Converts a trace to the executions that an observer would see.
pub(crate) fn executions(trace: &[Event]) -> impl Iterator<Item = Execution<'_>> {
    let mut times: HashMap<WaveId, u64> = HashMap::new();
    trace.iter().map(move |(wave, inst, lanes)| {
        let time = times.entry(*wave).or_default();
        *time += 1;
        let (wave, lanes, time) = (*wave, *lanes, *time - 1);
        Execution { inst, wave, lanes, all: LaneMask::FULL, time }
    })
}

/// The instruction that `text` assembles to on gfx90a, at `pc`.
pub(crate) fn inst(pc: u64, text: &str) -> Inst {
    let target: Target = "gfx90a".parse().unwrap();
    let isa = Isa::new(&target).unwrap();
    isa.decode(&isa.assemble(text).unwrap(), Pc(pc)).unwrap()
}

/// A wave in the first row of workgroups.
pub(crate) fn wave(x: u32, wave: u32) -> WaveId {
    WaveId { workgroup: [x, 0, 0], wave }
}

/// A trace of a loop with 64-bit results, scalar and vector destinations, a divergent part, and a part
/// that no lane executes, by three waves of two workgroups. Two waves alternate, as at a barrier.
pub(crate) fn trace() -> Vec<Event> {
    let load = inst(0x100, "global_load_dwordx2 v[2:3], v[0:1], off");
    let wait = inst(0x108, "s_waitcnt vmcnt(0)");
    let compare = inst(0x10c, "v_cmp_gt_f32_e32 vcc, v2, v3");
    let mask = inst(0x110, "s_and_saveexec_b64 s[4:5], vcc");
    let sum = inst(0x114, "v_add_f64 v[4:5], v[2:3], v[4:5]");
    let step = inst(0x11c, "s_add_u32 s6, s6, 1");
    let store = inst(0x120, "global_store_dwordx2 v[0:1], v[4:5], off");

    let turn = |wave: WaveId, active: [LaneMask; 2]| {
        let full = LaneMask::FULL;
        [
            (wave, load.clone(), active[0]),
            (wave, wait.clone(), active[0]),
            (wave, compare.clone(), active[0]),
            (wave, mask.clone(), active[0]),
            (wave, sum.clone(), active[1]),
            (wave, step.clone(), full),
            (wave, store.clone(), active[1]),
        ]
    };
    let half = LaneMask(0x0000_ffff_0000_ffff);
    let few = LaneMask(0x8000_0000_0000_0012);
    [
        turn(wave(1, 0), [LaneMask::FULL, half]),
        turn(wave(0, 0), [LaneMask::FULL, few]),
        turn(wave(0, 1), [half, LaneMask::EMPTY]),
        turn(wave(0, 0), [half, half]),
        turn(wave(0, 1), [few, few]),
    ]
    .concat()
}
