//! Errors of commands.

use flipwave_campaigns::CampaignError;

/// Errors of commands, printed as the last line on standard error.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An environment variable has an invalid value.
    #[error("{0}")]
    Environment(#[from] flipwave_campaigns::EnvironmentError),
    /// The command has another name in this version.
    #[error("the command `{old}` was renamed; use `flipwave {new}`")]
    Renamed { old: String, new: &'static str },
    /// The campaign is invalid or failed.
    #[error("{0}")]
    Campaign(#[from] CampaignError),
    /// The program violates hardware rules.
    #[error("the program violates hardware rules (violations: {count})")]
    RuleViolations { count: usize },
    /// Faults in duplicated and compared results caused SDC.
    #[error(
        "{count} faults in duplicated results caused undetected SDC, the first with budget {budget} in \
         injection {index}, {site}"
    )]
    UndetectedSdc { count: usize, budget: f64, index: u64, site: String },
    /// The golden run differs from the `expected` files of the campaign.
    #[error("{0}")]
    Unexpected(Box<flipwave_campaigns::Unexpected>),
    /// The application ended with a nonzero exit code.
    #[error("the application ended with exit code {0}")]
    Exited(u8),
    /// The capture is invalid, or cannot be read or written.
    #[error("{0}")]
    Capture(#[from] flipwave_capture::CaptureError),
    /// The outputs of the software version differ from those of the emulated instructions.
    #[error("the software version computes different outputs: {outputs}")]
    OutputsDiffer { outputs: String },
    /// The campaign was stopped before its end.
    #[error(
        "{done} of {planned} injections are done and saved in {folder}; continue with --resume"
    )]
    Interrupted { done: u64, planned: u64, folder: String },
    /// The shard was stopped before its end.
    #[error(
        "{done} of {planned} injections of shard {part} are done and saved in {folder}; run the same \
         command again to continue"
    )]
    ShardInterrupted { part: String, done: u64, planned: u64, folder: String },
    /// A sharded campaign is invalid, or cannot be read or written.
    #[error("{0}")]
    Shard(#[from] flipwave_campaigns::ShardError),
    /// A results folder is invalid.
    #[error("{0}")]
    About(#[from] flipwave_campaigns::ReadCampaignError),
    /// The campaigns are not comparable.
    #[error("{0}")]
    Compare(#[from] flipwave_analysis::CompareError),
    /// Two folders have no campaigns of the same name.
    #[error(
        "no campaign is in both {} and {}; expected results folders of the same names in them, or two \
         results folders",
        a.display(),
        b.display()
    )]
    NoCommonCampaigns { a: std::path::PathBuf, b: std::path::PathBuf },
    /// The thread that waits for signals cannot be started.
    #[error(
        "cannot start the thread that handles Ctrl-C: {0}; raise the limit of processes (`ulimit -u`, \
         `pids.max`)"
    )]
    Signal(std::io::Error),
    /// The agent library is missing or cannot be loaded into applications.
    #[error("{0}")]
    Library(#[from] flipwave_agent::LibraryError),
    /// The application cannot be started.
    #[error("cannot run {program}: {reason}")]
    Application { program: String, reason: std::io::Error },
    /// A requirement of the embedded GPU is not met on this machine.
    #[error("the embedded GPU cannot run campaigns on this machine; see the lines marked MISSING")]
    NotReady,
    /// A tool's table has rows marked as not counted.
    #[error("the table is incomplete, see its rows with `not counted`: {what}")]
    IncompleteTable { what: String },
    /// The table of a tool cannot be converted.
    #[error("cannot write the table to {}: {reason}", file.display())]
    ParquetTable { file: std::path::PathBuf, reason: flipwave_analysis::TableError },
    /// The tool does not support observation inside the embedded GPU.
    #[error(
        "--by embedded is not available for {tool}, only for instruction-count, opcode-histogram and \
         memory-trace; omit it to use hooks"
    )]
    NeedsHooks { tool: String },
    /// A program starts kernels without the runtime that hooks need.
    #[error(
        "the table lacks kernels of `{command}`: hooks are inserted by the loader of AMD's runtime, which the program \
         does not use or which did not load tools; use `--by embedded` with instruction-count, opcode-histogram or \
         memory-trace"
    )]
    WithoutRuntime { command: String },
    /// This machine's GPU is AMD's.
    #[error(
        "--by hardware runs tools only on GPUs of AMD, not on {gpu}; use `--by hook` or `--by embedded`"
    )]
    AmdHardware { gpu: String },
    /// Data races are not found in PTX.
    #[error("`--races` is available for AMD GPUs only; remove it")]
    AmdRaces,
    /// A settings file is invalid.
    #[error("{0}")]
    Setting(#[from] flipwave_campaigns::FileError),
    /// The file contains no usable code object.
    #[error("{0}")]
    ObjectFile(#[from] flipwave_campaigns::ObjectFileError),
    /// A file is invalid, or cannot be read or written.
    #[error("{file}: {reason}")]
    File { file: String, reason: String },
    /// The table cannot be written.
    #[error("cannot write the table to {}: {reason}", file.display())]
    Table { file: std::path::PathBuf, reason: csv::Error },
    /// The results are saved but cannot be printed.
    #[error("cannot print: {0}")]
    Print(#[from] std::io::Error),
}
