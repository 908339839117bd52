//! Campaigns on NVIDIA's driver, in whose place the simulated GPU's stand-in is, and the comparison with silicon.

use flipwave_analysis::Outcome;
use flipwave_tests::{Finished, flipwave, flipwave_within, rows};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(1200);

/// Three dispatches of a module: one writes a variable of the module, the others use it, shared memory and a branch.
const KERNEL: &str = "
global float bias;

kernel void prepare(float value)
{
    bias = value;
}

kernel void smooth(global const float *in, global float *out, local float *row, int steps)
{
    local float tile[66];
    int i = get_local_id(0);
    float value = in[get_global_id(0)];
    tile[i + 1] = value;
    row[i] = value * bias;
    if (i < 2)
        tile[65 * i] = 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 0; step < steps; step++) {
        float near = tile[i] + tile[i + 2];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i & 1)
            value = 0.25f * near + 0.5f * value;
        tile[i + 1] = value;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = value + row[63 - i];
}
";

/// The campaign file with a device and faults.
fn campaign(device: &str, faults: &str) -> String {
    format!(
        "name: smooth
seed: 3
target: sm_80
device: {device}
workload:
  dispatches:
    - {{source: smooth.cl, name: prepare, grid: 1, workgroup: 1, args: [{{scalar: 0.5, type: f32}}]}}
    - {{source: smooth.cl, name: smooth, grid: 256, workgroup: 64,
       args: [{{buffer: in, type: f32, count: 256, output: true, init: {{uniform: [-1.0, 1.0]}}}},
              {{buffer: out, type: f32, count: 256, output: true}}, {{local_memory: 256}},
              {{scalar: 4, type: i32}}]}}
    - {{source: smooth.cl, name: smooth, grid: 256, workgroup: 64,
       args: [{{buffer: out}}, {{buffer: in}}, {{local_memory: 256}}, {{scalar: 3, type: i32}}]}}
faults: {faults}
"
    )
}

fn write(folder: &Path, device: &str, faults: &str) {
    std::fs::write(folder.join("smooth.cl"), KERNEL).expect("written");
    std::fs::write(folder.join("smooth.yaml"), campaign(device, faults)).expect("written");
}

/// Runs the campaign file of a folder, with the stand-in for the driver of a GPU if one is named.
fn run(folder: &Path, gpu: Option<&str>, options: &[&str]) -> Finished {
    let program = flipwave_tests::program();
    let program = program.to_str().expect("text");
    let start = gpu.map(|gpu| ["exec", "--gpu", gpu, "--", program]);
    let start = start.as_ref().map_or(&[][..], |start| &start[..]);
    let run = ["run", "smooth.yaml", "--out", "results", "--force", "--without", "dead-values"];
    flipwave_within(PATIENCE, folder, &[start, &run, options].concat()).expect("an end")
}

fn results(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("results/results.csv")).expect("results")
}

/// Rows without the last two cells, which depend on counts of instructions, which a driver does not report.
fn rows_without_counts(text: &str) -> Vec<&str> {
    assert!(text.lines().next().is_some_and(|line| line.ends_with(",instructions,timing_changed")));
    let before_counts = |line| str::rsplitn(line, 3, ',').nth(2).unwrap_or_default();
    text.lines().skip(1).map(before_counts).collect()
}

/// Faults that do not change addresses have the same rows as with hooks on the embedded GPU.
#[test]
fn campaign_through_the_driver_has_the_results_of_the_embedded_gpu() {
    let folder = tempfile::tempdir().expect("a folder");
    for faults in [
        "{model: flip_one_bit, groups: [fp32], count: 8}",
        "{model: zero_value, target: global_memory, dispatches: [2, 2], count: 3}",
        "{model: flip_one_bit, target: lds, count: 3}",
        "{model: flip_one_bit, target: branch, count: 4}",
    ] {
        write(folder.path(), "cuda", faults);
        run(folder.path(), Some("sm_80"), &["--workers", "2"]).expect_success();
        let through_the_driver = results(folder.path());
        write(folder.path(), "embedded", faults);
        run(folder.path(), None, &["--by", "hook"]).expect_success();
        let embedded = results(folder.path());
        let found = rows_without_counts(&through_the_driver);
        assert!(found.len() > 2 && found == rows_without_counts(&embedded), "{faults}");
        run(folder.path(), None, &["--by", "hook", "--seed", "1"]).expect_success();
        assert_ne!(found, rows_without_counts(&results(folder.path())), "another seed");
    }
}

/// The outcomes and causes in a results table, in the order of its rows.
fn outcomes(folder: &Path) -> Vec<(Outcome, String)> {
    let rows = rows(&folder.join("results")).into_iter();
    rows.map(|row| (row.outcome, row.cause.unwrap_or_default())).collect()
}

/// Faults of the device and hangs end the process of their run, whose hooks have recorded the struck value in memory of
/// the host.
#[test]
fn faults_of_the_device_are_causes_of_due() {
    let folder = tempfile::tempdir().expect("a folder");
    for (faults, expected) in [
        (
            "{model: ones_value, target: store_address, dispatches: [1, 1], count: 6}",
            &["memory_violation", "misaligned"][..],
        ),
        ("{model: {flip_mask: 0x80000000}, groups: [integer], count: 12}", &["watchdog"]),
    ] {
        write(folder.path(), "cuda", faults);
        run(folder.path(), Some("sm_90"), &["--workers", "2"]).expect_success();
        let through_the_driver = outcomes(folder.path());
        for cause in expected {
            let has_cause = through_the_driver.iter().any(|(_, found)| found == cause);
            assert!(has_cause, "{cause}: {through_the_driver:?}");
        }
        write(folder.path(), "embedded", faults);
        run(folder.path(), None, &["--by", "hook"]).expect_success();
        assert_eq!(through_the_driver, outcomes(folder.path()), "{faults}");
    }
}

#[test]
fn unsupported_requests_are_refused_with_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let one = "{model: flip_one_bit, count: 1}";
    write(folder, "cuda", one);
    let without = [("FLIPWAVE_LIBCUDA", "/nowhere/libcuda.so.1")];
    let arguments = ["run", "smooth.yaml", "--out", "results"];
    let finished = flipwave(folder, &arguments, &without);
    finished.expect_refused(&["device: cuda", "cannot open NVIDIA's driver", "FLIPWAVE_LIBCUDA"]);
    let newer = ["target sm_80 is newer than the GPU", "use a target up to sm_75"];
    run(folder, Some("sm_75"), &[]).expect_refused(&newer);
    for options in [&["--by", "embedded"][..], &["--self-test"]] {
        run(folder, Some("sm_80"), options).expect_refused(&["requires the embedded GPU", "cuda"]);
    }
    let refused = |from: &str, to: &str, words: &[&str]| {
        let text = campaign("cuda", one).replace(from, to);
        std::fs::write(folder.join("smooth.yaml"), text).expect("written");
        run(folder, None, &[]).expect_refused(words);
    };
    refused("sm_80", "gfx90a", &["`cuda` runs PTX, which target gfx90a has not"]);
    refused("device: cuda", "device: rocr", &["`rocr` runs code of AMD's GPUs", "use `cuda`"]);
    let scratch = "{model: flip_one_bit, target: scratch, count: 1}";
    refused(one, scratch, &["target scratch is not supported with `device: cuda`"]);
    let app = "workload: {app: {command: [sh]}}\nfaults: {model: flip_one_bit, count: 1}\n";
    let app = format!("name: app\ntarget: sm_80\ndevice: cuda\n{app}");
    std::fs::write(folder.join("smooth.yaml"), app).expect("written");
    run(folder, None, &[]).expect_refused(&["`cuda` runs kernels, not applications"]);
}

/// Compares the embedded GPU with the stand-in, or with a driver that does not exist. Returns exit code, messages and
/// the report.
fn compared(folder: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut script = Command::new(tests.join("cuda/silicon.sh"));
    script.args(["--quick", "--out"]).arg(folder).args(options);
    script.env("FLIPWAVE", flipwave_tests::program());
    let output = script.env("FLIPWAVE_LIBCUDA", "/nowhere/libcuda.so.1").output().expect("Python");
    let messages = [output.stdout, output.stderr].concat();
    let report = std::fs::read_to_string(folder.join("report.md")).unwrap_or_default();
    (output.status.code(), String::from_utf8_lossy(&messages).into_owned(), report)
}

#[test]
fn comparison_with_silicon_finds_planted_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, messages, _) = compared(folder.path(), &[]);
    assert_eq!(code, Some(3), "{messages}");
    assert!(messages.contains("was not run") && messages.lines().count() == 1, "{messages}");
    let options = ["--stand-in", "sm_90"];
    let (code, messages, report) = compared(folder.path(), &options);
    assert_eq!(code, Some(0), "{messages}{report}");
    assert!(report.contains("not silicon") && report.contains("Everything is equal"), "{report}");
    for line in ["| quicksort | ", "| rsqrt.approx.f32 | ", "| mxm | "] {
        let found = report.lines().find(|found| found.starts_with(line)).expect(line);
        assert!(found.ends_with(" equal |"), "{found}");
    }
    assert!(report.contains("| 10 of 10 equal |"), "{report}");
    let (code, messages, report) =
        compared(folder.path(), &["--stand-in", "sm_90", "--planted-error"]);
    assert_eq!(code, Some(1), "{messages}{report}");
    for line in ["| quicksort | ", "| rsqrt.approx.f32 | ", "| mxm | masked "] {
        let different = report.lines().any(|found| found.starts_with(line) && found.contains("**"));
        assert!(different, "{line}: {report}");
    }
    assert!(report.contains("largest difference 1 ulp"), "{report}");
}
