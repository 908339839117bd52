//! Execution of one shard, from the campaign file to the rows in the shared folder.

use super::attempt::{AttemptState, CurrentAttempt};
use super::code::{Compiled, compile};
use super::error::ShardError;
use super::file::{RowsKey, ShardWriter, undamaged_ranges};
use super::layout::SharedFolder;
use super::looks;
use super::part::{Part, gaps};
use super::plan::ShardPlan;
use super::rows::Shards;
use super::space::Space;
use super::store::{self, ProfiledGolden, load_or_profile};
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::results::record::Versions;
use crate::run::batches::Batches;
use crate::run::experiment::{Experiment, InjectOptions, Injections};
use crate::run::injection_path;
use crate::run::injection_path::InjectionPath;
use crate::run::progress::{Phase, Progress};
use crate::run::runners::{Runner, runner};
use flipwave_analysis::{CampaignMonitor, Look};
use flipwave_injector::{Accelerations, RecordedRun};
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Options of a shard. None of them changes its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardOptions {
    /// Shared results folder.
    pub folder: PathBuf,
    /// Part of the campaign to execute.
    pub part: Part,
    /// Worker threads.
    pub workers: NonZeroUsize,
    /// Folder on this machine for rows of the running shard.
    pub scratch: PathBuf,
    /// Optimizations of injections.
    pub accelerations: Accelerations,
    /// Injection mechanism; `None` for the default of the campaign's device.
    pub path: Option<InjectionPath>,
}

/// Result of a shard.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardReport {
    /// Number of required injections in the part.
    pub wanted: u64,
    /// Number of rows of them that existed before.
    pub done_before: u64,
    /// Number of new rows.
    pub done: u64,
    /// Bytes written to the shared folder.
    pub bytes: u64,
    /// `true` if the shard executed the golden run, `false` if it read a stored one.
    pub made_golden: bool,
    /// Seconds from the start to the first injection.
    pub start_seconds: f64,
    /// Seconds of injections.
    pub seconds: f64,
    /// The last interim look, if the campaign has a stopping rule.
    pub look: Option<Look>,
}

impl ShardReport {
    /// Returns `true` if all required rows of the part exist.
    pub fn is_complete(&self) -> bool {
        self.done_before + self.done >= self.wanted
    }
}

/// Executes a part of a campaign, except for the rows in the folder. Publishes the new rows when a
/// range is complete or when the campaign is cancelled.
///
/// # Errors
/// [`CampaignError`]. Rows before a failed injection are published.
pub fn run_shard(
    campaign: &Campaign,
    options: &ShardOptions,
    progress: &mut dyn Progress,
) -> Result<ShardReport, CampaignError> {
    campaign.faults()?;
    let folder = SharedFolder::new(&options.folder);
    folder.create()?;
    let mut attempt = CurrentAttempt::begin(&folder, &options.part)?;
    let result = run(campaign, options, &folder, &mut attempt, progress);
    let record = &mut attempt.record;
    record.state = match &result {
        Ok(report) if report.is_complete() => AttemptState::Done,
        Ok(_) | Err(CampaignError::Interrupted) => AttemptState::Interrupted,
        Err(error) => {
            record.error = Some(error.to_string());
            AttemptState::Failed
        }
    };
    if let Ok(report) = &result {
        (record.done, record.seconds) = (report.done, report.seconds);
    }
    let recorded = attempt.write();
    let report = result?;
    recorded?;
    Ok(report)
}

/// Writes the plan of a campaign to its folder and executes the golden run, for later shards whose
/// faults are injected with `path`.
///
/// # Errors
/// [`CampaignError`].
pub(crate) fn plan_shards(
    campaign: &Campaign,
    folder: &Path,
    path: Option<InjectionPath>,
    progress: &mut dyn Progress,
) -> Result<ShardPlan, CampaignError> {
    campaign.faults()?;
    let folder = SharedFolder::new(folder);
    folder.create()?;
    let path = injection_path(campaign, path)?;
    progress.phase(Phase::Preparing);
    let compiled = compile(&folder, campaign)?;
    let runner = runner(&compiled.campaign, path)?;
    let options = InjectOptions { accelerations: Accelerations::ALL, workers: NonZeroUsize::MIN };
    let ready = Ready::new(&compiled, &folder, path, &*runner, options, progress)?;
    let plan = ready.experiment.plan(&ready.experiment.scheme.monitor())?;
    let planned = ready.shard_plan();
    if !planned.is_published(&folder)? {
        ready.experiment.check_deterministic(&plan, ready.recorded)?;
        planned.publish(&folder)?;
    }
    Ok(planned)
}

/// A campaign with its assembled program and golden run.
struct Ready<'a> {
    campaign: &'a Campaign,
    space: Space,
    versions: Versions,
    experiment: Experiment<'a>,
    recorded: Option<RecordedRun>,
    made_golden: bool,
}

impl<'a> Ready<'a> {
    fn new(
        Compiled { campaign, compiler }: &'a Compiled,
        folder: &SharedFolder,
        path: InjectionPath,
        runner: &'a dyn Runner,
        InjectOptions { accelerations, workers }: InjectOptions,
        progress: &mut dyn Progress,
    ) -> Result<Ready<'a>, CampaignError> {
        let prepared = runner.prepared();
        progress.phase(Phase::Golden);
        let needs_footprints = accelerations.checkpoints && runner.uses_checkpoints();
        let faults = campaign.faults()?;
        let drawn = faults.sample.draws(faults.stratification);
        let space = Space::new(campaign, prepared, path, &drawn)?;
        let key = space.golden_key(campaign, store::FORMAT, needs_footprints);
        let golden = load_or_profile(folder, &key, campaign, prepared, needs_footprints, workers)?;
        let ProfiledGolden { reference, profile, fidelity, recorded, is_new } = golden;
        let experiment = Experiment::new(campaign, runner, reference, fidelity, profile)?;
        let versions = Versions { compiler: compiler.clone(), ..Versions::new(prepared) };
        Ok(Ready { campaign, space, versions, experiment, recorded, made_golden: is_new })
    }

    fn shard_plan(&self) -> ShardPlan {
        let scheme = &self.experiment.scheme;
        ShardPlan {
            format: ShardPlan::FORMAT,
            facts: self.experiment.facts(self.versions.clone()),
            space: self.space.sites.clone(),
            count: scheme.count(),
            results: self.campaign.format,
            until: scheme.until.clone(),
            pilot: scheme.pilot.clone(),
        }
    }
}

fn run(
    campaign: &Campaign,
    options: &ShardOptions,
    folder: &SharedFolder,
    attempt: &mut CurrentAttempt,
    progress: &mut dyn Progress,
) -> Result<ShardReport, CampaignError> {
    let clock = Instant::now();
    let path = injection_path(campaign, options.path)?;
    progress.phase(Phase::Preparing);
    let compiled = compile(folder, campaign)?;
    let runner = runner(&compiled.campaign, path)?;
    let ShardOptions { accelerations, workers, .. } = *options;
    let inject_options = InjectOptions { accelerations, workers };
    let mut ready = Ready::new(&compiled, folder, path, &*runner, inject_options, progress)?;
    let recorded = ready.recorded.take();
    let report = ShardReport { made_golden: ready.made_golden, ..ShardReport::default() };
    progress.phase(Phase::Planning);
    let planned = ready.shard_plan();
    let is_published = planned.is_published(folder)?;
    let scheme = &ready.experiment.scheme;
    let ranges = options.part.indices_by_stage(&planned.stages());
    let monitor = scheme.monitor();
    let ready = &ready;
    let mut shard =
        Shard { options, folder, ready, planned, recorded, is_published, clock, report };
    let Some(pilot) = &scheme.pilot else {
        shard.inject(&monitor, ranges, attempt, progress)?;
        return Ok(shard.report);
    };
    // The pilot determines the allocation of the other injections.
    let (first, rest) = ranges.into_iter().partition(|range| range.end <= pilot.count);
    shard.inject(&monitor, first, attempt, progress)?;
    if !rest.is_empty() && !campaign.cancellation.is_stopped() {
        let missing = shard.missing_of_pilot(pilot.count, attempt)?;
        shard.inject(&monitor, missing, attempt, progress)?;
    }
    if !rest.is_empty() && !campaign.cancellation.is_stopped() {
        let monitor = shard.pilot_monitor(pilot.count)?;
        shard.inject(&monitor, rest, attempt, progress)?;
    }
    Ok(shard.report)
}

/// Time without progress after which a shard no longer waits for other shards to complete the
/// pilot.
const PATIENCE: Duration = Duration::from_secs(10);

/// Largest age of a listing of a shared folder. NFS caches listings for at most a minute.
const MAX_LISTING_AGE: Duration = Duration::from_secs(60);

/// Interval between two reads of the shared folder while a shard waits for rows of other shards.
const PAUSE: Duration = Duration::from_millis(200);

/// A running shard.
struct Shard<'a> {
    options: &'a ShardOptions,
    folder: &'a SharedFolder,
    ready: &'a Ready<'a>,
    planned: ShardPlan,
    recorded: Option<RecordedRun>,
    /// `true` once the plan is in the folder.
    is_published: bool,
    /// Start of the shard.
    clock: Instant,
    report: ShardReport,
}

impl Shard<'_> {
    fn rows_key(&self) -> RowsKey<'_> {
        RowsKey { space: &self.planned.space, seed: self.planned.facts.campaign.seed }
    }

    /// Waits for other shards and returns the injections of the pilot that none of them completes.
    fn missing_of_pilot(
        &self,
        count: u64,
        attempt: &mut CurrentAttempt,
    ) -> Result<Vec<Range<u64>>, CampaignError> {
        let pilot = 0..count;
        let (mut known, mut since) = (Vec::new(), Instant::now());
        loop {
            let missing =
                gaps(pilot.clone(), undamaged_ranges(self.folder, self.rows_key(), &pilot)?);
            if missing != known {
                since = Instant::now();
                known.clone_from(&missing);
            }
            let is_alone = !attempt.others_are_running(self.folder)?;
            let is_stopped = self.ready.campaign.cancellation.is_stopped();
            if missing.is_empty() || is_alone || is_stopped || since.elapsed() > PATIENCE {
                return Ok(missing);
            }
            thread::sleep(PAUSE);
        }
    }

    /// The monitor after the pilot. Waits for rows that are not yet visible on this machine.
    fn pilot_monitor(&self, count: u64) -> Result<CampaignMonitor, ShardError> {
        let clock = Instant::now();
        loop {
            match Shards::find(self.folder, self.planned.clone())?.monitor(count) {
                Err(ShardError::Missing { .. }) if clock.elapsed() < MAX_LISTING_AGE => {
                    thread::sleep(PAUSE);
                }
                monitor => return monitor,
            }
        }
    }

    /// Injects the faults of `ranges` whose rows are not in the folder, until the campaign's goal
    /// is met. `monitor` contains the rows that the plan depends on.
    fn inject(
        &mut self,
        monitor: &CampaignMonitor,
        ranges: Vec<Range<u64>>,
        attempt: &mut CurrentAttempt,
        progress: &mut dyn Progress,
    ) -> Result<(), CampaignError> {
        let left = self.missing(ranges)?;
        let Some(first) = left.first() else { return Ok(()) };
        let experiment = &self.ready.experiment;
        let plan = experiment.plan(monitor)?;
        let is_last = plan.count() == self.planned.count;
        let recorded = if is_last { self.recorded.take() } else { self.recorded.clone() };
        let ShardOptions { accelerations, workers, .. } = *self.options;
        let inject_options = InjectOptions { accelerations, workers };
        let first = Batches::first(first);
        experiment.with_injections(&plan, first, recorded, inject_options, |injections| {
            if !self.is_published {
                self.planned.publish(self.folder)?;
                self.is_published = true;
            }
            self.ready.campaign.unless_cancelled(Ok(()))?;
            if self.report.start_seconds == 0.0 {
                self.report.start_seconds = self.clock.elapsed().as_secs_f64();
                attempt.record.start_seconds = self.report.start_seconds;
            }
            progress.phase(Phase::Injecting { count: left.iter().map(length).sum() });
            self.inject_ranges(injections, left, attempt, progress)
        })
    }

    /// Parts of `ranges` whose rows are not in the folder, up to the first range that is not
    /// required.
    fn missing(&mut self, ranges: Vec<Range<u64>>) -> Result<Vec<Range<u64>>, CampaignError> {
        let mut left = Vec::new();
        self.update_look()?;
        for range in ranges {
            if !self.is_required(&range) {
                break;
            }
            let missing =
                gaps(range.clone(), undamaged_ranges(self.folder, self.rows_key(), &range)?);
            self.report.wanted += length(&range);
            self.report.done_before += length(&range) - missing.iter().map(length).sum::<u64>();
            left.extend(missing);
        }
        Ok(left)
    }

    /// Injects ranges of faults one after another, and publishes the rows of each.
    fn inject_ranges(
        &mut self,
        injections: &mut Injections<'_>,
        ranges: Vec<Range<u64>>,
        attempt: &mut CurrentAttempt,
        progress: &mut dyn Progress,
    ) -> Result<(), CampaignError> {
        let (clock, seconds) = (Instant::now(), self.report.seconds);
        for range in ranges {
            if !self.is_required(&range) {
                self.report.wanted -= length(&range);
                continue;
            }
            let mut writer =
                ShardWriter::create(&self.options.scratch, self.rows_key(), range.start)?;
            let done = &mut self.report.done;
            let injected = injections.inject(range, |row| {
                writer.write(&row)?;
                progress.injected(row.outcome);
                *done += 1;
                attempt.progress(*done, seconds + clock.elapsed().as_secs_f64())?;
                Ok(ControlFlow::Continue(()))
            });
            // Publishes the rows before a failure or cancellation, too.
            self.report.bytes += writer.publish(self.folder)?;
            self.report.seconds = seconds + clock.elapsed().as_secs_f64();
            match injected {
                Ok(()) if self.ready.campaign.cancellation.is_stopped() => break,
                Err(CampaignError::Interrupted) => break,
                injected => injected?,
            }
            self.update_look()?;
        }
        Ok(())
    }

    /// Updates the last interim look of the report.
    fn update_look(&mut self) -> Result<(), CampaignError> {
        self.report.look = looks::update(self.folder, &self.planned)?.pop();
        Ok(())
    }

    /// Returns `true` if the injections are required: the goal was not met before them at the last
    /// look.
    fn is_required(&self, range: &Range<u64>) -> bool {
        let last = self.report.look.as_ref().filter(|look| look.is_goal_met());
        last.is_none_or(|look| range.start < look.injections)
    }
}

/// Number of injections in a range.
fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}
