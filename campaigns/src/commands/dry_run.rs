//! What a campaign would be, without being it.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::golden::surveyed;
use crate::run::experiment::{Experiment, InjectOptions};
use crate::run::progress::{Phase, Progress};
use crate::run::runners::runner;
use crate::run::{RunOptions, injection_path};
use flipwave_injector::FaultSpace;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// Injections that are tried at most, and for how long others are begun.
const TRIALS: u64 = 16;
const TRIAL_TIME: Duration = Duration::from_secs(5);

/// What a campaign would be.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// What faults are drawn from.
    pub population: FaultSpace,
    /// The fault, in words.
    pub fault: String,
    /// How the population was counted, in words.
    pub counted: String,
    /// How many faults, at most where the campaign ends when enough is known.
    pub planned: u64,
    /// Whether it can end earlier.
    pub ends_early: bool,
    /// Compiling, loading, filling buffers, and the runs without a fault.
    pub start: Duration,
    /// The fault-free run, in which is counted what can be hit.
    pub golden: Duration,
    /// Injections that were tried; nothing is kept of them.
    pub trials: u64,
    /// All of these.
    pub tried: Duration,
}

impl DryRun {
    /// How long the campaign will take with this many workers, as far as the injections that were
    /// tried say: each worker makes one after another.
    pub fn estimate(&self, workers: NonZeroUsize) -> Duration {
        let each = self.tried.as_secs_f64() / self.trials.max(1) as f64;
        let seconds = each * self.planned as f64 / workers.get() as f64;
        self.start.saturating_add(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }
}

/// Does all that a campaign does before its first injection, and tries some of its injections, spread
/// over all. Nothing is written. Of `options` those count that say how faults are injected.
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
    let survey = surveyed(campaign, runner.prepared(), uses_checkpoints, options.workers)?;
    let golden_time = golden_clock.elapsed();
    let (experiment, recorded) = Experiment::from_profiled_run(campaign, &*runner, survey)?;
    progress.phase(Phase::Planning);
    let plan = experiment.plan(&experiment.scheme.monitor())?;
    let trials = plan.count().min(TRIALS);
    let spread =
        |trial: u64| (u128::from(trial) * u128::from(plan.count()) / u128::from(trials)) as u64;
    let indices = (0..trials).map(spread);
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
                campaign.unless_stopped(injections.inject_one(spread(number), planned))?;
                tried += 1;
            }
            Ok((start, tried, clock.elapsed()))
        })?;
    Ok(DryRun {
        population: experiment.profile.population.clone(),
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
