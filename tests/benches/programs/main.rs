//! Twenty whole HIP programs on the embedded GPU: with one thread, with all of the host's, and
//! interpreted, beside what each computes for comparison, the same as plain C++ on one thread of the
//! host (hipcc, `-O3 -march=native`). Arguments are names of programs; without one, all run.

use flipwave_tests::{benchmark, benchmarks, released_program};
use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Runs of each kind, of which the median counts.
const RUNS: usize = 3;

/// How programs run: options of `flipwave exec`, and the tier that is asked for.
const WAYS: [(&[&str], Option<&str>); 3] =
    [(&["--threads", "1"], None), (&[], None), (&["--threads", "1"], Some("interpreter"))];

/// What one run of a program says.
struct Run {
    gpu: f64,
    host: f64,
    digest: String,
}

/// Seconds: each way's, and the host's.
struct Measured {
    ways: [f64; WAYS.len()],
    native: f64,
}

impl Measured {
    /// How many times longer the interpreter takes than compiled code, one thread than all, and one
    /// thread than the host by itself.
    fn ratios(&self) -> [f64; 3] {
        let [one, all, interpreter] = self.ways;
        [interpreter / one, one / all, one / self.native]
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // Cargo's own are among them.
    let asked: Vec<String> = std::env::args().skip(1).filter(|own| !own.starts_with('-')).collect();
    let all = benchmarks();
    if let Some(unknown) = asked.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no program {unknown}, but {}", all.join(", ")).into());
    }
    let flipwave = released_program();
    println!(
        "{:<18} {:>10} {:>11} {:>11} {:>9} {:>12} {:>8} {:>11}",
        "seconds",
        "one thread",
        "all threads",
        "interpreter",
        "native",
        "interp./one",
        "one/all",
        "one/native"
    );
    let (mut ratios, mut wrong) = (Vec::new(), Vec::new());
    for name in all.iter().filter(|name| asked.is_empty() || asked.contains(name)) {
        match measured(&flipwave, &benchmark(name, "gfx90a")) {
            Ok(own) => {
                let [one, all, interpreter] = own.ways;
                let native = own.native;
                print!("{name:<18} {one:>10.3} {all:>11.3} {interpreter:>11.3} {native:>9.4}");
                print_ratios(own.ratios());
                ratios.push(own.ratios());
            }
            Err(error) => {
                println!("{name:<18} {error}");
                wrong.push(name.as_str());
            }
        }
    }
    if !ratios.is_empty() {
        print!("{:<18} {:43}", "geometric mean", "");
        print_ratios([0, 1, 2].map(|column| {
            let logarithms = ratios.iter().map(|own| own[column].ln());
            (logarithms.sum::<f64>() / ratios.len() as f64).exp()
        }));
    }
    if wrong.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("did not pass: {}", wrong.join(", "));
    Ok(ExitCode::FAILURE)
}

fn print_ratios([tiers, threads, native]: [f64; 3]) {
    println!(" {tiers:>12.1} {threads:>8.2} {native:>11.1}");
}

/// Runs a program in every way, some times over.
fn measured(flipwave: &Path, program: &Path) -> Result<Measured, String> {
    // What is compiled in the first run is kept for the others.
    let expected = run(flipwave, program, WAYS[0])?.digest;
    let (mut ways, mut native) = ([const { Vec::new() }; WAYS.len()], Vec::new());
    for _ in 0..RUNS {
        for (way, seconds) in WAYS.into_iter().zip(&mut ways) {
            let own = run(flipwave, program, way)?;
            if own.digest != expected {
                return Err(format!("{way:?} gives {}, not {expected}", own.digest));
            }
            seconds.push(own.gpu);
            native.push(own.host);
        }
    }
    Ok(Measured { ways: ways.map(median), native: median(native) })
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Runs a program once; what is wrong if it does not pass.
fn run(
    flipwave: &Path,
    program: &Path,
    (options, tier): (&[&str], Option<&str>),
) -> Result<Run, String> {
    let mut command = Command::new(flipwave);
    command.arg("exec").args(options).arg("--").arg(program);
    command.env_remove("FLIPWAVE_TIER").envs(tier.map(|tier| ("FLIPWAVE_TIER", tier)));
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
            Err(format!("{options:?} {tier:?}: {} {said}{errors}", output.status))
        }
    }
}
