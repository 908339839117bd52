//! Gives what AMD's runtime and the preloaded library look for in this one a symbol version, by which
//! it is not the application's. The linker has to accept a version script beside the compiler's own,
//! which GNU ld does not.

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
