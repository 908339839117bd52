//! Tables mark sites without hooks instead of showing a count.

use flipwave_tests::{Compiler, Finished, application, assemble, flipwave};
use std::path::Path;

/// A kernel with all kinds of sites that tools count, in code where GPR-index mode may be on and hooks are
/// impossible, and before and after it.
const KERNEL: &str = "
    .set lds_bytes, 256
    v_mov_b32 v2, 7
    ds_write_b32 v1, v2
    s_mov_b32 s8, 0
    s_setreg_b32 hwreg(HW_REG_MODE, 27, 1), s8
    v_cmp_gt_u32 vcc, 8, v0
    s_and_saveexec_b64 s[6:7], vcc
    s_waitcnt lgkmcnt(0)
    ds_read_b32 v3, v1
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v3, s[2:3]
    s_mov_b64 exec, s[6:7]
    s_cbranch_execz end
";

const CAMPAIGN: &str = "
name: refused
target: gfx90a
workload:
  kernel:
    code_object: kernel.co
    name: planted
    grid: 64
    workgroup: 64
    args: [{buffer: out, type: u32, count: 64, output: true}]
faults: {model: flip_one_bit, target: destination_register, count: 1}
";

/// The tools, each with an operation at which it has no hook.
const MARKED: [(&str, &str); 7] = [
    // Counted once per block, at its start.
    ("instruction-count", "s_endpgm"),
    ("opcode-histogram", "s_endpgm"),
    ("memory-trace", "ds_read_b32"),
    ("address-divergence", "global_store_dword"),
    ("branch-divergence", "s_and_saveexec_b64"),
    ("bank-conflicts", "ds_read_b32"),
    // Its table contains only waves.
    ("kernel-clock", ""),
];

fn run(kernel: &str, tool: &str, folder: &Path) -> Finished {
    std::fs::write(folder.join("kernel.co"), assemble(kernel).code_object).expect("written");
    std::fs::write(folder.join("refused.yaml"), CAMPAIGN).expect("written");
    flipwave(folder, &["tool", tool, "refused.yaml"], &[])
}

/// Rows of a table, without the header.
fn rows(table: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(table.as_bytes());
    let rows = reader.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect());
    rows.collect()
}

fn is_marked(row: &[String]) -> bool {
    row.last().is_some_and(|cell| cell == "not counted")
}

/// Returns `true` if a row contains an instruction of an operation, or the operation's name.
fn names(row: &[String], operation: &str) -> bool {
    row.iter().any(|cell| cell.split(' ').next() == Some(operation))
}

#[test]
fn every_tool_marks_the_sites_without_hooks() {
    let folder = tempfile::tempdir().expect("a folder");
    for (tool, operation) in MARKED {
        let finished = run(KERNEL, tool, folder.path());
        assert_eq!(finished.code, Some(1), "{tool}: {}", finished.stderr);
        assert!(finished.stderr.contains("GPR-index mode"), "{tool}: {}", finished.stderr);
        assert!(finished.stderr.contains(" sites"), "{tool}: {}", finished.stderr);
        let rows = rows(&finished.stdout);
        let marked: Vec<_> = rows.iter().filter(|row| is_marked(row)).collect();
        assert!(
            marked.iter().any(|row| operation.is_empty() || names(row, operation)),
            "{tool}:\n{}",
            finished.stdout
        );
        // No marked site has a count, and no row has 0 executions.
        for row in rows.iter().filter(|row| !is_marked(row) && !operation.is_empty()) {
            assert!(!names(row, operation), "{tool}: {row:?}");
            assert!(row.last().is_none_or(|cell| cell != "0") || tool == "bank-conflicts");
        }
    }
}

/// Negative control: if all sites have hooks, nothing is marked.
#[test]
fn nothing_is_marked_if_all_sites_have_hooks() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = KERNEL.replace("s_setreg_b32 hwreg(HW_REG_MODE, 27, 1), s8", "s_nop 0");
    for (tool, _) in MARKED {
        let finished = run(&kernel, tool, folder.path()).expect_success();
        assert_eq!(finished.stderr, "", "{tool}");
        assert!(!finished.stdout.contains("not counted"), "{tool}:\n{}", finished.stdout);
    }
}

#[test]
fn sites_without_hooks_are_marked_in_applications() {
    let path = application("attached/refused", Compiler::Hipcc, "gfx90a");
    let path = path.to_str().expect("text");
    let folder = tempfile::tempdir().expect("a folder");
    for (tool, operation) in MARKED {
        let line = ["tool", tool, "--out", "table.csv", "--", path];
        let finished = flipwave(folder.path(), &line, &[]);
        assert_eq!(finished.code, Some(1), "{tool}: {}", finished.stderr);
        assert!(finished.stderr.contains("GPR-index mode"), "{tool}: {}", finished.stderr);
        let table = std::fs::read_to_string(folder.path().join("table.csv")).expect("the table");
        let rows = rows(&table);
        let mut marked = rows.iter().filter(|row| is_marked(row));
        assert!(
            marked.any(|row| operation.is_empty() || names(row, operation)),
            "{tool}:\n{table}"
        );
    }
}
