//! Compilation of test kernels with clang-22, and wrappers of LLVM's readers.

pub mod change;

use flipwave_codeobj::{CodeObject, SourceLine};
use serde_json::Value;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A processor of each register allocation and encoding family, with a code object version.
pub const TARGETS: [(&str, u8); 6] =
    [("gfx906", 4), ("gfx90a", 5), ("gfx942", 5), ("gfx1030", 6), ("gfx1100", 5), ("gfx1201", 5)];

/// Path of a source file of the tests.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sources").join(name)
}

/// Runs a program and returns its standard output. Panics if the program fails.
pub fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started ({error}): install LLVM 22"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// A program of LLVM 22, by its unversioned name.
pub fn llvm(program: &str) -> Command {
    Command::new(format!("{program}-22"))
}

/// A linked code object and its temporary directory.
pub struct Compiled {
    directory: tempfile::TempDir,
    /// Contents of the file.
    pub bytes: Vec<u8>,
}

impl Compiled {
    /// Path of the file.
    pub fn path(&self) -> PathBuf {
        self.sibling("kernels.co")
    }

    /// Path of another file in the directory.
    pub fn sibling(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// Writes a changed code object to the directory of the original.
pub fn write(compiled: &Compiled, object: &CodeObject) -> PathBuf {
    let path = compiled.sibling("changed.co");
    std::fs::write(&path, object.bytes()).expect("the changed code object");
    path
}

/// Compiles an OpenCL source file of the tests, or assembles an assembly file.
pub fn compile(name: &str, processor: &str, options: &[&str]) -> Compiled {
    let directory = tempfile::tempdir().expect("a temporary directory");
    build(directory, &source(name), processor, options)
}

/// Assembles a string.
pub fn assemble(text: &str, processor: &str) -> Compiled {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("kernels.s");
    std::fs::write(&source, text).expect("the source");
    build(directory, &source, processor, &[])
}

fn build(
    directory: tempfile::TempDir,
    source: &Path,
    processor: &str,
    options: &[&str],
) -> Compiled {
    let mut clang = llvm("clang");
    clang.args(["-target", "amdgcn-amd-amdhsa", &format!("-mcpu={processor}")]);
    if source.extension().is_some_and(|extension| extension == "cl") {
        clang.args(["-x", "cl", "-Xclang", "-finclude-default-header", "-cl-std=CL2.0", "-O2"]);
        clang.args(["-nogpulib", "-cl-kernel-arg-info"]);
    } else {
        clang.args(["-x", "assembler"]);
    }
    let output = directory.path().join("kernels.co");
    run(clang.args(options).arg(source).arg("-o").arg(&output));
    let bytes = std::fs::read(output).expect("clang's output");
    Compiled { directory, bytes }
}

/// Source lines of addresses according to llvm-symbolizer.
pub fn symbolize(path: &Path, addresses: &[u64]) -> Vec<Option<SourceLine>> {
    let mut list = tempfile::tempfile().expect("a temporary file");
    for address in addresses {
        writeln!(list, "{address:#x}").expect("an address");
    }
    list.rewind().expect("the list");
    let output = run(llvm("llvm-symbolizer")
        .arg("--obj")
        .arg(path)
        .args(["--output-style=JSON", "--no-inlines"])
        .stdin(list));
    let answers: Vec<Value> =
        output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), addresses.len());
    answers
        .iter()
        .map(|answer| {
            let symbol = &answer["Symbol"][0];
            let file = symbol["FileName"].as_str().filter(|file| !file.is_empty())?;
            let number = |key: &str| symbol[key].as_u64().expect("a number") as u32;
            Some(SourceLine { file: file.into(), line: number("Line"), column: number("Column") })
        })
        .collect()
}

/// Runs a tool and returns its standard output. Panics if the tool fails or prints a warning.
pub fn run_without_warnings(command: &mut Command) -> String {
    let output = command.output().expect("the tool starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && errors.is_empty(), "{command:?}: {errors}\n{text}");
    assert!(!text.contains("warning:"), "{text}");
    text
}
