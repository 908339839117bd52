//! Compiler options that cannot write other files or load code.
//!
//! Some options make the compiler write other files or load code: plugins, profiles, time traces, response
//! files. This is a list of safe options, because every compiler version adds unsafe ones.

/// Safe options, matched completely. They only affect code generation or header search.
const WHOLE: [&str; 10] = [
    "-nogpulib",
    "-nogpuinc",
    "-nostdinc",
    "-ansi",
    "-pedantic",
    "-pedantic-errors",
    "-pipe",
    "-pthread",
    "-w",
    "-include",
];

/// Prefixes of options that only affect code generation or header search.
const PLAIN: [&str; 19] = [
    "-D",
    "-U",
    "-I",
    "-O",
    "-W",
    "-f",
    "-g",
    "-m",
    "-cl-",
    "-std=",
    "-isystem",
    "-iquote",
    "-idirafter",
    "--offload-arch=",
    "--rocm-path=",
    "--rocm-device-lib-path=",
    "--hip-path=",
    "--cuda-path=",
    "--gpu-",
];

/// Prefixes of unsafe options matched by [`PLAIN`]: they pass text to another program or to LLVM.
const PASSED_ON: [&str; 7] =
    ["-Wl,", "-Wa,", "-Wp,", "-mllvm", "-mmlir", "-mlink-", "-include-pch"];

/// Parts of unsafe options that start with `-f`, `-g` or `-m`: they write or load files.
const FILES: [&str; 29] = [
    "plugin",
    "profile",
    "coverage",
    "record",
    "trace",
    "module",
    "pch",
    "dump",
    "crash",
    "report",
    "stats",
    "usage",
    "lto",
    "use-ld",
    "embed",
    "file",
    "dir",
    "index",
    "path",
    "log",
    "cache",
    "session",
    "split-dwarf",
    "codegen-data",
    "save",
    "emit",
    "sections=list",
    "xray",
    "deps",
];

/// Options whose value is the next word.
const WITH_VALUE: [&str; 7] = ["-D", "-U", "-I", "-isystem", "-iquote", "-idirafter", "-include"];

/// Returns the index and text of the first option that is not known to be safe.
pub(crate) fn first_unsafe(options: &[String]) -> Option<(usize, &str)> {
    let mut is_value = false;
    options.iter().enumerate().map(|(index, option)| (index, option.as_str())).find(
        |(_, option)| {
            // Response files are expanded first, even if they are values of other options.
            let is_safe = !option.starts_with('@') && (is_value || is_plain(option));
            is_value = !is_value && WITH_VALUE.contains(option);
            !is_safe
        },
    )
}

fn is_plain(option: &str) -> bool {
    let begins = |starts: &[&str]| starts.iter().any(|start| option.starts_with(start));
    let names_files = ["-f", "-g", "-m"].iter().any(|start| option.starts_with(start))
        && !option.starts_with("-fno-")
        && FILES.iter().any(|part| option.contains(part));
    WHOLE.contains(&option) || begins(&PLAIN) && !begins(&PASSED_ON) && !names_files
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::process::Command;

    fn found<'a>(options: &[&'a str]) -> Option<(usize, &'a str)> {
        let all: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        first_unsafe(&all).map(|(index, _)| (index, options[index]))
    }

    #[test]
    fn unsafe_options_are_found_with_their_index() {
        for option in [
            "-o",
            "-oother",
            "--output=x",
            "-save-temps",
            "--save-temps=obj",
            "-MD",
            "-MF",
            "-MJ",
            "-fplugin=x.so",
            "-fpass-plugin=x.so",
            "-fplugin-arg-x-y",
            "-Xclang",
            "-load",
            "-mllvm",
            "-mllvm=-load=x.so",
            "-fprofile-generate=x",
            "-fprofile-instr-generate",
            "-fcs-profile-generate",
            "-fprofile-use=x",
            "-ftest-coverage",
            "--coverage",
            "-ftime-trace",
            "-ftime-trace=x",
            "-fsave-optimization-record",
            "-foptimization-record-file=x",
            "-fcrash-diagnostics-dir=x",
            "-fmodules-cache-path=x",
            "-gsplit-dwarf",
            "-fstack-usage",
            "-Wl,-o,x",
            "-Wa,x",
            "-Wp,-MD,x",
            "-Xlinker",
            "-B.",
            "-fuse-ld=./x",
            "--ld-path=x",
            "--config=x",
            "@x",
            "x.c",
            "-index-store-path",
            "-serialize-diagnostics",
            "-include-pch",
            "-dumpdir",
            "-cc1",
            "-###",
            "-E",
            "-S",
            "--gcc-toolchain=x",
            "-resource-dir=x",
            "-working-directory=x",
            "-ccc-install-dir",
            "",
        ] {
            assert_eq!(found(&["-O3", option]), Some((1, option)), "{option}");
        }
        assert_eq!(found(&["-I", "@x"]), Some((1, "@x")), "a response file");
        assert_eq!(found(&["-I", "-D", "x.c"]), Some((2, "x.c")), "the value was `-D`");
    }

    #[test]
    fn safe_options_are_accepted() {
        for options in [
            &["-O3", "-DA=-o", "-D", "B", "-I", "include", "-Iinclude", "-include", "a.h"][..],
            &["-cl-fast-relaxed-math", "-cl-std=CL3.0", "-std=c++20", "-Wall", "-Wno-unused", "-w"],
            &["-ffast-math", "-ffp-contract=off", "-fgpu-rdc", "-fno-gpu-rdc", "-funroll-loops"],
            &["-mwavefrontsize64", "-mno-wavefrontsize64", "-mcumode", "-munsafe-fp-atomics"],
            &["-mcpu=gfx9-4-generic", "--offload-arch=gfx90a", "--rocm-path=/opt/rocm", "-g"],
            &["-gline-tables-only", "-fno-profile-generate", "-fdenormal-fp-math=ieee", "-g3"],
        ] {
            assert_eq!(found(options), None, "{options:?}");
        }
    }

    /// Runs the installed compiler with each accepted option in an empty folder, and checks which files
    /// it writes.
    #[test]
    fn accepted_options_of_the_installed_compiler_write_no_file() {
        let clang = flipwave_hooks::hook::clang_path();
        let folder = tempfile::tempdir().expect("a folder");
        let work = folder.path().join("work");
        std::fs::create_dir(&work).expect("a folder");
        std::fs::write(folder.path().join("a.cl"), "kernel void f(global int *a) { *a = 1; }\n")
            .expect("written");
        let left = || -> BTreeSet<String> {
            let entries = std::fs::read_dir(&work).expect("a folder").flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.filter(|name| name != "a.o").collect()
        };
        let run = |option: &str| {
            let mut command = Command::new(&clang);
            command.current_dir(&work).args(["-xcl", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a"]);
            command.args(["-nogpulib", "-c", option, "-o", "a.o", "../a.cl"]);
            command.output().expect("the compiler");
            let left = left();
            left.iter().for_each(|name| drop(std::fs::remove_file(Path::new(&work).join(name))));
            left
        };
        // Positive control: these options write files.
        for option in ["-ftime-trace=x", "-save-temps", "-fstack-usage"] {
            assert!(!run(option).is_empty(), "{option}");
        }
        let help = Command::new(&clang).arg("--help-hidden").output().expect("the compiler");
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        let names = help.lines().filter_map(|line| line.split_whitespace().next());
        let risky = ["<file", "<path", "<dir", "=<value", "<pathname", "<dsopath"];
        let mut count = 0;
        for name in names.filter(|name| name.starts_with('-')) {
            let option = match risky.iter().find_map(|part| name.find(part)) {
                Some(at) => format!("{}x", name[..at].trim_end_matches('=').to_owned() + "="),
                None => name.to_owned(),
            };
            let option = option.split('<').next().unwrap_or_default().to_owned();
            let description =
                help.lines().find(|line| line.trim().starts_with(name)).unwrap_or_default();
            let may_write =
                ["file", "output", "write", "emit", "save", "generate", "record", "path"]
                    .iter()
                    .any(|word| description.to_lowercase().contains(word));
            if may_write && is_plain(&option) {
                count += 1;
                assert_eq!(run(&option), BTreeSet::new(), "{option}");
            }
        }
        assert!(count > 20, "{count} options looked at");
    }
}
