//! Tools on applications under AMD's runtime. Hooks that the tools library inserts into kernels find the
//! same as the embedded GPU in unmodified code, and applications behave the same.

use flipwave_tests::{Compiler, Finished, application, flipwave};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// An application built by AMD's compiler, and its working folder.
struct Application {
    folder: TempDir,
    path: PathBuf,
    /// The run without a tool.
    plain: OnceCell<Finished>,
}

impl Application {
    fn build(name: &str) -> Application {
        let folder = tempfile::tempdir().expect("a folder");
        let path = application(&format!("attached/{name}"), Compiler::Hipcc, "gfx90a");
        Application { folder, path, plain: OnceCell::new() }
    }

    fn run(&self, before: &[&str]) -> Finished {
        let path = self.path.to_str().expect("text");
        flipwave(self.folder.path(), &[before, &["--", path]].concat(), &[])
    }

    fn plain(&self) -> &Finished {
        self.plain.get_or_init(|| self.run(&["exec"]))
    }

    /// Runs a tool and returns its table. Asserts that the application behaves as without the tool.
    fn table(&self, tool: &str, options: &[&str]) -> String {
        let finished = self.run(&[&["tool", tool, "--out", "table.csv"], options].concat());
        let plain = self.plain();
        let behaviour = |run: &Finished| (run.code, run.stdout.clone(), run.stderr.clone());
        assert_eq!(behaviour(&finished), behaviour(plain), "{tool} {options:?}");
        assert!(plain.code.is_some() && !plain.stdout.is_empty(), "{plain:?}");
        std::fs::read_to_string(self.folder.path().join("table.csv")).expect("the table")
    }
}

/// A tools library that passes the runtime's API tables to the library in
/// `ROCPROFILER_REGISTER_LIBRARY`, as rocprofiler-register does. HIP's tables come first.
const REGISTER: &str = r#"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
typedef int set_api_table(const char *, uint64_t, uint64_t, void **, uint64_t);
bool OnLoad(void *table, uint64_t version, uint64_t failed, const char *const *names) {
    void *library = dlopen(getenv("ROCPROFILER_REGISTER_LIBRARY"), RTLD_GLOBAL | RTLD_LAZY);
    set_api_table *set = library ? (set_api_table *)dlsym(library, "rocprofiler_set_api_table") : 0;
    void *none = 0;
    return set && set("hip", 1, 0, &none, 1) == 0 && set("hsa", 1, 0, &table, 1) == 0;
}
void OnUnload(void) {}
"#;

/// Newer runtimes load tools only through rocprofiler-register.
#[test]
fn tools_work_through_rocprofiler_register() {
    let application = Application::build("queues");
    let folder = application.folder.path();
    std::fs::write(folder.join("register.c"), REGISTER).expect("written");
    let library = ["-shared", "-fPIC", "-o", "libregister.so", "register.c"];
    let status = Command::new("clang-22").args(library).current_dir(folder).status();
    assert!(status.expect("clang-22").success());
    let table = application.table("instruction-count", &[]);
    let count = |tools: &str| {
        let script = format!("HSA_TOOLS_LIB={tools} exec {}", application.path.display());
        let line = ["tool", "instruction-count", "--out", "other.csv", "--", "sh", "-c", &script];
        flipwave(folder, &line, &[])
    };
    let register = folder.join("libregister.so");
    count(register.to_str().expect("text")).expect_success();
    let other = folder.join("other.csv");
    assert_eq!(std::fs::read_to_string(&other).expect("the table"), table);
    std::fs::remove_file(other).expect("there");
    let without_tables = count("none");
    assert_eq!(without_tables.code, Some(2), "{without_tables:?}");
    assert!(without_tables.stderr.contains("the table lacks kernels"), "{without_tables:?}");
}

/// The cells of a table.
fn rows(table: &str) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let rows = reader.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect());
    rows.collect()
}

/// The sum of the last column for each dispatch with its kernel.
fn sums(table: &str) -> BTreeMap<(usize, String), u64> {
    let mut sums = BTreeMap::new();
    for row in rows(table) {
        let dispatch = row[0].parse().expect("a number");
        let value: u64 = row.last().expect("columns").parse().expect("a number");
        *sums.entry((dispatch, row[1].clone())).or_default() += value;
    }
    sums
}

/// Asserts that hooks and the embedded GPU produce the same table of a tool. Returns the table.
fn alike(application: &Application, tool: &str, options: &[&str]) -> String {
    let by_hooks = application.table(tool, options);
    let embedded = application.table(tool, &["--by", "embedded"]);
    assert_eq!(first_difference(&by_hooks, &embedded), None, "{tool} {options:?}");
    by_hooks
}

fn counted_alike(application: &Application, options: &[&str]) -> String {
    alike(application, "instruction-count", options)
}

/// Asserts that hooks and the embedded GPU trace the same accesses. Returns their number by kernel.
fn traced_alike(application: &Application, options: &[&str]) -> BTreeMap<String, usize> {
    let by_hooks = application.table("memory-trace", options);
    let embedded = application.table("memory-trace", &["--by", "embedded"]);
    let canonical = canonical_trace(&by_hooks);
    assert_eq!(first_difference(&canonical, &canonical_trace(&embedded)), None, "{options:?}");
    let mut kernels = BTreeMap::new();
    for row in rows(&by_hooks) {
        *kernels.entry(row[1].clone()).or_default() += 1;
    }
    kernels
}

/// Normalises two properties of a trace that hooks change. The schedule of waves changes, because hooks
/// execute instructions; rows are sorted by wave, and each wave's accesses stay in order. Addresses
/// change, because the runtime loads larger code objects and the tool's packets; they are replaced with
/// offsets in blocks of contiguous cache lines of a dispatch, numbered in the order of first access.
fn canonical_trace(trace: &str) -> String {
    const LINE: u64 = 64;
    const ADDRESS: usize = 10;
    let number = |row: &[String], column: usize| row[column].parse::<u64>().expect("a number");
    let mut rows = rows(trace);
    rows.sort_by_key(|row| [0, 5, 6, 7, 8].map(|column| number(row, column)));
    for dispatch in rows.chunk_by_mut(|left, right| left[0] == right[0]) {
        let lines = dispatch.iter().map(|row| number(row, ADDRESS) / LINE);
        let lines = BTreeSet::from_iter(lines);
        let begins = |line: &&u64| line.checked_sub(1).is_none_or(|last| !lines.contains(&last));
        let blocks: Vec<u64> = lines.iter().filter(begins).map(|line| line * LINE).collect();
        let mut met = Vec::new();
        for row in dispatch {
            let address = number(row, ADDRESS);
            let block = blocks[blocks.partition_point(|begin| *begin <= address) - 1];
            let number = met.iter().position(|known| *known == block).unwrap_or_else(|| {
                met.push(block);
                met.len() - 1
            });
            row[ADDRESS] = format!("block {number} + {}", address - block);
        }
    }
    rows.iter().map(|row| row.join("|") + "\n").collect()
}

/// The first row in which two tables differ.
fn first_difference(left: &str, right: &str) -> Option<(String, String)> {
    let lines = |table: &str| table.lines().map(str::to_owned).collect::<Vec<String>>();
    let (mut left, mut right) = (lines(left), lines(right));
    let longest = left.len().max(right.len());
    left.resize(longest, String::new());
    right.resize(longest, String::new());
    left.into_iter().zip(right).find(|(left, right)| left != right)
}

#[test]
fn variables_are_shared_by_both_versions_of_the_code() {
    let application = Application::build("variables");
    let counts = counted_alike(&application, &[]);
    let kernels: Vec<String> = sums(&counts).into_keys().map(|(_, kernel)| kernel).collect();
    assert_eq!(kernels, ["_Z3addj", "_Z3addj", "_Z7collectPj"]);
    // Negative control: one count is too high.
    let last = rows(&counts).pop().expect("rows").pop().expect("columns");
    let more = last.parse::<u64>().expect("a number") + 1;
    let wrong = format!("{}{more}\n", counts.trim_end().strip_suffix(&last).expect("its end"));
    assert!(first_difference(&counts, &wrong).is_some());
    assert_eq!(counted_alike(&application, &["--per", "instruction"]), counts);
}

#[test]
fn kernel_option_instruments_one_kernel_only() {
    let application = Application::build("variables");
    let all = application.table("instruction-count", &[]);
    let one = application.table("instruction-count", &["--kernel", "_Z7collectPj"]);
    // A pattern of the demangled name.
    let by_pattern = application.table("instruction-count", &["--kernel", "coll?ct(*)"]);
    assert_eq!(by_pattern, one);
    let collected: Vec<Vec<String>> =
        rows(&all).into_iter().filter(|row| row[1] == "_Z7collectPj").collect();
    assert_eq!(rows(&one), collected);
    assert_eq!(collected[0][0], "2", "earlier dispatches are counted");
}

#[test]
fn functions_called_through_pointers_are_counted() {
    let counts = counted_alike(&Application::build("pointers"), &[]);
    let called = |row: &Vec<String>| row[2].contains("collatz") && row[5] != "0";
    assert!(rows(&counts).iter().any(called), "collatz is called:\n{counts}");
}

#[test]
fn hooks_in_trampolines_count_the_same_in_applications() {
    counted_alike(&Application::build("pointers"), &["--placement", "trampoline"]);
}

#[test]
fn launches_in_several_streams_have_the_same_dispatch_numbers() {
    let counts = counted_alike(&Application::build("queues"), &[]);
    let sums = sums(&counts);
    let count = |name: &str| sums.keys().filter(|(_, kernel)| kernel.contains(name)).count();
    assert_eq!((count("rotate"), count("sort")), (340, 40));
    // HIP fills memory with a kernel.
    assert!(count("__amd_rocclr_fill") > 0, "{:?}", sums.keys());
    let numbers: Vec<usize> = sums.keys().map(|(number, _)| *number).collect();
    assert_eq!(numbers, Vec::from_iter(0..numbers.len()));
}

#[test]
fn histograms_agree_and_add_up_to_the_instruction_counts() {
    for name in ["variables", "pointers", "queues"] {
        let application = Application::build(name);
        let histogram = alike(&application, "opcode-histogram", &[]);
        let counts = application.table("instruction-count", &["--by", "embedded"]);
        assert_eq!(sums(&histogram), sums(&counts), "{name}");
    }
}

#[test]
fn traces_by_hooks_agree_with_the_embedded_gpu() {
    let variables = traced_alike(&Application::build("variables"), &[]);
    assert_eq!(Vec::from_iter(variables.keys()), ["_Z3addj", "_Z7collectPj"]);
    let pointers = Application::build("pointers");
    let kernels = traced_alike(&pointers, &[]);
    assert_eq!(Vec::from_iter(kernels.keys()), ["_Z4walkPjj"]);
    // Branches to trampolines must reach across the buffer of records.
    let near = ["--placement", "trampoline", "--records", "1024"];
    assert_eq!(traced_alike(&pointers, &near), kernels);
    // LDS, indexed registers, and several streams.
    let queues = traced_alike(&Application::build("queues"), &["--records", "8192"]);
    let count = |name: &str| queues.iter().find(|(kernel, _)| kernel.contains(name)).expect(name).1;
    // Each of 340 dispatches has 4 workgroups of 2 waves, with 4 scalar accesses and, in 64 lanes, 2
    // accesses to memory and 2 to LDS.
    assert_eq!(*count("rotate"), 340 * 4 * 2 * (4 + 64 * 4));
    assert!(*count("sort") >= 40 * 32 * 17, "{queues:?}");
}

/// Negative control: one access with another address, and one by another wave.
#[test]
fn trace_comparison_detects_one_different_access() {
    let trace = Application::build("variables").table("memory-trace", &["--by", "embedded"]);
    let last = rows(&trace).pop().expect("rows");
    let line = trace.lines().last().expect("rows");
    let changed = |column: usize| {
        let more = last[column].parse::<u64>().expect("a number") + 4;
        // The columns after this one contain no commas.
        let after = last[column + 1..].join(",");
        let before = line.strip_suffix(&format!("{},{after}", last[column])).expect("its end");
        trace.replace(line, &format!("{before}{more},{after}"))
    };
    assert_eq!(first_difference(&canonical_trace(&trace), &canonical_trace(&trace)), None);
    for (what, column) in [("address", 10), ("wave", 8)] {
        let changed = canonical_trace(&changed(column));
        assert!(first_difference(&canonical_trace(&trace), &changed).is_some(), "{what}");
    }
}

#[test]
fn number_of_lost_records_is_equal_with_hooks() {
    let application = Application::build("variables");
    let [by_hooks, embedded] = ["hook", "embedded"].map(|by| {
        let line = ["tool", "memory-trace", "--records", "50", "--by", by, "--out", "table.csv"];
        let stderr = application.run(&line).stderr;
        let table = application.folder.path().join("table.csv");
        (stderr, std::fs::read_to_string(table).expect("the table").lines().count())
    });
    assert_eq!(by_hooks, embedded);
    let (stderr, lines) = embedded;
    assert_eq!(lines, 1 + 3 * 50);
    assert!(
        stderr.contains("records lost because the buffer was full; increase --records"),
        "{stderr}"
    );
}

#[test]
fn trace_contains_an_access_per_lane() {
    let application = Application::build("variables");
    let trace = rows(&application.table("memory-trace", &[]));
    // Each work-item of `add` reads and writes one element of `seen`.
    let add_rows = trace.iter().filter(|row| row[0] == "0" && !row[9].is_empty());
    let stores = add_rows.filter(|row| row[4].starts_with("global_store_dword "));
    let mut addresses: Vec<u64> = stores.map(|row| row[10].parse().expect("an address")).collect();
    addresses.sort_unstable();
    assert_eq!(addresses.len(), 256);
    assert!(addresses.windows(2).all(|pair| pair[1] == pair[0] + 4), "{addresses:?}");
}

#[test]
fn tools_do_not_change_applications() {
    let application = Application::build("variables");
    for tool in ["address-divergence", "branch-divergence", "kernel-clock"] {
        assert!(!rows(&application.table(tool, &[])).is_empty(), "{tool}");
    }
    // The application uses no LDS.
    assert_eq!(application.table("bank-conflicts", &[]), "");
}

#[test]
fn table_without_a_file_goes_to_standard_error() {
    let application = Application::build("variables");
    let expected = application.table("opcode-histogram", &[]);
    let finished = application.run(&["tool", "opcode-histogram"]);
    let plain = application.plain();
    assert_eq!((finished.code, &finished.stdout), (plain.code, &plain.stdout));
    assert_eq!(finished.stderr, plain.stderr.clone() + &expected);
}

#[test]
fn kernel_that_is_not_dispatched_is_reported() {
    let application = Application::build("variables");
    let finished = application.run(&["tool", "opcode-histogram", "--kernel", "matmul"]);
    assert_eq!(finished.code, Some(3));
    let stderr = finished.stderr;
    assert!(
        stderr.contains("`matmul` was not dispatched; dispatched kernels: _Z3addj"),
        "{stderr}"
    );
}

#[test]
fn invalid_options_are_refused_before_the_application_runs() {
    let application = Application::build("variables");
    for line in [
        &["tool", "bank-conflicts", "--by", "embedded"][..],
        &["tool", "opcode-histogram", "--out", "no/such/folder.csv"],
        &["tool", "opcode-histogram", "--seed", "1"],
    ] {
        let finished = application.run(line);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{line:?}");
        assert_ne!(finished.stderr, "");
    }
}
