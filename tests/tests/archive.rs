//! The archive for other machines, whose program has LLVM in it. `make test-dist` makes and runs it; that takes
//! long, and what is most easily forgotten is seen without.

use flipwave_tests::program;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

#[test]
fn all_that_the_program_uses_of_llvm_is_in_what_the_archive_is_linked_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("llvm");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/llvm.sh");
    printed(script, [&prefix]);
    // The text of a linker's script: `GROUP(FILE ...)`.
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
    // One part less would be noticed.
    let others = |name: &&str| !name.ends_with("/libLLVMX86AsmParser.a");
    let others: Vec<&str> = archives.iter().copied().filter(others).collect();
    assert!(others.len() < archives.len());
    assert_eq!(lacking(&others), ["LLVMInitializeX86AsmParser"]);
}

/// LLVM's names among the symbols of files, of those that `nm` is asked for.
fn symbols<F: AsRef<OsStr>>(
    kinds: [&str; 2],
    files: impl IntoIterator<Item = F>,
) -> BTreeSet<String> {
    let options = kinds.map(OsStr::new).into_iter().chain([OsStr::new("--format=just-symbols")]);
    let files: Vec<F> = files.into_iter().collect();
    let names = printed("nm", options.chain(files.iter().map(AsRef::as_ref)));
    // Of C, and of C++ in its namespace. Those of a shared library have its version after them.
    let names = names.lines().map(|line| line.split('@').next().unwrap_or_default());
    names
        .filter(|name| name.starts_with("LLVM") || name.contains("4llvm"))
        .map(Into::into)
        .collect()
}

/// What a command prints that succeeds.
fn printed<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> String {
    let output = Command::new(program).args(arguments).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
