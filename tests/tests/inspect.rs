//! `flipwave inspect`.

use flipwave_tests::{Finished, compile, flipwave};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A folder with the compiled kernels of a file.
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
    finished.expect_refused(words);
    assert_eq!(finished.stdout, "", "{finished:?}");
    assert_eq!(finished.stderr.lines().count(), 1, "not one line:\n{}", finished.stderr);
}

/// An instruction as LLVM's disassembler prints it.
struct Disassembled {
    text: String,
    pc: u64,
    /// Target of a branch, as an offset in bytes in the kernel.
    target: Option<u64>,
}

/// Instructions of a kernel.
fn disassembled(object: &Path, kernel: &str) -> Vec<Disassembled> {
    let output = Command::new("llvm-objdump-22")
        .args(["-d", &format!("--disassemble-symbols={kernel}")])
        .arg(object)
        .output()
        .expect("llvm-objdump-22 (Debian's package llvm-22) is needed by this test");
    let hex = |digits: &str| u64::from_str_radix(digits, 16).expect("a hexadecimal number");
    let inst = |line: &str| {
        let (text, comment) = line.split_once("//").expect("a comment with the address");
        let (pc, rest) = comment.trim().split_once(':').expect("an address");
        let target = rest.split_once(&format!("<{kernel}+0x"));
        Disassembled {
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            pc: hex(pc),
            target: target.map(|(_, target)| hex(target.trim_end().trim_end_matches('>'))),
        }
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter(|line| line.starts_with('\t')).map(inst).collect()
}

#[test]
fn disassembly_agrees_with_llvm() {
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
    let expected = disassembled(&folder.path().join("kernels.co"), "collatz");
    let mut expected: Vec<String> = expected.into_iter().map(|inst| inst.text).collect();
    // Padding follows the end of the kernel.
    let mut padding = expected.drain(printed.len().min(expected.len())..);
    assert!(padding.all(|line| line.starts_with("s_nop")));
    drop(padding);
    assert_eq!(printed, expected);
}

#[test]
fn control_flow_edges_agree_with_llvm() {
    let folder = folder("control.cl", &["-O3"]);
    let json = inspect(folder.path(), &["--kernel", "collatz", "--cfg", "--json"]);
    let value: serde_json::Value =
        serde_json::from_str(&json.expect_success().stdout).expect("JSON");
    let blocks = value["functions"][0]["code"].as_array().expect("blocks");
    let pc = |inst: &serde_json::Value| {
        let digits = inst["pc"].as_str().and_then(|pc| pc.strip_prefix("0x")).expect("an address");
        u64::from_str_radix(digits, 16).expect("an address")
    };
    let first = |block: &serde_json::Value| pc(&block["instructions"][0]);
    let mut taken = Vec::new();
    for block in blocks {
        let insts = block["instructions"].as_array().expect("instructions");
        for edge in block["successors"].as_array().expect("successors") {
            if edge["kind"] == "taken" {
                let to = edge["to"].as_u64().expect("a block") as usize;
                taken.push((pc(insts.last().expect("an instruction")), first(&blocks[to])));
            }
        }
    }
    let all = disassembled(&folder.path().join("kernels.co"), "collatz");
    let start = all[0].pc;
    let branches = all.iter().filter_map(|inst| Some((inst.pc, start + inst.target?)));
    let branches: Vec<(u64, u64)> = branches.collect();
    assert!(branches.len() > 3);
    assert_eq!(taken, branches);
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
fn instructions_have_registers_and_lines() {
    let folder = folder("control.cl", &["-O3"]);
    let arguments = ["--kernel", "factors", "--registers", "--lines"];
    let printed = inspect(folder.path(), &arguments).expect_success().stdout;
    for words in ["globally free", "locally free, median", "persistent", "; ./control.cl:"] {
        assert!(printed.contains(words), "`{words}` is missing:\n{printed}");
    }
}

#[test]
fn json_contains_the_same_facts() {
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
    // The first load reads the kernarg pointer, so it is live at the entry.
    let live = insts[0]["live"]["active"].as_str().expect("what is live");
    assert!(live.contains("s["), "{live}");
    assert!(insts.iter().any(|inst| inst["memory"]["space"] == "global"));
    assert!(insts.iter().any(|inst| inst["line"].is_string()));
    let free = &value["kernels"][0]["registers"]["maximal"]["allocated"];
    assert_eq!((free["vgprs"].as_u64(), free["acc_vgprs"].as_u64()), (Some(256), Some(256)));
}

#[test]
fn invalid_requests_are_refused_with_one_error() {
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

/// A host file with two code objects as data: an error lists their positions, and `--at` reads them.
#[test]
fn code_object_in_the_data_of_a_file_is_read_at_its_position() {
    let folder = folder("control.cl", &["-O3"]);
    let path = folder.path();
    let object = std::fs::read(path.join("kernels.co")).expect("the code object");
    // The headers of a host program without sections.
    let mut host = std::fs::read(flipwave_tests::program()).expect("the program")[..0x40].to_vec();
    host[0x28..0x40].fill(0);
    let positions = [0x1000, 0x1000 + object.len() + 0x10];
    for position in positions {
        host.resize(position, 0);
        host.extend_from_slice(&object);
    }
    std::fs::write(path.join("library.so"), host).expect("written");
    let run =
        |arguments: &[&str]| flipwave(path, &[&["inspect", "library.so"], arguments].concat(), &[]);
    let [first, second] = positions.map(|position| format!("at byte {position:#x}"));
    assert_refused(&run(&[]), &["library.so", &first, &second, "--at BYTE"]);
    let expected = inspect(path, &[]).expect_success().stdout;
    for position in positions.map(|position| format!("{position:#x}")) {
        assert_eq!(run(&["--at", &position]).expect_success().stdout, expected);
    }
    assert_refused(&run(&["--at", "0x1001"]), &["not an AMDGPU code object"]);
    assert_refused(&run(&["--at", "0xffffffff"]), &["outside the file"]);
    std::fs::write(path.join("code.bc"), b"BC\xc0\xde5\x14").expect("written");
    let bitcode = flipwave(path, &["inspect", "code.bc"], &[]);
    assert_refused(&bitcode, &["code.bc", "LLVM bitcode"]);
}
