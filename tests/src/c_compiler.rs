//! C programs compiled for the device and for the host by the same compiler.

use crate::Machine;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options that make the results of device and host equal: integers wrap, objects may alias, and every
/// floating-point operation is rounded separately, in half precision too.
const LANGUAGE: [&str; 8] = [
    "-w",
    "-std=gnu17",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-Xclang",
    "-ffloat16-excess-precision=none",
];

/// Folder of headers for these sources.
fn headers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

/// Output format of the compiler for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A code object.
    CodeObject,
    /// Assembly text.
    Assembly,
}

/// Compiles C for the device, without libraries.
pub fn device_c(machine: Machine, source: &Path, options: &[&str], form: Form) -> Vec<u8> {
    let mut command = clang(source, options);
    command.args(["--target=amdgcn-amd-amdhsa", "-nogpulib", "-ffreestanding"]);
    command.arg(format!("-mcpu={}", machine.target())).args(machine.options());
    finish(command, form, source)
}

/// Compiles C to PTX for sm_80, without libraries.
pub fn device_ptx(source: &Path, options: &[&str]) -> String {
    let mut command = clang(source, options);
    command.args(["--target=nvptx64-nvidia-cuda", "-march=sm_80", "-nogpulib", "-ffreestanding"]);
    // Without a CUDA toolkit, clang would choose a version of PTX that is too old.
    command.args(["-Xclang", "-target-feature", "-Xclang", "+ptx78"]);
    let text = finish(command, Form::Assembly, source);
    String::from_utf8(text).expect("a text")
}

/// Assembles text in the format of [`Form::Assembly`] to a code object.
pub fn assemble_text(machine: Machine, text: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("text.s");
    std::fs::write(&source, text).expect("the text written");
    let mut command = Command::new("clang-22");
    command.args(["-xassembler", "--target=amdgcn-amd-amdhsa"]);
    command.arg(format!("-mcpu={}", machine.target())).args(machine.options()).arg(&source);
    finish(command, Form::CodeObject, &source)
}

/// Runs a compiler `command` that lacks only the output option. Returns the output.
fn finish(mut command: Command, form: Form, source: &Path) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("output");
    if form == Form::Assembly {
        command.arg("-S");
    }
    run(command.arg("-o").arg(&output), source);
    std::fs::read(output).expect("the output of clang")
}

/// Compiles C for the host to the file `program`. `options` come last and may contain libraries.
pub fn host_c(source: &Path, options: &[&str], program: &Path) {
    run(clang(source, options).arg("-o").arg(program), source);
}

fn clang(source: &Path, options: &[&str]) -> Command {
    let mut command = Command::new("clang-22");
    command.args(LANGUAGE).arg("-I").arg(headers()).arg(source).args(options);
    command
}

fn run(command: &mut Command, source: &Path) {
    let output = command
        .output()
        .expect("clang-22 (Debian's packages clang-22 and lld-22) is needed by these tests");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} does not compile:\n{messages}", source.display());
}
