//! Running clang.

use super::HookError;
use flipwave_host::child::ChildError;
use flipwave_isa::Target;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// What all sources of hooks are compiled with.
const OPTIONS: [&str; 18] = [
    "--target=amdgcn-amd-amdhsa",
    "-std=gnu17",
    "-O2",
    "-ffreestanding",
    "-nogpulib",
    // Values are passed by their bits.
    "-fno-strict-aliasing",
    // Operations across lanes stay where the source has them.
    "-fconvergent-functions",
    // A symbol is data of the source or unknown; nothing is replaced when the object is linked.
    "-fvisibility=hidden",
    "-ffunction-sections",
    // No constant that tells the ABI's version.
    "-Xclang",
    "-mcode-object-version=none",
    "-mllvm",
    // What a hook counts is counted by its own instructions.
    "-amdgpu-atomic-optimizer-strategy=None",
    "-mllvm",
    // Halves of dual instructions restrict each other's registers.
    "-amdgpu-enable-vopd=0",
    "-Wno-unused-command-line-argument",
    "-fno-color-diagnostics",
    "-fno-caret-diagnostics",
];

/// The versions of clang that do: what `flipwave.h` uses came with the first (scoped atomics), and the last is
/// that of the LLVM in this program.
const MAJORS: RangeInclusive<u32> = 18..=22;

/// The compiler, which also links: `FLIPWAVE_CLANG`, or the first in PATH of `clang-22`, older ones down
/// to `clang-18`, and `clang`. `clang-22` where there is none of them.
pub fn clang_path() -> PathBuf {
    if let Some(own) = std::env::var_os("FLIPWAVE_CLANG") {
        return own.into();
    }
    chosen(&std::env::var_os("PATH").unwrap_or_default())
}

/// The compiler of the folders in `path`.
fn chosen(path: &OsStr) -> PathBuf {
    let numbered = MAJORS.rev().map(|version| format!("clang-{version}"));
    let mut names = numbered.chain(["clang".to_owned()]);
    let present = |name: &String| std::env::split_paths(path).any(|own| own.join(name).is_file());
    let name = names.find(present).unwrap_or_else(|| format!("clang-{}", MAJORS.end()));
    name.into()
}

/// The first number of a compiler's version, as in `Debian clang version 22.1.8 (1~deb12u1)`.
pub fn clang_major(version: &str) -> Option<u32> {
    let (_, number) = version.split_once("clang version ")?;
    number.split('.').next()?.parse().ok()
}

/// The compiler's own words for its version. It is asked once in the life of a process.
///
/// # Errors
/// If it does not run, or is too old.
pub fn clang_version(program: &Path) -> Result<String, ChildError> {
    static VERSIONS: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());
    let mut versions = VERSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(version) = versions.get(program) {
        return Ok(version.clone());
    }
    let output = flipwave_host::child::run(Command::new(program).arg("--version"), b"")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().unwrap_or_default().to_owned();
    if clang_major(&version).is_some_and(|major| major < *MAJORS.start()) {
        let oldest = MAJORS.start();
        return Err(io::Error::other(format!(
            "it is {version}, and {oldest} is the oldest that does"
        ))
        .into());
    }
    versions.insert(program.to_owned(), version.clone());
    Ok(version)
}

/// The compiler.
#[derive(Clone, Debug)]
pub(super) struct Clang {
    program: PathBuf,
    /// Its own words for its version.
    pub version: String,
}

impl Clang {
    /// That of [`clang_path`].
    pub fn find() -> Result<Clang, HookError> {
        Clang::at(clang_path())
    }

    /// The compiler at this path.
    pub fn at(program: PathBuf) -> Result<Clang, HookError> {
        match clang_version(&program) {
            Ok(version) => Ok(Clang { program, version }),
            Err(error) => Err(failed(&program, error)),
        }
    }

    /// The options of every run for a target.
    pub fn options(target: &Target, wave_size: u8) -> Vec<OsString> {
        let mut options: Vec<OsString> = OPTIONS.iter().map(OsString::from).collect();
        options.push(format!("-mcpu={target}").into());
        if target.wave_sizes().len() > 1 {
            let wide = if wave_size == 64 { "" } else { "no-" };
            options.push(format!("-m{wide}wavefrontsize64").into());
        }
        options.push(format!("-DFLIPWAVE_LANES={wave_size}").into());
        options
    }

    /// What the compiler writes to its standard output for `text` on its standard input.
    ///
    /// # Errors
    /// [`HookError::Clang`]; where the compiler refuses, what it says.
    pub fn run(
        &self,
        options: &[OsString],
        text: &str,
    ) -> Result<Result<Vec<u8>, String>, HookError> {
        let mut command = Command::new(&self.program);
        command.args(options).args(["-o", "-", "-"]);
        let Output { status, stdout, stderr } =
            flipwave_host::child::run(&mut command, text.as_bytes())
                .map_err(|error| failed(&self.program, error))?;
        if status.success() {
            return Ok(Ok(stdout));
        }
        Ok(Err(String::from_utf8_lossy(&stderr).trim_end().to_owned()))
    }
}

fn failed(clang: &Path, error: ChildError) -> HookError {
    match error {
        ChildError::Run(reason) => HookError::Clang { clang: clang.to_owned(), reason },
        ChildError::Interrupted => HookError::Interrupted { clang: clang.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_compiler_of_the_programs_own_version_comes_before_others_wherever_in_path_it_is() {
        let folders =
            [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
        let path =
            std::env::join_paths(folders.iter().map(tempfile::TempDir::path)).expect("paths");
        let chosen = || chosen(&path).display().to_string();
        let add = |folder: usize, name: &str| {
            std::fs::write(folders[folder].path().join(name), "").expect("written");
        };
        // What is to be installed, where there is none.
        assert_eq!(chosen(), "clang-22");
        add(0, "clang-17");
        assert_eq!(chosen(), "clang-22");
        add(0, "clang");
        assert_eq!(chosen(), "clang");
        add(0, "clang-18");
        add(1, "clang-19");
        assert_eq!(chosen(), "clang-19");
        add(1, "clang-22");
        assert_eq!(chosen(), "clang-22");
    }

    #[test]
    fn a_compiler_that_is_too_old_is_refused_by_its_version() {
        let folder = tempfile::tempdir().expect("a folder");
        let compiler = |version: &str| {
            let program = folder.path().join(format!("clang-{version}"));
            let text = format!("#!/bin/sh\necho Debian clang version {version}.0.6\n");
            std::fs::write(&program, text).expect("written");
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("changed");
            clang_version(&program)
        };
        assert_eq!(compiler("18").expect("young enough"), "Debian clang version 18.0.6");
        let error = compiler("14").expect_err("too old").to_string();
        assert!(error.contains("version 14.0.6") && error.contains("18"), "{error}");
    }

    #[test]
    fn versions_of_compilers_are_read() {
        assert_eq!(clang_major("Debian clang version 22.1.8 (1~deb12u1)"), Some(22));
        assert_eq!(clang_major("clang version 19.1.7"), Some(19));
        assert_eq!(clang_major("AMD's own"), None);
    }
}
