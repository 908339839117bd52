//! Why an application cannot be run or judged.

use std::io;
use std::path::PathBuf;

/// Why an application cannot be run or judged. None of these is ever an outcome.
#[derive(Debug, thiserror::Error)]
pub enum ApplicationError {
    /// No folder for a run.
    #[error(
        "cannot prepare a folder for a run in {}: {reason}; make room there, or set TMPDIR to \
         another folder", std::env::temp_dir().display()
    )]
    Scratch {
        /// Why not.
        reason: io::Error,
    },
    /// An input that cannot be copied.
    #[error(
        "cannot copy {} into the folder of a run in {}: {reason}",
        path.display(), std::env::temp_dir().display()
    )]
    Input {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// What is to be standard input cannot be read.
    #[error("cannot read {}, the standard input of the application: {reason}", path.display())]
    Stdin {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// The disk is full: what a program does then is not the fault's doing.
    #[error(
        "no space is left on the disk with the folders of runs, {}: make room there, or set \
         TMPDIR to another folder", std::env::temp_dir().display()
    )]
    DiskFull,
    /// A program that does not start.
    #[error("cannot start {}: {reason}{}", program.display(), start_hint(reason))]
    Start {
        /// The program.
        program: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// A process that cannot be watched.
    #[error("cannot watch a process: {0}")]
    Watch(io::Error),
    /// A process that does not end.
    #[error("process {pid} was killed and does not end; it may wait for a device or a file server")]
    Stuck {
        /// Its number.
        pid: i32,
    },
    /// A file of a run that cannot be read.
    #[error("cannot read {} after a run: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// The run was to stop.
    #[error("interrupted")]
    Interrupted,
    /// The fault-free run did not end as it must.
    #[error("the application {ended} without a fault{advice}{}", quoted(stderr))]
    GoldenEnded {
        /// How it ended.
        ended: String,
        /// What to do.
        advice: String,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// An output of the fault-free run that cannot be compared as the file says.
    #[error("the output {output} {message}")]
    GoldenOutput {
        /// The output.
        output: String,
        /// What is wrong, and what to do.
        message: String,
    },
    /// Fault-free runs differ.
    #[error(
        "two runs without a fault differ: {first}; outcomes would mean nothing. Leave such lines \
         out with `ignore`; or set `nondeterminism: allow` and give a `tolerance` that all such \
         runs keep"
    )]
    GoldenDiffers {
        /// The first difference.
        first: String,
    },
    /// Fault-free runs differ by more than the campaign file allows.
    #[error(
        "two runs without a fault differ by more than `compare` allows: {first}; outcomes would \
         mean nothing. Widen the `tolerance`, or leave such lines out with `ignore`"
    )]
    GoldenDiffersTooMuch {
        /// The first difference.
        first: String,
    },
    /// The check calls a fault-free run wrong.
    #[error("the check {} calls a run without a fault wrong (exit code 1)", program.display())]
    GoldenRejected {
        /// The check.
        program: PathBuf,
    },
    /// A check that gives no answer.
    #[error(
        "the check {} {ended}; expected exit code 0 (right) or 1 (wrong){}",
        program.display(), quoted(stderr)
    )]
    Check {
        /// The check.
        program: PathBuf,
        /// How it ended.
        ended: String,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
}

/// What to do about a program that does not start.
fn start_hint(reason: &io::Error) -> &'static str {
    match reason.raw_os_error() {
        Some(libc::ENOENT) => "; it, the interpreter after `#!` or its loader is missing",
        Some(libc::EACCES) => "; make it executable, with chmod +x",
        _ => "",
    }
}

/// What a program wrote, to be put after an error about it.
fn quoted(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!("; it wrote:\n{text}"),
    }
}
