//! The `flipwave` program: argument parsing and printing, nothing else.

mod arguments;
mod campaign;
mod capture;
mod cluster_arguments;
mod compare;
mod compare_published;
mod compiling;
mod completions;
mod display;
mod doctor;
mod dry_run;
mod emulate;
mod exec;
mod failure;
mod fault;
mod fidelity;
mod fit;
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
use failure::Failure;
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
    let name = std::env::args().nth(1).unwrap_or_default();
    if let Some(new) = arguments::renamed_command(&name) {
        complain(format!("flipwave: {}", Failure::Renamed { old: name, new }));
        return ExitCode::from(FAILED);
    }
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
        Command::ComparePublished(arguments) => compare_published::compare_published(&arguments),
        Command::Rates(arguments) => rates::rates(&arguments),
        Command::Fit(arguments) => fit::fit(&arguments),
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
