//! Campaigns in shards: `flipwave run --shard`, `merge`, `status` and `submit`.

use crate::arguments::RunArguments;
use crate::cluster_arguments::{MergeArguments, StatusArguments, SubmitArguments};
use crate::display::Display;
use crate::{Failure, campaign, output, run};
use flipwave_analysis::Look;
use flipwave_campaigns::{
    MergeOptions, Merged, Part, PartState, PartStatus, ShardOptions, ShardReport, ShardsStatus,
    SubmitOptions, shards_status,
};
use std::io::Write;
use std::time::Duration;

/// Parts that are shown, of those that are not done.
const SHOWN: usize = 20;

/// Runs a part of a campaign.
pub fn shard(arguments: &RunArguments, part: &Part) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, arguments.seed)?;
    let options = ShardOptions {
        folder: run::folder(arguments.out.as_ref(), &campaign),
        part: part.clone(),
        workers: arguments.workers.unwrap_or_else(run::all_processors),
        scratch: arguments.scratch.clone().unwrap_or_else(std::env::temp_dir),
        accelerations: arguments.accelerations(),
        path: arguments.by.map(Into::into),
    };
    let mut display = Display::new(&campaign.attendance);
    let result = flipwave_campaigns::run_shard(&campaign, &options, &mut display);
    display.finish();
    let report = result?;
    let ShardReport { wanted, done_before, done, start_seconds, seconds, .. } = report;
    let mut output = output::stdout();
    writeln!(
        output,
        "shard {part}: {wanted} injections, {done_before} of them done before, {done} now; started \
         in {start_seconds:.3} s, injected in {seconds:.3} s"
    )?;
    if let Some(look) = &report.look {
        writeln!(output, "{look}")?;
    }
    if !report.is_complete() {
        let (done, folder) = (done_before + done, options.folder.display().to_string());
        let part = part.to_string();
        return Err(Failure::ShardInterrupted { part, done, planned: wanted, folder });
    }
    Ok(())
}

/// `flipwave merge`.
pub fn merge(arguments: &MergeArguments) -> Result<(), Failure> {
    let folders = arguments.folders.clone();
    let out = arguments.out.clone().unwrap_or_else(|| folders[0].clone());
    let wait = Duration::from_secs(arguments.wait);
    let options = MergeOptions { folders, out, wait };
    let merged = flipwave_campaigns::merge(&options)?;
    print(&merged, &options.out.join("results.csv").display().to_string())
}

fn print(merged: &Merged, results: &str) -> Result<(), Failure> {
    let mut output = output::stdout();
    writeln!(output, "{}", merged.summary.table())?;
    let (rows, seconds) = (merged.record.done.total(), merged.seconds);
    writeln!(output, "merged {rows} rows in {seconds:.3} s")?;
    writeln!(output, "results: {results}")?;
    Ok(())
}

/// `flipwave status`.
pub fn status(arguments: &StatusArguments) -> Result<(), Failure> {
    let status = shards_status(&arguments.folder)?;
    let mut output = output::stdout();
    if arguments.json {
        serde_json::to_writer_pretty(&mut output, &status).map_err(std::io::Error::from)?;
        writeln!(output)?;
        return Ok(());
    }
    let ShardsStatus { campaign, planned, done, files, missing, .. } = &status;
    let share = *done as f64 / (*planned).max(1) as f64 * 100.0;
    writeln!(
        output,
        "{}, seed {}: {done} of {planned} injections done ({share:.1} %), in {files} files",
        campaign.name, campaign.seed
    )?;
    for look in &status.looks {
        writeln!(output, "{look}")?;
    }
    if status.looks.last().is_some_and(Look::is_enough) {
        writeln!(output, "enough is known")?;
    }
    if let Some(rate) = status.rows_per_second {
        let left = (planned - done) as f64 / rate;
        writeln!(
            output,
            "{rate:.0} injections a second so far; at this rate {left:.0} s are left"
        )?;
    }
    let states = [
        (PartState::Done, "done"),
        (PartState::Running, "running"),
        (PartState::Interrupted, "interrupted"),
        (PartState::Lost, "lost"),
        (PartState::Failed, "failed"),
    ];
    let counts: Vec<String> = states
        .iter()
        .filter(|(state, _)| status.count(*state) > 0)
        .map(|(state, name)| format!("{} {name}", status.count(*state)))
        .collect();
    if !counts.is_empty() {
        writeln!(output, "parts begun: {}", counts.join(", "))?;
    }
    let open: Vec<_> = status.parts.iter().filter(|own| own.state != PartState::Done).collect();
    for own in open.iter().take(SHOWN) {
        writeln!(output, "  {}", line(own, states[own.state as usize].1))?;
    }
    if open.len() > SHOWN {
        writeln!(output, "  and {} more; --json has all", open.len() - SHOWN)?;
    }
    if !missing.is_empty() {
        let ranges = missing.iter().take(SHOWN).map(|own| format!("{}..{}", own.start, own.end));
        let ranges: Vec<String> = ranges.collect();
        let more = if missing.len() > SHOWN { " and more" } else { "" };
        writeln!(output, "missing: {}{more}", ranges.join(", "))?;
    }
    match (missing.is_empty(), status.merged) {
        (true, true) => writeln!(output, "merged: results.csv has all rows")?,
        (true, false) => writeln!(output, "all rows are there: `flipwave merge` makes the table")?,
        (false, _) => {}
    }
    Ok(())
}

fn line(own: &PartStatus, state: &str) -> String {
    let PartStatus { part, attempts, failures, lost, host, process, since, done, error, .. } = own;
    let tries = match attempts {
        1 => String::new(),
        _ => format!(", attempt {attempts} ({failures} failed, {lost} lost)"),
    };
    let error = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    format!("{part} {state}, {done} rows, process {process} on {host} since {since}{tries}{error}")
}

/// `flipwave submit`.
pub fn submit(arguments: &SubmitArguments) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, arguments.seed)?;
    let options = SubmitOptions {
        engine: arguments.engine.into(),
        folder: run::folder(arguments.out.as_ref(), &campaign),
        shards: arguments.shards,
        at_once: arguments.at_once,
        nodes: arguments.nodes,
        workers: arguments.workers,
        grace: arguments.grace,
        program: std::env::current_exe()?,
        container: arguments.container.clone(),
        path: arguments.by.map(Into::into),
        options: arguments.options.clone(),
        dry: arguments.dry_run,
    };
    let mut display = Display::new(&campaign.attendance);
    let result = flipwave_campaigns::submit(&campaign, &options, &mut display);
    display.finish();
    let submitted = result?;
    let mut output = output::stdout();
    let (count, shards) = (submitted.plan.count, options.shards);
    writeln!(output, "{}: {count} injections in {shards} shards", campaign.name)?;
    for script in &submitted.scripts {
        writeln!(output, "script: {}", script.display())?;
    }
    for job in &submitted.jobs {
        writeln!(output, "job: {job}")?;
    }
    for command in &submitted.watch {
        writeln!(output, "watch: {command}")?;
    }
    if let Some(merged) = &submitted.merged {
        drop(output);
        print(merged, &options.folder.join("results.csv").display().to_string())?;
    }
    Ok(())
}
