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

/// The exit code of a program that does not keep the rules of the hardware, or computes something
/// else than its other version, and of a table that lacks some of its numbers.
const BROKEN: u8 = 1;
/// The exit code of everything that was not done as asked.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    flipwave_jit::serve_if_requested();
    flipwave_host::cache::on_damage(|damage| {
        let (file, reason) = (damage.path.display(), &damage.reason);
        say(format!("warning: {file} is not used: {reason}; it is made again"));
    });
    let command = Arguments::parse().command;
    let code = run_command(command);
    flipwave_host::cache::remove_private_folder();
    code
}

/// Does what a command line asks for, and reports why it could not be done.
fn run_command(command: Command) -> ExitCode {
    let _service = compiling::start();
    let result = flipwave_campaigns::check_environment()
        .map_err(Failure::from)
        .and_then(|()| execute(command));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Failure::Ended(code) = failure {
                return ExitCode::from(code);
            }
            match signals::received() {
                Some(signal) => complain(format!("flipwave: ended by {signal}: {failure}")),
                None => complain(format!("flipwave: {failure}")),
            }
            ExitCode::from(match failure {
                Failure::RulesBroken { .. }
                | Failure::NotSame { .. }
                | Failure::Escaped { .. }
                | Failure::NotCounted { .. }
                | Failure::Unexpected(_) => BROKEN,
                _ => FAILED,
            })
        }
    }
}

/// Does what a command line asks for.
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

/// Why a command failed, as the user reads it.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// An environment that asks for what there is not.
    #[error("{0}")]
    Environment(#[from] flipwave_campaigns::EnvironmentError),
    /// A campaign that cannot be run.
    #[error("{0}")]
    Campaign(#[from] CampaignError),
    /// A program that does not keep the rules of the hardware.
    #[error("the program breaks rules of the hardware (places: {count})")]
    RulesBroken { count: usize },
    /// Faults that a comparison should have seen.
    #[error(
        "faults in results that are compared came to SDC all the same: {count}, the first with a budget \
         of {budget} in injection {index}, {site}"
    )]
    Escaped { count: usize, budget: f64, index: u64, site: String },
    /// A fault-free run that is not what the campaign file expects.
    #[error("{0}")]
    Unexpected(Box<flipwave_campaigns::Unexpected>),
    /// An application that ended with an exit code of its own, which is not 0.
    #[error("the application ended with exit code {0}")]
    Ended(u8),
    /// A capture that cannot be used.
    #[error("{0}")]
    Capture(#[from] flipwave_capture::CaptureError),
    /// A version in software that computes something else.
    #[error("the version in software computes something else: {outputs}")]
    NotSame { outputs: String },
    /// A campaign that was asked to stop.
    #[error(
        "{done} of {planned} injections are done, and their results in {folder}; --resume goes on \
         with them"
    )]
    Interrupted { done: u64, planned: u64, folder: String },
    /// A part of a campaign that was asked to stop.
    #[error(
        "{done} of {planned} injections of shard {part} are done, and their rows in {folder}; run it \
         again, and it goes on with them"
    )]
    ShardInterrupted { part: String, done: u64, planned: u64, folder: String },
    /// Parts of a campaign that cannot be looked at.
    #[error("{0}")]
    Shard(#[from] flipwave_campaigns::ShardError),
    /// Results that there is nothing to report of.
    #[error("{0}")]
    About(#[from] flipwave_campaigns::AboutError),
    /// Campaigns that cannot be compared.
    #[error("{0}")]
    Compare(#[from] flipwave_analysis::CompareError),
    /// Signals cannot be caught.
    #[error(
        "cannot start a thread that listens for Ctrl-C: {0}; this process needs one, raise the limit of \
         processes (`ulimit -u`, `pids.max`)"
    )]
    Signal(std::io::Error),
    /// The library that is loaded into applications cannot be used.
    #[error("{0}")]
    Library(#[from] flipwave_agent::LibraryError),
    /// An application that cannot be started.
    #[error("cannot run {program}: {reason}")]
    Application { program: String, reason: std::io::Error },
    /// A machine that campaigns cannot run on.
    #[error("the embedded GPU cannot run campaigns here; what is missing stands above")]
    NotReady,
    /// A table without some of its numbers.
    #[error("the table is not complete, its rows say `not counted`: {what}")]
    NotCounted { what: String },
    /// A tool that needs hooks.
    #[error(
        "--by embedded is for instruction-count, opcode-histogram and memory-trace; leave it out, \
         and {tool} uses hooks"
    )]
    NeedsHooks { tool: String },
    /// A file of settings that is wrong.
    #[error("{0}")]
    Setting(#[from] flipwave_campaigns::FileError),
    /// A file that no code object can be taken from.
    #[error("{0}")]
    ObjectFile(#[from] flipwave_campaigns::ObjectFileError),
    /// A file that cannot be used.
    #[error("{file}: {reason}")]
    File { file: String, reason: String },
    /// A table that cannot be written.
    #[error("cannot write the table to {}: {reason}", file.display())]
    Table { file: std::path::PathBuf, reason: csv::Error },
    /// The results are written, and cannot be printed.
    #[error("cannot print: {0}")]
    Print(#[from] std::io::Error),
}
