//! Twenty complete HIP programs on the embedded GPU: with one thread, with all host threads, and
//! interpreted, compared with plain C++ on one host thread (hipcc, `-O3 -march=native`). If
//! FLIPWAVE_AGAINST names another build of `flipwave`, such as one before a change, it is measured too.
//! Arguments are names of programs; the default is all.

use flipwave_tests::{benchmark, benchmarks, released_program};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Number of runs, of which the median is taken.
const RUNS: usize = 3;

/// A configuration in which programs run.
struct Configuration {
    name: &'static str,
    flipwave: PathBuf,
    /// Options of `flipwave exec`.
    options: &'static [&'static str],
    tier: Option<&'static str>,
}

/// Results of one run of a program.
struct Run {
    gpu: f64,
    host: f64,
    digest: String,
}

/// Indices of configurations. The other build, if any, is last.
const ONE_THREAD: usize = 0;
const ALL_THREADS: usize = 1;
const INTERPRETER: usize = 2;
const OTHER: usize = 3;

fn configurations() -> Vec<Configuration> {
    let flipwave = released_program();
    let configuration =
        |name, options, tier| Configuration { name, flipwave: flipwave.clone(), options, tier };
    let mut configurations = vec![
        configuration("one thread", &["--threads", "1"][..], None),
        configuration("all threads", &[], None),
        configuration("interpreter", &["--threads", "1"], Some("interpreter")),
    ];
    if let Some(other) = std::env::var_os("FLIPWAVE_AGAINST") {
        configurations.push(Configuration {
            name: "other",
            flipwave: other.into(),
            options: &[],
            tier: None,
        });
    }
    configurations
}

/// Ratios to print: indices of numerator and denominator in the times of all configurations, followed by
/// the native time.
fn ratios(configurations: &[Configuration]) -> Vec<(usize, usize)> {
    let mut ratios = vec![
        (INTERPRETER, ONE_THREAD),
        (ONE_THREAD, ALL_THREADS),
        (ONE_THREAD, configurations.len()),
    ];
    if configurations.len() > OTHER {
        ratios.extend([(OTHER, ONE_THREAD), (OTHER, ALL_THREADS)]);
    }
    ratios
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // Cargo passes options, too.
    let selected: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let all = benchmarks();
    if let Some(unknown) = selected.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no program {unknown}, but {}", all.join(", ")).into());
    }
    let configurations = configurations();
    let ratios = ratios(&configurations);
    let columns: Vec<&str> =
        configurations.iter().map(|configuration| configuration.name).chain(["native"]).collect();
    print!("{:<18}", "seconds");
    columns.iter().for_each(|column| print!(" {column:>11}"));
    for &(over, under) in &ratios {
        print!(" {:>23}", format!("{}/{}", columns[over], columns[under]));
    }
    println!();
    let (mut logarithms, mut wrong) = (vec![0.0; ratios.len()], Vec::new());
    let mut passed = 0;
    for name in all.iter().filter(|name| selected.is_empty() || selected.contains(name)) {
        let seconds = match measured(&configurations, &benchmark(name, "gfx90a")) {
            Ok(seconds) => seconds,
            Err(error) => {
                println!("{name:<18} {error}");
                wrong.push(name.as_str());
                continue;
            }
        };
        print!("{name:<18}");
        seconds.iter().for_each(|seconds| print!(" {seconds:>11.4}"));
        for (&(over, under), sum) in ratios.iter().zip(&mut logarithms) {
            let ratio = seconds[over] / seconds[under];
            *sum += ratio.ln();
            print!(" {ratio:>23.2}");
        }
        println!();
        passed += 1;
    }
    if passed > 0 {
        print!("{:<18}{:width$}", "geometric mean", "", width = 12 * columns.len());
        logarithms.iter().for_each(|sum| print!(" {:>23.2}", (sum / f64::from(passed)).exp()));
        println!();
    }
    if wrong.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("did not pass: {}", wrong.join(", "));
    Ok(ExitCode::FAILURE)
}

/// Median times of a program in every configuration, followed by the native time.
fn measured(configurations: &[Configuration], program: &Path) -> Result<Vec<f64>, String> {
    // The first run fills the cache of compiled code.
    let expected = run(program, &configurations[ONE_THREAD])?.digest;
    let mut seconds = vec![Vec::new(); configurations.len() + 1];
    for _ in 0..RUNS {
        for (place, configuration) in configurations.iter().enumerate() {
            let result = run(program, configuration)?;
            if result.digest != expected {
                return Err(format!(
                    "{} gives {}, not {expected}",
                    configuration.name, result.digest
                ));
            }
            seconds[place].push(result.gpu);
            seconds[configurations.len()].push(result.host);
        }
    }
    Ok(seconds.into_iter().map(median).collect())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Runs a program once.
///
/// # Errors
/// If the program fails.
fn run(program: &Path, configuration: &Configuration) -> Result<Run, String> {
    let mut command = Command::new(&configuration.flipwave);
    command.arg("exec").args(configuration.options).arg("--").arg(program);
    command
        .env_remove("FLIPWAVE_TIER")
        .envs(configuration.tier.map(|tier| ("FLIPWAVE_TIER", tier)));
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    match (output.status.success(), &lines[..]) {
        (true, [seconds, digest, "passed"]) => {
            let mut numbers = seconds.split(' ').skip(1).map_while(|number| number.parse().ok());
            let (Some(gpu), Some(host)) = (numbers.next(), numbers.next()) else {
                return Err(format!("no seconds: {seconds}"));
            };
            Ok(Run { gpu, host, digest: digest.to_string() })
        }
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(format!("{}: {} {said}{errors}", configuration.name, output.status))
        }
    }
}
