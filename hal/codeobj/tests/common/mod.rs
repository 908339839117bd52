//! Compiles test kernels with clang-19 and runs LLVM's own readers on them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory of its own for the files of one test.
pub fn workspace() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A source file of the tests.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sources").join(name)
}

/// Runs a program and gives its standard output; the test fails if the program does.
pub fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started ({error}): install LLVM 19"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// A program of LLVM 19, by its name without version.
pub fn llvm(program: &str) -> Command {
    Command::new(format!("{program}-19"))
}

/// Compiles OpenCL or assembles to a linked code object.
pub fn compile(source: &Path, processor: &str, options: &[&str], output: &Path) -> Vec<u8> {
    let mut clang = llvm("clang");
    clang.args(["-target", "amdgcn-amd-amdhsa", &format!("-mcpu={processor}"), "-nogpulib"]);
    if source.extension().is_some_and(|extension| extension == "cl") {
        clang.args(["-x", "cl", "-Xclang", "-finclude-default-header", "-cl-std=CL2.0", "-O2"]);
    } else {
        clang.args(["-x", "assembler"]);
    }
    run(clang.args(options).arg(source).arg("-o").arg(output));
    std::fs::read(output).expect("clang's output")
}
