//! Invalid input is reported with one message that names the problem and its position, and exit code 2.

use flipwave_campaigns::Compiler;
use flipwave_tests::{Finished, examples_folder, flipwave};
use std::path::Path;
use tempfile::TempDir;

/// A folder with a valid campaign and its kernel.
struct Bench {
    folder: TempDir,
    text: String,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let examples = examples_folder();
        let kernel = std::fs::read(examples.join("kernels/vector_add.cl")).expect("the kernel");
        std::fs::write(folder.path().join("add.cl"), kernel).expect("the kernel written");
        let text = std::fs::read_to_string(examples.join("vector_add.yaml")).expect("the example");
        let text = replaced(&text, "kernels/vector_add.cl", "add.cl");
        Bench { folder, text: replaced(&text, "count: 1000}", "count: 3}") }
    }

    /// Runs the campaign with `from` replaced by `to`.
    fn run_with(&self, from: &str, to: &str) -> Finished {
        self.run(&replaced(&self.text, from, to), &[])
    }

    fn run(&self, text: &str, arguments: &[&str]) -> Finished {
        std::fs::write(self.path().join("add.yaml"), text).expect("the campaign written");
        flipwave(self.path(), &[&["run", "add.yaml"], arguments].concat(), &[])
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The kernel, compiled for a target.
    fn code_object(&self, target: &str) -> Vec<u8> {
        let target = target.parse().expect("a target");
        let compiler = Compiler::find().unwrap_or_else(|error| panic!("{error}"));
        let compiled = compiler.compile(&self.path().join("add.cl"), &["-O3".into()], &target);
        compiled.unwrap_or_else(|error| panic!("{error}"))
    }
}

#[track_caller]
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "`{from}` is not there once:\n{text}");
    text.replace(from, to)
}

/// Asserts that a run was refused with one message that contains all `words`.
#[track_caller]
fn assert_refused(finished: &Finished, words: &[&str]) {
    finished.expect_refused(words);
    let Finished { stdout, stderr, .. } = finished;
    assert_eq!(stdout, "", "unexpected standard output");
    assert!(!stderr.contains("panicked") && !stderr.contains("RUST_BACKTRACE"), "{stderr}");
    let messages: Vec<&str> =
        stderr.split_inclusive('\n').filter(|line| line.starts_with("flipwave: ")).collect();
    assert_eq!(messages.len(), 1, "not one message:\n{stderr}");
}

/// Negative control: the campaign that the tests below break is valid.
#[test]
fn unmodified_campaign_is_accepted() {
    let bench = Bench::new();
    bench.run(&bench.text, &[]).expect_success();
    let code_object = bench.code_object("gfx90a");
    std::fs::write(bench.path().join("add.co"), code_object).expect("the code object written");
    let text = replaced(&bench.text, "source: add.cl", "code_object: add.co");
    bench.run(&text, &["--out", "of_the_code_object"]).expect_success();
}

#[test]
fn invalid_yaml_is_refused_with_its_position() {
    let bench = Bench::new();
    let finished = bench.run_with("workload:", "workload: [");
    assert_refused(&finished, &["add.yaml:"]);
    let finished = bench.run_with("name: vector_add\nseed: 42", "name: \"vector_add\nseed: 42");
    assert_refused(&finished, &["add.yaml:"]);
    assert_refused(&bench.run("", &[]), &["add.yaml"]);
    assert_refused(&bench.run("[1, 2]", &[]), &["add.yaml:1:1"]);
}

#[test]
fn unknown_key_is_refused_with_position_and_known_keys() {
    let bench = Bench::new();
    let finished = bench.run_with("seed: 42", "sede: 42");
    let line = bench.text.lines().position(|line| line == "seed: 42").expect("the seed") + 1;
    let place = format!("add.yaml:{line}:1");
    assert_refused(&finished, &[&place, "sede", "expected", "seed"]);
    let finished = bench.run_with("{scalar: 4000, type: u32}", "{scalar: 4000, typ: u32}");
    assert_refused(&finished, &["add.yaml:", "typ", "expected", "type"]);
}

#[test]
fn unknown_name_is_refused_with_known_names() {
    let bench = Bench::new();
    let finished = bench.run_with("model: flip_one_bit", "model: flip_bit");
    assert_refused(&finished, &["add.yaml:", "faults.model", "flip_bit", "flip_one_bit"]);
    let finished = bench.run_with("count: 3}", "count: 3, groups: [vectors]}");
    assert_refused(&finished, &["add.yaml:", "faults.groups[0]", "vectors", "valu"]);
    let finished = bench.run_with("target: gfx90a", "target: gfx90");
    assert_refused(&finished, &["add.yaml:", "target", "gfx90"]);
}

#[test]
fn missing_file_is_refused_with_its_name() {
    let bench = Bench::new();
    let finished = flipwave(bench.path(), &["run", "missing.yaml"], &[]);
    assert_refused(&finished, &["missing.yaml", "No such file"]);
    let finished = bench.run_with("source: add.cl", "source: missing.cl");
    assert_refused(&finished, &["missing.cl", "No such file"]);
    let finished = bench.run_with("source: add.cl", "code_object: missing.co");
    assert_refused(&finished, &["missing.co", "No such file"]);
    let finished = bench.run_with(
        "init: {uniform: [-1.0, 1.0]}}\n      - {buffer: b",
        "init: {file: missing.bin}}\n      - {buffer: b",
    );
    assert_refused(&finished, &["buffer `a`", "missing.bin", "No such file"]);
}

#[test]
fn invalid_environment_variables_are_refused_with_valid_values() {
    let bench = Bench::new();
    let campaign = bench.path().join("add.yaml");
    std::fs::write(&campaign, &bench.text).expect("the campaign written");
    let profile = |environment: [(&str, &str); 2]| {
        flipwave(bench.path(), &["profile", "add.yaml"], &environment)
    };
    for (tier, extensions, named) in [
        ("interpreted", "plain", ["FLIPWAVE_TIER", "`interpreted`, expected `interpreter` or"]),
        ("interpreter", "AVX2", ["FLIPWAVE_SIMD", "`AVX2`, expected `plain` or `avx2`"]),
    ] {
        let environment = [("FLIPWAVE_TIER", tier), ("FLIPWAVE_SIMD", extensions)];
        assert_refused(&profile(environment), &named);
    }
    profile([("FLIPWAVE_TIER", "interpreter"), ("FLIPWAVE_SIMD", "")]).expect_success();
}

#[test]
fn renamed_commands_are_refused_with_new_names() {
    let folder = tempfile::tempdir().expect("a folder");
    for (old, new) in
        [("agreement", "`flipwave compare-published`"), ("failures", "`flipwave fit`")]
    {
        flipwave(folder.path(), &[old, "results"], &[]).expect_refused(&[old, new]);
    }
}

#[test]
fn unknown_kernel_is_refused_with_known_kernels() {
    let bench = Bench::new();
    let finished = bench.run_with("    name: vector_add", "    name: vector_sub");
    assert_refused(&finished, &["add.cl", "no kernel `vector_sub`", "it has: vector_add"]);
}

#[test]
fn wrong_number_of_arguments_is_refused_with_parameters() {
    let bench = Bench::new();
    let finished = bench.run_with("      - {scalar: 4000, type: u32}\n", "");
    assert_refused(&finished, &["vector_add", "takes 4 arguments", "uint", "3 given"]);
    let twice = "{scalar: 4000, type: u32}\n      - {scalar: 4000, type: u32}";
    let finished = bench.run_with("{scalar: 4000, type: u32}", twice);
    assert_refused(&finished, &["vector_add", "takes 4 arguments", "5 given"]);
}

#[test]
fn argument_of_wrong_type_is_refused_with_its_position() {
    let bench = Bench::new();
    let finished = bench.run_with("{scalar: 4000, type: u32}", "{scalar: 4000, type: u64}");
    assert_refused(&finished, &["argument 3", "vector_add", "count", "8 bytes", "4 bytes"]);
    let finished = bench.run_with(
        "{buffer: b, type: f32, count: 4000, init: {uniform: [-1.0, 1.0]}}",
        "{scalar: 1, type: u64}",
    );
    assert_refused(&finished, &["argument 1", "a value is given", "a buffer"]);
}

#[test]
fn launch_that_the_kernel_does_not_allow_is_refused() {
    let bench = Bench::new();
    let source = std::fs::read_to_string(bench.path().join("add.cl")).expect("the kernel");
    let required = "__attribute__((reqd_work_group_size(64, 1, 1)))\nkernel void vector_add";
    let source = replaced(&source, "kernel void vector_add", required);
    std::fs::write(bench.path().join("add.cl"), source).expect("the kernel written");
    let finished = bench.run(&bench.text, &[]);
    assert_refused(&finished, &["vector_add", "workgroup", "64", "256"]);
}

#[test]
fn code_object_for_another_target_is_refused() {
    let bench = Bench::new();
    let code_object = bench.code_object("gfx906");
    std::fs::write(bench.path().join("add.co"), code_object).expect("the code object written");
    let finished = bench.run_with("source: add.cl", "code_object: add.co");
    assert_refused(&finished, &["add.co", "gfx906", "gfx90a"]);
}

#[test]
fn truncated_code_objects_are_refused() {
    let bench = Bench::new();
    let code_object = bench.code_object("gfx90a");
    for length in (0..code_object.len()).step_by(97) {
        std::fs::write(bench.path().join("add.co"), &code_object[..length]).expect("written");
        let finished = bench.run_with("source: add.cl", "code_object: add.co");
        println!("{length} of {} bytes: {}", code_object.len(), finished.stderr);
        assert_refused(&finished, &["add.co"]);
    }
}

#[test]
fn empty_fault_space_is_refused_with_executed_groups() {
    let bench = Bench::new();
    let finished = bench.run_with("count: 3}", "groups: [matrix], count: 3}");
    assert_refused(&finished, &["nothing to inject into", "flip_one_bit", "matrix", "valu"]);
}

#[test]
fn unwritable_results_folder_is_refused() {
    let bench = Bench::new();
    let finished = bench.run(&bench.text, &["--out", "add.cl/results"]);
    assert_refused(&finished, &["add.cl/results", "cannot lock"]);
}

#[test]
fn results_folder_with_other_files_is_refused() {
    let bench = Bench::new();
    let finished = bench.run(&bench.text, &["--out", "."]);
    assert_refused(&finished, &["--force"]);
    assert!(bench.path().join("add.cl").exists() && !bench.path().join("results.csv").exists());
}

#[test]
fn compile_error_is_refused_with_compiler_messages() {
    let bench = Bench::new();
    std::fs::write(bench.path().join("add.cl"), "kernel void vector_add() { nonsense; }\n")
        .expect("the kernel written");
    let finished = bench.run(&bench.text, &[]);
    assert_refused(&finished, &["add.cl does not compile", "add.cl:1:28", "nonsense"]);
    let finished = bench.run_with("source: add.cl", "source: add.yaml");
    assert_refused(&finished, &["add.yaml", ".cl", ".hip"]);
}

#[test]
fn kernel_that_faults_in_the_golden_run_is_refused() {
    let bench = Bench::new();
    let finished = bench.run_with("{scalar: 4000, type: u32}", "{scalar: 4096, type: u32}");
    // 4,096 elements lie within the last page of 4,000; 16 MiB further nothing does.
    finished.expect_success();
    let source = std::fs::read_to_string(bench.path().join("add.cl")).expect("the kernel");
    let source = replaced(&source, "sum[i] =", "sum[i + 4 * 1024 * 1024] =");
    std::fs::write(bench.path().join("add.cl"), source).expect("the kernel written");
    let finished = bench.run(&bench.text, &["--force"]);
    let words = ["golden run failed", "vector_add", "memory violation: write", "pc 0x"];
    assert_refused(&finished, &words);
}
