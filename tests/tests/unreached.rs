//! A campaign with hooks draws only sites that hooks reach, and reports how much of the fault space that
//! excludes.

use flipwave_tests::{flipwave, timeless_rows};
use std::path::Path;

/// A kernel with a call, which computes the function's address from the PC in instructions that hooks
/// cannot strike.
const KERNEL: &str = "
__attribute__((noinline)) int twice(int value) { return 2 * value + 1; }

kernel void calls(global int *values) {
    int item = get_global_id(0);
    values[item] = twice(values[item] + item) ^ item;
}
";

const PLAIN: &str = "
kernel void calls(global int *values) {
    int item = get_global_id(0);
    values[item] = 2 * values[item] + item;
}
";

const CAMPAIGN: &str = "
name: calls
seed: 11
target: gfx90a
workload:
  kernel:
    source: calls.cl
    name: calls
    grid: 64
    workgroup: 64
    args: [{buffer: values, type: i32, count: 64, init: {uniform: [0, 100]}, output: true}]
faults: {model: flip_one_bit, target: destination_register, count: 60, groups: [salu]}
";

/// Runs a campaign. Returns the table, and standard output and error.
fn run(folder: &Path, by: &str, workers: &str) -> (String, [String; 2]) {
    let out = format!("{by}{workers}");
    let line = ["run", "calls.yaml", "--by", by, "--workers", workers, "--out", &out];
    let finished = flipwave(folder, &line, &[]).expect_success();
    let rows = std::fs::read_to_string(folder.join(&out).join("results.csv")).expect("the rows");
    (rows, [finished.stdout, finished.stderr])
}

fn write(folder: &Path, kernel: &str) {
    std::fs::write(folder.join("calls.cl"), kernel).expect("written");
    std::fs::write(folder.join("calls.yaml"), CAMPAIGN).expect("written");
}

#[test]
fn sites_out_of_reach_of_hooks_are_excluded_and_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), KERNEL);
    let (rows, said) = run(folder.path(), "hook", "1");
    for text in said {
        assert!(text.contains("not reached by hooks, not sampled: "), "{text}");
        assert!(text.contains(" % of all"), "{text}");
    }
    assert_eq!(rows.lines().count(), 61);
    assert!(!rows.contains("s_getpc_b64"), "{rows}");
    // The plan does not depend on the number of workers.
    let (again, _) = run(folder.path(), "hook", "2");
    assert_eq!(again, rows);
    // The embedded GPU draws from the complete fault space.
    let (embedded, said) = run(folder.path(), "embedded", "1");
    assert!(said.iter().all(|text| !text.contains("not reached")), "{said:?}");
    assert!(embedded.contains("s_getpc_b64"), "the test needs more faults:\n{embedded}");
    // A site gives the same row with both methods.
    let line = rows.lines().nth(1).expect("a row");
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
    let row = reader.records().next().expect("a row").expect("cells");
    let site = row.get(1).expect("a site");
    let replay = |by| {
        let line = ["replay", "calls.yaml", "--by", by, "--site", site];
        flipwave(folder.path(), &line, &[]).expect_success().stdout
    };
    let timed = "instructions:   ";
    let embedded = replay("embedded");
    let (untimed, _) = embedded.split_once(timed).expect("columns that hooks do not measure");
    assert_eq!(replay("hook"), untimed);
}

/// Negative control: if hooks reach all sites, both methods have the same rows.
#[test]
fn plan_is_equal_if_hooks_reach_all_sites() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), PLAIN);
    let (_, said) = run(folder.path(), "hook", "1");
    assert!(said.iter().all(|text| !text.contains("not reached")), "{said:?}");
    run(folder.path(), "embedded", "1");
    let [by_hook, embedded] =
        ["hook1", "embedded1"].map(|name| timeless_rows(&folder.path().join(name)));
    assert_eq!(by_hook, embedded);
}
