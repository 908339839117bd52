//! `flipwave run`.

use crate::Failure;
use crate::arguments::RunArguments;
use crate::display::Display;
use crate::strict;
use flipwave_campaigns::{Campaign, CampaignError, RunOptions, SelfTest, Status};
use std::io::Write;
use std::num::NonZeroUsize;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What shells report of a program that Ctrl-C ended.
const ENDED_BY_INTERRUPT: i32 = 130;

pub fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let mut campaign = Campaign::read(&arguments.file).map_err(CampaignError::from)?;
    campaign.seed = arguments.seed.unwrap_or(campaign.seed);
    strict::check(&arguments.strict, &campaign)?;
    let folder = arguments.out.clone();
    let options = RunOptions {
        folder: folder.unwrap_or_else(|| format!("{}.results", campaign.name).into()),
        workers: arguments.workers.unwrap_or_else(all_processors),
        resume: arguments.resume,
        force: arguments.force,
        take_over: arguments.take_over,
        accelerations: arguments.accelerations(),
        path: arguments.by.map(Into::into),
        self_test: arguments.self_test,
    };
    let mut display = Display::new();
    let result =
        flipwave_campaigns::run(&campaign, &options, &mut display, &*interrupt_on_signal()?);
    display.finish();
    let report = result?;

    if let Some(SelfTest { null, planted }) = report.self_test {
        writeln!(
            std::io::stdout(),
            "self-test: {null} faults that change nothing were masked, {planted} planted faults \
             came out as they must\n"
        )?;
    }
    let results = options.folder.join("results.csv");
    let record = &report.record;
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", report.summary.table())?;
    let (places, fault) = (record.population.places, &record.campaign.fault);
    writeln!(output, "population: {places} places of {fault}, {}", record.counted)?;
    writeln!(output, "results: {}", results.display())?;
    if record.status == Status::Interrupted {
        let done = record.done.total();
        let folder = options.folder.display().to_string();
        return Err(Failure::Interrupted { done, planned: record.planned, folder });
    }
    Ok(())
}

fn all_processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// A flag that the first Ctrl-C sets; the second ends the program.
fn interrupt_on_signal() -> Result<Arc<AtomicBool>, ctrlc::Error> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            exit(ENDED_BY_INTERRUPT);
        }
    })?;
    Ok(interrupt)
}
