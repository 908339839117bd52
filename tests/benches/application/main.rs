//! Start-up time of applications on the embedded GPU, CPU time of waiting, and injections per second into
//! an application and into its capture, on one worker.

use flipwave_tests::{Compiler, application, released_program};
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Number of runs, of which the median is taken.
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let built = |name| application(name, Compiler::Hipcc, "gfx90a").into_os_string();
    let runtime = built("empty");
    let exec = |command: &[OsString]| {
        let mut all: Vec<OsString> = vec!["exec".into(), "--".into()];
        all.extend_from_slice(command);
        all
    };
    let flipwave = released_program().into_os_string();
    let native = median(|| seconds(folder.path(), "true".as_ref(), &[]))?;
    let nothing = median(|| seconds(folder.path(), &flipwave, &exec(&["true".into()])))?;
    let empty =
        median(|| seconds(folder.path(), &flipwave, &exec(std::slice::from_ref(&runtime))))?;
    println!("a program that does nothing           {:>8.1} ms", native * 1e3);
    println!("the same under flipwave exec          {:>8.1} ms", nothing * 1e3);
    println!("one that starts HIP and asks for GPUs {:>8.1} ms", empty * 1e3);

    println!();
    let waits = application("measured/host", Compiler::Hipcc, "gfx90a").into_os_string();
    let counts = [
        ("launches", 10400),
        ("synced", 10400),
        ("copies", 200),
        ("long", 400000),
        ("threads", 40000),
    ];
    for (what, count) in counts {
        let command = [waits.clone(), what.into(), count.to_string().into()];
        let output = Command::new(&flipwave).args(exec(&command)).output()?;
        print!("{}", String::from_utf8_lossy(&output.stdout));
    }

    println!("\n{:<10} {:>16} {:>16} {:>8}", "program", "application, /s", "capture, /s", "ratio");
    for name in ["jacobi", "saxpy", "scan"] {
        let program = built(name);
        let app = format!("  app: {{command: \"{}\", golden_runs: 1}}\n", program.display());
        let live = per_second(folder.path(), &flipwave, &app, 20)?;
        let file = folder.path().join("run.capture");
        let arguments = ["capture".into(), "--force".into(), "--out".into(), file.into_os_string()];
        let arguments = [&arguments[..], &["--".into(), program]].concat();
        seconds(folder.path(), &flipwave, &arguments)?;
        let captured =
            per_second(folder.path(), &flipwave, "  capture: {file: run.capture}\n", 2000)?;
        println!("{name:<10} {live:>16.1} {captured:>16.0} {:>8.0}", captured / live);
    }
    Ok(())
}

/// Median of several runs.
fn median(mut run: impl FnMut() -> Result<f64, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut all = (0..RUNS).map(|_| run()).collect::<Result<Vec<f64>, _>>()?;
    all.sort_by(f64::total_cmp);
    Ok(all[RUNS / 2])
}

/// Duration of a program in seconds.
fn seconds(
    folder: &Path,
    program: &std::ffi::OsStr,
    arguments: &[OsString],
) -> Result<f64, Box<dyn Error>> {
    let clock = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    if status.success() {
        Ok(clock.elapsed().as_secs_f64())
    } else {
        Err(format!("{} {arguments:?}: {status}", program.display()).into())
    }
}

/// Injections per second of a campaign, from `run.json`.
fn per_second(
    folder: &Path,
    flipwave: &std::ffi::OsStr,
    workload: &str,
    count: u32,
) -> Result<f64, Box<dyn Error>> {
    let faults = format!("  model: flip_one_bit\n  count: {count}\n");
    let text = format!("name: bench\nworkload:\n{workload}faults:\n{faults}");
    fs::write(folder.join("bench.yaml"), text)?;
    let run = ["run", "bench.yaml", "--out", "results", "--force", "--workers", "1"];
    let run = [&run[..], &["--without", "dead-values"]].concat();
    let arguments: Vec<OsString> = run.into_iter().map(Into::into).collect();
    median(|| {
        seconds(folder, flipwave, &arguments)?;
        let record = fs::read_to_string(folder.join("results/run.json"))?;
        let line = record.lines().find(|line| line.contains("injections_per_second"));
        let value = line.and_then(|line| line.split(": ").nth(1)).ok_or("no speed")?;
        Ok(value.trim_end_matches(',').parse()?)
    })
}
