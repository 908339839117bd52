//! Applications for CUDA, without NVIDIA's software: runs, campaigns and captures.

use flipwave_analysis::{Outcome, Row, read_rows};
use flipwave_tests::{Finished, Python, flipwave, flipwave_within};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(300);

/// Runs a compiler.
#[track_caller]
pub(crate) fn compile(command: &mut Command) {
    let output = command.output().expect("Debian's package clang-22 is needed by these tests");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles the program `steps` and its kernels in a folder.
#[track_caller]
pub(crate) fn build(folder: &Path) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("applications/cuda");
    let mut host = Command::new("clang-22");
    compile(
        host.args(["-O1", "-Wall", "-Werror", "-o"])
            .arg(folder.join("steps"))
            .arg(sources.join("steps.c")),
    );
    let mut kernels = Command::new("clang++-22");
    kernels.args(["-xcuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "-O2", "-S"]);
    kernels.args(["-ffp-contract=off", "--cuda-gpu-arch=sm_80", "-Wno-unknown-cuda-version"]);
    kernels.args(["-Xclang", "-target-feature", "-Xclang", "+ptx78"]);
    compile(kernels.arg(sources.join("steps.cu")).arg("-o").arg(folder.join("steps.ptx")));
}

#[track_caller]
fn exec(folder: &Path, options: &[&str], arguments: &[&str]) -> Finished {
    let command = ["--", "./steps", "steps.ptx"];
    let all = [&["exec", "--gpu", "sm_90"], options, &command, arguments].concat();
    flipwave_within(PATIENCE, folder, &all).expect("an end")
}

/// Output of the program: results, and the sum of 7 and their integer parts.
fn printed(results: &[f32]) -> String {
    let (mut text, mut sum) = (String::new(), 7u32);
    for (i, value) in results.iter().enumerate() {
        sum = sum.wrapping_add(*value as i32 as u32);
        text += &format!("{:08x}{}", value.to_bits(), if i % 10 == 9 { "\n" } else { " " });
    }
    text + &format!("sum {sum}\n")
}

/// Output of the program, computed by the host in single precision.
fn expected() -> String {
    let input = (0..100).map(|i| i as f32 * 1.25 - 20.0);
    let steps = |first| (0..8).fold(first, |value, _| value * 0.5 + first);
    printed(&input.map(steps).collect::<Vec<f32>>())
}

#[test]
fn programs_compute_what_the_host_computes() {
    let folder = tempfile::tempdir().expect("a folder");
    build(folder.path());
    let finished = exec(folder.path(), &["--count"], &[]).expect_success();
    assert_eq!(finished.stdout, expected());
    let counts = "kernel  dispatches  instructions\nstep             1           288\nsum              1            68\n";
    assert_eq!(finished.stderr, counts);
    let finished = exec(folder.path(), &["--fidelity"], &[]).expect_success();
    assert!(
        finished.stderr.ends_with("all 22 operations executed are exact\n"),
        "{}",
        finished.stderr
    );
}

#[test]
fn faults_of_kernels_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    build(folder.path());
    let finished = exec(folder.path(), &[], &["wild"]);
    assert_eq!(finished.code, Some(1));
    let message = "flipwave: dispatch 0, kernel wild: memory violation: write to 0x200000410000, lane 0, at pc 0x";
    assert!(finished.stderr.contains(message), "{}", finished.stderr);
    assert!(finished.stderr.contains("cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"));
}

#[test]
fn what_is_missing_for_ptx_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    build(folder.path());
    let races = exec(folder.path(), &["--strict", "--races"], &[]);
    races.expect_refused(&["`--races` is available for AMD GPUs only"]);
    let mixed = flipwave(folder.path(), &["exec", "--gpu", "sm_90,gfx90a", "--", "./steps"], &[]);
    mixed.expect_refused(&["an application cannot use both"]);
}

/// Each rule that a kernel breaks is reported once, although the kernel is launched twice.
#[test]
fn rules_that_kernels_break_are_reported_at_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    build(folder.path());
    let clean = exec(folder.path(), &["--strict"], &[]).expect_success();
    assert_eq!((clean.stdout, &*clean.stderr), (expected(), ""));
    let together = exec(folder.path(), &["--strict"], &["grid"]).expect_success();
    assert_eq!((together.stdout, &*together.stderr), (expected_of_grid(), ""));
    let finished = exec(folder.path(), &["--strict"], &["careless"]);
    assert_eq!((finished.code, &*finished.stdout), (Some(1), &*expected()));
    let report = &finished.stderr;
    for words in [
        "kernel careless: aligned at 0x",
        "kernel careless: undefined-value at 0x",
        "lanes 0x55555555 of the wave do not execute the instruction",
        "flipwave: the program violates hardware rules (violations: 2)\n",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
    // Without `--strict`, nothing is reported.
    let quiet = exec(folder.path(), &[], &["careless"]).expect_success();
    assert_eq!((quiet.stdout, &*quiet.stderr), (expected(), ""));
}

fn campaign(folder: &Path, workload: &str, compare: &str) {
    let text = format!(
        "name: steps\nseed: 1\ntarget: sm_90\nworkload:\n{workload}{compare}\
         faults: {{model: flip_one_bit, count: 30}}\n"
    );
    std::fs::write(folder.join("campaign.yaml"), text).expect("written");
}

/// Runs the campaign; returns its table.
#[track_caller]
fn run(folder: &Path, options: &[&str]) -> Vec<u8> {
    let arguments = [&["run", "campaign.yaml", "--out", "results", "--force"], options].concat();
    flipwave_within(PATIENCE, folder, &arguments).expect("an end").expect_success();
    std::fs::read(folder.join("results/results.csv")).expect("results")
}

#[track_caller]
fn rows(table: &[u8]) -> Vec<Row> {
    read_rows(table).expect("rows")
}

/// Injects faults in processes of the program with some arguments, and in replays of a recorded run, with one worker
/// and with two. All must have the same outcomes. Returns the rows.
#[track_caller]
fn rows_of_application_and_capture(folder: &Path, arguments: &[&str], output: &str) -> Vec<Row> {
    let kernels = folder.join("steps.ptx");
    let command = [&["./steps", kernels.to_str().expect("text")], arguments].concat().join(", ");
    let app = format!("  app: {{command: [{command}], golden_runs: 1}}\n");
    campaign(folder, &app, "compare: [{stdout: exact}]\n");
    let table = run(folder, &["--workers", "1", "--without", "dead-values"]);
    assert_eq!(run(folder, &["--workers", "2"]), table, "with 2 workers");
    let in_application = rows(&table);

    let capture = ["capture", "--gpu", "sm_90", "--out", "steps.capture", "--"];
    let capture = [&capture[..], &["./steps", "steps.ptx"], arguments].concat();
    let finished = flipwave(folder, &capture, &[]).expect_success();
    assert_eq!(finished.stdout, output);
    campaign(folder, "  capture: {file: steps.capture}\n", "");
    let table = run(folder, &["--workers", "1"]);
    assert_eq!(run(folder, &["--workers", "2"]), table, "of the capture, with 2 workers");
    let found = |rows: &[Row]| -> Vec<(String, Outcome)> {
        rows.iter().map(|row| (row.site.to_string(), row.outcome)).collect()
    };
    assert_eq!(found(&in_application), found(&rows(&table)));
    let outcomes: BTreeSet<Outcome> = in_application.iter().map(|row| row.outcome).collect();
    assert_eq!(outcomes.len(), 3, "masked, SDC and DUE: {outcomes:?}");
    in_application
}

#[test]
fn faults_have_the_same_outcomes_in_the_application_and_in_its_capture() {
    let folder = tempfile::tempdir().expect("a folder");
    build(folder.path());
    let rows = rows_of_application_and_capture(folder.path(), &[], &expected());
    let causes: BTreeSet<String> = rows.iter().filter_map(|row| row.cause.clone()).collect();
    assert!(causes.contains("watchdog") && causes.contains("memory_violation"), "{causes:?}");
}

/// Results of the program's cooperative launch, computed by the host.
fn expected_of_grid() -> String {
    let mut data: Vec<f32> = (0..100).map(|i| i as f32 * 1.25 - 20.0).collect();
    for _ in 0..7 {
        let mean = |i: usize| {
            let right = (i + 1).min(data.len() - 1);
            0.25 * data[i.saturating_sub(1)] + 0.5 * data[i] + 0.25 * data[right]
        };
        data = (0..data.len()).map(mean).collect();
    }
    printed(&data)
}

/// Workgroups that wait for each other, and faults that let them wait forever.
#[test]
fn cooperative_launches_are_recorded_and_struck() {
    let folder = tempfile::tempdir().expect("a folder");
    build(folder.path());
    let output = expected_of_grid();
    rows_of_application_and_capture(folder.path(), &["grid"], &output);
    let listed = flipwave(folder.path(), &["capture", "--list", "steps.capture"], &[]);
    let launch = "stream=0 code_object=1 instructions=21630 written=804 cooperative\n";
    assert!(listed.expect_success().stdout.contains(launch));
    let too_large = exec(folder.path(), &[], &["grid", "513"]);
    assert_eq!(
        (too_large.code, &*too_large.stderr),
        (Some(1), "the cooperative launch failed: 720\n")
    );
}

/// A judge receives the outputs of the application by their names, also in replays.
#[test]
fn replays_have_the_outcome_and_the_severity_of_the_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    build(folder);
    let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("applications/cuda/judge.py");
    let kernels = folder.join("steps.ptx");
    let app = format!("  app: {{command: [./steps, {}], golden_runs: 1}}\n", kernels.display());
    let compare = format!(
        "compare: [{{stdout: exact}}]\nseverity: {{command: [python3, {}]}}\n",
        judge.display()
    );
    campaign(folder, &app, &compare);
    let rows = rows(&run(folder, &["--workers", "2"]));
    let mut replayed = BTreeSet::new();
    for row in &rows {
        let is_first = replayed.insert((row.outcome, row.severity));
        if !is_first {
            continue;
        }
        let arguments = ["replay", "campaign.yaml", "--site", &row.site];
        let found = flipwave_within(PATIENCE, folder, &arguments).expect("an end").expect_success();
        assert!(found.stdout.contains(&format!("{:<15} {}\n", "outcome:", row.outcome)));
        let severity = row.severity.map(|severity| format!("{:<15} {severity}\n", "severity:"));
        let line = found.stdout.lines().find(|line| line.starts_with("severity:"));
        assert_eq!(line.map(|line| format!("{line}\n")), severity, "{}", found.stdout);
        // Only a recorded run tells where the device stopped.
        let has_place = found.stdout.contains("memory violation: ");
        assert_eq!(has_place, row.cause.as_deref() == Some("memory_violation"), "{}", found.stdout);
    }
    assert!(replayed.len() >= 4, "masked, critical, tolerable and DUE: {replayed:?}");
}

/// Programs that were linked with NVIDIA's runtime need its symbol version.
#[test]
fn programs_with_versions_of_the_runtime_are_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let program = "#include <stdio.h>\nint cudaGetDeviceCount(int *);\n\
                   int main(void) { int count; int error = cudaGetDeviceCount(&count); \
                   return printf(\"%d devices, error %d\\n\", count, error) < 0; }\n";
    for version in ["11.0", "12", "13"] {
        let name = format!("libcudart.so.{version}");
        std::fs::write(folder.join("program.c"), program).expect("written");
        std::fs::write(folder.join("stub.c"), "int cudaGetDeviceCount(int *c) { return 1; }\n")
            .expect("written");
        std::fs::write(folder.join("versions"), format!("{name} {{ global: *; }};\n"))
            .expect("written");
        let mut library = Command::new("clang-22");
        library.current_dir(folder).args(["-shared", "-fPIC", "stub.c", "-o", &name]);
        compile(library.args([&format!("-Wl,-soname,{name}"), "-Wl,--version-script=versions"]));
        let mut linked = Command::new("clang-22");
        compile(linked.current_dir(folder).args(["program.c", "-o", "program", &name]));
        let finished = flipwave(folder, &["exec", "--gpu", "2xsm_90", "--", "./program"], &[]);
        let finished = finished.expect_success();
        assert_eq!((&*finished.stdout, &*finished.stderr), ("2 devices, error 0\n", ""));
    }
}

/// Triton compiles a kernel and launches it with its own launcher, without PyTorch and NVIDIA's assembler.
#[test]
fn triton_launches_kernels() {
    let Some(python) = Python::find() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("applications/cuda/triton_add.py");
    let (python, script) = (python.path().to_str().expect("text"), script.to_str().expect("text"));
    let cache = folder.path().join("triton");
    let environment = [("TRITON_CACHE_DIR", cache.to_str().expect("text"))];
    let arguments = ["exec", "--gpu", "sm_90", "--count", "--", python, script];
    let finished = flipwave(folder.path(), &arguments, &environment).expect_success();
    assert_eq!(finished.stdout, "add: ok\n");
    assert!(finished.stderr.contains("add              1           "), "{}", finished.stderr);
}
