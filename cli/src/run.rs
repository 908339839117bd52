//! `flipwave run`.

use crate::arguments::RunArguments;
use crate::display::Display;
use crate::failure::Failure;
use crate::output::say;
use crate::{campaign, dry_run, output, shards, strict, variants};
use flipwave_campaigns::{
    Campaign, CampaignError, CampaignFile, Report, RunOptions, SelfTest, Status,
};
use flipwave_device::demangled_kernel;
use flipwave_injector::FaultSpace;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

pub fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let mut file = campaign::read_all(&arguments.file, &arguments.variant, arguments.seed)?;
    if let Some(count) = arguments.count {
        file.set_count(count).map_err(CampaignError::from)?;
    }
    if let Some(part) = &arguments.shard {
        return shards::shard(&file, arguments, part);
    }
    let options = RunOptions {
        folder: results_folder(arguments.out.as_ref(), file.name()),
        workers: arguments.workers.unwrap_or_else(all_processors),
        resume: arguments.resume,
        force: arguments.force,
        take_over: arguments.take_over,
        accelerations: arguments.accelerations(),
        path: arguments.by.map(Into::into),
        self_test: arguments.self_test,
    };
    if arguments.dry_run {
        return dry_run::dry_run(&file, &options, arguments);
    }
    match &file {
        CampaignFile::Plain(campaign) => one(campaign, &options, arguments),
        CampaignFile::Varied(variants) => variants::run(variants, &options, arguments),
    }
}

fn one(campaign: &Campaign, options: &RunOptions, arguments: &RunArguments) -> Result<(), Failure> {
    strict::check(&arguments.strict, campaign)?;
    let mut display = Display::new(&campaign.cancellation);
    let result = flipwave_campaigns::run(campaign, options, &mut display);
    display.finish();
    print(&result?, &options.folder)
}

/// Prints the results of a campaign.
pub fn print(report: &Report, folder: &Path) -> Result<(), Failure> {
    if let Some(SelfTest { null, planted }) = report.self_test {
        writeln!(
            output::stdout(),
            "self-test: {null} faults without effect were masked, {planted} planted faults had the \
             expected outcomes\n"
        )?;
    }
    let record = &report.record;
    let mut output = output::stdout();
    let summary = report.summary.with_kernel_names(|name| demangled_kernel(name).into_owned());
    writeln!(output, "{}", summary.table())?;
    let fault = &record.facts.campaign.fault;
    writeln!(
        output,
        "{}",
        fault_space_line(&record.facts.fault_space, fault, &record.facts.counted)
    )?;
    if let Some(line) = not_reached(&record.facts.fault_space) {
        say(&line);
        writeln!(output, "{line}")?;
    }
    if let Some(known) = record.facts.design.pruned.get("all") {
        let percent = 100.0 * known.rate();
        writeln!(output, "known to be masked, not sampled: {percent:.2} % of the fault sites")?;
    }
    if let Some(look) = record.looks.last() {
        let end = if look.is_goal_met() { "goal reached" } else { "goal not reached" };
        writeln!(output, "{end} {look}")?;
    }
    if let Some(fidelity) = &record.facts.fidelity {
        writeln!(output, "fidelity: {fidelity}")?;
    }
    if let Some((results, others)) = report.files.split_first() {
        writeln!(output, "results: {}", results.display())?;
        let others: Vec<String> = others.iter().map(|file| file.display().to_string()).collect();
        writeln!(output, "other files: {}", others.join(" "))?;
    }
    check_complete(report, folder)
}

/// Describes the size of a fault space in a line.
pub fn fault_space_line(fault_space: &FaultSpace, fault: &str, counted: &str) -> String {
    format!("fault space: {} sites of {fault}, {counted}", fault_space.sites)
}

/// Describes the part of a fault space that hooks cannot reach, if there is any.
pub fn not_reached(fault_space: &FaultSpace) -> Option<String> {
    let percent = 100.0 * fault_space.share_left_out();
    let left_out = fault_space.left_out;
    (left_out > 0).then(|| {
        format!("not reached by hooks, not sampled: {left_out} fault sites, {percent:.3} % of all")
    })
}

/// Fails if a campaign was stopped before its end.
pub fn check_complete(report: &Report, folder: &Path) -> Result<(), Failure> {
    let record = &report.record;
    if record.status == Status::Interrupted {
        let done = record.done.total();
        let folder = folder.display().to_string();
        return Err(Failure::Interrupted { done, planned: record.planned, folder });
    }
    Ok(())
}

/// The results folder of a campaign with this name: `out` if given, else the default.
pub fn results_folder(out: Option<&PathBuf>, name: &str) -> PathBuf {
    out.cloned().unwrap_or_else(|| format!("{name}.results").into())
}

pub fn all_processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
