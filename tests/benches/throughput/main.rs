//! Speed of the embedded GPU on one thread. For several kernels: wave instructions and lane operations per
//! second, compared with native code (PoCL, one thread) and with the interpreter, and the overhead of an
//! observer that waits for one instruction, of an observer that is called at each instruction, of recording
//! footprints, and of tracking fidelity. Also injections per second of the quickstart campaign. Prints
//! medians of several runs; runs to be compared alternate. `FLIPWAVE_TIER=interpreter` disables compilation.
//!
//! Then measures the portable kernels on processors of each generation, and memory-bound kernels on one
//! processor with waves of 64 lanes and one with 32.
//!
//! Run with `make bench`, or `cargo bench -- NAME ...` for certain kernels; `targets` selects the other
//! processors, `memory` all memory-bound kernels, and NAME:TARGET one kernel on one processor.

mod pocl;

use flipwave_campaigns::{Campaign, Prepared, RunOptions, Silent, prepare, run};
use flipwave_device::{Completion, Device, Dispatch, Statistics, WaveId};
use flipwave_isa::Pc;
use flipwave_jit::Service;
use flipwave_sim::{
    Compiling, Executed, FidelityCheck, Footprints, Interest, Observer, Policy, Unobserved, Watch,
    WaveState,
};
use flipwave_tests::{campaign_target, gpu};
use pocl::Native;
use std::error::Error;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const RUNS: usize = 15;
/// Duration of the warm-up before a measurement, in which background compilation completes.
const WARM_UP: Duration = Duration::from_millis(500);

/// A processor of each generation.
const TARGETS: [&str; 6] = ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"];

/// The kernels, and `true` if they are portable to other targets and PoCL.
const KERNELS: [(&str, bool); 15] = [
    ("matmul_naive", true),
    ("matmul_tiled", true),
    ("saxpy_loop", true),
    ("matmul_mfma", false),
    ("gemm_f16_gfx90a", false),
    ("gemm_f16_gfx942", false),
    ("gemm_fp8_gfx942", false),
    ("gemm_i8_gfx942", false),
    ("gemm_f16_gfx1100", false),
    ("matrix_f16_gfx90a", false),
    ("matrix_bf16_gfx90a", false),
    ("matrix_f16_gfx942", false),
    ("matrix_fp8_gfx942", false),
    ("matrix_i8_gfx942", false),
    ("halves", false),
];

/// Memory-bound kernels.
const MEMORY_KERNELS: [&str; 9] = [
    "scratch",
    "scratch_unoptimized",
    "gather",
    "scatter",
    "histogram_global",
    "histogram_local",
    "bytes",
    "strided",
    "transpose",
];

/// Processors for memory-bound kernels, with waves of 64 and of 32 lanes.
const MEMORY_TARGETS: [&str; 2] = ["gfx90a", "gfx1100"];

fn main() -> Result<(), Box<dyn Error>> {
    flipwave_jit::serve_if_requested();
    let folder = tempfile::tempdir()?;
    let service = Service::start(std::env::current_exe()?, folder.path().to_owned())?;
    flipwave_jit::use_service(service.address().clone());
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    println!(
        "{:<18} {:>10} {:>9} {:>12} {:>14} {:>9} {:>7} {:>7} {:>7} {:>7} {:>8} {:>8}",
        "kernel",
        "wave inst.",
        "time",
        "wave inst./s",
        "lane op./s",
        "native",
        "ratio",
        "interp.",
        "armed",
        "watched",
        "recorded",
        "followed"
    );
    for (name, portable) in KERNELS {
        if is_wanted(name) {
            measure(name, portable)?;
        }
    }
    if is_wanted("targets") {
        print_target_header();
        for (name, _) in KERNELS.into_iter().filter(|(_, portable)| *portable) {
            for target in TARGETS {
                measure_on(name, target)?;
            }
        }
    }
    let mut accesses =
        MEMORY_KERNELS.into_iter().filter(|name| is_wanted("memory") || is_wanted(name));
    if let Some(first) = accesses.next() {
        print_target_header();
        for name in std::iter::once(first).chain(accesses) {
            for target in MEMORY_TARGETS {
                measure_on(name, target)?;
            }
        }
    }
    for (name, target) in wanted.iter().filter_map(|wanted| wanted.split_once(':')) {
        measure_on(name, target)?;
    }
    if is_wanted("quickstart") {
        println!("{:<14} {:.0} injections/s", "quickstart", injections_per_second()?);
    }
    Ok(())
}

fn print_target_header() {
    println!(
        "\n{:<20} {:<8} {:>10} {:>9} {:>12}",
        "kernel", "target", "wave inst.", "time", "wave inst./s"
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Measures one kernel and prints its line.
fn measure(name: &str, portable: bool) -> Result<(), Box<dyn Error>> {
    let file = root().join(format!("tests/benches/throughput/workloads/{name}.yaml"));
    let campaign = Campaign::read(&file)?;
    let prepared = prepare(&campaign)?;
    let mut native = match portable {
        true => Native::new(&campaign, &prepared)
            .inspect_err(|error| eprintln!("{name} as native code: {error}"))
            .ok(),
        false => None,
    };
    let mut statistics = Statistics::default();
    let [mut times, mut interpreted_times, mut native_times] = [const { Vec::new() }; 3];
    let [mut armed_times, mut watched_times, mut recorded_times, mut followed_times] =
        [const { Vec::new() }; 4];
    warm_up(&prepared)?;
    for _ in 0..RUNS {
        let usual = Compiling::of_process();
        let (time, executed, output) = execute(&prepared, usual, &mut Unobserved)?;
        times.push(time);
        statistics = executed;
        interpreted_times.push(execute(&prepared, Compiling::Never, &mut Unobserved)?.0);
        let nowhere = Interest::Address(Pc(u64::MAX));
        armed_times.push(execute(&prepared, usual, &mut Waiting(nowhere))?.0);
        watched_times.push(execute(&prepared, usual, &mut Waiting(Interest::Every))?.0);
        recorded_times.push(record(&prepared)?);
        followed_times.push(follow(&prepared)?);
        if let Some(native) = &mut native {
            native_times.push(native.run()?);
            // The first argument of these kernels is the output.
            if native.buffer(0)? != output {
                return Err(format!("{name}: native code gives another result").into());
            }
        }
    }
    let (time, interpreted) = (median(times), median(interpreted_times));
    let ratio = |time: Duration, to: Duration| time.as_secs_f64() / to.as_secs_f64();
    let per_second = |count: u64| count as f64 / time.as_secs_f64() / 1e6;
    let milliseconds = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
    let native = (!native_times.is_empty()).then(|| median(native_times));
    println!(
        "{name:<18} {:>10} {:>9} {:>10.1} M {:>12.1} M {:>9} {:>7} {:>7.2} {:>7.2} {:>7.2} {:>8.2} {:>8.2}",
        statistics.wave_instructions,
        milliseconds(time),
        per_second(statistics.wave_instructions),
        per_second(statistics.lane_operations),
        native.map_or("-".into(), milliseconds),
        native.map_or("-".into(), |native| format!("{:.2}", ratio(time, native))),
        ratio(interpreted, time),
        ratio(median(armed_times), interpreted),
        ratio(median(watched_times), interpreted),
        ratio(median(recorded_times), interpreted),
        ratio(median(followed_times), interpreted),
    );
    Ok(())
}

/// Measures one kernel on a processor and prints its line.
fn measure_on(name: &str, target: &str) -> Result<(), Box<dyn Error>> {
    let file = root().join(format!("tests/benches/throughput/workloads/{name}.yaml"));
    let campaign = Campaign { target: campaign_target(&target.parse()?), ..Campaign::read(&file)? };
    let prepared = prepare(&campaign)?;
    let (mut times, mut count) = (Vec::new(), 0);
    warm_up(&prepared)?;
    for _ in 0..RUNS {
        let (time, statistics, _) = execute(&prepared, Compiling::of_process(), &mut Unobserved)?;
        times.push(time);
        count = statistics.wave_instructions;
    }
    let time = median(times).as_secs_f64();
    let (milliseconds, rate) = (time * 1e3, count as f64 / time / 1e6);
    println!("{name:<20} {target:<8} {count:>10} {milliseconds:>6.2} ms {rate:>10.1} M");
    Ok(())
}

/// Executes a kernel in all modes for which separate variants are compiled.
fn warm_up(prepared: &Prepared) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    while start.elapsed() < WARM_UP {
        execute(prepared, Compiling::of_process(), &mut Unobserved)?;
        record(prepared)?;
    }
    Ok(())
}

/// Runs the dispatch of a workload on a copy of the device. Returns the time of the execution alone, its
/// statistics, and the first output.
fn execute(
    prepared: &Prepared,
    compiling: Compiling,
    observer: &mut dyn Observer,
) -> Result<(Duration, Statistics, Vec<u8>), Box<dyn Error>> {
    let workload = &prepared.workload;
    let mut device = gpu(&workload.device).clone();
    device.set_policy(Policy { compiling, ..device.policy() });
    let start = Instant::now();
    let completion = device.dispatch_observed(&workload.program.dispatches[0], observer)?;
    let time = start.elapsed();
    let Completion::Completed(statistics) = completion else {
        return Err(format!("{completion:?}").into());
    };
    let mut output = vec![0; workload.program.outputs[0].bytes];
    device.read(workload.program.outputs[0].address, &mut output)?;
    Ok((time, statistics, output))
}

/// Time of the dispatch with recording of footprints.
fn record(prepared: &Prepared) -> Result<Duration, Box<dyn Error>> {
    let workload = &prepared.workload;
    let (mut device, mut footprints) = (gpu(&workload.device).clone(), Footprints::default());
    let start = Instant::now();
    let mut execution = device.begin(&workload.program.dispatches[0])?;
    device.advance_recorded(&mut execution, &mut Unobserved, &mut footprints, u64::MAX)?;
    Ok(start.elapsed())
}

/// Time of the dispatch with tracking of fidelity.
fn follow(prepared: &Prepared) -> Result<Duration, Box<dyn Error>> {
    let Dispatch { kernel, .. } = &prepared.workload.program.dispatches[0];
    let (mut device, mut check) = (gpu(&prepared.workload.device).clone(), FidelityCheck::new());
    let start = Instant::now();
    let mut execution = device.begin(&prepared.workload.program.dispatches[0])?;
    device.begin_fidelity(kernel, &execution, &mut check);
    device.advance_with_fidelity(&mut execution, &mut Unobserved, &mut check, u64::MAX)?;
    Ok(start.elapsed())
}

/// An observer that waits in all waves for an instruction that is never executed. This is the most expensive
/// case of an injection, which usually waits in one wave.
struct Waiting(Interest);

impl Observer for Waiting {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn interest(&self) -> Interest {
        self.0
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        if executed.inst.pc == Pc(u64::MAX) {
            state.write(flipwave_isa::Register::Scc, flipwave_isa::Lane(0), 0);
            return Watch::Off;
        }
        Watch::On
    }
}

/// Injections per second of the quickstart campaign on one worker, excluding golden run and planning.
fn injections_per_second() -> Result<f64, Box<dyn Error>> {
    let campaign = Campaign::read(&root().join("examples/campaigns/quickstart.yaml"))?;
    let folder = std::env::temp_dir().join(format!("flipwave-bench-{}", std::process::id()));
    let options = RunOptions { force: true, ..RunOptions::new(folder.clone(), NonZeroUsize::MIN) };
    let report = run(&campaign, &options, &mut Silent)?;
    std::fs::remove_dir_all(folder)?;
    Ok(report.record.planned as f64 / report.record.timings.inject)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
