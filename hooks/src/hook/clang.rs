//! Running clang.

use super::HookError;
use flipwave_isa::Target;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
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

/// The compiler, which also links: `FLIPWAVE_CLANG`, or `clang-22` in PATH.
pub fn clang_path() -> PathBuf {
    PathBuf::from(std::env::var_os("FLIPWAVE_CLANG").unwrap_or("clang-22".into()))
}

/// The compiler's own words for its version. It is asked once in the life of a process.
///
/// # Errors
/// If it does not run.
pub fn clang_version(program: &Path) -> io::Result<String> {
    static VERSIONS: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());
    let mut versions = VERSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(version) = versions.get(program) {
        return Ok(version.clone());
    }
    let output = Command::new(program).arg("--version").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().unwrap_or_default().to_owned();
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
            Err(reason) => Err(HookError::Clang { clang: program, reason }),
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
        let failed = |reason| HookError::Clang { clang: self.program.clone(), reason };
        let mut child = Command::new(&self.program)
            .args(options)
            .args(["-o", "-", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stdin = child.stdin.take();
        let Output { status, stdout, stderr } = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A compiler that stops reading says itself why.
                stdin.map(|mut stdin| stdin.write_all(text.as_bytes()))
            });
            child.wait_with_output()
        })
        .map_err(failed)?;
        if status.success() {
            return Ok(Ok(stdout));
        }
        Ok(Err(String::from_utf8_lossy(&stderr).trim_end().to_owned()))
    }
}
