//! Sharded campaigns: `flipwave run --shard`, `merge`, `status` and `submit`.

use crate::arguments::RunArguments;
use crate::cluster_arguments::{MergeArguments, StatusArguments, SubmitArguments};
use crate::display::Display;
use crate::failure::Failure;
use crate::{campaign, output, run, variants};
use flipwave_analysis::Look;
use flipwave_campaigns::{
    CampaignFile, FolderStatus, MergeOptions, Merged, MergedFolder, Part, PartState, PartStatus,
    ShardOptions, ShardReport, ShardsStatus, SubmitOptions, folder_status,
};
use flipwave_device::demangled_kernel;
use flipwave_host::output::printable;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// The printed names of shard states.
const STATES: [(PartState, &str); 5] = [
    (PartState::Done, "done"),
    (PartState::Running, "running"),
    (PartState::Interrupted, "interrupted"),
    (PartState::Lost, "lost"),
    (PartState::Failed, "failed"),
];

/// The maximum number of unfinished shards and missing ranges printed.
const SHOWN: usize = 20;

/// Runs a shard of a campaign, or of each selected variant.
pub fn shard(file: &CampaignFile, arguments: &RunArguments, part: &Part) -> Result<(), Failure> {
    let options = ShardOptions {
        folder: run::results_folder(arguments.out.as_ref(), file.name()),
        part: part.clone(),
        workers: arguments.workers.unwrap_or_else(run::all_processors),
        scratch: arguments.scratch.clone().unwrap_or_else(std::env::temp_dir),
        accelerations: arguments.accelerations(),
        path: arguments.by.map(Into::into),
    };
    let campaign = match file {
        CampaignFile::Plain(campaign) => campaign,
        CampaignFile::Varied(variants) => return variants::shard(variants, &options),
    };
    let mut display = Display::new(&campaign.cancellation);
    let result = flipwave_campaigns::run_shard(campaign, &options, &mut display);
    display.finish();
    let report = result?;
    writeln!(output::stdout(), "shard {part}: {}", done(&report))?;
    check_complete(&report, &options)
}

/// Describes the work of a shard.
pub fn done(report: &ShardReport) -> String {
    let ShardReport { wanted, done_before, done, start_seconds, seconds, .. } = report;
    let look = report.look.as_ref().map(|look| format!("\n{look}")).unwrap_or_default();
    format!(
        "{wanted} injections, {done_before} of them done before, {done} now; started in \
         {start_seconds:.3} s, injected in {seconds:.3} s{look}"
    )
}

/// Fails if a shard was stopped before its end.
pub fn check_complete(report: &ShardReport, options: &ShardOptions) -> Result<(), Failure> {
    if report.is_complete() {
        return Ok(());
    }
    Err(Failure::ShardInterrupted {
        part: options.part.to_string(),
        done: report.done_before + report.done,
        planned: report.wanted,
        folder: options.folder.display().to_string(),
    })
}

/// `flipwave merge`.
pub fn merge(arguments: &MergeArguments) -> Result<(), Failure> {
    let folders = arguments.folders.clone();
    let out = arguments.out.clone().unwrap_or_else(|| folders[0].clone());
    let wait = Duration::from_secs(arguments.wait);
    let options = MergeOptions { folders, out, wait };
    print(&flipwave_campaigns::merge_folder(&options)?, &options.out)
}

fn print(merged: &MergedFolder, folder: &Path) -> Result<(), Failure> {
    let mut output = output::stdout();
    let (rows, seconds, table) = match merged {
        MergedFolder::Campaign(merged) => {
            let summary =
                merged.summary.with_kernel_names(|name| demangled_kernel(name).into_owned());
            writeln!(output, "{}", summary.table())?;
            (merged.record.done.total(), merged.seconds, "results.csv")
        }
        MergedFolder::Variants { variants, seconds } => {
            let lines: Vec<_> =
                variants.iter().map(|(name, merged)| (name.as_str(), &merged.summary)).collect();
            writeln!(output, "{}", flipwave_analysis::overview_table(&lines))?;
            let rows = |(_, merged): &(String, Merged)| merged.record.done.total();
            (variants.iter().map(rows).sum(), *seconds, "variants.csv")
        }
    };
    writeln!(output, "merged {rows} rows in {seconds:.3} s")?;
    writeln!(output, "results: {}", folder.join(table).display())?;
    Ok(())
}

/// `flipwave status`.
pub fn status(arguments: &StatusArguments) -> Result<(), Failure> {
    let status = folder_status(&arguments.folder)?;
    if arguments.json {
        let mut output = output::stdout();
        serde_json::to_writer_pretty(&mut output, &status).map_err(std::io::Error::from)?;
        writeln!(output)?;
        return Ok(());
    }
    match &status {
        FolderStatus::Campaign(status) => campaign_status(status),
        FolderStatus::Variants(status) => variants::status(status),
    }
}

/// The completed share of the planned injections, in percent.
pub fn share(done: u64, planned: u64) -> f64 {
    done as f64 / planned.max(1) as f64 * 100.0
}

fn campaign_status(status: &ShardsStatus) -> Result<(), Failure> {
    let mut output = output::stdout();
    let ShardsStatus { campaign, planned, done, files, missing, .. } = status;
    let share = share(*done, *planned);
    writeln!(
        output,
        "{}, seed {}: {done} of {planned} injections done ({share:.1} %), in {files} files",
        printable(&campaign.name),
        campaign.seed
    )?;
    for look in &status.looks {
        writeln!(output, "{look}")?;
    }
    if status.looks.last().is_some_and(Look::is_goal_met) {
        writeln!(output, "goal reached")?;
    }
    if let Some(rate) = status.rows_per_second {
        let left = (planned - done) as f64 / rate;
        writeln!(output, "{rate:.0} injections per second so far, about {left:.0} s left")?;
    }
    let started = state_counts(|state| status.count(state));
    if !started.is_empty() {
        writeln!(output, "shards started: {started}")?;
    }
    let open: Vec<_> = status.parts.iter().filter(|part| part.state != PartState::Done).collect();
    for part in open.iter().take(SHOWN) {
        writeln!(output, "  {}", line(part))?;
    }
    if open.len() > SHOWN {
        writeln!(output, "  and {} more (see --json)", open.len() - SHOWN)?;
    }
    if !missing.is_empty() {
        let ranges =
            missing.iter().take(SHOWN).map(|range| format!("{}..{}", range.start, range.end));
        let ranges: Vec<String> = ranges.collect();
        let more = if missing.len() > SHOWN { " and more" } else { "" };
        writeln!(output, "missing: {}{more}", ranges.join(", "))?;
    }
    if missing.is_empty() && status.merged {
        writeln!(output, "merged: results.csv has all rows")?;
    } else if missing.is_empty() {
        writeln!(output, "all rows are present: `flipwave merge` writes the table")?;
    }
    Ok(())
}

/// Lists the number of shards in each state.
pub fn state_counts(count: impl Fn(PartState) -> usize) -> String {
    let states = STATES.iter().filter(|(state, _)| count(*state) > 0);
    let counts: Vec<String> =
        states.map(|(state, name)| format!("{} {name}", count(*state))).collect();
    counts.join(", ")
}

/// Describes a shard that is not done.
fn line(status: &PartStatus) -> String {
    let state = STATES[status.state as usize].1;
    let PartStatus { part, attempts, failures, lost, host, process, since, done, error, .. } =
        status;
    let tries = match attempts {
        1 => String::new(),
        _ => format!(", attempt {attempts} ({failures} failed, {lost} lost)"),
    };
    let error = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    format!("{part} {state}, {done} rows, process {process} on {host} since {since}{tries}{error}")
}

/// `flipwave submit`.
pub fn submit(arguments: &SubmitArguments) -> Result<(), Failure> {
    let file = campaign::read_all(&arguments.file, &arguments.variant, arguments.seed)?;
    let options = SubmitOptions {
        engine: arguments.engine.into(),
        folder: run::results_folder(arguments.out.as_ref(), file.name()),
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
    let mut display = Display::new(file.cancellation());
    let result = flipwave_campaigns::submit(&file, &options, &mut display);
    display.finish();
    let submitted = result?;
    let mut output = output::stdout();
    let (count, shards) = (submitted.injections, options.shards);
    let variants = match &file {
        CampaignFile::Varied(variants) if variants.chosen().len() > 1 => {
            format!(" of {} variants", variants.chosen().len())
        }
        _ => String::new(),
    };
    writeln!(
        output,
        "{}: {count} injections{variants} in {shards} shards",
        printable(file.name())
    )?;
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
        let folder = match &file {
            CampaignFile::Varied(variants) => variants.chosen_name(),
            CampaignFile::Plain(_) => None,
        };
        print(merged, &options.folder.join(folder.unwrap_or_default()))?;
    }
    Ok(())
}
