//! Hooks in applications for CUDA: tools, and faults injected by hook.

use crate::cuda_applications::{build, compile};
use flipwave_analysis::{Outcome, read_rows};
use flipwave_tests::{Finished, Python, flipwave, flipwave_within};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(1200);

/// The functions of the runtime that the program `walks` calls.
const RUNTIME: [&str; 11] = [
    "cudaGetErrorString",
    "cudaMalloc",
    "cudaMemcpy",
    "cudaMemcpyToSymbol",
    "cudaMemcpyFromSymbol",
    "cudaLaunchKernel",
    "__cudaPushCallConfiguration",
    "__cudaPopCallConfiguration",
    "__cudaRegisterFatBinary",
    "__cudaRegisterFunction",
    "__cudaRegisterVar",
];

/// A fat binary with PTX for sm_80.
fn fat_binary(text: &[u8]) -> Vec<u8> {
    let padded = text.len().next_multiple_of(8);
    let mut bytes = 0xba55_ed50u32.to_le_bytes().to_vec();
    bytes.extend([1, 0, 16, 0]);
    bytes.extend((64 + padded as u64).to_le_bytes());
    let mut entry = [0; 64];
    entry[..8].copy_from_slice(&[1, 0, 1, 1, 64, 0, 0, 0]);
    entry[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
    entry[28] = 80;
    bytes.extend(entry);
    bytes.extend(text);
    bytes.resize(80 + padded, 0);
    bytes
}

/// Compiles the program `walks` in a folder, with its kernels in a fat binary that it registers.
#[track_caller]
fn build_walks(folder: &Path) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = tests.join("applications/cuda/walks.cu");
    let headers = tests.join("../hal/cuda/tests/programs");
    let clang = |folder: &Path| {
        let mut command = Command::new("clang++-22");
        command.current_dir(folder).args([
            "-xcuda",
            "-nocudainc",
            "-nocudalib",
            "--cuda-gpu-arch=sm_80",
        ]);
        command.args(["-Wno-unknown-cuda-version", "-Xclang", "-target-sdk-version=12.0", "-I"]);
        command.arg(&headers).arg(&source);
        command
    };
    let mut kernels = clang(folder);
    kernels.args(["--cuda-device-only", "-O2", "-S", "-ffp-contract=off", "-o", "walks.ptx"]);
    compile(kernels.args(["-Xclang", "-target-feature", "-Xclang", "+ptx78"]));
    let text = std::fs::read(folder.join("walks.ptx")).expect("PTX");
    std::fs::write(folder.join("walks.fatbin"), fat_binary(&text)).expect("written");
    // Stands for NVIDIA's runtime when the program is linked.
    let stubs = RUNTIME.map(|name| format!("void {name}(void) {{}}\n")).concat();
    let more = ["__cudaRegisterFatBinaryEnd", "__cudaUnregisterFatBinary"];
    let stubs = more.iter().fold(stubs, |all, name| format!("{all}void {name}(void) {{}}\n"));
    std::fs::create_dir(folder.join("stub")).expect("a folder");
    std::fs::write(folder.join("stub/stub.c"), stubs).expect("written");
    let mut library = Command::new("clang-22");
    library.current_dir(folder.join("stub")).args([
        "-shared",
        "-fPIC",
        "-Wno-everything",
        "stub.c",
    ]);
    compile(library.args(["-Wl,-soname,libcudart.so", "-o", "libcudart.so"]));
    let mut program = clang(folder);
    program.args(["--cuda-host-only", "-O1", "-Xclang", "-fcuda-include-gpubinary", "-Xclang"]);
    compile(program.args(["walks.fatbin", "-L", "stub", "-lcudart", "-o", "walks"]));
}

/// The applications in a folder, with their arguments.
fn applications(folder: &Path) -> [Vec<String>; 2] {
    build(folder);
    build_walks(folder);
    let kernels = folder.join("steps.ptx").display().to_string();
    [vec!["./steps".to_owned(), kernels], vec!["./walks".to_owned()]]
}

#[track_caller]
fn run(folder: &Path, options: &[&str], application: &[String]) -> Finished {
    let application: Vec<&str> = application.iter().map(String::as_str).collect();
    let arguments = [options, &["--"], &application].concat();
    flipwave_within(PATIENCE, folder, &arguments).expect("an end")
}

/// The lines of a tool's table, sorted: hooks change the order in which waves take turns.
#[track_caller]
fn table(folder: &Path, options: &[&str], application: &[String]) -> Vec<String> {
    let arguments = [&["tool"], options, &["--gpu", "sm_90", "--out", "table.csv"]].concat();
    let finished = run(folder, &arguments, application).expect_success();
    assert_eq!(finished.stderr, "", "{arguments:?}");
    let text = std::fs::read_to_string(folder.join("table.csv")).expect("a table");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert!(lines.len() > 10, "{text}");
    lines.sort();
    lines
}

/// The last field of the lines of a kernel, added.
fn total(lines: &[String], kernel: &str) -> u64 {
    let lines = lines.iter().filter(|line| line.split(',').nth(1) == Some(kernel));
    lines.filter_map(|line| line.rsplit(',').next()?.parse::<u64>().ok()).sum()
}

/// Instructions by kernel, counted by the simulated GPU.
#[track_caller]
fn counts(folder: &Path, application: &[String]) -> BTreeMap<String, u64> {
    let finished =
        run(folder, &["exec", "--gpu", "sm_90", "--count"], application).expect_success();
    let fields = |line: &str| -> Option<(String, u64)> {
        let mut fields = line.split_whitespace();
        Some((fields.next()?.to_owned(), fields.nth(1)?.parse().ok()?))
    };
    finished.stderr.lines().skip(1).filter_map(fields).collect()
}

/// A tool that counts instructions, except loads if it is blind.
const COUNTER: &str = r#"#include <flipwave.h>
FLIPWAVE_PARAMETER(blind, 0)
struct count { uint64_t executions; };
FLIPWAVE_HISTOGRAM(counts, struct count, "operation")
void count(struct count *row) { flipwave_count(&row->executions, 1); }
void flipwave_instrument(const flipwave_inst *inst)
{
    if (blind && flipwave_matches(inst->opcode, "ld.*"))
        return;
    uint32_t row = flipwave_new_row(&counts);
    flipwave_insert_call(inst, "count", FLIPWAVE_BEFORE);
    flipwave_one_lane();
    flipwave_arg_row(&counts, row);
    flipwave_show(&counts, inst, row, inst->opcode);
}
"#;

/// Hooks count what an observer in the simulated GPU sees, and as many instructions as it has executed. Negative
/// control: a tool that leaves out loads.
#[test]
fn tools_in_applications_count_what_the_gpu_executes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("counter.c"), COUNTER).expect("written");
    for application in applications(folder) {
        let mut histogram = Vec::new();
        for tool in ["instruction-count", "opcode-histogram", "memory-trace"] {
            let observed = table(folder, &[tool, "--by", "embedded"], &application);
            let hooked = table(folder, &[tool, "--by", "hook"], &application);
            assert_eq!(hooked, observed, "{application:?} {tool}");
            if tool == "memory-trace" {
                // A ring that waves fill many times.
                let small = table(folder, &[tool, "--records", "64"], &application);
                assert_eq!(small, observed, "{application:?} {tool}");
            } else {
                let expected = counts(folder, &application);
                assert!(expected.len() >= 2, "{expected:?}");
                for (kernel, instructions) in expected {
                    assert_eq!(total(&hooked, &kernel), instructions, "{tool} {kernel}");
                }
            }
            if tool == "opcode-histogram" {
                histogram = hooked;
            }
        }
        assert_eq!(table(folder, &["counter.c"], &application), histogram);
        let blind = table(folder, &["counter.c", "--set", "blind=1"], &application);
        assert!(blind != histogram && blind.iter().all(|line| histogram.contains(line)));
    }
}

/// Output of the application and results of its kernels do not depend on a tool; launches of other kernels than the
/// chosen one run as they are.
#[test]
fn tools_leave_applications_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let [steps, walks] = applications(folder);
    for application in [&steps, &walks] {
        let plain = run(folder, &["exec", "--gpu", "sm_90"], application).expect_success();
        let tool = ["tool", "instruction-count", "--gpu", "sm_90", "--out", "table.csv"];
        let hooked = run(folder, &tool, application).expect_success();
        assert_eq!((hooked.stdout, hooked.stderr), (plain.stdout, plain.stderr));
    }
    let chosen = table(folder, &["instruction-count", "--kernel", "sum"], &steps);
    let kernels: BTreeSet<_> = chosen.iter().filter_map(|line| line.split(',').nth(1)).collect();
    assert_eq!(kernels, BTreeSet::from(["kernel", "sum"]));
    // Only the first launch of each kernel runs hooks.
    let sampled = ["sampled-histogram", "--set", "sampling=first_n", "--set", "n=1"];
    let sampled = table(folder, &sampled, &walks);
    let is_sampled = |line: &String| -> Option<(String, String)> {
        Some((line.split(',').next()?.to_owned(), line.rsplit(',').next()?.to_owned()))
    };
    let found: BTreeSet<_> = sampled.iter().filter_map(is_sampled).collect();
    let expected = [("0", "0"), ("1", "0"), ("2", "1"), ("3", "1"), ("dispatch", "is_sampled")];
    assert_eq!(found, expected.map(|(one, two)| (one.to_owned(), two.to_owned())).into());
}

#[test]
fn tools_that_do_not_suit_ptx_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    build(folder);
    let steps = ["./steps".to_owned(), "steps.ptx".to_owned()];
    let tool = ["tool", "instruction-count", "--gpu", "sm_90"];
    let refused = |options: &[&str], message: &str| {
        let arguments = [&tool, options].concat();
        run(folder, &arguments, &steps).expect_refused(&[message]);
    };
    refused(&["--placement", "inline"], "--placement");
    refused(&["--by", "hardware"], "only on GPUs of AMD");
    let source = "#include <flipwave.h>\nstruct none { uint64_t n; };\nFLIPWAVE_MAP(none, struct none, 4, \"key\")\nvoid hook(uint32_t value) {}\n\
                  void flipwave_instrument(const flipwave_inst *inst) { flipwave_insert_call(inst, \"hook\", FLIPWAVE_BEFORE); \
                  flipwave_arg_vcc(); }\n";
    std::fs::write(folder.join("vcc.c"), source).expect("written");
    let finished = run(folder, &["tool", "vcc.c", "--gpu", "sm_90"], &steps);
    assert!(finished.stderr.contains("PTX has no VCC"), "{}", finished.stderr);
    assert_ne!(finished.code, Some(0));
}

/// Writes a campaign of faults in an application.
fn campaign(folder: &Path, application: &[String], faults: &str) {
    let command = application.join(", ");
    let text = format!(
        "name: hooks\nseed: 1\ntarget: sm_90\nworkload:\n  app: {{command: [{command}], golden_runs: 1}}\n\
         compare: [{{stdout: exact}}]\nfaults: {faults}\n"
    );
    std::fs::write(folder.join("campaign.yaml"), text).expect("written");
}

/// Runs the campaign; returns its table.
#[track_caller]
fn results(folder: &Path, options: &[&str]) -> Vec<u8> {
    let fixed = ["run", "campaign.yaml", "--out", "results", "--force", "--without", "dead-values"];
    flipwave_within(PATIENCE, folder, &[&fixed, options].concat())
        .expect("an end")
        .expect_success();
    std::fs::read(folder.join("results/results.csv")).expect("results")
}

/// 200 faults in two applications have the same rows, byte for byte, whether hooks in the application's modules inject
/// them or the simulated GPU. Negative control: other faults have other rows.
#[test]
fn hooks_in_applications_inject_like_the_gpu() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for application in applications(folder) {
        campaign(folder, &application, "{model: flip_one_bit, count: 100}");
        let embedded = results(folder, &["--by", "embedded"]);
        let rows = read_rows(&embedded[..]).expect("rows");
        let outcomes: BTreeSet<Outcome> = rows.iter().map(|row| row.outcome).collect();
        assert_eq!((rows.len(), outcomes.len()), (100, 3), "masked, SDC and DUE: {outcomes:?}");
        let hooked = results(folder, &["--by", "hook", "--workers", "2"]);
        assert!(hooked == embedded, "{application:?}");
        let others = results(folder, &["--by", "hook", "--seed", "2"]);
        assert!(others != embedded, "{application:?}");
    }
}

/// The same for other places and durations, among them registers of lanes that do not reach the instruction, and
/// permanent faults, which strike all modules.
#[test]
fn hooks_in_applications_inject_all_kinds_of_faults() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let [steps, walks] = applications(folder);
    for (application, faults) in [
        (&steps, "{model: flip_one_bit, target: register, scope: wave, count: 10}"),
        (&steps, "{model: flip_one_bit, target: register, count: 10}"),
        (&walks, "{model: flip_one_bit, target: source_operand, count: 8}"),
        (&walks, "{model: random_value, target: branch, count: 8}"),
        (&walks, "{model: flip_one_bit, target: lds, count: 8}"),
        (&walks, "{model: stuck_at_one, duration: {permanent: {units: 1}}, count: 8}"),
        (
            &walks,
            "{model: flip_one_bit, duration: {intermittent: {window: 100, rate: 0.5}}, count: 8}",
        ),
    ] {
        campaign(folder, application, faults);
        let embedded = results(folder, &["--by", "embedded"]);
        assert!(results(folder, &["--by", "hook"]) == embedded, "{application:?} {faults}");
    }
}

/// Sites that hooks do not reach are not drawn: there, injection by hook in an application is that in its capture.
#[test]
fn hooks_inject_in_applications_as_in_captures() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let [_, walks] = applications(folder);
    let capture = ["capture", "--gpu", "sm_90", "--out", "walks.capture"];
    run(folder, &capture, &walks).expect_success();
    let sites = |table: &[u8]| -> Vec<(String, Outcome)> {
        let rows = read_rows(table).expect("rows");
        rows.into_iter().map(|row| (row.site.to_string(), row.outcome)).collect()
    };
    for target in ["register", "scratch"] {
        let faults =
            format!("{{model: flip_one_bit, target: {target}, scope: active_lanes, count: 12}}");
        campaign(folder, &walks, &faults);
        let in_application = results(folder, &["--by", "hook"]);
        let text = format!(
            "name: hooks\nseed: 1\ntarget: sm_90\nworkload: {{capture: {{file: walks.capture}}}}\nfaults: {faults}\n"
        );
        std::fs::write(folder.join("campaign.yaml"), text).expect("written");
        assert_eq!(sites(&in_application), sites(&results(folder, &["--by", "hook"])), "{target}");
    }
}

/// Tools see the kernels that Triton compiles and launches.
#[test]
fn tools_count_kernels_of_triton() {
    let Some(python) = Python::find() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("applications/cuda/triton_add.py");
    let (python, script) = (python.path().to_str().expect("text"), script.to_str().expect("text"));
    let cache = folder.path().join("triton");
    let environment = [("TRITON_CACHE_DIR", cache.to_str().expect("text"))];
    let table = |by: &str| {
        let options =
            ["tool", "opcode-histogram", "--by", by, "--gpu", "sm_90", "--out", "table.csv"];
        let arguments = [&options[..], &["--", python, script]].concat();
        let finished = flipwave(folder.path(), &arguments, &environment).expect_success();
        assert_eq!(finished.stdout, "add: ok\n");
        std::fs::read_to_string(folder.path().join("table.csv")).expect("a table")
    };
    let hooked = table("hook");
    assert!(hooked.contains("0,add,ld.global.b32,64\n"), "{hooked}");
    assert_eq!(hooked, table("embedded"));
}
