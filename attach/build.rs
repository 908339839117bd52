//! Links the library as libhsakmt.so.1 with the symbol version that AMD's runtime asks for. The
//! linker has to accept a version script beside the compiler's own, which GNU ld does not.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=libhsakmt.map");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("libhsakmt.map");
    let llvm = "/usr/lib/llvm-22/bin";
    for argument in [
        "-fuse-ld=lld".to_owned(),
        format!("-B{llvm}"),
        "-Wl,-soname,libhsakmt.so.1".to_owned(),
        format!("-Wl,--version-script={}", script.display()),
    ] {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}
