//! Special workloads, and golden runs that would make outcomes meaningless.

use flipwave_campaigns::{
    Campaign, CampaignError, Compiler, InjectionPath, Report, RunOptions, Silent, measure, prepare,
    profile, read_code_object, replay, run, trace,
};
use flipwave_injector::{Accelerations, Site};
use flipwave_tests::{gfx90a, gpu, to_bytes, to_values};
use flipwave_tools::{Options, ToolFile};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder with the source of a kernel.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(file: &str, source: &str) -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(file), source).expect("the source written");
        Bench { folder }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn campaign(&self, text: &str) -> Campaign {
        let file = self.path("campaign.yaml");
        Campaign::parse(text, &file).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn run(&self, text: &str) -> Result<(Report, Vec<u8>), CampaignError> {
        self.run_with(text, Accelerations::ALL)
    }

    /// Runs a campaign. Returns its result and the bytes of `results.csv`.
    fn run_with(
        &self,
        text: &str,
        accelerations: Accelerations,
    ) -> Result<(Report, Vec<u8>), CampaignError> {
        let folder = self.path("results");
        let options = RunOptions {
            force: true,
            accelerations,
            ..RunOptions::new(folder.clone(), NonZeroUsize::MIN)
        };
        let report = run(&self.campaign(text), &options, &mut Silent)?;
        Ok((report, std::fs::read(folder.join("results.csv")).expect("the results")))
    }

    /// Content of the first output in the golden run.
    fn output(&self, text: &str) -> Vec<u8> {
        let prepared = prepare(&self.campaign(text)).unwrap_or_else(|error| panic!("{error}"));
        let golden = prepared.workload.golden().unwrap_or_else(|error| panic!("{error}"));
        golden.outputs[0].bytes().into_owned()
    }
}

/// Asserts that a result is an error whose message contains all `words`.
#[track_caller]
fn refused<T>(result: Result<T, CampaignError>, words: &[&str]) {
    let error = result.err().expect("an error").to_string();
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
}

/// A kernel with HIP's dynamic LDS, to which no argument points.
const REVERSE: &str = "#include <hip/hip_runtime.h>
extern \"C\" __global__ void reverse(int *out, const int *in) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}
";

/// A campaign on [`REVERSE`], with additional keys of the launch and of the file.
fn reverse(keys: &str, file_keys: &str) -> String {
    format!(
        "name: reverse
workload:
  kernel:
    source: reverse.hip
    name: reverse
    grid: 256
    workgroup: 64
    {keys}
    args:
      - {{buffer: out, type: i32, count: 256, output: true}}
      - {{buffer: in, type: i32, count: 256, init: {{range: {{start: 1, step: 1}}}}}}
faults: {{model: flip_one_bit, count: 20}}
{file_keys}"
    )
}

#[test]
fn dynamic_lds_needs_no_pointer_argument() {
    let bench = Bench::new("reverse.hip", REVERSE);
    let text = reverse("local_memory: 256", "");
    bench.run(&text).expect("a campaign");
    let groups = (0..4).flat_map(|group| (0..64).map(move |item| group * 64 + 64 - item));
    assert_eq!(to_values::<i32>(&bench.output(&text)), groups.collect::<Vec<i32>>());
    // Without dynamic LDS, the kernel reads zeros.
    let without = reverse("", "");
    assert_eq!(bench.output(&without), to_bytes(&[0i32; 256]));
}

#[test]
fn golden_run_outside_its_lds_is_refused_by_all_commands() {
    let bench = Bench::new("reverse.hip", REVERSE);
    let without = reverse("", "");
    let site = |campaign: &str| -> Site {
        let (_, rows) = bench.run(campaign).expect("a campaign");
        let rows = flipwave_analysis::read_rows(rows.as_slice()).expect("rows");
        flipwave_tests::site(&rows[0].site)
    };
    let site = site(&reverse("local_memory: 256", ""));
    let words = [
        "dispatch 0",
        "`reverse`",
        "4 bytes at 0x0 of LDS",
        "has 0 bytes",
        "ds_write_b32",
        "reverse.hip:4",
        "workgroup 0,0,0 wave 0",
        "local_memory: BYTES",
        "allow: [outside_local_memory]",
    ];
    let campaign = bench.campaign(&without);
    refused(bench.run(&without), &words);
    refused(profile(&campaign), &words);
    refused(replay(&campaign, &site, InjectionPath::Embedded), &words);
    refused(trace(&campaign, &site), &words);
    let tool = ToolFile::shipped("instruction-count").expect("a tool");
    refused(measure(&campaign, &tool, &Options::default()), &words);
    // With half the size, the second half of the work-items accesses addresses outside of it.
    let half = reverse("local_memory: 128", "");
    refused(bench.run(&half), &["4 bytes at 0x80 of LDS", "has 128 bytes"]);
    // A key allows it explicitly.
    let allowed = reverse("", "allow: [outside_local_memory]");
    bench.run(&allowed).expect("a campaign");
    profile(&bench.campaign(&allowed)).expect("a profile");
    // Other values of the key do not.
    let unrelated = reverse("", "allow: [unwritten_output, nan_output, unlimited_tolerance]");
    refused(bench.run(&unrelated), &words);
}

const BEYOND: &str = "kernel void beyond(global const int *places, global int *out) {
    size_t i = get_global_id(0);
    volatile int array[8];
    for (int at = 0; at < 8; ++at)
        array[at] = at;
    out[i] = array[places[i]];
}";

/// A campaign on `beyond.cl` in which all indices are `place`.
fn beyond(target: &str, place: i32, more: &str) -> String {
    format!(
        "name: beyond
target: {target}
workload:
  kernel:
    source: beyond.cl
    name: beyond
    options: [-g]
    grid: 64
    workgroup: 64
    args:
      - {{buffer: places, type: i32, count: 64, init: {{value: {place}}}}}
      - {{buffer: out, type: i32, count: 64, output: true}}
faults: {{model: flip_one_bit, count: 5}}
{more}
"
    )
}

#[test]
fn golden_run_outside_its_private_memory_is_refused() {
    let bench = Bench::new("beyond.cl", BEYOND);
    for target in ["gfx90a", "gfx942", "gfx1030", "gfx1201"] {
        for place in [1000, -100] {
            let offset = if place < 0 { "4 bytes at offset -" } else { "4 bytes at offset 4" };
            let words = [
                "dispatch 0 (kernel `beyond`)",
                offset,
                "of private memory",
                "beyond.cl:6",
                "workgroup 0,0,0 wave 0",
                "allow: [outside_private_memory]",
            ];
            refused(bench.run(&beyond(target, place, "")), &words);
            let unrelated = "allow: [outside_local_memory]";
            refused(bench.run(&beyond(target, place, unrelated)), &words);
        }
        bench.run(&beyond(target, 7, "")).expect("a campaign");
    }
}

/// If a fault changes an LDS address, the access is legal and reads zero, as on hardware.
#[test]
fn faulty_run_may_access_addresses_outside_lds() {
    let bench = Bench::new("reverse.hip", REVERSE);
    let text = reverse("local_memory: 256", "")
        .replace("count: 20}", "target: load_address, groups: [lds], count: 100}");
    let (report, _) = bench.run(&text).expect("a campaign");
    let done = report.record.done;
    assert_eq!(done.total(), 100);
    assert!(done.sdc > 50, "{done:?}");
}

const OUTPUTS: &str = "kernel void f(global int *none, global int *same, global float *nan,
                                      global int *numbers, int write) {
    size_t i = get_global_id(0);
    if (write)
        none[i] = 1;
    same[i] = 0;
    nan[i] = 0.0f / (float)(get_local_size(1) - 1);
    numbers[i] = (int)i * 3;
}
";

/// A campaign on [`OUTPUTS`] with the buffer `output` as its output, and additional keys of the file.
fn outputs(output: &str, file_keys: &str) -> String {
    let buffer = |name: &str, element: &str| {
        let role = if name == output { ", output: true" } else { "" };
        format!("      - {{buffer: {name}, type: {element}, count: 64{role}}}\n")
    };
    format!(
        "name: outputs
workload:
  kernel:
    source: outputs.cl
    name: f
    grid: 64
    workgroup: 64
    args:
{}{}{}{}      - {{scalar: 0, type: i32}}
faults: {{model: flip_one_bit, count: 5}}
{file_keys}\n",
        buffer("none", "i32"),
        buffer("same", "i32"),
        buffer("nan", "f32"),
        buffer("numbers", "i32"),
    )
}

#[test]
fn outputs_that_cannot_be_wrong_are_refused() {
    let bench = Bench::new("outputs.cl", OUTPUTS);
    let unwritten = ["`none`", "writes nothing", "allow: [unwritten_output]"];
    refused(bench.run(&outputs("none", "")), &unwritten);
    refused(profile(&bench.campaign(&outputs("none", ""))), &unwritten);
    bench.run(&outputs("none", "allow: [unwritten_output]")).expect("allowed");
    let nan = ["`nan`", "contains only NaN", "allow: [nan_output]"];
    refused(bench.run(&outputs("nan", "")), &nan);
    refused(bench.run(&outputs("nan", "allow: [unwritten_output]")), &nan);
    bench.run(&outputs("nan", "allow: [nan_output]")).expect("allowed");
    let limit = |limit: &str, file_keys: &str| {
        outputs("numbers", &format!("compare: {{numbers: {{absolute: {limit}}}}}\n{file_keys}"))
    };
    let unlimited = ["`numbers`", "accepts every number", "allow: [unlimited_tolerance]"];
    refused(bench.run(&limit("1.0e+10", "")), &unlimited);
    bench.run(&limit("1.0e+10", "allow: [unlimited_tolerance]")).expect("allowed");
    // Numbers with a limit, and an output that is overwritten with its initial content, are accepted.
    bench.run(&outputs("numbers", "")).expect("numbers");
    bench.run(&limit("1.0e+9", "")).expect("numbers within a limit");
    bench.run(&outputs("same", "")).expect("zeros over zeros");
}

#[test]
fn pointer_arguments_may_be_null() {
    let source =
        "kernel void maybe(global int *out, global const int *one, global const int *two) {
        size_t i = get_global_id(0);
        out[i] = (one ? one[i] : 7) + (two ? two[i] : (int)i);
    }\n";
    let bench = Bench::new("maybe.cl", source);
    let text = |one: &str, two: &str| {
        format!(
            "name: maybe
workload:
  kernel:
    source: maybe.cl
    name: maybe
    grid: 64
    workgroup: 64
    args: [{{buffer: out, type: i32, count: 64, output: true}}, {one}, {two}]
faults: {{model: flip_one_bit, count: 5}}\n"
        )
    };
    let zero = "{scalar: 0, type: u64}";
    let expected = to_bytes(&(0..64).map(|item| item + 7).collect::<Vec<i32>>());
    for (one, two) in [("null", "null"), (zero, "null"), ("null", zero), (zero, zero)] {
        assert_eq!(bench.output(&text(one, two)), expected, "{one} {two}");
        bench.run(&text(one, two)).expect("a campaign");
    }
    let buffer = "{buffer: more, type: i32, count: 64, init: {value: 100}}";
    let with_addend = to_bytes(&[107i32; 64]);
    assert_eq!(bench.output(&text("null", buffer)), with_addend, "the negative control");
    let error = |one: &str| bench.run(&text(one, "null"));
    refused(error("{scalar: 4096, type: u64}"), &["argument 1", "a value", "a buffer, or null,"]);
    refused(error("{scalar: 0, type: i32}"), &["argument 1", "a value"]);
}

#[test]
fn relocatable_objects_are_linked() {
    let bench = Bench::new(
        "twice.cl",
        "kernel void twice(global int *o) { o[__builtin_amdgcn_workitem_id_x()] *= 2; }\n",
    );
    let compile = |file: &str, options: &[&str]| {
        let arguments =
            ["-xcl", "-cl-std=CL2.0", "-Xclang", "-finclude-default-header", "-nogpulib"];
        let status = Command::new("clang-22")
            .args(arguments)
            .args(["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-O3"])
            .args(options)
            .arg("-o")
            .args([bench.path(file), bench.path("twice.cl")])
            .status();
        assert!(status.expect("clang-22").success(), "it does not compile");
        bench.path(file)
    };
    let [object, linked] = [compile("twice.o", &["-c"]), compile("twice.co", &[])];
    let text = |file: &str| {
        format!(
            "name: twice
workload:
  kernel:
    code_object: {file}
    name: twice
    grid: 64
    workgroup: 64
    args: [{{buffer: o, type: i32, count: 64, init: {{value: 21}}, output: true}}]
faults: {{model: flip_one_bit, count: 20}}\n"
        )
    };
    assert_eq!(bench.output(&text("twice.o")), to_bytes(&[42i32; 64]));
    let rows = |file: &str| bench.run(&text(file)).expect("a campaign").1;
    assert_eq!(rows("twice.o"), rows("twice.co"));
    let read = |file: &Path| {
        read_code_object(file, Some(&gfx90a())).unwrap_or_else(|error| panic!("{error}"))
    };
    assert_eq!(read(&object).kernels()[0].name, read(&linked).kernels()[0].name);
    // A program with an undefined function is refused.
    let source = "void other(global int *o);\nkernel void f(global int *o) { other(o); }\n";
    std::fs::write(bench.path("twice.cl"), source).expect("written");
    let part = compile("part.o", &["-c"]);
    let error = read_code_object(&part, None).expect_err("half a program").to_string();
    for word in ["part.o", "relocatable", "other", "The command is: clang-22", "-o LINKED"] {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
    // An object file for a CPU is refused.
    let host = bench.path("host.c");
    std::fs::write(&host, "int x;\n").expect("written");
    let status =
        Command::new("clang-22").args(["-c", "-o"]).args([bench.path("host.o"), host]).status();
    assert!(status.expect("clang-22").success());
    let error = read_code_object(&bench.path("host.o"), None).expect_err("a CPU's").to_string();
    assert!(error.contains("host program"), "{error}");
}

/// A kernel that writes beyond the end of a buffer, but within its last page, long before and long after
/// checkpoints.
#[test]
fn checkpoints_include_writes_beyond_a_buffer() {
    let source = "kernel void past(global int *out, global int *log) {
        size_t i = get_global_id(0);
        int sum = 0;
        for (int n = 0; n < 60; n++)
            sum += (int)(i * n) ^ log[i & 7];
        log[i] = sum;
        for (int n = 0; n < 60; n++)
            sum = sum * 3 + log[i];
        out[i] = sum;
    }\n";
    let bench = Bench::new("past.cl", source);
    // Words before and after the end of the buffer.
    for (count, target) in
        [(8, "destination_register"), (8, "store_address"), (100, "source_operand")]
    {
        let text = format!(
            "name: past
workload:
  kernel:
    source: past.cl
    name: past
    grid: 512
    workgroup: 64
    args:
      - {{buffer: out, type: i32, count: 512, output: true}}
      - {{buffer: log, type: i32, count: {count}}}
faults: {{model: flip_one_bit, target: {target}, count: 60}}\n"
        );
        let rows = |accelerations| bench.run_with(&text, accelerations).expect("a campaign").1;
        let (fast, slow) = (rows(Accelerations::ALL), rows(Accelerations::NONE));
        assert!(fast == slow, "{count} {target}: rows differ with saved states");
        let first = flipwave_analysis::read_rows(fast.as_slice()).expect("rows").remove(0);
        let site = flipwave_tests::site(&first.site);
        trace(&bench.campaign(&text), &site).unwrap_or_else(|error| panic!("{site}: {error}"));
    }
}

#[test]
fn byte_order_marks_are_ignored() {
    let bench = Bench::new("mark.cl", "\u{feff}kernel void f(global int *o) { o[0] = 42; }\n");
    let source = "\u{feff}#include <hip/hip_runtime.h>
extern \"C\" __global__ void f(int *o) { o[0] = 42; }\n";
    std::fs::write(bench.path("mark.hip"), source).expect("written");
    for file in ["mark.cl", "mark.hip"] {
        let compiler = Compiler::find().unwrap_or_else(|error| panic!("{error}"));
        compiler
            .compile(&bench.path(file), &["-O3".into()], &gfx90a())
            .unwrap_or_else(|error| panic!("{error}"));
        let text = format!(
            "\u{feff}name: mark
workload:
  kernel: {{source: {file}, name: f, grid: 1, workgroup: 1, args: [
    {{buffer: o, type: i32, count: 1, output: true}}]}}
faults: {{model: flip_one_bit, count: 2}}\n"
        );
        assert_eq!(bench.output(&text), to_bytes(&[42i32]));
        bench.run(&text).expect("a campaign");
        let error = Campaign::parse(&text.replace("grid: 1", "grid: 0"), Path::new("x.yaml"));
        let error = error.expect_err("no work").to_string();
        assert!(error.starts_with("x.yaml:3:"), "{error}");
    }
}

/// Newer compilers preload arguments by default.
#[test]
fn faults_in_kernels_with_preloaded_arguments_are_equal_with_hooks() {
    let source = "kernel void scale(global float *out, global const float *in, float by, int plus) \
                  {\n    int i = get_global_id(0);\n    out[i] = in[i] * by + plus;\n}\n";
    for (target, count) in [("gfx90a", 8), ("gfx90a", 16), ("gfx942", 8), ("gfx942", 16)] {
        let bench = Bench::new("scale.cl", source);
        let text = format!(
            "name: x\ntarget: {target}\nallow: [compiler_plugins]\nworkload:\n  kernel:\n    \
             source: scale.cl\n    options: [-O3, -mllvm, -amdgpu-kernarg-preload-count={count}]\n    name: scale\n    grid: 128\n    \
             workgroup: 64\n    args:\n      - {{buffer: out, type: f32, count: 128, output: true}}\n      \
             - {{buffer: in, type: f32, count: 128, init: {{uniform: [1.0, 2.0]}}}}\n      \
             - {{scalar: 3.0, type: f32}}\n      - {{scalar: 5, type: i32}}\n\
             faults: {{model: flip_one_bit, count: 60}}\n"
        );
        let campaign = bench.campaign(&text);
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
        let module = prepared.workload.program.dispatches[0].module;
        let object = gpu(&prepared.workload.device).code_object(module).expect("the code object");
        let kernel = object.kernel("scale").expect("the kernel");
        assert!(!kernel.descriptor.kernarg_preload.is_none(), "{target}, {count}");
        let [embedded, hooked] = [InjectionPath::Embedded, InjectionPath::Hook].map(|path| {
            let folder = bench.path("results");
            let options = RunOptions {
                force: true,
                path: Some(path),
                ..RunOptions::new(folder.clone(), NonZeroUsize::MIN)
            };
            run(&campaign, &options, &mut Silent).unwrap_or_else(|error| panic!("{error}"));
            flipwave_tests::timeless_rows(&folder)
        });
        assert_eq!(embedded.len(), 60);
        assert_eq!(embedded, hooked, "{target}, {count}");
    }
}

/// C++ kernels, two of which share a name in different namespaces.
const SCALES: &str = "#include <hip/hip_runtime.h>
namespace two {
__global__ void scale(int *values, int factor) { values[threadIdx.x] *= factor; }
__global__ void scale(float *values, float factor) { values[threadIdx.x] *= factor; }
__global__ void add(int *values, int more) { values[threadIdx.x] += more; }
}
";

#[test]
fn cpp_kernels_have_demangled_names() {
    let bench = Bench::new("scales.hip", SCALES);
    let launch = |name: &str, buffer: &str, number: u32| {
        format!(
            "    - {{source: scales.hip, name: '{name}', grid: 64, workgroup: 64, args: [{buffer}, \
             {{scalar: {number}, type: i32}}]}}\n"
        )
    };
    let buffer = "{buffer: values, type: i32, count: 64, init: {value: 2}, output: true}";
    let text = |name: &str, faults: &str| {
        format!(
            "name: scales\nworkload:\n  dispatches:\n{}{}faults: {{model: flip_one_bit, kernels: \
             ['{faults}'], count: 20}}\n",
            launch(name, buffer, 5),
            launch("two::add", "{buffer: values}", 1),
        )
    };
    let whole = "two::scale(int*, int)";
    let named = text(whole, "two::add");
    assert_eq!(to_values::<i32>(&bench.output(&named)), [11; 64]);
    assert_eq!(bench.output(&text("_ZN3two5scaleEPii", "two::add")), bench.output(&named));
    let (report, rows) = bench.run(&named).expect("a campaign");
    assert!(
        report
            .summary
            .scopes
            .iter()
            .any(|rates| rates.scope.to_string() == "kernel:_ZN3two3addEPii")
    );
    let rows = String::from_utf8(rows).expect("text");
    assert!(!rows.contains("two5scale") && rows.contains("_ZN3two3addEPii"), "{rows}");
    refused(bench.run(&text("two::scale", "two::add")), &["two::scale(float*, float)", whole]);
    refused(bench.run(&text(whole, "add")), &["nothing to inject into"]);
}
