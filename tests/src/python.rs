//! Python with this repository's package and with Triton, if installed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A Python that has Triton, numpy and the package.
#[derive(Clone, Debug)]
pub struct Python(PathBuf);

impl Python {
    /// Finds `$FLIPWAVE_PYTHON`, or the Python of `target/python`, which is created if needed. Returns `None`
    /// if a package is missing, with a message that is shown even if the test's output is captured.
    pub fn find() -> Option<&'static Python> {
        static FOUND: OnceLock<Option<Python>> = OnceLock::new();
        FOUND
            .get_or_init(|| {
                let found = Python::look();
                if let Err(reason) = &found {
                    let _ = writeln!(
                        std::io::stderr(),
                        "SKIPPED: {reason}, so Triton's kernels are not tested"
                    );
                }
                found.ok()
            })
            .as_ref()
    }

    fn look() -> Result<Python, String> {
        let python = match std::env::var_os("FLIPWAVE_PYTHON") {
            Some(path) => Python(path.into()),
            None => {
                let made = Command::new(root().join("python/environment.sh")).output();
                made.map_err(|error| format!("python/environment.sh does not start ({error})"))?;
                Python(root().join("target/python/bin/python"))
            }
        };
        let imports = ["-c", "import triton, numpy, ml_dtypes, flipwave"];
        match python.command().args(imports).output() {
            Ok(output) if output.status.success() => Ok(python),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let last = said.lines().last().unwrap_or_default().to_owned();
                Err(format!("{} has no Triton ({last})", python.0.display()))
            }
            Err(error) => Err(format!("{} does not start ({error})", python.0.display())),
        }
    }

    /// The interpreter.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.0);
        command.env("PYTHONPATH", root().join("python/src"));
        command
    }

    /// Runs a script of the repository. Returns its standard output.
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, script: &str, arguments: &[S]) -> String {
        let script = root().join(script);
        let run = self.command().arg(&script).args(arguments).output();
        let Output { status, stdout, stderr } = run.expect("Python starts");
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{}:\n{said}", script.display());
        String::from_utf8(stdout).expect("text")
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
