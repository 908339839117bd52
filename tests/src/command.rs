//! The `flipwave` program, run as a user runs it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A run of the program that came to its end.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; nothing if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it printed beside that.
    pub stderr: String,
}

impl Finished {
    /// Demands that the program did what it was asked.
    #[track_caller]
    pub fn expect_success(self) -> Finished {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// Demands that it refused what it was asked, and said all these words.
    #[track_caller]
    pub fn expect_refused(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:#?}");
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in:\n{}", self.stderr);
        }
    }
}

/// Runs `flipwave` in `folder` with these arguments and environment.
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

/// Runs `flipwave` like [`flipwave`], and ends it when it takes longer than `patience`: nothing
/// then.
pub fn flipwave_within<S: AsRef<OsStr>>(
    patience: Duration,
    folder: &Path,
    arguments: &[S],
) -> Option<Finished> {
    // Files, which are never full.
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

/// What was written to a file.
fn text(mut file: File) -> String {
    file.rewind().expect("the beginning");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("its content");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The program, built once: Cargo does not build another crate's program for a test. The profile
/// `test`, and a test beside the program, make use of the libraries that Cargo has built for the
/// tests of the workspace, with the features that all of its crates together ask for.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| built("test", "debug", &["--workspace", "--test", "end_to_end"]))
}

/// The program as users have it, for benchmarks.
pub fn released_program() -> PathBuf {
    built("release", "release", &["--package", "flipwave-cli"])
}

/// The program of a profile, whose results are in `folder` of the target folder.
fn built(profile: &str, folder: &str, packages: &[&str]) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    // <target folder>/<profile>/deps/<test>
    let target = test.ancestors().nth(3).expect("the target folder");
    let status = Command::new(env!("CARGO"))
        // `make test` sets it for the tests; cargo would take it for another compiler.
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
