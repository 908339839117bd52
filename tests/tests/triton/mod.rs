//! Kernels compiled by Triton for each target: they compute the same as numpy, and work with faults, hooks,
//! tools and the strict level.

mod compute;
mod faults;
mod instrumented;

use flipwave_tests::{Once, Python};
use std::path::{Path, PathBuf};

/// Targets that kernels are compiled for.
const TARGETS: [&str; 7] = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_80", "sm_90"];

/// Returns `true` for targets whose code hooks are inserted into.
fn is_amdgpu(target: &str) -> bool {
    target.starts_with("gfx")
}

/// Kernels of different kinds that every test uses.
const CHOSEN: [&str; 8] = [
    "softmax",
    "layer_norm",
    "matmul_f16",
    "matmul_f8e4m3",
    "attention_causal",
    "cumsum",
    "sort",
    "histogram",
];

/// Names of the kernels in `generate.py`, with their targets.
fn kernels(python: &Python) -> Vec<(String, Vec<String>)> {
    let listed = python.run("tests/triton/generate.py", &["--list"]);
    let kernel = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        Some((words.next()?, words.collect()))
    };
    listed.lines().filter_map(kernel).collect()
}

/// Folder with campaigns for a target, of all kernels or of the chosen ones, created once.
fn campaigns(python: &Python, target: &str, all: bool) -> PathBuf {
    static FOLDERS: Once<(String, bool), PathBuf> = Once::new();
    FOLDERS.get((target.to_owned(), all), || {
        let kind = if all { "all" } else { "chosen" };
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("triton").join(kind).join(target);
        let out = folder.to_str().expect("a name");
        let mut arguments = vec!["--target", target, "--out", out];
        if !all {
            arguments.push("--kernel");
            arguments.extend(CHOSEN);
        }
        python.run("tests/triton/generate.py", &arguments);
        folder
    })
}

/// Calls a function with the campaign of each chosen kernel on each of AMD's targets.
fn each_chosen(mut look: impl FnMut(&str, &str, &Path)) {
    let Some(python) = Python::find() else { return };
    for target in TARGETS.into_iter().filter(|target| is_amdgpu(target)) {
        for kernel in CHOSEN {
            println!("{kernel} on {target}");
            look(target, kernel, &campaigns(python, target, false).join(kernel));
        }
    }
}
