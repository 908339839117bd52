//! Compilation of kernels to PTX with clang-22.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of the suite's kernels.
pub const SUITE: [&str; 13] = [
    "attention",
    "bfs",
    "cnn",
    "fft",
    "gaussian",
    "hotspot",
    "jacobi",
    "lavamd",
    "lud",
    "mergesort",
    "mxm",
    "nw",
    "quicksort",
];

/// Path of a kernel of the suite.
pub fn suite(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/suite/kernels");
    folder.join(name).with_extension("cl")
}

/// Path of a source file of the tests.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sources").join(name)
}

/// Compiles OpenCL C or CUDA to PTX for sm_80. Panics if the compiler fails.
pub fn compile(source: &Path, options: &[&str]) -> String {
    let mut command = Command::new("clang-22");
    let is_cuda = source.extension().is_some_and(|end| end == "cu");
    if is_cuda {
        command.args(["-x", "cuda", "-nocudainc", "-nocudalib", "--cuda-device-only"]);
        command.args(["--cuda-gpu-arch=sm_80"]);
    } else {
        command.args(["-x", "cl", "-Xclang", "-finclude-default-header", "-cl-std=CL2.0"]);
        command.args(["--target=nvptx64-nvidia-nvcl", "-march=sm_80"]);
    }
    // The version of PTX; without a CUDA toolkit, clang would choose a too old one.
    command.args(["-Xclang", "-target-feature", "-Xclang", "+ptx78", "-ffp-contract=off"]);
    command.args(options).args(["-S", "-o", "-"]).arg(source);
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started ({error}): install LLVM 22"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {messages}");
    String::from_utf8(output.stdout).expect("text")
}
