//! Kernel arguments other than plain buffers and scalars: structs by value, pointers in memory, kernels
//! without outputs. The layout of structs is clang's, and results are computed by the host.

use flipwave_analysis::{Row, read_rows};
use flipwave_campaigns::Campaign;
use flipwave_tests::{Finished, buffer, examples_folder, flipwave, to_values};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// The grouped matrix product of the examples, with `faults` and a changed text.
fn grouped(target: &str, change: (&str, &str)) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let example = examples_folder().join("grouped");
    fs::copy(example.join("gemm.hip"), folder.path().join("gemm.hip")).expect("a copy");
    let text = fs::read_to_string(example.join("gemm.yaml")).expect("a campaign file");
    assert!(text.contains(change.0), "{}", change.0);
    let text = text
        .replace("target: gfx90a", &format!("target: {target}"))
        .replace("count: 1000}", "count: 40}")
        .replacen(change.0, change.1, 1);
    fs::write(folder.path().join("gemm.yaml"), text).expect("a campaign file");
    folder
}

/// Largest difference of the three products from those that the host computes.
fn error_of_products(folder: &Path) -> f64 {
    let campaign =
        Campaign::read(&folder.join("gemm.yaml")).unwrap_or_else(|error| panic!("{error}"));
    let line = ["golden", "gemm.yaml", "--out", "golden"];
    flipwave(folder, &line, &[]).expect_success();
    let left: Vec<f32> = buffer(&campaign, "left");
    let rights = ["right0", "right1", "right0"].map(|name| buffer::<f32>(&campaign, name));
    let mut largest = 0.0f64;
    for (index, right) in rights.iter().enumerate() {
        let file = folder.join(format!("golden/product{index}.bin"));
        let found: Vec<f32> = to_values(&fs::read(file).expect("a product"));
        for (element, found) in found.iter().enumerate() {
            let (row, column) = (element / 16, element % 16);
            let terms = (0..16).map(|k| {
                let factor = left[index * 256 + row * 16 + k];
                f64::from(factor) * f64::from(right[k * 16 + column])
            });
            largest = largest.max((0.5 * terms.sum::<f64>() - f64::from(*found)).abs());
        }
    }
    largest
}

#[test]
fn grouped_products_match_the_host() {
    for target in ["gfx90a", "gfx1100"] {
        let folder = grouped(target, ("", ""));
        let error = error_of_products(folder.path());
        assert!(error < 1e-5, "{target}: {error}");
        // Negative controls: other pointers, and another value in the struct.
        for change in [
            ("left + 1024, left + 2048", "left + 2048, left + 1024"),
            ("scalar: 0.5", "scalar: 0.25"),
        ] {
            let folder = grouped(target, change);
            let error = error_of_products(folder.path());
            assert!(error > 0.1, "{target}, {change:?}: {error}");
        }
    }
}

#[test]
fn rows_do_not_depend_on_workers_or_path() {
    for target in ["gfx90a", "gfx1100"] {
        let folder = grouped(target, ("", ""));
        let rows = |options: &[&str]| {
            let line = [&["run", "gemm.yaml", "--force", "--out", "results"], options].concat();
            flipwave(folder.path(), &line, &[]).expect_success();
            fs::read_to_string(folder.path().join("results/results.csv")).expect("rows")
        };
        // Hooks change the number of executed instructions, so those columns stay empty.
        let outcomes = |table: &str| -> Vec<String> {
            let rows = read_rows(table.as_bytes()).expect("rows");
            let outcome = |row: &Row| format!("{} {:?} {:?}", row.site, row.after, row.outcome);
            rows.iter().map(outcome).collect()
        };
        let embedded = rows(&["--workers", "1"]);
        assert_eq!(rows(&["--workers", "2"]), embedded, "{target}");
        assert_eq!(outcomes(&rows(&["--by", "hook"])), outcomes(&embedded), "{target}");
        assert_ne!(outcomes(&rows(&["--seed", "1"])), outcomes(&embedded), "{target}");
    }
}

/// The addresses in tables are those of AMD's runtime.
#[test]
fn grouped_products_run_through_amds_runtime() {
    let folder = grouped("gfx90a", ("", ""));
    error_of_products(folder.path());
    let program = flipwave_tests::program().display().to_string();
    let line = ["exec", "--", &program, "launch", "gemm.yaml", "--out", "launched"];
    flipwave(folder.path(), &line, &[]).expect_success();
    for index in 0..3 {
        let read = |file: String| fs::read(folder.path().join(file)).expect("a product");
        let launched = read(format!("launched/output-{index}.bin"));
        assert_eq!(launched, read(format!("golden/product{index}.bin")));
    }
}

/// Structs with padding, arrays, vectors, pointers and nested structs. The kernel writes each member as
/// clang reads it.
const MEMBERS: &str = r#"#include <hip/hip_runtime.h>
struct Inner { short a; double b; char c[3]; };
struct Members {
    char first;
    int second;
    Inner inner;
    const int *data;
    float4 vector;
    unsigned long last;
};
struct __attribute__((packed)) Packed { char a; int b; short c; };
struct Node { const int *data; int count; };
extern "C" __global__ void members(double *out, Members m, Packed p, const Node *nodes, int *middle) {
    if (threadIdx.x || blockIdx.x)
        return;
    double values[] = {
        (double)m.first, (double)m.second, (double)m.inner.a, m.inner.b,
        (double)m.inner.c[0], (double)m.inner.c[2], (double)m.data[1], m.vector.x, m.vector.w,
        (double)m.last, (double)p.a, (double)p.b, (double)p.c,
        (double)nodes[0].data[0], (double)nodes[0].count, (double)(nodes[1].data == nullptr),
        (double)nodes[1].count, (double)*middle,
    };
    for (int i = 0; i < 18; i++)
        out[i] = values[i];
}
"#;

fn members(target: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("members.hip"), MEMBERS).expect("a source");
    let text = format!(
        "name: members
target: {target}
workload:
  kernel:
    source: members.hip
    name: members
    grid: 64
    workgroup: 64
    args:
      - {{buffer: out, type: f64, count: 18, output: true}}
      - struct:
          - {{scalar: -7, type: i8}}
          - {{scalar: 100000, type: i32}}
          - struct:
              - {{scalar: -300, type: i16}}
              - {{scalar: 0.125, type: f64}}
              - {{values: [1, 2, 3], type: i8}}
          - {{pointer: data + 8}}
          - {{values: [1.5, 2.5, 3.5, 4.5], type: f32, offset: 48}}
          - {{scalar: 4294967297, type: u64}}
        size: 80
      - struct:
          - {{scalar: 5, type: i8}}
          - {{bytes: 78 56 34 12, offset: 1}}
          - {{scalar: -2, type: i16, offset: 5}}
        size: 7
      - {{buffer: nodes, init: {{struct: [{{struct: [{{buffer: data, type: i32, count: 6,
          init: {{range: {{start: 10, step: 1}}}}}}, {{scalar: 6, type: i32}}]}},
          {{struct: [null, {{scalar: 9, type: i32}}]}}]}}}}
      - {{pointer: data + 0x14}}
"
    );
    fs::write(folder.path().join("members.yaml"), text).expect("a campaign file");
    folder
}

#[test]
fn members_are_where_clang_reads_them() {
    for target in ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"] {
        let folder = members(target);
        let line = ["golden", "members.yaml", "--out", "golden"];
        flipwave(folder.path(), &line, &[]).expect_success();
        let found = fs::read(folder.path().join("golden/out.bin")).expect("an output");
        let expected = [
            -7.0,
            100000.0,
            -300.0,
            0.125,
            1.0,
            3.0,
            13.0,
            1.5,
            4.5,
            4294967297.0,
            5.0,
            f64::from(0x1234_5678),
            -2.0,
            10.0,
            6.0,
            1.0,
            9.0,
            15.0,
        ];
        assert_eq!(to_values::<f64>(&found), expected, "{target}");
    }
}

#[test]
fn struct_of_wrong_size_is_refused_with_both_sizes() {
    let folder = members("gfx90a");
    let file = folder.path().join("members.yaml");
    let text = fs::read_to_string(&file).expect("the file");
    fs::write(&file, text.replace("        size: 7\n", "        size: 8\n")).expect("written");
    let line = ["golden", "members.yaml", "--out", "golden"];
    let said = flipwave(folder.path(), &line, &[]);
    said.expect_refused(&["argument 2", "8 bytes is given, 7 bytes are expected"]);
}

/// A kernel whose only effect is in LDS.
fn without_output(more: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "kernel void idle(global const int *in, local int *shared) {
    shared[get_local_id(0)] = in[get_global_id(0)];
}";
    fs::write(folder.path().join("idle.cl"), source).expect("a source");
    let text = format!(
        "name: idle\nworkload:\n  kernel: {{source: idle.cl, name: idle, options: [-O0], grid: 64, workgroup: 64, \
         args: [{{buffer: in, type: i32, count: 64}}, {{local_memory: 256}}]}}\n{more}"
    );
    fs::write(folder.path().join("idle.yaml"), text).expect("a campaign file");
    folder
}

#[test]
fn kernels_without_output_run_only_without_faults() {
    let run = |folder: &TempDir, line: &[&str]| -> Finished { flipwave(folder.path(), line, &[]) };
    let folder = without_output("");
    let counted = run(&folder, &["tool", "instruction-count", "idle.yaml"]).expect_success();
    assert!(counted.stdout.lines().count() > 5, "{}", counted.stdout);
    let golden =
        run(&folder, &["golden", "idle.yaml", "--out", "golden", "--all"]).expect_success();
    assert!(golden.stdout.contains("in.bin"), "{}", golden.stdout);
    run(&folder, &["run", "idle.yaml"]).expect_refused(&["no `faults`"]);
    let site =
        "dispatch=0 workgroup=0,0,0 wave=0 pc=0x1900 occurrence=0 lane=0 register=v0 flip=0x1";
    run(&folder, &["replay", "idle.yaml", "--site", site]).expect_refused(&["no output"]);
    let folder = without_output("faults: {model: flip_one_bit, count: 10}\n");
    let words = ["idle.yaml:", "no buffer is an output", "`output: true`"];
    run(&folder, &["run", "idle.yaml"]).expect_refused(&words);
}

/// Two kernels, of which patterns select one or both.
#[test]
fn patterns_select_kernels() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "kernel void scale_up(global int *out) { out[get_global_id(0)] *= 3; }
kernel void scale_down(global int *out) { out[get_global_id(0)] /= 3; }
";
    fs::write(folder.path().join("scale.cl"), source).expect("a source");
    let launch = |name: &str, more: &str| {
        format!(
            "    - {{source: scale.cl, name: {name}, grid: 64, workgroup: 64, args: [{{buffer: out{more}}}]}}\n"
        )
    };
    let define = ", type: i32, count: 64, init: {value: 5}, output: true";
    let campaign = |pattern: &str| {
        let text = format!(
            "name: scale\nworkload:\n  dispatches:\n{}{}faults: {{model: flip_one_bit, count: 60, \
             kernels: ['{pattern}']}}\n",
            launch("scale_up", define),
            launch("scale_down", "")
        );
        fs::write(folder.path().join("scale.yaml"), text).expect("a campaign file");
        flipwave(folder.path(), &["run", "scale.yaml", "--force", "--out", "results"], &[])
    };
    let struck = |pattern: &str| -> Vec<String> {
        campaign(pattern).expect_success();
        let table = fs::read_to_string(folder.path().join("results/results.csv")).expect("rows");
        let rows = read_rows(table.as_bytes()).expect("rows");
        let mut kernels: Vec<String> = rows.into_iter().filter_map(|row| row.kernel).collect();
        kernels.sort();
        kernels.dedup();
        kernels
    };
    assert_eq!(struck("scale_*"), ["scale_down", "scale_up"]);
    assert_eq!(struck("*_up"), ["scale_up"]);
    assert_eq!(struck("scale_d??n"), ["scale_down"]);
    campaign("scale").expect_refused(&["scale_down, scale_up"]);
    let tool = |pattern: &str| {
        let line = ["tool", "instruction-count", "scale.yaml", "--kernel", pattern];
        flipwave(folder.path(), &line, &[])
    };
    let rows = |pattern: &str, kernel: &str| {
        let table = tool(pattern).expect_success().stdout;
        table.lines().filter(|line| line.split(',').nth(1) == Some(kernel)).count()
    };
    let (up, down) = (rows("scale_up", "scale_up"), rows("scale_down", "scale_down"));
    assert!(up > 0 && down > up, "{up} {down}");
    assert_eq!((rows("scale_*", "scale_up"), rows("scale_*", "scale_down")), (up, down));
    assert_eq!(rows("*_up", "scale_down"), 0);
    tool("none_*").expect_refused(&["none_*", "scale_down, scale_up"]);
    let compiled = flipwave_tests::compile_file(&folder.path().join("scale.cl"), &["-O3"]);
    fs::write(folder.path().join("scale.co"), compiled).expect("written");
    let inspect =
        |pattern: &str| flipwave(folder.path(), &["inspect", "scale.co", "--kernel", pattern], &[]);
    let shown = inspect("scale_*").expect_success().stdout;
    assert!(shown.contains("kernel scale_up") && shown.contains("kernel scale_down"), "{shown}");
    let shown = inspect("*_up").expect_success().stdout;
    assert!(shown.contains("kernel scale_up") && !shown.contains("scale_down"), "{shown}");
    inspect("none_*").expect_refused(&["no kernel `none_*`", "scale_up"]);
}

#[test]
fn tool_on_the_campaign_of_an_application_says_what_to_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "name: a\nworkload: {app: {command: [sh, -c, 'exit 0'], directory: /tmp}}\n";
    fs::write(folder.path().join("a.yaml"), text).expect("a campaign file");
    let said = flipwave(folder.path(), &["tool", "opcode-histogram", "a.yaml"], &[]);
    said.expect_refused(&["in /tmp, run `flipwave tool TOOL -- ", "sh -c exit 0`"]);
}

/// A fault of the golden run and of a replay names the function and the source line.
#[test]
fn faults_name_the_function_and_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "#include <hip/hip_runtime.h>
template <typename T> __global__ void store(T *out, T *other) {
    out[threadIdx.x] = threadIdx.x;
    other[threadIdx.x] = 1;
}
template __global__ void store<float>(float *, float *);
";
    fs::write(folder.path().join("store.hip"), source).expect("a source");
    let campaign = |other: &str| {
        let text = format!(
            "name: store\nworkload:\n  kernel: {{source: store.hip, name: store<float>, grid: 64, workgroup: \
             64, args: [{{buffer: out, type: f32, count: 64, output: true}}, {other}]}}\nfaults: {{model: \
             flip_one_bit, target: store_address, count: 40}}\n"
        );
        fs::write(folder.path().join("store.yaml"), text).expect("a campaign file");
    };
    campaign("null");
    let said = flipwave(folder.path(), &["golden", "store.yaml", "--out", "golden"], &[]);
    said.expect_refused(&[
        "kernel `void store<float>(float*, float*)`",
        "write to 0x",
        "store.hip:4)",
    ]);
    campaign("{buffer: other, type: f32, count: 64}");
    flipwave(folder.path(), &["run", "store.yaml", "--out", "results"], &[]).expect_success();
    let table = fs::read_to_string(folder.path().join("results/results.csv")).expect("rows");
    let rows = read_rows(table.as_bytes()).expect("rows");
    let row = rows.iter().find(|row| row.cause.as_deref() == Some("memory_violation"));
    let row = row.expect("a store outside of memory");
    let replay = ["replay", "store.yaml", "--site", &row.site];
    let printed = flipwave(folder.path(), &replay, &[]).expect_success().stdout;
    let line = format!("({})", row.line.as_deref().expect("a line"));
    let fault = printed.lines().find(|line| line.starts_with("fault:")).expect("the fault");
    assert!(fault.ends_with(&line), "{fault} {line}");
}
