//! Triton's kernels, as its compiler emits them for each target, compute what numpy computes, take
//! faults, and are understood by all that looks into them.

mod compute;
mod faults;
mod instrumented;

use flipwave_tests::{Once, Python};
use std::path::{Path, PathBuf};

/// What kernels are compiled for.
const TARGETS: [&str; 5] = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"];

/// Kernels of different kinds, which every test looks at.
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

/// Kernels by name with the targets that they are for, as `generate.py` has them.
fn kernels(python: &Python) -> Vec<(String, Vec<String>)> {
    let listed = python.run("tests/triton/generate.py", &["--list"]);
    let kernel = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        Some((words.next()?, words.collect()))
    };
    listed.lines().filter_map(kernel).collect()
}

/// The folder with campaigns of a target's kernels, of all or of the chosen ones, each made once.
fn campaigns(python: &Python, target: &str, all: bool) -> PathBuf {
    static MADE: Once<(String, bool), PathBuf> = Once::new();
    MADE.get((target.to_owned(), all), || {
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

/// Does something with the campaign of each of the chosen kernels on each target.
fn each_chosen(mut look: impl FnMut(&str, &str, &Path)) {
    let Some(python) = Python::find() else { return };
    for target in TARGETS {
        for kernel in CHOSEN {
            println!("{kernel} on {target}");
            look(target, kernel, &campaigns(python, target, false).join(kernel));
        }
    }
}
