//! Finding and running clang.

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

/// Options for all hooks.
const OPTIONS: [&str; 18] = [
    "--target=amdgcn-amd-amdhsa",
    "-std=gnu17",
    "-O2",
    "-ffreestanding",
    "-nogpulib",
    // Values are passed as bits.
    "-fno-strict-aliasing",
    // Cross-lane operations must not be moved.
    "-fconvergent-functions",
    // Symbols are data of the source or undefined; none can be preempted.
    "-fvisibility=hidden",
    "-ffunction-sections",
    // Omit the constant with the ABI version.
    "-Xclang",
    "-mcode-object-version=none",
    "-mllvm",
    // Keep the atomic instructions of hooks.
    "-amdgpu-atomic-optimizer-strategy=None",
    "-mllvm",
    // Dual-issue instructions restrict the registers of their halves.
    "-amdgpu-enable-vopd=0",
    "-Wno-unused-command-line-argument",
    "-fno-color-diagnostics",
    "-fno-caret-diagnostics",
];

/// Supported versions of clang: the first has the scoped atomics that `flipwave.h` uses, the last is the
/// version of LLVM in this program.
const MAJORS: RangeInclusive<u32> = 18..=22;

/// Path of the compiler, which also links: `FLIPWAVE_CLANG`, or the first in PATH of `clang-22`, older
/// versions down to `clang-18`, and `clang`. `clang-22` if none of them exists.
pub fn clang_path() -> PathBuf {
    if let Some(path) = std::env::var_os("FLIPWAVE_CLANG") {
        return path.into();
    }
    chosen(&std::env::var_os("PATH").unwrap_or_default())
}

/// The compiler in the folders of `path`.
fn chosen(path: &OsStr) -> PathBuf {
    let numbered = MAJORS.rev().map(|version| format!("clang-{version}"));
    let mut names = numbered.chain(["clang".to_owned()]);
    let present =
        |name: &String| std::env::split_paths(path).any(|folder| folder.join(name).is_file());
    let name = names.find(present).unwrap_or_else(|| format!("clang-{}", MAJORS.end()));
    name.into()
}

/// Major version in a version text such as `Debian clang version 22.1.8 (1~deb12u1)`.
pub fn clang_major(version: &str) -> Option<u32> {
    let (_, number) = version.split_once("clang version ")?;
    number.split('.').next()?.parse().ok()
}

/// The compiler's version text, which is cached for the life of the process.
///
/// # Errors
/// Returns an error if the compiler does not run or is too old.
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
            "{version} is too old, version {oldest} or later is required"
        ))
        .into());
    }
    versions.insert(program.to_owned(), version.clone());
    Ok(version)
}

/// A clang compiler.
#[derive(Clone, Debug)]
pub(super) struct Clang {
    program: PathBuf,
    /// Its version text.
    pub version: String,
}

impl Clang {
    /// The compiler at [`clang_path`].
    pub fn find() -> Result<Clang, HookError> {
        Clang::at(clang_path())
    }

    /// The compiler at a path.
    pub fn at(program: PathBuf) -> Result<Clang, HookError> {
        match clang_version(&program) {
            Ok(version) => Ok(Clang { program, version }),
            Err(error) => Err(failed(&program, error)),
        }
    }

    /// Options for a target and a wave size.
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

    /// Compiles `text` and returns the output, or the compiler's messages if it rejects the text.
    ///
    /// # Errors
    /// [`HookError::Clang`] or [`HookError::Interrupted`].
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
    fn newest_supported_compiler_in_path_is_preferred() {
        let folders =
            [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
        let path =
            std::env::join_paths(folders.iter().map(tempfile::TempDir::path)).expect("paths");
        let chosen = || chosen(&path).display().to_string();
        let add = |folder: usize, name: &str| {
            std::fs::write(folders[folder].path().join(name), "").expect("written");
        };
        // The compiler to install, if there is none.
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
    fn old_compiler_is_refused_with_its_version() {
        let folder = tempfile::tempdir().expect("a folder");
        let compiler = |version: &str| {
            let program = folder.path().join(format!("clang-{version}"));
            let text = format!("#!/bin/sh\necho Debian clang version {version}.0.6\n");
            std::fs::write(&program, text).expect("written");
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("changed");
            clang_version(&program)
        };
        assert_eq!(compiler("18").expect("a supported version"), "Debian clang version 18.0.6");
        let error = compiler("14").expect_err("too old").to_string();
        assert!(error.contains("version 14.0.6") && error.contains("18"), "{error}");
    }

    #[test]
    fn major_versions_are_parsed() {
        assert_eq!(clang_major("Debian clang version 22.1.8 (1~deb12u1)"), Some(22));
        assert_eq!(clang_major("clang version 19.1.7"), Some(19));
        assert_eq!(clang_major("AMD's own"), None);
    }
}
