//! Compiles the C++ shim over LLVM's MC layer with the flags of the LLVM that llvm-sys links.

use std::env;
use std::process::{Command, exit};

fn main() {
    println!("cargo:rerun-if-changed=shim/mc.cpp");
    println!("cargo:rerun-if-changed=shim/mc.h");

    let Some(llvm_config) = env::var_os("DEP_LLVM_22_CONFIG_PATH") else {
        fail("llvm-sys found no LLVM 22; install llvm-22-dev or set LLVM_SYS_221_PREFIX");
    };
    let output = match Command::new(&llvm_config).arg("--includedir").output() {
        Ok(output) if output.status.success() => output.stdout,
        _ => fail(&format!("{} --includedir failed", llvm_config.display())),
    };
    let include = String::from_utf8_lossy(&output);
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("shim/mc.cpp")
        .include("shim")
        // Suppress warnings in LLVM's headers.
        .flag(format!("-isystem{}", include.trim()))
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        // Decoding must be fast in debug builds too.
        .opt_level(2)
        .compile("flipwave_mc");
}

fn fail(reason: &str) -> ! {
    println!("cargo:warning={reason}");
    exit(1)
}
