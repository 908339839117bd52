//! One shard, from the campaign's file to its rows in the shared folder.

use super::attempt::{AttemptState, OwnAttempt};
use super::code::{Compiled, compiled};
use super::file::{Of, ShardWriter, checked};
use super::layout::SharedFolder;
use super::part::{Part, gaps};
use super::plan::ShardPlan;
use super::space::Space;
use super::store::{Surveyed, survey};
use crate::campaign::Campaign;
use crate::error::CampaignError;
use crate::experiment::{Experiment, Injecting, Rehearsed};
use crate::progress::{Phase, Progress};
use crate::record::{CampaignIdentity, Versions};
use crate::run::injection_path;
use crate::runners::{InjectionPath, Runner, runner};
use crate::windows::Windows;
use flipwave_injector::{Accelerations, FidelityRecord, Plan, Touched};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

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
#[derive(Clone, Debug, PartialEq)]
pub struct ShardReport {
    /// The indices of the part.
    pub part: Range<u64>,
    /// Rows of it that were there before.
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
}

impl ShardReport {
    /// Whether all of the part is there.
    pub fn is_complete(&self) -> bool {
        self.done_before + self.done == self.part.end - self.part.start
    }
}

/// Runs a part of a campaign. What of it is in the folder is not done again; what is done goes there
/// when it is finished, or when the campaign's attendance stops all runs.
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
    let ready = Ready::new(&compiled, Accelerations::ALL, (&folder, path), &*runner, progress)?;
    let plan = ready.experiment.plan()?;
    let planned = ready.shard_plan(&plan, None);
    if !planned.is_there(&folder)? {
        let first = 0..plan.count().min(1);
        let rehearsed = ready.experiment.rehearse(&plan, &first, ready.touched)?;
        let planned = ShardPlan { fidelity: rehearsed.fidelity, ..planned };
        planned.publish(&folder)?;
        return Ok(planned);
    }
    Ok(planned)
}

/// A campaign whose program and fault-free run are there.
struct Ready<'a> {
    campaign: &'a Campaign,
    space: Space,
    versions: Versions,
    experiment: Experiment<'a>,
    touched: Option<Touched>,
    made_golden: bool,
}

impl<'a> Ready<'a> {
    fn new(
        Compiled { campaign, compiler }: &'a Compiled,
        accelerations: Accelerations,
        (folder, path): (&SharedFolder, InjectionPath),
        runner: &'a dyn Runner,
        progress: &mut dyn Progress,
    ) -> Result<Ready<'a>, CampaignError> {
        let prepared = runner.prepared();
        progress.phase(Phase::Golden);
        let touches = accelerations.saved_states && runner.takes_states();
        let drawn = campaign.faults()?.draws();
        let space = Space::of(campaign, prepared, path, &drawn)?;
        let key = space.survey(campaign, touches);
        let Surveyed { reference, profile, touched, is_new } =
            survey(folder, &key, campaign, prepared, touches)?;
        let experiment = Experiment::new(campaign, runner, reference, profile)?;
        let versions = Versions { compiler: compiler.clone(), ..Versions::of(prepared) };
        Ok(Ready { campaign, space, versions, experiment, touched, made_golden: is_new })
    }

    fn shard_plan(&self, plan: &Plan<'_>, fidelity: Option<FidelityRecord>) -> ShardPlan {
        let Experiment { reference, profile, faults, .. } = &self.experiment;
        ShardPlan {
            format: ShardPlan::FORMAT,
            campaign: CampaignIdentity::of(self.campaign, faults),
            space: self.space.sites.clone(),
            count: plan.count(),
            results: self.campaign.format,
            versions: self.versions.clone(),
            population: profile.population.clone(),
            counted: profile.counted(),
            confidence: faults.confidence.probability(),
            golden_wave_instructions: reference.wave_instructions(),
            instruction_limits: reference.instruction_limits(),
            fidelity,
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
    let mut ready =
        Ready::new(&compiled, options.accelerations, (folder, path), &*runner, progress)?;
    let touched = ready.touched.take();
    progress.phase(Phase::Planning);
    let plan = ready.experiment.plan()?;
    let planned = ready.shard_plan(&plan, None);
    let is_planned = planned.is_there(folder)?;
    let of = Of { space: &planned.space, seed: campaign.seed };
    let part = options.part.indices(plan.count());
    let left = gaps(part.clone(), checked(folder, of, &part)?);
    let length = |range: &Range<u64>| range.end - range.start;
    let missing: u64 = left.iter().map(length).sum();
    let mut report = ShardReport {
        done_before: length(&part) - missing,
        part,
        done: 0,
        bytes: 0,
        made_golden: ready.made_golden,
        start_seconds: 0.0,
        seconds: 0.0,
    };
    let Some(first) = left.first() else { return Ok(report) };
    let Rehearsed { golden, fidelity, states, faults } =
        ready.experiment.rehearse(&plan, first, touched)?;
    if !is_planned {
        ShardPlan { fidelity, ..planned.clone() }.publish(folder)?;
    }
    let injector = runner.injector(&golden, states, options.accelerations)?;
    let classifier = ready.experiment.classifier(&golden);
    let injecting = Injecting { injector: &*injector, classifier, workers: options.workers };
    campaign.unless_stopped(Ok(()))?;
    report.start_seconds = clock.elapsed().as_secs_f64();
    attempt.record.start_seconds = report.start_seconds;
    progress.phase(Phase::Injecting { count: missing });
    let clock = Instant::now();
    let mut faults = Some(faults);
    for range in left {
        let mut writer = ShardWriter::create(&options.scratch, of, range.start)?;
        let injected = thread::scope(|scope| {
            let windows = Windows::new(&plan, range.clone(), scope);
            faults.take().into_iter().for_each(|faults| windows.put_first(faults));
            ready.experiment.inject(&windows, injecting, |row| {
                writer.write(&row)?;
                progress.injected(row.outcome);
                report.done += 1;
                Ok(attempt.progress(report.done, clock.elapsed().as_secs_f64())?)
            })
        });
        // What was done before a failure, or before it was to stop, need not be done again.
        report.bytes += writer.publish(folder)?;
        report.seconds = clock.elapsed().as_secs_f64();
        match injected {
            Ok(()) if campaign.attendance.is_stopped() => break,
            Err(CampaignError::Interrupted) => break,
            injected => injected?,
        }
    }
    Ok(report)
}
