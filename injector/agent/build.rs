//! Assigns a symbol version to the exported functions, which distinguishes them from functions of the
//! application. The linker must accept a second version script in addition to rustc's; GNU ld does not.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=exported.map");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("exported.map");
    let llvm = "/usr/lib/llvm-22/bin";
    for argument in [
        "-fuse-ld=lld".to_owned(),
        format!("-B{llvm}"),
        format!("-Wl,--version-script={}", script.display()),
    ] {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}
