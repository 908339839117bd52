//! `--strict` on the command line.

use flipwave_tests::{Finished, examples_folder, flipwave};
use std::path::Path;

/// Runs a campaign on a kernel that reads an index from uninitialised local memory.
fn run(folder: &Path, arguments: &[&str]) -> Finished {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    std::fs::copy(kernels.join("uninitialised.cl"), folder.join("gather.cl")).expect("the kernel");
    let text = "
name: gather
workload:
  kernel:
    source: gather.cl
    options: [-O3, -gline-tables-only]
    name: gather
    grid: 64
    workgroup: 64
    args:
      - {buffer: values, type: u32, count: 64}
      - {buffer: out, type: u32, count: 64, output: true}
faults: {model: flip_one_bit, count: 3}
";
    std::fs::write(folder.join("gather.yaml"), text).expect("a campaign file written");
    flipwave(folder, &[&["run", "gather.yaml"], arguments].concat(), &[])
}

#[test]
fn program_that_violates_a_rule_is_reported_before_injections() {
    let folder = tempfile::tempdir().expect("a folder");
    let strict = run(folder.path(), &["--strict"]);
    assert_eq!(strict.code, Some(1), "{}", strict.stderr);
    assert!(!folder.path().join("gather.results").exists());
    assert!(strict.stderr.contains("gather.cl:8"), "{}", strict.stderr);

    // docs/strict.md shows this report.
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/strict.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let folder = format!("{}/", folder.path().display());
    for line in strict.stderr.replace(&folder, "").lines() {
        // Addresses depend on the compiler.
        let line = line.split_once(" at 0x").map_or(line, |(rule, _)| rule);
        assert!(page.contains(line), "not in docs/strict.md: {line}");
    }
}

#[test]
fn violations_are_only_reported_with_strict() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), &[]).expect_success();
}

#[test]
fn program_without_violations_is_injected() {
    let folder = tempfile::tempdir().expect("a folder");
    let example = examples_folder().canonicalize().expect("the examples").join("vector_add.yaml");
    let example = example.to_str().expect("a path");
    let results = |name: &str, arguments: &[&str]| {
        let all = [&["run", example, "--out", name], arguments].concat();
        flipwave(folder.path(), &all, &[]).expect_success();
        std::fs::read(folder.path().join(name).join("results.csv")).expect("results")
    };
    assert_eq!(results("strict", &["--strict"]), results("fast", &[]));
}

#[test]
fn strict_runs_on_gfx1250() {
    let folder = tempfile::tempdir().expect("a folder");
    let example = examples_folder().join("vector_add.yaml");
    let text = std::fs::read_to_string(example).expect("the example");
    let kernels = examples_folder().canonicalize().expect("the examples").join("kernels");
    let text = text.replace("source: kernels/", &format!("source: {}/", kernels.display()));
    let text = text.replace("target: gfx90a", "target: gfx1250");
    std::fs::write(folder.path().join("vector_add.yaml"), text).expect("a campaign file written");
    flipwave(folder.path(), &["profile", "vector_add.yaml", "--strict"], &[]).expect_success();
}
