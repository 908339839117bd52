//! `flipwave inspect`, as a user runs it.

use flipwave_tests::{Finished, compile, flipwave};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A folder with the kernels of a file, compiled.
fn folder(file: &str, options: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("kernels.co"), compile(file, options)).expect("written");
    folder
}

fn inspect(folder: &Path, arguments: &[&str]) -> Finished {
    flipwave(folder, &[&["inspect", "kernels.co"], arguments].concat(), &[])
}

#[track_caller]
fn assert_refused(finished: &Finished, words: &[&str]) {
    let Finished { code, stdout, stderr } = finished;
    assert_eq!((*code, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "not one line:\n{stderr}");
    for word in words {
        assert!(stderr.contains(word), "`{word}` is not in the message:\n{stderr}");
    }
}

/// Instructions of a kernel, as LLVM's disassembler prints them.
fn disassembled(object: &Path, kernel: &str) -> Vec<String> {
    let output = Command::new("llvm-objdump-19")
        .args(["-d", "--no-show-raw-insn", &format!("--disassemble-symbols={kernel}")])
        .arg(object)
        .output()
        .expect("llvm-objdump-19 (Debian's package llvm-19) is needed by this test");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let insts = text.lines().filter(|line| line.starts_with('\t'));
    insts
        .map(|line| line.split("//").next().unwrap_or(line).split('<').next().unwrap_or(line))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// Branches are printed by their distance here and, behind it, by their label there.
#[test]
fn the_code_is_what_llvm_s_disassembler_prints() {
    let folder = folder("control.cl", &["-O3"]);
    let printed = inspect(folder.path(), &["--kernel", "collatz", "--cfg"]).expect_success().stdout;
    let code = printed.split("\ncollatz:\n").nth(1).expect("the kernel's code");
    let code = code.split("\n\n").next().unwrap_or(code);
    let printed: Vec<String> = code
        .lines()
        .filter_map(|line| line.trim().strip_prefix("0x"))
        .map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
        .collect();
    assert!(printed.len() > 20);
    // Branches name their targets in ways of their own.
    let operation = |line: &String| match line.contains("branch") {
        true => line.split(' ').next().unwrap_or_default().to_owned(),
        false => line.clone(),
    };
    let mut other = disassembled(&folder.path().join("kernels.co"), "collatz");
    // Behind the end there is padding.
    assert!(other.drain(printed.len().min(other.len())..).all(|line| line.starts_with("s_nop")));
    let plain = |lines: &[String]| lines.iter().map(operation).collect::<Vec<_>>();
    assert_eq!(plain(&printed), plain(&other));
}

#[test]
fn kernels_functions_and_calls_are_listed() {
    let folder = folder("pressure.hip", &["-O3"]);
    let printed = inspect(folder.path(), &[]).expect_success().stdout;
    for words in
        ["kernel vectors", "kernel scalars", "kernel through_pointers", "may be called by pointer"]
    {
        assert!(printed.contains(words), "`{words}` is missing:\n{printed}");
    }
    let one = inspect(folder.path(), &["--kernel", "vectors"]).expect_success().stdout;
    assert!(one.contains("kernel vectors") && !one.contains("scalars"), "{one}");
}

#[test]
fn registers_and_lines_stand_beside_the_instructions() {
    let folder = folder("control.cl", &["-O3"]);
    let arguments = ["--kernel", "factors", "--registers", "--lines"];
    let printed = inspect(folder.path(), &arguments).expect_success().stdout;
    for words in ["globally free", "locally free, median", "persistent", "; ./control.cl:"] {
        assert!(printed.contains(words), "`{words}` is missing:\n{printed}");
    }
}

#[test]
fn json_says_the_same() {
    let folder = folder("control.cl", &["-O3"]);
    let arguments = ["--kernel", "factors", "--cfg", "--registers", "--lines", "--json"];
    let json = inspect(folder.path(), &arguments).expect_success().stdout;
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let function = &value["functions"][0];
    assert_eq!(function["name"], "factors");
    let blocks = function["code"].as_array().expect("blocks");
    assert_eq!(function["blocks"].as_u64(), Some(blocks.len() as u64));
    let insts: Vec<&serde_json::Value> = blocks
        .iter()
        .flat_map(|block| block["instructions"].as_array().expect("instructions"))
        .collect();
    assert_eq!(function["instructions"].as_u64(), Some(insts.len() as u64));
    // The kernarg pointer is read by the first load, and so live from the beginning.
    let live = insts[0]["live"]["active"].as_str().expect("what is live");
    assert!(live.contains("s["), "{live}");
    assert!(insts.iter().any(|inst| inst["memory"]["space"] == "global"));
    assert!(insts.iter().any(|inst| inst["line"].is_string()));
    let free = &value["kernels"][0]["registers"]["maximal"]["allocated"];
    assert_eq!((free["vgprs"].as_u64(), free["acc_vgprs"].as_u64()), (Some(256), Some(256)));
}

#[test]
fn bad_requests_are_refused_with_one_clear_error() {
    let folder = folder("control.cl", &["-O3"]);
    let path = folder.path();
    let missing = flipwave(path, &["inspect", "missing.co"], &[]);
    assert_refused(&missing, &["missing.co", "No such file"]);
    let unknown = inspect(path, &["--kernel", "collats"]);
    assert_refused(&unknown, &["kernels.co", "no kernel `collats`", "collatz"]);
    let target = inspect(path, &["--target", "gfx1100"]);
    assert_refused(&target, &["kernels.co", "gfx1100", "gfx90a"]);
    std::fs::write(path.join("text.co"), "no code object").expect("written");
    assert_refused(&flipwave(path, &["inspect", "text.co"], &[]), &["text.co", "not an AMDGPU"]);
    let bytes = std::fs::read(path.join("kernels.co")).expect("the code object");
    for length in (0..bytes.len()).step_by(977) {
        std::fs::write(path.join("cut.co"), &bytes[..length]).expect("written");
        assert_refused(&flipwave(path, &["inspect", "cut.co", "--cfg"], &[]), &["cut.co"]);
    }
}
