//! `flipwave run`.

use crate::arguments::RunArguments;
use crate::display::Display;
use crate::{Failure, campaign, output, shards, strict};
use flipwave_campaigns::{Campaign, RunOptions, SelfTest, Status};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub fn run(arguments: &RunArguments) -> Result<(), Failure> {
    if let Some(part) = &arguments.shard {
        return shards::shard(arguments, part);
    }
    let campaign = campaign::read(&arguments.file, arguments.seed)?;
    strict::check(&arguments.strict, &campaign)?;
    let options = RunOptions {
        folder: folder(arguments.out.as_ref(), &campaign),
        workers: arguments.workers.unwrap_or_else(all_processors),
        resume: arguments.resume,
        force: arguments.force,
        take_over: arguments.take_over,
        accelerations: arguments.accelerations(),
        path: arguments.by.map(Into::into),
        self_test: arguments.self_test,
    };
    let mut display = Display::new(&campaign.attendance);
    let result = flipwave_campaigns::run(&campaign, &options, &mut display);
    display.finish();
    let report = result?;

    if let Some(SelfTest { null, planted }) = report.self_test {
        writeln!(
            output::stdout(),
            "self-test: {null} faults that change nothing were masked, {planted} planted faults \
             came out as they must\n"
        )?;
    }
    let results = options.folder.join("results.csv");
    let record = &report.record;
    let mut output = output::stdout();
    writeln!(output, "{}", report.summary.table())?;
    let (places, fault) = (record.population.places, &record.campaign.fault);
    writeln!(output, "population: {places} places of {fault}, {}", record.counted)?;
    if let Some(known) = record.design.known.get("all") {
        let percent = 100.0 * known.rate();
        writeln!(output, "known to be masked, and not sampled: {percent:.2} % of the places")?;
    }
    if let Some(look) = record.looks.last() {
        let end = if look.is_enough() { "enough is known" } else { "not all is known" };
        writeln!(output, "{end} {look}")?;
    }
    if let Some(fidelity) = &record.fidelity {
        writeln!(output, "fidelity: {fidelity}")?;
    }
    writeln!(output, "results: {}", results.display())?;
    if record.status == Status::Interrupted {
        let done = record.done.total();
        let folder = options.folder.display().to_string();
        return Err(Failure::Interrupted { done, planned: record.planned, folder });
    }
    Ok(())
}

/// Where results go, `out` if that is said.
pub fn folder(out: Option<&PathBuf>, campaign: &Campaign) -> PathBuf {
    out.cloned().unwrap_or_else(|| format!("{}.results", campaign.name).into())
}

pub fn all_processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
