//! Compiles and runs programs as users have them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Folder of the programs.
pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// Runs a compiler.
#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().expect("Debian's package clang-22 is needed by these tests");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles kernels to PTX.
#[track_caller]
pub fn ptx(source: &Path, folder: &Path, target: &str) -> PathBuf {
    let file = folder.join(source.file_name().expect("a name")).with_extension("ptx");
    let mut command = Command::new("clang++-22");
    command.args(["-xcuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "-O2", "-S"]);
    command.args(["-Wno-unknown-cuda-version", "-Xclang", "-target-feature", "-Xclang", "+ptx78"]);
    // The calls for launches are those of CUDA 9.2 and later.
    command.args(["-Xclang", "-target-sdk-version=12.0"]);
    command.arg(format!("--cuda-gpu-arch={target}")).arg(source).arg("-o").arg(&file);
    run(&mut command);
    file
}

/// A folder in which the dynamic loader finds the library under the names of NVIDIA's.
pub fn libraries(folder: &Path) {
    let test = std::env::current_exe().expect("a path");
    let library = test.with_file_name("libflipwave_cuda.so");
    for name in flipwave_cuda::LIBRARY_NAMES {
        let _ = std::os::unix::fs::symlink(&library, folder.join(name));
    }
}

/// Compiles a program in C and links it with the driver or the runtime.
#[track_caller]
pub fn program(source: &str, folder: &Path, library: &str) -> PathBuf {
    libraries(folder);
    let file = folder.join(source).with_extension("exe");
    let mut command = Command::new("clang-22");
    command.args(["-O1", "-Wall", "-Werror", "-pthread", "-o"]).arg(&file);
    command.arg(programs().join(source)).arg("-L").arg(folder).arg(format!("-l{library}"));
    run(&mut command);
    file
}

/// A fat binary with code of a kind: 1 for PTX, 2 for machine code.
fn fat_binary(kind: u16, architecture: u32, content: &[u8]) -> Vec<u8> {
    let padded = content.len().next_multiple_of(8);
    let mut entry = vec![0; 64 + padded];
    entry[..2].copy_from_slice(&kind.to_le_bytes());
    entry[4..8].copy_from_slice(&64u32.to_le_bytes());
    entry[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
    entry[28..32].copy_from_slice(&architecture.to_le_bytes());
    entry[64..64 + content.len()].copy_from_slice(content);
    let mut bytes = 0xba55_ed50u32.to_le_bytes().to_vec();
    bytes.extend([1, 0, 16, 0]);
    bytes.extend((entry.len() as u64).to_le_bytes());
    bytes.extend(entry);
    bytes
}

/// Compiles a program in CUDA C++, with its kernels as `kind` in a fat binary, and links it with the runtime.
#[track_caller]
pub fn cuda_program(source: &str, folder: &Path, kind: u16) -> PathBuf {
    libraries(folder);
    let source = programs().join(source);
    let text = std::fs::read(ptx(&source, folder, "sm_80")).expect("PTX");
    let fat = folder.join("kernels.fatbin");
    std::fs::write(&fat, fat_binary(kind, 80, &text)).expect("written");
    let file = folder.join("program.exe");
    let mut command = Command::new("clang++-22");
    command.args(["-xcuda", "--cuda-host-only", "-nocudainc", "-nocudalib", "-O1"]);
    command.args(["-Wno-unknown-cuda-version", "--cuda-gpu-arch=sm_80"]);
    // The calls for launches are those of CUDA 9.2 and later.
    command.args([
        "-Xclang",
        "-target-sdk-version=12.0",
        "-Xclang",
        "-fcuda-include-gpubinary",
        "-Xclang",
    ]);
    command.arg(&fat).arg(&source).arg("-o").arg(&file).arg("-L").arg(folder).arg("-lcudart");
    run(&mut command);
    file
}

/// Runs a program with the library.
pub fn output(program: &Path, folder: &Path, arguments: &[&str]) -> Output {
    // A program that hangs is killed.
    let mut command = Command::new("timeout");
    command
        .arg("60")
        .arg(program)
        .args(arguments)
        .env("LD_LIBRARY_PATH", folder)
        .current_dir(folder);
    command.output().expect("started")
}
