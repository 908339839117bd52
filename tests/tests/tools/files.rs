//! Tools in C files of users: their tables, their parameters, and the errors of wrong files.

use flipwave_tests::{Compiler, Finished, application, examples_folder, flipwave};
use std::collections::BTreeMap;
use std::path::Path;

/// A tool that counts the executions of stores.
const STORES: &str = r#"#include <flipwave.h>
struct counts { uint64_t executions; };
FLIPWAVE_TABLE(counts, struct counts, "function")
FLIPWAVE_PARAMETER(step, 1)
void count(struct counts *row) { flipwave_count(&row->executions, step); }
void flipwave_instrument(const flipwave_inst *inst)
{
    if (!inst->is_store)
        return;
    uint32_t row = flipwave_new_row(&counts);
    flipwave_insert_call(inst, "count", FLIPWAVE_BEFORE);
    flipwave_one_lane();
    flipwave_arg_row(&counts, row);
    flipwave_show(&counts, inst, row, inst->function);
}
"#;

/// Runs a tool on the addition of vectors, with a time limit of two seconds for its host side.
fn run(folder: &Path, text: &str, options: &[&str]) -> Finished {
    std::fs::write(folder.join("mine.c"), text).expect("written");
    let campaign = examples_folder().join("vector_add.yaml");
    let campaign = campaign.to_str().expect("text");
    let line = [&["tool", "mine.c", campaign], options].concat();
    flipwave(folder, &line, &[("FLIPWAVE_TOOL_SECONDS", "2")])
}

/// Replaces a part of [`STORES`] that must exist.
fn stores(old: &str, new: &str) -> String {
    assert!(STORES.contains(old), "{old}");
    STORES.replace(old, new)
}

#[test]
fn file_of_a_user_gives_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let finished = run(folder.path(), STORES, &[]).expect_success();
    let expected = "dispatch,kernel,function,executions\n0,vector_add,vector_add,63\n";
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), (expected, ""));
    let finished = run(folder.path(), STORES, &["--set", "step=10"]).expect_success();
    assert!(finished.stdout.ends_with(",630\n"), "{}", finished.stdout);
}

#[test]
fn wrong_files_are_refused_with_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |text: &str, options: &[&str], words: &[&str]| {
        let finished = run(folder.path(), text, options);
        finished.expect_refused(words);
        assert_eq!(finished.stdout, "", "{words:?}");
    };
    // A hook that does not compile.
    let text = stores("flipwave_count(&row->executions, step);", "flipwave_count(row.executions);");
    refused(&text, &[], &["mine.c:5:", "error"]);
    // A function of the host side that does not exist.
    refused(
        &stores("flipwave_one_lane", "flipwave_one_lan"),
        &[],
        &["mine.c:12:", "flipwave_one_lan"],
    );
    // A wrong signature: the number of arguments, and their size.
    refused(
        &stores("count(struct counts *row)", "count(struct counts *row, int more)"),
        &[],
        &["mine.c:11:", "has 2 parameters, but the call passes 1 arguments"],
    );
    let text = stores("flipwave_arg_row(&counts, row);", "flipwave_arg_operand(1);");
    refused(&text, &[], &["mine.c:11:", "hook `count`, parameter", "takes 8 bytes"]);
    refused(
        &stores("\"count\"", "\"cuont\""),
        &[],
        &["mine.c:11:", "has no function `cuont`", "count"],
    );
    // An operand that no store has.
    let text = stores("flipwave_arg_row(&counts, row);", "flipwave_arg_operand(9);");
    refused(&text, &[], &["mine.c:11:", "has no operand 9"]);
    // Declarations.
    refused(
        &stores(
            "FLIPWAVE_TABLE(counts, struct counts, \"function\")",
            "struct { struct counts *rows; } counts;",
        ),
        &[],
        &["mine.c: no table"],
    );
    let text = stores("flipwave_count(&row->executions, step);", "(void)row;");
    let text = text.replace("uint64_t executions;", "uint32_t executions;");
    refused(&text, &[], &["mine.c:3:", "expected uint64_t"]);
    refused(
        &stores("inst, row, inst->function", "inst, row, inst->function, \"more\""),
        &[],
        &["mine.c:14:", "has 1 key columns, but 2 keys are given"],
    );
    refused(
        &stores("void flipwave_instrument", "void my_instrument"),
        &[],
        &["mine.c: no function `void flipwave_instrument("],
    );
    // Parameters.
    refused(STORES, &["--set", "stride=3"], &["unknown parameter `stride`", "step"]);
    refused(STORES, &["--set", "step=a b"], &["parameter `step` takes a number"]);
    refused(STORES, &["--set", "step=wide"], &["mine.c:4:", "wide"]);
    refused(STORES, &["--set", "step"], &["expected NAME=VALUE"]);
}

#[test]
fn tools_that_crash_or_do_not_return_are_reported_with_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    for (new, words) in [
        (
            "*(volatile int *)8 = 1;",
            &["mine.c:10:", "`flipwave_instrument` crashed by SIGSEGV", "global_store_dword"][..],
        ),
        (
            "for (volatile int i = 0; ; i++) ;",
            &["mine.c:10:", "took more than 2 seconds", "endless loop"],
        ),
        ("abort();", &["mine.c:10:", "SIGABRT"]),
        ("exit(7);", &["mine.c", "ended unexpectedly", "7"]),
        ("flipwave_fail(\"no stores, please\");", &["mine.c:10: no stores, please"]),
    ] {
        let text = stores("        return;\n", &format!("        return;\n    {new}\n"));
        let text = text.replacen("struct counts {", "#include <stdlib.h>\nstruct counts {", 1);
        let text = text.replacen("\nFLIPWAVE_PARAMETER", " FLIPWAVE_PARAMETER", 1);
        let finished = run(folder.path(), &text, &[]);
        finished.expect_refused(words);
        assert_eq!(finished.stdout, "", "{new}");
    }
}

#[test]
fn hooks_that_fail_on_the_gpu_are_reported_with_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    for (body, words) in [
        (
            "*(volatile uint64_t *)0x10 = 1; (void)row;",
            &["hook `count` (mine.c:5)", "global_store_dword", "0x10"][..],
        ),
        (
            "while (__scoped_atomic_load_n(&row->executions, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE) == 0) ;",
            &["hook `count` (mine.c:5)", "instructions"],
        ),
    ] {
        let text = stores("flipwave_count(&row->executions, step);", body);
        run(folder.path(), &text, &[]).expect_refused(words);
    }
}

/// Rows of a table as numbers in columns `from..`, and the other columns.
fn column(table: &str, name: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let at = reader.headers().expect("a header").iter().position(|column| column == name);
    let at = at.unwrap_or_else(|| panic!("no column {name} in {table}"));
    reader.records().map(|row| row.expect("a row")[at].to_owned()).collect()
}

fn numbers(table: &str, name: &str) -> Vec<u64> {
    column(table, name).iter().map(|cell| cell.parse().expect("a number")).collect()
}

fn shipped(tool: &str, campaign: &str, options: &[&str]) -> String {
    let line = [&["tool", tool, campaign], options].concat();
    let finished = flipwave(&examples_folder(), &line, &[]).expect_success();
    assert_eq!(finished.stderr, "", "{tool} {campaign}");
    finished.stdout
}

#[test]
fn thread_count_agrees_with_other_tools() {
    for campaign in ["reduction.yaml", "stencil.yaml"] {
        let executions = numbers(&shipped("instruction-count", campaign, &[]), "executions");
        let counts = shipped("thread-count", campaign, &[]);
        let waves: u64 = numbers(&counts, "waves").iter().sum();
        assert_eq!(waves, executions.iter().sum::<u64>(), "{campaign}");
        let lanes: u64 = numbers(&counts, "lanes").iter().sum();
        assert!(lanes > waves && lanes <= 64 * waves, "{campaign}: {lanes} {waves}");
        let functions = shipped("thread-count", campaign, &["--set", "per=function"]);
        assert_eq!(numbers(&functions, "lanes").iter().sum::<u64>(), lanes);
    }
}

#[test]
fn keys_of_hooks_agree_with_the_memory_trace() {
    let trace = shipped("memory-trace", "vector_add.yaml", &[]);
    let mut expected: BTreeMap<u64, [u64; 2]> = Default::default();
    let texts = column(&trace, "instruction");
    for (text, address) in texts.iter().zip(numbers(&trace, "address")) {
        let kind = if text.starts_with("global_load") {
            0
        } else if text.starts_with("global_store") {
            1
        } else {
            continue;
        };
        expected.entry(address / 256 * 256).or_default()[kind] += 1;
    }
    let counted = shipped("line-accesses", "vector_add.yaml", &["--set", "line=256"]);
    let rows = numbers(&counted, "address")
        .into_iter()
        .zip(numbers(&counted, "loads").into_iter().zip(numbers(&counted, "stores")));
    let counted: Vec<_> = rows.map(|(key, (loads, stores))| (key, [loads, stores])).collect();
    assert_eq!(counted, expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn keys_beyond_the_capacity_of_a_map_are_counted_as_lost() {
    let line = ["tool", "line-accesses", "vector_add.yaml", "--set", "lines=4"];
    let finished = flipwave(&examples_folder(), &line, &[]).expect_success();
    assert_eq!(finished.stdout.lines().count(), 5);
    assert!(finished.stderr.contains("records lost"), "{}", finished.stderr);
}

#[test]
fn memory_efficiency_follows_from_the_trace() {
    let trace = shipped("memory-trace", "vector_add.yaml", &[]);
    let efficiency = shipped("memory-efficiency", "vector_add.yaml", &["--set", "line=64"]);
    let requested: u64 = column(&trace, "instruction")
        .iter()
        .zip(numbers(&trace, "bytes"))
        .filter(|(text, _)| text.starts_with("global_"))
        .map(|(_, bytes)| bytes)
        .sum();
    assert_eq!(numbers(&efficiency, "requested_bytes").iter().sum::<u64>(), requested);
    let divergence = shipped("address-divergence", "vector_add.yaml", &[]);
    let lines: u64 = numbers(&divergence, "lines_64").iter().sum();
    assert_eq!(numbers(&efficiency, "transferred_bytes").iter().sum::<u64>(), 64 * lines);
}

/// Executions by operation.
fn by_operation(table: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (name, count) in column(table, "operation").into_iter().zip(numbers(table, "executions")) {
        *sums.entry(name).or_default() += count;
    }
    sums
}

/// Numbers of executions that differ between two tables, and of all.
fn differing(full: &str, sampled: &str) -> [u64; 2] {
    let (full, sampled) = (by_operation(full), by_operation(sampled));
    let count = |name: &String| sampled.get(name).copied().unwrap_or(0);
    let wrong = full.iter().map(|(name, executed)| executed.abs_diff(count(name)));
    [wrong.sum(), full.values().sum()]
}

fn sampled_rows(table: &str) -> usize {
    column(table, "is_sampled").iter().filter(|cell| *cell == "1").count()
}

/// The published error of sampling an opcode histogram is 0.6 %.
#[test]
fn sampled_histogram_of_the_suite_is_close_to_the_full_one() {
    let suite = examples_folder().join("../suite");
    let (mut wrong, mut all, mut sampled) = (0, 0, 0);
    for entry in std::fs::read_dir(&suite).expect("the suite") {
        let file = entry.expect("a file").path();
        if file.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let file = file.to_str().expect("text");
        let full = shipped("opcode-histogram", file, &[]);
        let table = shipped("sampled-histogram", file, &[]);
        let [differing, executed] = differing(&full, &table);
        println!("{file}: {differing} of {executed} executions differ");
        (wrong, all, sampled) = (wrong + differing, all + executed, sampled + sampled_rows(&table));
    }
    println!("{wrong} of {all} executions differ");
    assert!(sampled > 1_000, "{sampled} rows are sampled");
    assert!((wrong as f64) < 0.006 * all as f64, "{wrong} of {all}");
}

#[test]
fn each_rule_samples_the_documented_dispatches() {
    let file = examples_folder().join("../suite/hotspot.yaml");
    let file = file.to_str().expect("text");
    let full = shipped("opcode-histogram", file, &[]);
    let dispatches = |table: &str, sampled: &str| {
        let cells = column(table, "is_sampled");
        let mut found: Vec<u64> = numbers(table, "dispatch")
            .into_iter()
            .zip(cells)
            .filter(|(_, cell)| cell == sampled)
            .map(|(number, _)| number)
            .collect();
        found.dedup();
        found
    };
    for (rule, instrumented) in [
        ("all", (0..8).collect::<Vec<u64>>()),
        ("first_per_grid", vec![0]),
        ("every_nth", vec![0, 3, 6]),
        ("first_n", vec![0, 1, 2]),
        ("adaptive", vec![0, 1, 4, 7]),
    ] {
        let options = ["--set", &format!("sampling={rule}"), "--set", "n=3"];
        let table = shipped("sampled-histogram", file, &options);
        assert_eq!(dispatches(&table, "0"), instrumented, "{rule}");
        // All of its dispatches execute the same instructions.
        assert_eq!(differing(&full, &table)[0], 0, "{rule}");
    }
}

#[test]
fn dispatches_of_an_application_are_sampled() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = application("jacobi", Compiler::Hipcc, "gfx90a");
    let path = path.to_str().expect("text");
    let table = |tool: &[&str]| {
        let line = [&["tool"], tool, &["--out", "table.csv", "--", path]].concat();
        flipwave(folder.path(), &line, &[]).expect_success();
        std::fs::read_to_string(folder.path().join("table.csv")).expect("the table")
    };
    let full = table(&["opcode-histogram"]);
    let file = examples_folder().join("../tools/sampled_histogram.c");
    let file = file.to_str().expect("text");
    assert_eq!(by_operation(&table(&[file, "--set", "sampling=all"])), by_operation(&full));
    let sampled = table(&[file]);
    let [wrong, all] = differing(&full, &sampled);
    assert!(sampled_rows(&sampled) > 0 && (wrong as f64) < 0.006 * all as f64, "{wrong} of {all}");
    let file = folder.path().join("mine.c");
    std::fs::write(&file, STORES).expect("written");
    let stores = table(&["mine.c"]);
    assert!(numbers(&stores, "executions").iter().sum::<u64>() > 0, "{stores}");
    // Errors of the file are found before the application starts.
    std::fs::write(&file, STORES.replace("flipwave_one_lane", "flipwave_one_lan"))
        .expect("written");
    let finished = flipwave(folder.path(), &["tool", "mine.c", "--", path], &[]);
    finished.expect_refused(&["mine.c:12:"]);
    assert_eq!(finished.stdout, "");
}

#[test]
fn table_can_be_written_as_parquet() {
    let folder = tempfile::tempdir().expect("a folder");
    let campaign = examples_folder().join("vector_add.yaml");
    let campaign = campaign.to_str().expect("text");
    let line = ["tool", "memory-trace", campaign, "--out", "trace.parquet"];
    assert_eq!(flipwave(folder.path(), &line, &[]).expect_success().stdout, "");
    let bytes = std::fs::read(folder.path().join("trace.parquet")).expect("the table");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn register_trace_records_the_values_of_results() {
    // The outputs of the addition are the values that its additions write.
    let table = shipped("register-trace", "vector_add.yaml", &["--set", "operation=v_add_f32"]);
    let stored = numbers(&table, "value").len();
    assert_eq!(stored, 4000);
    let first = shipped(
        "register-trace",
        "vector_add.yaml",
        &["--set", "operation=v_add_f32", "--set", "first=1"],
    );
    assert!(column(&first, "workgroup_x").iter().all(|x| x == "0"));
    assert!(first.lines().count() > 1 && first.lines().count() < table.lines().count());
}

/// Waves wait for space in a small ring, while the host takes its records.
#[test]
fn traces_lose_no_record_in_a_ring_that_is_smaller() {
    let sorted = |options: &[&str]| {
        let table = shipped("memory-trace", "stencil.yaml", options);
        // Data of the code object, behind the ring, moves with its size.
        let mut rows: Vec<String> =
            table.lines().filter(|row| !row.contains("\"s_load_")).map(str::to_owned).collect();
        rows.sort();
        rows
    };
    let all = sorted(&[]);
    assert!(all.len() > 50_000, "{} rows", all.len());
    for records in ["64", "1000"] {
        let some = sorted(&["--records", records]);
        assert_eq!(some.len(), all.len(), "{records} records");
        assert!(some == all, "{records} records");
    }
}

/// Records of three to eight words, whose words come from arguments in any order. The compiler builds them in
/// consecutive registers, for which it must not need registers that hooks cannot use.
#[test]
fn hooks_append_records_of_any_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let campaign = examples_folder().join("reduction.yaml");
    for words in 3..=8 {
        for sources in [["value", "value"], ["value", "address"], ["address", "value"]] {
            let members = (0..words).map(|word| format!("m{word}")).collect::<Vec<_>>().join(", ");
            let values: Vec<&str> = (0..words).map(|word| sources[word % 2]).collect();
            let text = RECORDS.replace("MEMBERS", &members).replace("VALUES", &values.join(", "));
            std::fs::write(folder.path().join("records.c"), text).expect("written");
            let arguments = ["tool".as_ref(), "records.c".as_ref(), campaign.as_os_str()];
            let table = flipwave(folder.path(), &arguments, &[]).expect_success().stdout;
            let rows = table.lines().skip(1).map(|row| row.split(',').skip(2).collect::<Vec<_>>());
            let rows: Vec<Vec<&str>> = rows.collect();
            assert_eq!(rows.len(), 4088, "{values:?}");
            for row in rows {
                assert_eq!(row.len(), words);
                assert!((2..words).all(|word| row[word] == row[word - 2]), "{row:?}");
            }
        }
    }
}

/// A tool that records the values that lanes store to LDS, and their addresses.
const RECORDS: &str = r#"#include <flipwave.h>
struct record { uint32_t MEMBERS; };
FLIPWAVE_STREAM(records, struct record)
void hook(uint32_t value, uint32_t address)
{
    struct record record = {VALUES};
    flipwave_append(&records, record);
}
void flipwave_instrument(const flipwave_inst *inst)
{
    if (!flipwave_matches(inst->opcode, "ds_write_b32"))
        return;
    flipwave_insert_call(inst, "hook", FLIPWAVE_BEFORE);
    flipwave_arg_operand(1);
    flipwave_arg_address();
}
"#;

/// Arguments that would lose bits, rows of another type, and columns that no record has.
#[test]
fn mismatched_types_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |text: &str, words: &[&str]| run(folder.path(), text, &[]).expect_refused(words);
    let exec = stores(
        "void count(struct counts *row) {",
        "void count(struct counts *row, uint32_t exec) {",
    );
    let exec = exec.replace("    flipwave_show(", "    flipwave_arg_exec();\n    flipwave_show(");
    refused(&exec, &["mine.c:11", "uint32_t exec", "takes 4 bytes", "expected uint64_t"]);
    let other = stores(
        "void count(struct counts *row) { flipwave_count(&row->executions, step); }",
        "struct other { uint64_t n; };\nvoid count(struct other *row) { flipwave_count(&row->n, step); }",
    );
    refused(&other, &["mine.c:12", "struct other *", "the rows of `counts` are `struct counts`"]);
    let columns = RECORDS.replace("MEMBERS", "a").replace("VALUES", "value");
    let columns = columns.replace("struct record)", "struct record, \"pc\")");
    refused(&columns, &["mine.c:3", "no member of the type flipwave_site"]);
}
