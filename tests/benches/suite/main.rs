//! The benchmark suite on an AMD GPU and on PTX: time of each campaign with one worker, by instruction set. Prints
//! medians of five runs, which alternate, after a run that fills the caches. If FLIPWAVE_AGAINST names another
//! build of `flipwave`, such as one before a change, it is measured too. Arguments are names of programs; the
//! default is all.

use flipwave_tests::{examples_folder, released_program};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Number of runs, of which the median is taken.
const RUNS: usize = 5;

const TARGETS: [&str; 2] = ["gfx90a", "sm_80"];

/// Writes a campaign of the suite for a target.
fn campaign(folder: &Path, file: &Path, target: &str) -> Result<PathBuf, Box<dyn Error>> {
    let text =
        std::fs::read_to_string(file)?.replace("target: gfx90a", &format!("target: {target}"));
    let kernels = file.with_file_name("kernels");
    let text = text.replace("source: kernels", &format!("source: {}", kernels.display()));
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let copy = folder.join(format!("{name}.{target}.yaml"));
    std::fs::write(&copy, text)?;
    Ok(copy)
}

/// Runs a campaign.
fn run(flipwave: &Path, folder: &Path, file: &Path) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    let mut command = Command::new(flipwave);
    command.current_dir(folder).arg("run").arg(file).args(["--workers", "1", "--force", "--out"]);
    command.arg(folder.join("out")).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    if !status.success() {
        return Err(format!("{command:?}: {status}").into());
    }
    Ok(start.elapsed())
}

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo passes options, too.
    let selected: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let mut builds = vec![released_program()];
    builds.extend(std::env::var_os("FLIPWAVE_AGAINST").map(PathBuf::from));
    let folder = tempfile::tempdir()?;
    let suite = std::fs::read_dir(examples_folder().with_file_name("suite"))?;
    let mut files: Vec<PathBuf> =
        suite.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    println!("milliseconds per campaign; the second build is FLIPWAVE_AGAINST");
    println!("{:12}{:>10}{:>10}{:>8}", "program", TARGETS[0], TARGETS[1], "ratio");
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !selected.is_empty() && !selected.contains(&name) {
            continue;
        }
        let campaigns = TARGETS.map(|target| campaign(folder.path(), &file, target));
        let campaigns = campaigns.into_iter().collect::<Result<Vec<_>, _>>()?;
        let pairs: Vec<(&PathBuf, &PathBuf)> = builds
            .iter()
            .flat_map(|build| campaigns.iter().map(move |campaign| (build, campaign)))
            .collect();
        let mut times = vec![Vec::new(); pairs.len()];
        for number in 0..=RUNS {
            for ((build, campaign), times) in pairs.iter().zip(&mut times) {
                let time = run(build, folder.path(), campaign)?;
                times.extend((number > 0).then_some(time));
            }
        }
        for times in times.chunks_mut(TARGETS.len()) {
            let medians: Vec<f64> = times
                .iter_mut()
                .map(|times| {
                    times.sort();
                    times[RUNS / 2].as_secs_f64() * 1e3
                })
                .collect();
            let [amd, ptx] = medians[..] else { continue };
            println!("{name:12}{amd:10.0}{ptx:10.0}{:8.2}", ptx / amd);
        }
    }
    Ok(())
}
