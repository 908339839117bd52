//! Profiling on several threads gives the same results as on one, for all kinds of dependencies between
//! workgroups.

use flipwave_device::ArgumentValue;
use flipwave_injector::{
    Counting, Draw, Fault, FaultModel, KnownMasked, ProfiledRun, ProfilingOptions, RecordedRun,
    Selection, StoredFootprints, Stratification, Workload, run_with_profiling,
};
use flipwave_isa::LaneMask;
use flipwave_sim::{EmbeddedGpu, FidelityCheck, Footprints, Progress};
use flipwave_tests::{TestProgram, compile_file, gpu};
use std::num::NonZeroUsize;

/// Kernels with workgroups of one wave that compute for `length` iterations. In `count`, each workgroup from
/// number `distance` on adds the result of the workgroup `distance` before it, and workgroup `bad` writes
/// to unmapped memory.
const SOURCE: &str = "
    __kernel void count(__global uint *out, uint length, uint distance, uint bad)
    {
        uint group = get_group_id(0), lane = get_local_id(0), x = get_global_id(0);
        for (uint i = 0; i < length; i++)
            x = x * 1664525u + 1013904223u;
        if (group >= distance)
            x += out[(group - distance) * 64 + lane];
        if (group == bad)
            out[1u << 29] = x;
        out[group * 64 + lane] = x;
    }
    __kernel void exponential(__global uint *out, uint length, uint distance, uint bad)
    {
        uint group = get_group_id(0), lane = get_local_id(0), x = get_global_id(0);
        for (uint i = 0; i < length; i++)
            x = x * 1664525u + 1013904223u;
        if (native_exp(as_float(x)) < 1.0f)
            x += 1;
        out[group * 64 + lane] = x;
    }
    __kernel void beyond(__global uint *out, uint length, uint distance, uint bad, __local uint *shared)
    {
        uint group = get_group_id(0), lane = get_local_id(0), x = get_global_id(0);
        for (uint i = 0; i < length; i++)
            x = x * 1664525u + 1013904223u;
        shared[group == bad ? lane + (1 << 16) : lane] = x;
        out[group * 64 + lane] = shared[63 - lane];
    }
    __kernel void sum(__global uint *out, uint length, uint distance, uint bad)
    {
        uint x = get_global_id(0);
        for (uint i = 0; i < length; i++)
            x = x * 1664525u + 1013904223u;
        atomic_add(out, x);
    }
";

const GROUPS: u32 = 400;
const LENGTH: u32 = 200;
const NEVER: u32 = u32::MAX;

fn workload(kernel: &str, distance: u32, bad: u32) -> Workload {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kernels.cl");
    std::fs::write(&file, SOURCE).expect("a file");
    let mut program = TestProgram::new(&compile_file(&file, &["-O3"]));
    let out = program.output(&vec![0u32; GROUPS as usize * 64]);
    let numbers =
        [LENGTH, distance, bad].map(|number| ArgumentValue::Bytes(number.to_le_bytes().into()));
    let mut arguments = vec![out];
    arguments.extend(numbers);
    if kernel == "beyond" {
        arguments.push(ArgumentValue::DynamicLds(256));
    }
    program.launch(kernel, [GROUPS * 64, 1, 1], [64, 1, 1], &arguments);
    program.workload()
}

/// Results and violations of profiling on `threads` threads.
fn profiled(workload: &Workload, threads: usize) -> impl PartialEq + use<> {
    let fault = Fault::transient(FaultModel::FlipOneBit);
    let options = ProfilingOptions {
        fault: &fault,
        selection: &Selection::default(),
        stratification: Stratification::Opcode,
        counting: Counting::Exact,
        draw: Draw::Bits,
        known_masked: KnownMasked::Sampled,
        touched: true,
        threads: NonZeroUsize::new(threads).expect("threads"),
    };
    let (run, violations) = run_with_profiling(workload, &options);
    let run = run.map_err(|error| error.to_string());
    let run = run.map(|ProfiledRun { golden, profile, fidelity, recorded }| {
        let RecordedRun { touched, .. } = recorded.expect("a recording");
        (golden, profile, fidelity, StoredFootprints::of(&touched))
    });
    let violations: Vec<String> =
        violations.iter().map(|violation| format!("{violation:?}")).collect();
    (run, violations)
}

/// Returns whether several threads have executed workgroups of a workload's dispatch, and whether that was
/// equivalent to one thread.
fn is_divided(workload: &Workload) -> (bool, bool) {
    let mut device: EmbeddedGpu = gpu(&workload.device).clone();
    let dispatch = &workload.program.dispatches[0];
    let mut execution = device.begin(dispatch).expect("a dispatch");
    let mut check = device.begin_survey(&execution, Some(LaneMask::FULL));
    let (mut fidelity, mut footprints) = (FidelityCheck::new(), Footprints::default());
    device.begin_fidelity(&dispatch.kernel, &execution, &mut fidelity);
    let threads = NonZeroUsize::new(2).expect("threads");
    let mut is_divided = false;
    loop {
        let until = execution.statistics().wave_instructions + 1000;
        let progress = device.advance_surveyed_divided(
            &mut execution,
            &mut check,
            &mut fidelity,
            &mut footprints,
            threads,
            until,
        );
        // A single thread stops exactly at `until`.
        is_divided |= execution.statistics().wave_instructions > until;
        if matches!(progress, Ok(Progress::Ended(_))) {
            return (is_divided, check.end_division(&mut footprints));
        }
    }
}

#[test]
fn profiling_is_equal_for_any_number_of_threads() {
    let programs = [
        // Independent workgroups.
        ("count", NEVER, NEVER, (true, true)),
        // Each workgroup depends on the previous one, which is detected immediately.
        ("count", 1, NEVER, (false, true)),
        // Dependencies between concurrent workgroups.
        ("count", 40, NEVER, (false, true)),
        // Workgroups executed by threads depend on workgroups that one thread has executed before.
        ("count", 300, NEVER, (true, false)),
        // A fault in a workgroup that one thread executes, and in one executed by several threads.
        ("count", NEVER, 3, (false, true)),
        ("count", NEVER, 390, (true, true)),
        // Results within an error bound; accesses beyond LDS; atomic operations on one word.
        ("exponential", NEVER, NEVER, (true, true)),
        ("beyond", NEVER, NEVER, (true, true)),
        ("beyond", NEVER, 200, (true, true)),
        ("sum", NEVER, NEVER, (false, true)),
    ];
    for (kernel, distance, bad, expected) in programs {
        let workload = workload(kernel, distance, bad);
        let what = format!("{kernel}, {distance}, {bad}");
        assert_eq!(is_divided(&workload), expected, "{what}");
        let one = profiled(&workload, 1);
        for threads in [2, 3] {
            assert!(profiled(&workload, threads) == one, "{what}: {threads} threads");
        }
    }
}
