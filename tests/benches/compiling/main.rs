//! Cost and benefit of compiling GPU code to host code, for loops with long straight-line bodies of integer
//! or floating-point instructions, and for the quickstart campaign. Prints the time of compilation alone,
//! most of which happens in the background of a program's first run, and the time of a run with the
//! interpreter, with an empty cache, and with a filled cache. Medians of several runs, each in a separate
//! process.
//!
//! Run with `cargo bench --bench compiling`, or `cargo bench --bench compiling -- INSTRUCTIONS ...` for
//! certain lengths of the body, and `quickstart` for the campaign.

use flipwave_campaigns::{Campaign, RunOptions, Silent, prepare, run};
use flipwave_device::Device;
use flipwave_jit::Service;
use flipwave_tests::gpu;
use std::error::Error;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Number of runs of each program, of which the medians are taken.
const RUNS: usize = 5;

/// Lengths of the bodies, in instructions.
const LENGTHS: [u32; 3] = [320, 3_200, 30_000];

/// Approximate number of wave instructions of a run.
const EXECUTED: u32 = 60_000_000;
const WAVES: u32 = 64;

/// Values of `FLIPWAVE_TIER`.
const INTERPRETED: &str = "interpreter";
const AT_ONCE: &str = "compiled-at-once";
const AS_USUAL: &str = "";

fn main() -> Result<(), Box<dyn Error>> {
    flipwave_jit::serve_if_requested();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if let [child, file, kept] = &wanted[..]
        && child == CHILD
    {
        return execute(Path::new(file), Path::new(kept));
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    println!(
        "{:<18} {:>9} {:>11} {:>11} {:>11} {:>11}",
        "program", "compiling", "per 1,000", "interpreted", "first run", "later runs"
    );
    let folder = tempfile::tempdir()?;
    for length in LENGTHS.into_iter().filter(|length| is_wanted(&length.to_string())) {
        for kind in ["INTEGERS", "FLOATS"] {
            let file = straight(folder.path(), kind, length)?;
            measure(&format!("{length} {}", kind.to_lowercase()), &file, Some(length))?;
        }
    }
    if is_wanted("quickstart") {
        measure("quickstart", &root().join("examples/campaigns/quickstart.yaml"), None)?;
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Writes a campaign whose kernel has a loop body of `length` instructions.
fn straight(folder: &Path, kind: &str, length: u32) -> Result<PathBuf, Box<dyn Error>> {
    let source = root().join("tests/benches/compiling/straight.cl").canonicalize()?;
    let (eighths, turns) = (length / 8, EXECUTED / WAVES / length);
    let file = folder.join(format!("{kind}-{length}.yaml"));
    fs::write(
        &file,
        format!(
            "name: straight
workload:
  kernel:
    source: {source:?}
    name: straight
    options: [-O3, -D{kind}, -DEIGHTHS={eighths}]
    grid: {}
    workgroup: 256
    args:
      - {{buffer: out, type: u32, count: {}, output: true}}
      - {{scalar: {turns}, type: i32}}
faults: {{model: flip_one_bit, count: 1}}
",
            WAVES * 64,
            WAVES * 64,
        ),
    )?;
    Ok(file)
}

/// Measures one program, and prints its line.
fn measure(name: &str, file: &Path, length: Option<u32>) -> Result<(), Box<dyn Error>> {
    let [mut compiling, mut interpreted, mut first, mut later] = [const { Vec::new() }; 4];
    for _ in 0..RUNS {
        let kept = tempfile::tempdir()?;
        let run = |tier| in_a_process(file, tier, kept.path());
        interpreted.push(run(INTERPRETED)?[0]);
        first.push(run(AS_USUAL)?[0]);
        later.push(run(AS_USUAL)?[0]);
        // In the second run in a process, everything is compiled.
        let [with, without] = run(AT_ONCE)?;
        compiling.push(with - without);
    }
    let seconds = |seconds: f64| format!("{seconds:.3} s");
    let compiling = median(compiling);
    println!(
        "{name:<18} {:>9} {:>11} {:>11} {:>11} {:>11}",
        length.map_or("-".into(), |_| seconds(compiling)),
        length.map_or("-".into(), |length| seconds(compiling * 1e3 / f64::from(length))),
        seconds(median(interpreted)),
        seconds(median(first)),
        seconds(median(later)),
    );
    Ok(())
}

/// First argument of a child process that executes a campaign file.
const CHILD: &str = "execute";

/// Seconds for the first and the second execution of a campaign file in one process.
fn in_a_process(file: &Path, tier: &str, kept: &Path) -> Result<[f64; 2], Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(CHILD).arg(file).arg(kept).env("FLIPWAVE_TIER", tier);
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let times: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    times.try_into().map_err(|times| format!("{times:?} in place of two times").into())
}

/// Executes a campaign file twice and prints the time of each execution: of the complete quickstart
/// campaign, or of the fault-free dispatch of other files. Compiled code is cached in the folder `kept`.
fn execute(file: &Path, kept: &Path) -> Result<(), Box<dyn Error>> {
    let service = Service::start(std::env::current_exe()?, kept.to_owned())?;
    flipwave_jit::use_service(service.address().clone());
    let campaign = Campaign::read(file)?;
    let prepared = prepare(&campaign)?;
    let folder = tempfile::tempdir()?;
    let all = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let options = RunOptions { force: true, ..RunOptions::new(folder.path().to_owned(), all) };
    for _ in 0..2 {
        let mut device = gpu(&prepared.workload.device).clone();
        let clock = Instant::now();
        if file.starts_with(root()) {
            run(&campaign, &options, &mut Silent)?;
        } else {
            device.dispatch(&prepared.workload.program.dispatches[0])?;
        }
        println!("{}", clock.elapsed().as_secs_f64());
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
