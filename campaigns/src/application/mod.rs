//! Workloads that are applications: programs as they are, each run of them in processes of its
//! own.
//!
//! ```yaml
//! workload:
//!   app:
//!     command: [./matmul, "128"]      # found from `directory`, or in PATH; or a program alone
//!     directory: .                    # default; relative to the file
//!     process: {rank: 1}              # or {index: 1}, {command: ./solver}; of several the one struck
//!     environment: {OMP_NUM_THREADS: "1"}   # added to PATH, HOME, TMPDIR, LANG, LC_ALL and TZ
//!     input: [data.txt, inputs/]      # in `directory`; copied into the folder of each run
//!     stdin: numbers.txt              # default: nothing
//!     exit_code: 0                    # default; what the program ends with when all is well
//!     timeout: 60 s                   # default: 10 times the longest run without a fault, and
//!                                     # 30 s at least
//!     memory: 8 GiB                   # default; of all its processes together
//!     output: 1 GiB                   # default; each of stdout, stderr, and files together
//!     golden_runs: 3                  # default
//!     nondeterminism: error           # default; or allow: such runs need only keep the tolerances
//! compare:                            # default: stdout exactly
//!   - stdout: {ignore: ["^time: "], tolerance: {relative: 1.0e-6}}
//!   - stderr: exact
//!   - file: out.csv
//!     tolerance: {absolute: 1.0e-3}
//!   - file: field.bin
//!     type: f32                       # binary, little-endian
//!     tolerance: {ulp: 4}
//!   - check: [./verify.sh]            # exit code 0: right; 1: wrong
//! ```
//!
//! Each run starts in a new folder that holds nothing but copies of the inputs. HOME and TMPDIR
//! are that folder, LANG and LC_ALL are C, TZ is UTC, PATH is as `flipwave` has it.
//!
//! Only what `compare` lists is compared, and a run is right if all of that is. Lines that match
//! one of the regular expressions of `ignore` are left out. With a tolerance, decimal numbers in a
//! text are compared as numbers, and what stands between them exactly. A check runs in the folder
//! that the run left; FLIPWAVE_STDOUT and FLIPWAVE_STDERR are files with what it printed,
//! FLIPWAVE_GOLDEN is the folder of a run without a fault, FLIPWAVE_GOLDEN_STDOUT and
//! FLIPWAVE_GOLDEN_STDERR what that printed.

mod capture;
mod check;
mod command;
mod comparison;
mod error;
mod golden;
mod judge;
mod memory;
mod process;
mod process_choice;
pub(crate) mod quantity;
mod run;
mod runtime_errors;
pub(crate) mod schema;
mod scratch;
#[cfg(test)]
mod tests;
mod text;
mod verify;

pub(crate) use check::check;
pub use command::CommandLine;
pub use comparison::{Compared, Comparison, Format, Output, Similarity};
pub use error::ApplicationError;
pub use golden::ApplicationGolden;
pub use judge::Judged;
pub use process::{Ended, Limits};
pub use process_choice::ProcessChoice;
pub use run::Ran;
pub use text::Pattern;

use crate::file::device::CampaignDevice;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of a program's standard error that an error about it shows.
const TAIL: usize = 2000;

/// An application, and how its runs are judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// What it runs on while faults are injected.
    pub device: CampaignDevice,
    /// The program and its arguments.
    pub command: CommandLine,
    /// The user's folder, an absolute path: programs and inputs are found from there. No run
    /// writes to it.
    pub directory: PathBuf,
    /// The process that is struck, if the campaign file says.
    pub process: Option<ProcessChoice>,
    /// Variables that the campaign file adds to the environment.
    pub environment: BTreeMap<String, String>,
    /// Files and folders in the user's folder that each run gets copies of.
    pub input: Vec<PathBuf>,
    /// The file that is standard input; empty without.
    pub stdin: Option<PathBuf>,
    /// The exit code of a run in which all is well.
    pub exit_code: i32,
    /// How long a run may take, if the campaign file says.
    pub timeout: Option<Duration>,
    /// Bytes of memory that a run may take.
    pub memory: u64,
    /// Bytes that a run may write.
    pub output: u64,
    /// How many runs without a fault are made.
    pub golden_runs: u32,
    /// What runs without a fault that differ mean.
    pub nondeterminism: Nondeterminism,
    /// What decides whether a run is right: all of it must say so.
    pub comparisons: Vec<Comparison>,
}

/// What it means that runs without a fault differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nondeterminism {
    /// It is an error, unless they differ in ignored lines only.
    Error,
    /// It is none while they keep the tolerances.
    Allow,
}

/// The end of what a program wrote, for people.
fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL)..]).into_owned()
}
