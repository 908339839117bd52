//! Compilation of hooks with clang.

use crate::{HookLibrary, PtxHookError};
use flipwave_arch::Architecture;
use flipwave_hooks::hook::{Declarations, Source, clang_path};
use flipwave_ptx::{Ptx, parse};
use std::collections::HashMap;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// The header for hooks in PTX, `flipwave_ptx.h`, which precedes each source.
pub const HEADER: &str = include_str!("../include/flipwave_ptx.h");

/// Options for all hooks.
const OPTIONS: [&str; 13] = [
    "--target=nvptx64-nvidia-cuda",
    "-xc",
    "-std=gnu17",
    "-O2",
    "-ffreestanding",
    "-nogpulib",
    // Values are passed as bits.
    "-fno-strict-aliasing",
    // Cross-lane operations must not be moved.
    "-fconvergent-functions",
    // Results must be those of the host.
    "-ffp-contract=off",
    // Addresses of state spaces with 32 bits.
    "-Wno-int-to-pointer-cast",
    "-Wno-unused-command-line-argument",
    "-fno-color-diagnostics",
    "-fno-caret-diagnostics",
];

/// Libraries by source and target.
type Compiled = HashMap<(Source, String), Arc<HookLibrary>>;

/// Compiles hooks with clang ([`clang_path`]). Clones share what was compiled.
#[derive(Clone, Debug, Default)]
pub struct PtxHookCompiler {
    compiled: Arc<Mutex<Compiled>>,
}

impl PtxHookCompiler {
    /// Compiles a source for a target. A source that was compiled before is not compiled again, even if
    /// files that it includes have changed.
    ///
    /// # Errors
    /// [`PtxHookError::Clang`], [`PtxHookError::Rejected`], [`PtxHookError::Output`] and
    /// [`PtxHookError::Unsupported`].
    pub fn compile(&self, source: &Source, target: &Ptx) -> Result<Arc<HookLibrary>, PtxHookError> {
        let key = (source.clone(), target.target().to_owned());
        let compiled = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled().get(&key) {
            return Ok(known.clone());
        }
        let text = run(source, target, &["-S"])?;
        let module = parse(&text)
            .map_err(|reason| PtxHookError::Output { source_name: source.name.clone(), reason })?;
        let library = Arc::new(HookLibrary::new(&source.name, module)?);
        compiled().insert(key, library.clone());
        Ok(library)
    }

    /// Reads the functions and structures of a source.
    ///
    /// # Errors
    /// [`PtxHookError::Clang`], [`PtxHookError::Rejected`], and [`PtxHookError::Unsupported`] for unexpected
    /// output of the compiler.
    pub fn declarations(
        &self,
        source: &Source,
        target: &Ptx,
    ) -> Result<Declarations, PtxHookError> {
        let tree = run(source, target, &["-fsyntax-only", "-Xclang", "-ast-dump=json"])?;
        Declarations::parse(tree.as_bytes()).map_err(|error| PtxHookError::Unsupported {
            source_name: source.name.clone(),
            reason: format!("unexpected compiler output: {error}"),
        })
    }
}

/// Runs clang with these options, and returns its output.
fn run(source: &Source, target: &Ptx, options: &[&str]) -> Result<String, PtxHookError> {
    let clang = clang_path();
    let mut command = Command::new(&clang);
    let (major, minor) = target.oldest_version();
    command.args(OPTIONS).arg(format!("-march={}", target.target()));
    command.args(["-Xclang", "-target-feature", "-Xclang", &format!("+ptx{major}{minor}")]);
    for folder in &source.include {
        command.arg("-I").arg(folder);
    }
    command.args(source.defines.iter().map(|(name, value)| format!("-D{name}={value}")));
    command.args(options).args(["-o", "-", "-"]);
    let name = source.name.replace(['"', '\\', '\n'], "_");
    let text = format!("# 1 \"flipwave_ptx.h\"\n{HEADER}\n# 1 \"{name}\"\n{}", source.text);
    let output = flipwave_host::child::run(&mut command, text.as_bytes())
        .map_err(|reason| PtxHookError::Clang { clang, reason })?;
    if !output.status.success() {
        return Err(PtxHookError::Rejected {
            source_name: source.name.clone(),
            target: target.target().to_owned(),
            messages: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
