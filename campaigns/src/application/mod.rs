//! Applications: unmodified programs, each run in new processes.
//!
//! ```yaml
//! workload:
//!   app:
//!     command: [./matmul, "128"]      # in `directory` or PATH; or a program without arguments
//!     directory: .                    # default; relative to the file
//!     process: {rank: 1}              # or {index: 1}, {command: ./solver}; the target of several
//!     environment: {OMP_NUM_THREADS: "1"}   # added to PATH, HOME, TMPDIR, LANG, LC_ALL and TZ
//!     input: [data.txt, inputs/]      # in `directory`; copied into the folder of each run
//!     stdin: numbers.txt              # default: empty
//!     exit_code: 0                    # default; of a correct run
//!     timeout: 60 s                   # default: 10 times the longest golden run, at least 30 s
//!     memory: 8 GiB                   # default; of all processes
//!     output: 1 GiB                   # default; of stdout, of stderr, and of all files
//!     golden_runs: 3                  # default
//!     nondeterminism: error           # default; or allow: differences within the tolerances
//! compare:                            # default: stdout exactly
//!   - stdout: {ignore: ["^time: "], tolerance: {relative: 1.0e-6}}
//!   - stderr: exact
//!   - file: out.csv
//!     tolerance: {absolute: 1.0e-3}
//!   - file: field.bin
//!     type: f32                       # binary, little-endian
//!     tolerance: {ulp: 4}
//!   - check: [./verify.sh]            # exit code 0: correct; 1: wrong
//! ```
//!
//! Each run starts in a new folder with copies of the inputs. HOME and TMPDIR are this folder, LANG
//! and LC_ALL are C, TZ is UTC, and PATH is inherited.
//!
//! A run is correct if all entries of `compare` accept it. Lines that match one of the regular
//! expressions of `ignore` are not compared. With a tolerance, decimal numbers in text are compared
//! numerically, and the text between them exactly. A check runs in the folder of the run;
//! FLIPWAVE_STDOUT and FLIPWAVE_STDERR name files with its captured output, FLIPWAVE_GOLDEN names
//! the folder of the golden run, and FLIPWAVE_GOLDEN_STDOUT and FLIPWAVE_GOLDEN_STDERR name its
//! captured output.

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
pub use judge::{JudgedOutputs, JudgedRun};
pub use process::{Ended, Limits};
pub use process_choice::ProcessChoice;
pub use run::ApplicationRun;
pub use text::Pattern;

use crate::file::device::CampaignDevice;
use schema::GPUS;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of standard error that error messages show.
const TAIL: usize = 2000;

/// An application and the comparisons of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// Device of golden and faulty runs.
    pub device: CampaignDevice,
    /// The program and its arguments.
    pub command: CommandLine,
    /// Absolute path of the user's folder, which programs and inputs are relative to. Runs do not
    /// write to it.
    pub directory: PathBuf,
    /// The target process, if given.
    pub process: Option<ProcessChoice>,
    /// The GPUs of each process.
    pub gpus: ApplicationGpus,
    /// Variables to add to the environment.
    pub environment: BTreeMap<String, String>,
    /// Files and folders in the user's folder to copy for each run.
    pub input: Vec<PathBuf>,
    /// File for standard input, which is empty without one.
    pub stdin: Option<PathBuf>,
    /// Exit code of a correct run.
    pub exit_code: i32,
    /// Time limit of a run, if given.
    pub timeout: Option<Duration>,
    /// Memory limit of a run in bytes.
    pub memory: u64,
    /// Output limit of a run in bytes.
    pub output: u64,
    /// Number of golden runs.
    pub golden_runs: u32,
    /// Treatment of differences between golden runs.
    pub nondeterminism: Nondeterminism,
    /// Conditions of a correct run, all of which must hold.
    pub comparisons: Vec<Comparison>,
}

/// The GPUs of each process of an application, all with the campaign's target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationGpus {
    /// Number of GPUs.
    pub count: usize,
    /// Index of the GPU whose kernels get faults.
    pub target: usize,
    /// Names or patterns of kernels that get no faults and are not replayed.
    pub ignored_kernels: Vec<String>,
}

impl Default for ApplicationGpus {
    /// One GPU, all of whose kernels get faults.
    fn default() -> ApplicationGpus {
        ApplicationGpus { count: GPUS as usize, target: 0, ignored_kernels: Vec::new() }
    }
}

/// Treatment of differences between golden runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nondeterminism {
    /// Differences are an error, except in ignored lines.
    Error,
    /// Differences within the tolerances are allowed.
    Allow,
}

/// The last part of a program's output, for messages.
fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL)..]).into_owned()
}
