//! The archive for other machines, with LLVM linked in. `make test-dist` builds and runs it, which takes
//! long. This test finds a missing LLVM library without building the archive.

use flipwave_tests::program;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

#[test]
fn archive_links_all_llvm_symbols_that_the_program_uses() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("llvm");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/llvm.sh");
    printed(script, [&prefix]);
    // A linker script: `GROUP(FILE ...)`.
    let group = std::fs::read_to_string(prefix.join("lib/libLLVM-22.so")).expect("a script");
    let group = group.trim().strip_prefix("GROUP(").and_then(|rest| rest.strip_suffix(')'));
    let archives: Vec<&str> = group.expect("a group").split_whitespace().collect();
    let used = symbols(["--dynamic", "--undefined-only"], [program()]);
    let lacking = |archives: &[&str]| {
        let defined = symbols(["--extern-only", "--defined-only"], archives);
        used.iter().filter(|name| !defined.contains(*name)).cloned().collect::<Vec<_>>()
    };
    assert!(used.contains("LLVMInitializeX86AsmParser"), "{used:?}");
    assert_eq!(lacking(&archives), <[String; 0]>::default());
    // Negative control: one library is missing.
    let is_kept = |name: &&str| !name.ends_with("/libLLVMX86AsmParser.a");
    let incomplete: Vec<&str> = archives.iter().copied().filter(is_kept).collect();
    assert!(incomplete.len() < archives.len());
    assert_eq!(lacking(&incomplete), ["LLVMInitializeX86AsmParser"]);
}

/// LLVM's symbols in files, of the kinds selected by options of `nm`.
fn symbols<F: AsRef<OsStr>>(
    kinds: [&str; 2],
    files: impl IntoIterator<Item = F>,
) -> BTreeSet<String> {
    let options = kinds.map(OsStr::new).into_iter().chain([OsStr::new("--format=just-symbols")]);
    let files: Vec<F> = files.into_iter().collect();
    let names = printed("nm", options.chain(files.iter().map(AsRef::as_ref)));
    // C functions, and C++ names in LLVM's namespace. Symbols of shared libraries end in a version.
    let names = names.lines().map(|line| line.split('@').next().unwrap_or_default());
    names
        .filter(|name| name.starts_with("LLVM") || name.contains("4llvm"))
        .map(Into::into)
        .collect()
}

/// Runs a command, which must succeed. Returns its standard output.
fn printed<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> String {
    let output = Command::new(program).args(arguments).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
