//! Time of a campaign of 1,000 flips before and during its injections, as multiples of a plain fault-free
//! run on one thread: with one thread, and with all host threads. Before the injections, the program runs
//! twice: the first run profiles the fault space, and the second one resolves fault sites and saves
//! checkpoints. Prints medians of several runs, and the peak memory of the process.
//!
//! Run with `cargo bench --bench setup`, or `cargo bench --bench setup -- NAME ...` for certain programs.

use flipwave_campaigns::{Campaign, RunOptions, SampleSize, Silent, Timings, prepare, run};
use flipwave_jit::Service;
use std::error::Error;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;
use std::time::Instant;

/// Number of runs of each program, of which the medians are taken.
const RUNS: usize = 5;

/// Number of faults of each campaign.
const FAULTS: u64 = 1000;

/// Campaign files in the repository.
const PROGRAMS: [&str; 6] = [
    "examples/campaigns/quickstart.yaml",
    "tests/benches/throughput/workloads/matmul_tiled.yaml",
    "tests/benches/throughput/workloads/gemm_f16_gfx90a.yaml",
    "tests/benches/throughput/workloads/gemm_f16_gfx1100.yaml",
    "tests/benches/setup/workloads/matmul_tiled_1024.yaml",
    "tests/benches/setup/workloads/gemm_f16_1024.yaml",
];

fn main() -> Result<(), Box<dyn Error>> {
    flipwave_jit::serve_if_requested();
    let folder = tempfile::tempdir()?;
    let service = Service::start(std::env::current_exe()?, folder.path().to_owned())?;
    flipwave_jit::use_service(service.address().clone());
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    println!(
        "{:<17} {:>7} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9}",
        "program",
        "threads",
        "plain run",
        "first",
        "second",
        "set-up",
        "injected",
        "injection",
        "memory"
    );
    for file in PROGRAMS {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        let name = file.file_stem().map_or_else(String::new, |name| name.display().to_string());
        if wanted.is_empty() || wanted.contains(&name) {
            let all = thread::available_parallelism()?;
            measure(&name, &file, NonZeroUsize::MIN)?;
            if all > NonZeroUsize::MIN {
                measure(&name, &file, all)?;
            }
        }
    }
    Ok(())
}

/// Measures one program with a number of threads, and prints its line.
fn measure(name: &str, file: &Path, threads: NonZeroUsize) -> Result<(), Box<dyn Error>> {
    let mut campaign = Campaign::read(file)?;
    if let Some(faults) = &mut campaign.faults {
        faults.sample.size = SampleSize::Count(FAULTS);
    }
    let folder = tempfile::tempdir()?;
    let options = RunOptions { force: true, ..RunOptions::new(folder.path().to_owned(), threads) };
    let (mut plain, mut timings, mut memory) = (Vec::new(), Vec::new(), 0);
    for _ in 0..RUNS {
        let prepared = prepare(&campaign)?;
        let clock = Instant::now();
        prepared.workload.golden()?;
        plain.push(clock.elapsed().as_secs_f64());
        drop(prepared);
        forget_peak();
        timings.push(run(&campaign, &options, &mut Silent)?.record.timings);
        memory = memory.max(peak());
    }
    let plain = median(plain.into_iter());
    let seconds = |step: fn(&Timings) -> f64| median(timings.iter().map(step));
    let times = |step| format!("{:.2} x", seconds(step) / plain);
    println!(
        "{name:<17} {threads:>7} {:>7.1} ms {:>9} {:>9} {:>9} {:>9} {:>7.3} ms {:>5} MiB",
        plain * 1e3,
        times(|timing| timing.golden),
        times(|timing| timing.rehearsal),
        times(|timing| timing.golden + timing.rehearsal),
        times(|timing| timing.inject),
        seconds(|timing| timing.inject) / FAULTS as f64 * 1e3,
        memory >> 10,
    );
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Resets the peak memory of this process (proc(5), `clear_refs`).
fn forget_peak() {
    // If this fails, the peak includes that of earlier programs.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Peak memory of this process in kibibytes (proc(5), `VmHWM`); zero if not available.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
