//! `flipwave tool`.

use flipwave_tests::{compile_file, examples_folder, flipwave};

fn tool(arguments: &[&str]) -> flipwave_tests::Finished {
    let line: Vec<&str> = ["tool"].into_iter().chain(arguments.iter().copied()).collect();
    flipwave(&examples_folder(), &line, &[])
}

#[test]
fn every_tool_prints_a_table_with_its_columns() {
    let place = "dispatch,kernel,function,pc,instruction,";
    let wave = "workgroup_x,workgroup_y,workgroup_z,wave,";
    for (name, columns) in [
        ("instruction-count", format!("{place}executions")),
        ("opcode-histogram", "dispatch,kernel,operation,executions".to_owned()),
        ("memory-trace", format!("{place}{wave}lane,address,bytes")),
        ("address-divergence", format!("{place}accesses,lines_64,lines_128")),
        ("branch-divergence", format!("{place}executions,divergent")),
        ("bank-conflicts", format!("{place}accesses,conflicts")),
        (
            "kernel-clock",
            format!(
                "dispatch,kernel,{wave}cycles,ticks,begin_cycles,end_cycles,begin_ticks,end_ticks"
            ),
        ),
    ] {
        let finished = tool(&[name, "reduction.yaml"]).expect_success();
        let mut lines = finished.stdout.lines();
        assert_eq!(lines.next(), Some(columns.as_str()), "{name}");
        assert!(lines.next().is_some(), "{name} has rows");
        assert_eq!(finished.stderr, "", "{name}");
    }
}

#[test]
fn lost_records_are_reported() {
    let finished = tool(&["memory-trace", "vector_add.yaml", "--records", "10"]).expect_success();
    assert_eq!(finished.stdout.lines().count(), 11);
    assert!(
        finished.stderr.contains("records lost because the buffer was full"),
        "{}",
        finished.stderr
    );
}

#[test]
fn hooks_in_trampolines_count_the_same() {
    for name in ["instruction-count", "branch-divergence"] {
        let line = [name, "reduction.yaml", "--per", "instruction"];
        let inline = tool(&line).expect_success();
        let trampolines = tool(&[&line[..], &["--placement", "trampoline"]].concat());
        let trampolines = trampolines.expect_success();
        assert_eq!(trampolines.stderr, "", "{name}: not all was counted");
        assert_eq!(trampolines.stdout, inline.stdout, "{name}");
    }
}

#[test]
fn invalid_code_object_is_refused_with_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let example = std::fs::read_to_string(examples_folder().join("vector_add.yaml"));
    let text = example.expect("the example");
    let text = text.replace("source: kernels/vector_add.cl", "code_object: add.co");
    std::fs::write(folder.path().join("add.yaml"), text).expect("the campaign written");
    let compiled = compile_file(&examples_folder().join("kernels/vector_add.cl"), &["-O3"]);
    let run = |bytes: &[u8]| {
        std::fs::write(folder.path().join("add.co"), bytes).expect("the code object written");
        flipwave(folder.path(), &["tool", "opcode-histogram", "add.yaml"], &[])
    };
    run(&compiled).expect_success();
    for length in (0..compiled.len()).step_by(compiled.len() / 8) {
        let finished = run(&compiled[..length]);
        finished.expect_refused(&["add.co"]);
        assert_eq!(finished.stdout, "", "{length} bytes");
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    }
}

#[test]
fn a_kernel_that_is_not_dispatched_is_an_error() {
    let finished = tool(&["instruction-count", "vector_add.yaml", "--kernel", "matmul"]);
    finished.expect_refused(&["`matmul` was not dispatched", "vector_add"]);
}

#[test]
fn table_can_be_written_to_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("table.csv");
    let arguments = ["opcode-histogram", "vector_add.yaml", "--out", file.to_str().expect("text")];
    assert_eq!(tool(&arguments).expect_success().stdout, "");
    assert!(std::fs::read_to_string(file).expect("the table").contains("s_endpgm"));
    let nowhere = folder.path().join("no/table.csv");
    let arguments =
        ["opcode-histogram", "vector_add.yaml", "--out", nowhere.to_str().expect("text")];
    let finished = tool(&arguments);
    finished.expect_refused(&["cannot write the table"]);
}
