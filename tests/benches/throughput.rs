//! How fast the embedded GPU executes, on one thread: wave instructions and lane operations per
//! second of three kernels, and injections per second of the quickstart campaign. Medians of
//! several runs.

use flipwave_campaigns::{Campaign, Prepared, RunOptions, Silent, prepare, run};
use flipwave_device::{Completion, Device, Statistics};
use std::error::Error;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const RUNS: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{:<16} {:>12} {:>10} {:>18} {:>18}",
        "kernel", "wave inst.", "time", "wave inst./s", "lane operations/s"
    );
    for name in ["matmul_naive", "matmul_tiled", "saxpy_loop"] {
        let prepared = load(&root().join(format!("tests/benches/workloads/{name}.yaml")))?;
        let (statistics, time) = measure(&prepared)?;
        let per_second = |count: u64| count as f64 / time.as_secs_f64() / 1e6;
        println!(
            "{name:<16} {:>12} {:>7.2} ms {:>16.1} M {:>16.1} M",
            statistics.wave_instructions,
            time.as_secs_f64() * 1e3,
            per_second(statistics.wave_instructions),
            per_second(statistics.lane_operations),
        );
    }
    println!("{:<16} {:.0} injections/s", "quickstart", injections_per_second()?);
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn load(path: &Path) -> Result<Prepared, Box<dyn Error>> {
    Ok(prepare(&Campaign::read(path)?)?)
}

/// The dispatch's statistics and the median time of its execution; copying the device is left
/// out.
fn measure(prepared: &Prepared) -> Result<(Statistics, Duration), Box<dyn Error>> {
    let dispatch = &prepared.workload.dispatches[0];
    let mut statistics = Statistics::default();
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let mut device = prepared.workload.device.clone();
        let start = Instant::now();
        let completion = device.dispatch(dispatch)?;
        times.push(start.elapsed());
        statistics = match completion {
            Completion::Completed(statistics) => statistics,
            Completion::Faulted(fault) => return Err(fault.to_string().into()),
        };
    }
    Ok((statistics, median(times)))
}

/// Injections per second of the quickstart campaign on one worker, golden run and planning left
/// out.
fn injections_per_second() -> Result<f64, Box<dyn Error>> {
    let campaign = Campaign::read(&root().join("campaigns/examples/quickstart.yaml"))?;
    let folder = std::env::temp_dir().join(format!("flipwave-bench-{}", std::process::id()));
    let options = RunOptions { folder: folder.clone(), workers: NonZeroUsize::MIN, force: true };
    let report = run(&campaign, &options, &mut Silent, &AtomicBool::new(false))?;
    std::fs::remove_dir_all(folder)?;
    Ok(report.record.planned as f64 / report.record.timings.inject)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
