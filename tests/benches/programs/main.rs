//! Twenty whole HIP programs on the embedded GPU: with one thread, with all of the host's, and
//! interpreted, beside what each computes for comparison, the same as plain C++ on one thread of the
//! host (hipcc, `-O3 -march=native`). With another build of `flipwave` in FLIPWAVE_AGAINST, such as one
//! of before a change, beside that as well. Arguments are names of programs; without one, all run.

use flipwave_tests::{benchmark, benchmarks, released_program};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Runs of each kind, of which the median counts.
const RUNS: usize = 3;

/// A way to run programs.
struct Way {
    name: &'static str,
    flipwave: PathBuf,
    /// Options of `flipwave exec`.
    options: &'static [&'static str],
    tier: Option<&'static str>,
}

/// What one run of a program says.
struct Run {
    gpu: f64,
    host: f64,
    digest: String,
}

/// Places of ways in the list of them. What another build is measured by stands last, if it is there.
const ONE_THREAD: usize = 0;
const ALL_THREADS: usize = 1;
const INTERPRETER: usize = 2;
const OTHER: usize = 3;

fn ways() -> Vec<Way> {
    let flipwave = released_program();
    let way = |name, options, tier| Way { name, flipwave: flipwave.clone(), options, tier };
    let mut ways = vec![
        way("one thread", &["--threads", "1"][..], None),
        way("all threads", &[], None),
        way("interpreter", &["--threads", "1"], Some("interpreter")),
    ];
    if let Some(other) = std::env::var_os("FLIPWAVE_AGAINST") {
        ways.push(Way { name: "other", flipwave: other.into(), options: &[], tier: None });
    }
    ways
}

/// What is divided by what, of the seconds of the ways and, after them, of the host by itself.
fn ratios(ways: &[Way]) -> Vec<(usize, usize)> {
    let mut ratios =
        vec![(INTERPRETER, ONE_THREAD), (ONE_THREAD, ALL_THREADS), (ONE_THREAD, ways.len())];
    if ways.len() > OTHER {
        ratios.extend([(OTHER, ONE_THREAD), (OTHER, ALL_THREADS)]);
    }
    ratios
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // Cargo's own are among them.
    let asked: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let all = benchmarks();
    if let Some(unknown) = asked.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no program {unknown}, but {}", all.join(", ")).into());
    }
    let ways = ways();
    let ratios = ratios(&ways);
    let columns: Vec<&str> = ways.iter().map(|way| way.name).chain(["native"]).collect();
    print!("{:<18}", "seconds");
    columns.iter().for_each(|column| print!(" {column:>11}"));
    for &(over, under) in &ratios {
        print!(" {:>23}", format!("{}/{}", columns[over], columns[under]));
    }
    println!();
    let (mut logarithms, mut wrong) = (vec![0.0; ratios.len()], Vec::new());
    let mut passed = 0;
    for name in all.iter().filter(|name| asked.is_empty() || asked.contains(name)) {
        let seconds = match measured(&ways, &benchmark(name, "gfx90a")) {
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

/// Seconds of a program in every way, and of the host by itself: medians.
fn measured(ways: &[Way], program: &Path) -> Result<Vec<f64>, String> {
    // What is compiled in the first run is kept for the others.
    let expected = run(program, &ways[ONE_THREAD])?.digest;
    let mut seconds = vec![Vec::new(); ways.len() + 1];
    for _ in 0..RUNS {
        for (place, way) in ways.iter().enumerate() {
            let result = run(program, way)?;
            if result.digest != expected {
                return Err(format!("{} gives {}, not {expected}", way.name, result.digest));
            }
            seconds[place].push(result.gpu);
            seconds[ways.len()].push(result.host);
        }
    }
    Ok(seconds.into_iter().map(median).collect())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Runs a program once; what is wrong if it does not pass.
fn run(program: &Path, way: &Way) -> Result<Run, String> {
    let mut command = Command::new(&way.flipwave);
    command.arg("exec").args(way.options).arg("--").arg(program);
    command.env_remove("FLIPWAVE_TIER").envs(way.tier.map(|tier| ("FLIPWAVE_TIER", tier)));
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
            Err(format!("{}: {} {said}{errors}", way.name, output.status))
        }
    }
}
