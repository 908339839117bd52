//! `flipwave run --dry-run`: estimates the duration of a campaign.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::golden::profiled;
use crate::run::experiment::{Experiment, InjectOptions};
use crate::run::progress::{Phase, Progress};
use crate::run::runners::runner;
use crate::run::{RunOptions, injection_path};
use flipwave_injector::FaultSpace;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// Largest number of trial injections.
const TRIALS: u64 = 16;
/// Time after which no further trial injection is started.
const TRIAL_TIME: Duration = Duration::from_secs(5);

/// Size and estimated duration of a campaign.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// The fault space.
    pub fault_space: FaultSpace,
    /// Description of the fault.
    pub fault: String,
    /// Description of how the fault space was counted.
    pub counted: String,
    /// Number of planned injections; the upper limit with a stopping rule.
    pub planned: u64,
    /// `true` if a stopping rule can end the campaign earlier.
    pub ends_early: bool,
    /// Duration of compilation, loading, initialization of buffers, and golden runs.
    pub start: Duration,
    /// Duration of the golden run with profiling.
    pub golden: Duration,
    /// Number of trial injections. Their results are discarded.
    pub trials: u64,
    /// Total duration of the trial injections.
    pub tried: Duration,
}

impl DryRun {
    /// Estimates the duration of the campaign with this number of workers, from the average
    /// duration of the trial injections.
    pub fn estimate(&self, workers: NonZeroUsize) -> Duration {
        let each = self.tried.as_secs_f64() / self.trials.max(1) as f64;
        let seconds = each * self.planned as f64 / workers.get() as f64;
        self.start.saturating_add(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }
}

/// Prepares a campaign and executes some of its injections as trials, without writing anything.
/// Uses only the options that affect injections.
///
/// # Errors
/// As [`run`](crate::run()).
pub fn dry_run(
    campaign: &Campaign,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<DryRun, CampaignError> {
    let path = injection_path(campaign, options.path)?;
    let clock = Instant::now();
    progress.phase(Phase::Preparing);
    let runner = runner(campaign, path)?;
    progress.phase(Phase::Golden);
    let uses_checkpoints = options.accelerations.checkpoints && runner.uses_checkpoints();
    let golden_clock = Instant::now();
    let survey = profiled(campaign, runner.prepared(), uses_checkpoints, options.workers)?;
    let golden_time = golden_clock.elapsed();
    let (experiment, recorded) = Experiment::from_profiled_run(campaign, &*runner, survey)?;
    progress.phase(Phase::Planning);
    let plan = experiment.plan(&experiment.scheme.monitor())?;
    let trials = plan.count().min(TRIALS);
    let index_of =
        |trial: u64| (u128::from(trial) * u128::from(plan.count()) / u128::from(trials)) as u64;
    let indices = (0..trials).map(index_of);
    let inject_options =
        InjectOptions { accelerations: options.accelerations, workers: options.workers };
    let (start, tried, time) =
        experiment.with_injections(&plan, indices, recorded, inject_options, |injections| {
            let (start, clock) = (clock.elapsed(), Instant::now());
            let mut tried = 0;
            for (number, planned) in (0..).zip(injections.first_faults()) {
                if clock.elapsed() > TRIAL_TIME {
                    break;
                }
                campaign.unless_cancelled(injections.inject_one(index_of(number), planned))?;
                tried += 1;
            }
            Ok((start, tried, clock.elapsed()))
        })?;
    Ok(DryRun {
        fault_space: experiment.profile.fault_space.clone(),
        fault: experiment.faults.fault.to_string(),
        counted: experiment.profile.counted(),
        planned: experiment.scheme.count(),
        ends_early: experiment.scheme.until.is_some(),
        start,
        golden: golden_time,
        trials: tried,
        tried: time,
    })
}
