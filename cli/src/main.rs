//! The `flipwave` program: argument parsing and printing, nothing else.

mod agreement;
mod arguments;
mod campaign;
mod capture;
mod cluster_arguments;
mod compare;
mod compiling;
mod completions;
mod display;
mod doctor;
mod dry_run;
mod emulate;
mod exec;
mod failures;
mod fidelity;
mod golden;
mod gpus;
mod harden;
mod inspect;
mod launch;
mod long_runs;
mod output;
mod process_files;
mod profile;
mod rates;
mod replay;
mod report;
mod results_arguments;
mod run;
mod schema;
mod shards;
mod signals;
mod site;
mod strict;
mod table;
mod tool;
mod tool_arguments;
mod trace;
mod variants;

use arguments::{Arguments, Command};
use clap::Parser;
use flipwave_campaigns::CampaignError;
use output::{complain, say};
use std::process::ExitCode;

/// Exit code if a check failed: rule violations, wrong outputs, or an incomplete table.
const CHECK_FAILED: u8 = 1;
/// Exit code for all other errors.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    flipwave_jit::serve_if_requested();
    flipwave_host::cache::on_damage(|damage| {
        let (file, reason) = (damage.path.display(), &damage.reason);
        say(format!("warning: ignoring cached file {file}: {reason}; recreating it"));
    });
    let command = Arguments::parse().command;
    let code = run_command(command);
    flipwave_host::cache::remove_private_folder();
    code
}

/// Executes a command and reports its failure on standard error.
fn run_command(command: Command) -> ExitCode {
    let _service = compiling::start();
    let result = flipwave_campaigns::check_environment()
        .map_err(Failure::from)
        .and_then(|()| execute(command));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Failure::Exited(code) = failure {
                return ExitCode::from(code);
            }
            match signals::received() {
                Some(signal) => complain(format!("flipwave: ended by {signal}: {failure}")),
                None => complain(format!("flipwave: {failure}")),
            }
            ExitCode::from(match failure {
                Failure::RuleViolations { .. }
                | Failure::OutputsDiffer { .. }
                | Failure::UndetectedSdc { .. }
                | Failure::IncompleteTable { .. }
                | Failure::Unexpected(_) => CHECK_FAILED,
                _ => FAILED,
            })
        }
    }
}

/// Executes a command.
fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Merge(arguments) => shards::merge(&arguments),
        Command::Status(arguments) => shards::status(&arguments),
        Command::Submit(arguments) => shards::submit(&arguments),
        Command::Launch(arguments) => launch::launch(&arguments),
        Command::Golden(arguments) => golden::golden(&arguments),
        Command::Harden(arguments) => harden::harden(&arguments),
        Command::Replay(arguments) => replay::replay(&arguments),
        Command::Agreement(arguments) => agreement::agreement(&arguments),
        Command::Rates(arguments) => rates::rates(&arguments),
        Command::Failures(arguments) => failures::failures(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
        Command::Profile(arguments) => profile::profile(&arguments),
        Command::Fidelity(arguments) => fidelity::fidelity(&arguments),
        Command::Inspect(arguments) => inspect::inspect(&arguments),
        Command::Tool(arguments) => tool::tool(&arguments),
        Command::Emulate(arguments) => emulate::emulate(&arguments),
        Command::Exec(arguments) => exec::exec(&arguments),
        Command::Capture(arguments) => capture::capture(&arguments),
        Command::Doctor => doctor::doctor(),
        Command::Schema => schema::schema(),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Manual(arguments) => completions::manual(&arguments),
    }
}

/// Errors of commands, printed as the last line on standard error.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// An environment variable has an invalid value.
    #[error("{0}")]
    Environment(#[from] flipwave_campaigns::EnvironmentError),
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
    About(#[from] flipwave_campaigns::AboutError),
    /// The campaigns are not comparable.
    #[error("{0}")]
    Compare(#[from] flipwave_analysis::CompareError),
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
    /// The tool does not support observation inside the embedded GPU.
    #[error(
        "--by embedded is not available for {tool}, only for instruction-count, opcode-histogram and \
         memory-trace; omit it to use hooks"
    )]
    NeedsHooks { tool: String },
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
