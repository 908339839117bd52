//! One shard, from the campaign's file to its rows in the shared folder.

use super::attempt::{AttemptState, OwnAttempt};
use super::code::{Compiled, compiled};
use super::error::ShardError;
use super::file::{Of, ShardWriter, checked};
use super::layout::SharedFolder;
use super::looks;
use super::part::{Part, gaps};
use super::plan::ShardPlan;
use super::rows::Shards;
use super::space::Space;
use super::store::{self, Surveyed, survey};
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

/// How a shard is run. None of it changes its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardOptions {
    /// Where the results of all shards go.
    pub folder: PathBuf,
    /// What of the campaign is done.
    pub part: Part,
    /// Worker threads.
    pub workers: NonZeroUsize,
    /// A folder of this machine, where rows are until the shard is done.
    pub scratch: PathBuf,
    /// The ways to be faster that are taken.
    pub accelerations: Accelerations,
    /// How faults are injected, if not as the campaign's device does it.
    pub path: Option<InjectionPath>,
}

/// What a shard came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardReport {
    /// Injections of the part that are wanted.
    pub wanted: u64,
    /// Rows of them that were there before.
    pub done_before: u64,
    /// Rows that were made.
    pub done: u64,
    /// Bytes that were written to the shared folder.
    pub bytes: u64,
    /// Whether the fault-free run was made here, and not read.
    pub made_golden: bool,
    /// Seconds from the beginning to the first injection.
    pub start_seconds: f64,
    /// Seconds that the injections took.
    pub seconds: f64,
    /// What was known of the campaign at its last look, where it ends when enough is.
    pub look: Option<Look>,
}

impl ShardReport {
    /// Whether all of the part is there that is wanted.
    pub fn is_complete(&self) -> bool {
        self.done_before + self.done >= self.wanted
    }
}

/// Runs a part of a campaign. What of it is in the folder is not done again; what is done goes there
/// when it is finished, or when the campaign is cancelled.
///
/// # Errors
/// [`CampaignError`]. The rows before an injection that failed are kept.
pub fn run_shard(
    campaign: &Campaign,
    options: &ShardOptions,
    progress: &mut dyn Progress,
) -> Result<ShardReport, CampaignError> {
    campaign.faults()?;
    let folder = SharedFolder::new(&options.folder);
    folder.make()?;
    let mut attempt = OwnAttempt::begin(&folder, &options.part)?;
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

/// Writes the plan of a campaign into its folder, and makes its fault-free run, for shards to come
/// whose faults are injected along `path`.
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
    folder.make()?;
    let path = injection_path(campaign, path)?;
    progress.phase(Phase::Preparing);
    let compiled = compiled(&folder, campaign)?;
    let runner = runner(&compiled.campaign, path)?;
    let ready = Ready::new(
        &compiled,
        (Accelerations::ALL, NonZeroUsize::MIN),
        (&folder, path),
        &*runner,
        progress,
    )?;
    let plan = ready.experiment.plan(&ready.experiment.scheme.monitor())?;
    let planned = ready.shard_plan();
    if !planned.is_there(&folder)? {
        ready.experiment.check_deterministic(&plan, ready.recorded)?;
        planned.publish(&folder)?;
    }
    Ok(planned)
}

/// A campaign whose program and fault-free run are there.
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
        (accelerations, threads): (Accelerations, NonZeroUsize),
        (folder, path): (&SharedFolder, InjectionPath),
        runner: &'a dyn Runner,
        progress: &mut dyn Progress,
    ) -> Result<Ready<'a>, CampaignError> {
        let prepared = runner.prepared();
        progress.phase(Phase::Golden);
        let touches = accelerations.checkpoints && runner.uses_checkpoints();
        let faults = campaign.faults()?;
        let drawn = faults.sample.draws(faults.stratification);
        let space = Space::of(campaign, prepared, path, &drawn)?;
        let key = space.survey(campaign, store::FORMAT, touches);
        let Surveyed { reference, profile, fidelity, recorded, is_new } =
            survey(folder, &key, campaign, prepared, (touches, threads))?;
        let experiment = Experiment::new(campaign, runner, reference, fidelity, profile)?;
        let versions = Versions { compiler: compiler.clone(), ..Versions::of(prepared) };
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
    attempt: &mut OwnAttempt,
    progress: &mut dyn Progress,
) -> Result<ShardReport, CampaignError> {
    let clock = Instant::now();
    let path = injection_path(campaign, options.path)?;
    progress.phase(Phase::Preparing);
    let compiled = compiled(folder, campaign)?;
    let runner = runner(&compiled.campaign, path)?;
    let mut ready = Ready::new(
        &compiled,
        (options.accelerations, options.workers),
        (folder, path),
        &*runner,
        progress,
    )?;
    let recorded = ready.recorded.take();
    let report = ShardReport { made_golden: ready.made_golden, ..ShardReport::default() };
    progress.phase(Phase::Planning);
    let planned = ready.shard_plan();
    let is_published = planned.is_there(folder)?;
    let scheme = &ready.experiment.scheme;
    let ranges = options.part.of_stages(&planned.stages());
    let monitor = scheme.monitor();
    let ready = &ready;
    let mut shard =
        Shard { options, folder, ready, planned, recorded, is_published, clock, report };
    let Some(pilot) = &scheme.pilot else {
        shard.inject(&monitor, ranges, attempt, progress)?;
        return Ok(shard.report);
    };
    // The pilot shows how the others are drawn.
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

/// How long is waited for those who do the rest of the pilot, after the last that was seen of them.
const PATIENCE: Duration = Duration::from_secs(10);

/// How old a listing of a shared folder can be: NFS keeps those of folders for a minute at most.
const OLD_LISTING: Duration = Duration::from_secs(60);

/// How long is waited between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// A shard under way.
struct Shard<'a> {
    options: &'a ShardOptions,
    folder: &'a SharedFolder,
    ready: &'a Ready<'a>,
    planned: ShardPlan,
    recorded: Option<RecordedRun>,
    /// `true` once the plan is in the folder.
    is_published: bool,
    /// Runs since the shard began.
    clock: Instant,
    report: ShardReport,
}

impl Shard<'_> {
    fn of(&self) -> Of<'_> {
        Of { space: &self.planned.space, seed: self.planned.facts.campaign.seed }
    }

    /// What of the pilot no other shard does.
    fn missing_of_pilot(
        &self,
        count: u64,
        attempt: &mut OwnAttempt,
    ) -> Result<Vec<Range<u64>>, CampaignError> {
        let pilot = 0..count;
        let (mut known, mut since) = (Vec::new(), Instant::now());
        loop {
            let missing = gaps(pilot.clone(), checked(self.folder, self.of(), &pilot)?);
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

    /// The monitor after the pilot, whose rows are in the folder, though they may not be seen yet.
    fn pilot_monitor(&self, count: u64) -> Result<CampaignMonitor, ShardError> {
        let clock = Instant::now();
        loop {
            match Shards::of(self.folder, self.planned.clone())?.monitor(count) {
                Err(ShardError::Missing { .. }) if clock.elapsed() < OLD_LISTING => {
                    thread::sleep(PAUSE);
                }
                monitor => return monitor,
            }
        }
    }

    /// Injects the faults of `ranges` whose rows are not in the folder, as long as they are wanted. `monitor`
    /// is the progress of the campaign, on which the plan depends.
    fn inject(
        &mut self,
        monitor: &CampaignMonitor,
        ranges: Vec<Range<u64>>,
        attempt: &mut OwnAttempt,
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
            self.ready.campaign.unless_stopped(Ok(()))?;
            if self.report.start_seconds == 0.0 {
                self.report.start_seconds = self.clock.elapsed().as_secs_f64();
                attempt.record.start_seconds = self.report.start_seconds;
            }
            progress.phase(Phase::Injecting { count: left.iter().map(length).sum() });
            self.inject_ranges(injections, left, attempt, progress)
        })
    }

    /// The parts of `ranges` whose rows are not in the folder, up to the first range that is not wanted.
    fn missing(&mut self, ranges: Vec<Range<u64>>) -> Result<Vec<Range<u64>>, CampaignError> {
        let mut left = Vec::new();
        self.look()?;
        for range in ranges {
            if !self.is_wanted(&range) {
                break;
            }
            let missing = gaps(range.clone(), checked(self.folder, self.of(), &range)?);
            self.report.wanted += length(&range);
            self.report.done_before += length(&range) - missing.iter().map(length).sum::<u64>();
            left.extend(missing);
        }
        Ok(left)
    }

    /// Injects ranges of faults one after another, and puts the rows of each into the folder.
    fn inject_ranges(
        &mut self,
        injections: &mut Injections<'_>,
        ranges: Vec<Range<u64>>,
        attempt: &mut OwnAttempt,
        progress: &mut dyn Progress,
    ) -> Result<(), CampaignError> {
        let (clock, seconds) = (Instant::now(), self.report.seconds);
        for range in ranges {
            if !self.is_wanted(&range) {
                self.report.wanted -= length(&range);
                continue;
            }
            let mut writer = ShardWriter::create(&self.options.scratch, self.of(), range.start)?;
            let done = &mut self.report.done;
            let injected = injections.inject(range, |row| {
                writer.write(&row)?;
                progress.injected(row.outcome);
                *done += 1;
                attempt.progress(*done, seconds + clock.elapsed().as_secs_f64())?;
                Ok(ControlFlow::Continue(()))
            });
            // Rows before a failure or a stop need not be made again.
            self.report.bytes += writer.publish(self.folder)?;
            self.report.seconds = seconds + clock.elapsed().as_secs_f64();
            match injected {
                Ok(()) if self.ready.campaign.cancellation.is_stopped() => break,
                Err(CampaignError::Interrupted) => break,
                injected => injected?,
            }
            self.look()?;
        }
        Ok(())
    }

    /// Looks what is known of the campaign.
    fn look(&mut self) -> Result<(), CampaignError> {
        self.report.look = looks::look(self.folder, &self.planned)?.pop();
        Ok(())
    }

    /// Whether injections are wanted: not where enough was known without them at the last look.
    fn is_wanted(&self, range: &Range<u64>) -> bool {
        let enough = self.report.look.as_ref().filter(|look| look.is_goal_met());
        enough.is_none_or(|look| range.start < look.injections)
    }
}

/// Injections of a range.
fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}
