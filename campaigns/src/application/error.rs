//! Errors of applications.

use std::io;
use std::path::PathBuf;

/// Errors returned when an application cannot be run or judged. None of them is an outcome.
#[derive(Debug, thiserror::Error)]
pub enum ApplicationError {
    /// The folder of a run cannot be created.
    #[error(
        "cannot create a folder for a run in {}: {reason}; make space there, or set TMPDIR to \
         another folder", std::env::temp_dir().display()
    )]
    Scratch {
        /// The reason.
        reason: io::Error,
    },
    /// An input cannot be copied.
    #[error(
        "cannot copy {} into the folder of a run in {}: {reason}",
        path.display(), std::env::temp_dir().display()
    )]
    Input {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// The file for standard input cannot be read.
    #[error("cannot read {}, the standard input of the application: {reason}", path.display())]
    Stdin {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// The disk is full, which may affect the program as much as the fault.
    #[error(
        "no space left on the disk with the folders of runs, {}; make space there, or set \
         TMPDIR to another folder", std::env::temp_dir().display()
    )]
    DiskFull,
    /// The program cannot be started.
    #[error("cannot start {}: {reason}{}", program.display(), start_hint(reason))]
    Start {
        /// The program.
        program: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// A process cannot be monitored.
    #[error("cannot monitor a process: {0}")]
    Watch(io::Error),
    /// A killed process does not end.
    #[error("process {pid} was killed but does not end; it may wait for a device or a file server")]
    Stuck {
        /// The process ID.
        pid: i32,
    },
    /// A file of a run cannot be read.
    #[error("cannot read {} after a run: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// The run was cancelled.
    #[error("interrupted")]
    Interrupted,
    /// A golden run did not end as expected.
    #[error("the application {ended} in a golden run{advice}{}", quoted(stderr))]
    GoldenEnded {
        /// The end of the run, as a predicate.
        ended: String,
        /// Advice.
        advice: String,
        /// The last lines of standard error.
        stderr: String,
    },
    /// An output of a golden run cannot be compared as specified.
    #[error("the output {output} {message}")]
    GoldenOutput {
        /// The output.
        output: String,
        /// The problem and advice, as a predicate.
        message: String,
    },
    /// Golden runs differ.
    #[error(
        "two golden runs differ: {first}; outcomes would be meaningless. Exclude such lines with \
         `ignore`, or set `nondeterminism: allow` and a `tolerance` that all golden runs satisfy"
    )]
    GoldenDiffers {
        /// The first difference.
        first: String,
    },
    /// Golden runs differ by more than the tolerances.
    #[error(
        "two golden runs differ by more than `compare` allows: {first}; outcomes would be \
         meaningless. Increase the `tolerance`, or exclude such lines with `ignore`"
    )]
    GoldenDiffersTooMuch {
        /// The first difference.
        first: String,
    },
    /// A check rejected a golden run.
    #[error("the check {} rejects a golden run (exit code 1)", program.display())]
    GoldenRejected {
        /// The check.
        program: PathBuf,
    },
    /// A check neither accepted nor rejected a run.
    #[error(
        "the check {} {ended}; expected exit code 0 (correct) or 1 (wrong){}",
        program.display(), quoted(stderr)
    )]
    Check {
        /// The check.
        program: PathBuf,
        /// The end of the check, as a predicate.
        ended: String,
        /// The last lines of standard error.
        stderr: String,
    },
}

/// Advice for a program that cannot be started.
fn start_hint(reason: &io::Error) -> &'static str {
    match reason.raw_os_error() {
        Some(libc::ENOENT) => "; the program, the interpreter after `#!` or the loader is missing",
        Some(libc::EACCES) => "; make it executable with chmod +x",
        _ => "",
    }
}

/// Formats the output of a program for the end of an error message.
fn quoted(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!("; it wrote:\n{text}"),
    }
}
