//! Runs the `flipwave` program as a user does.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A completed run of the program.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// Signal that ended the program.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Asserts that the program succeeded.
    #[track_caller]
    pub fn expect_success(self) -> Finished {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// Asserts that the program failed with exit code 2, and that standard error contains all `words`.
    #[track_caller]
    pub fn expect_refused(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:#?}");
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in:\n{}", self.stderr);
        }
    }
}

/// Runs `flipwave` in `folder`, with `environment` added to the environment.
pub fn flipwave<S: AsRef<OsStr>>(
    folder: &Path,
    arguments: &[S],
    environment: &[(&str, &str)],
) -> Finished {
    let output = Command::new(program())
        .current_dir(folder)
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .expect("flipwave starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    Finished { code: output.status.code(), signal: output.status.signal(), stdout, stderr }
}

/// Runs `flipwave` in `folder`. Kills it and returns `None` if it takes longer than `patience`.
pub fn flipwave_within<S: AsRef<OsStr>>(
    patience: Duration,
    folder: &Path,
    arguments: &[S],
) -> Option<Finished> {
    // Files instead of pipes, which could fill up.
    let file = || tempfile::tempfile().expect("a file");
    let (stdout, stderr) = (file(), file());
    let handle = |file: &File| file.try_clone().expect("a handle");
    let mut child = Command::new(program())
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(handle(&stdout))
        .stderr(handle(&stderr))
        .spawn()
        .expect("flipwave starts");
    let end = Instant::now() + patience;
    let status = loop {
        if let Some(status) = child.try_wait().expect("its state") {
            break status;
        }
        if Instant::now() >= end {
            child.kill().expect("it can be ended");
            child.wait().expect("its end");
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    Some(Finished { code: status.code(), signal: status.signal(), stdout, stderr })
}

/// Content of a file.
fn text(mut file: File) -> String {
    file.rewind().expect("the beginning");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("its content");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Path of the program, which is built once, because Cargo does not build programs of other crates for
/// tests. The profile `test` and a test target make Cargo reuse the libraries built for the workspace's
/// tests, with the same features.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| built("test", "debug", &["--workspace", "--test", "end_to_end"]))
}

/// Path of the program in the profile `release`, for benchmarks.
pub fn released_program() -> PathBuf {
    built("release", "release", &["--package", "flipwave-cli"])
}

/// Builds the program in a profile, whose output is in `folder` of the target folder.
fn built(profile: &str, folder: &str, packages: &[&str]) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    // <target folder>/<profile>/deps/<test>
    let target = test.ancestors().nth(3).expect("the target folder");
    let status = Command::new(env!("CARGO"))
        // `make test` sets this variable for the tests; Cargo would rebuild everything with it.
        .env_remove("RUSTC_BOOTSTRAP")
        .args(["build", "--quiet", "--profile", profile, "--bin", "flipwave"])
        .args(packages)
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .arg("--target-dir")
        .arg(target)
        .status()
        .expect("cargo starts");
    assert!(status.success(), "flipwave does not build");
    target.join(folder).join("flipwave")
}
