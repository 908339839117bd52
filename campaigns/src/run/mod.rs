//! Runs a campaign, from its file to its results.

pub mod batches;
pub mod due_cause;
pub mod experiment;
pub mod injection_path;
pub mod outcome;
pub mod process_site;
pub mod progress;
pub mod reorder;
pub mod resume;
pub mod runners;
pub mod self_test;
pub mod workers;

use crate::application::ApplicationGpus;
use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::file::device::CampaignDevice;
use crate::file::faults::Faults;
use crate::file::schema::ResultsFormat;
use crate::golden::profiled;
use crate::program::prepare::Origin;
use crate::results::folder::{self, FolderError, PARQUET, RATES, RECORD, RESULTS, SUMMARY};
use crate::results::lock::FolderLock;
use crate::results::record::{Counts, Host, Record, Status, Timings, Versions};
use crate::results::{ResultsFile, write_columns, write_summary};
use crate::run::batches::Batches;
use crate::run::experiment::{Experiment, InjectOptions, Injections};
use crate::run::injection_path::InjectionPath;
use crate::run::progress::{Phase, Progress};
use crate::run::resume::read_existing_rows;
use crate::run::runners::{Runner, runner};
use crate::run::self_test::SelfTest;
use flipwave_analysis::{CampaignMonitor, Outcome, Summary};
use flipwave_injector::{Accelerations, FaultTarget, Plan, RecordedRun};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

/// Options of a run. None of them changes `results.csv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Results folder.
    pub folder: PathBuf,
    /// Worker threads.
    pub workers: NonZeroUsize,
    /// Keep the rows that an earlier run of the same campaign has written to the folder.
    pub resume: bool,
    /// Replace results in the folder, even those of another campaign.
    pub force: bool,
    /// Take the folder over from a run that is not visible from this machine.
    pub take_over: bool,
    /// Optimizations of injections.
    pub accelerations: Accelerations,
    /// Injection mechanism; `None` for the default of the campaign's device.
    pub path: Option<InjectionPath>,
    /// Inject faults with known outcomes first.
    pub self_test: bool,
}

impl RunOptions {
    /// The default options of a run into `folder`.
    pub fn new(folder: PathBuf, workers: NonZeroUsize) -> RunOptions {
        RunOptions {
            folder,
            workers,
            resume: false,
            force: false,
            take_over: false,
            accelerations: Accelerations::ALL,
            path: None,
            self_test: false,
        }
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The content of `run.json`.
    pub record: Record,
    /// The rates in `summary.csv`.
    pub summary: Summary,
    /// Result of the self-test, if enabled.
    pub self_test: Option<SelfTest>,
    /// The files written, the table of injections first.
    pub files: Vec<PathBuf>,
}

/// Runs a campaign. Each row is written to `results.csv` as soon as all rows before it have been
/// written.
///
/// If the campaign is cancelled, running injections end without an outcome, and the status of the
/// report is [`Status::Interrupted`].
///
/// # Errors
/// [`CampaignError`]. If an injection fails, the rows before it stay on disk, and `run.json`
/// contains the error. If the campaign is cancelled before the first injection, the error of the
/// current run, with its location, or [`CampaignError::Interrupted`].
pub fn run(
    campaign: &Campaign,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Report, CampaignError> {
    let path = injection_path(campaign, options.path)?;
    run_on(campaign, options, progress, || runner(campaign, path))
}

/// Runs a campaign on the runner that `make` returns.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_on<'r>(
    campaign: &Campaign,
    options: &RunOptions,
    progress: &mut dyn Progress,
    make: impl FnOnce() -> Result<Box<dyn Runner + 'r>, CampaignError>,
) -> Result<Report, CampaignError> {
    let faults = campaign.faults()?;
    let lock = FolderLock::take(&options.folder, options.take_over).map_err(FolderError::from)?;
    folder::check_files(&options.folder)?;
    if !options.force || options.resume {
        folder::check(&options.folder, &campaign.content, campaign.seed)?;
    }
    if !options.force && !options.resume {
        folder::check_no_results(&options.folder)?;
    }
    if options.self_test && campaign.device().is_hardware() {
        return Err(campaign.requires_embedded("the self-test"));
    }
    let mut timings = Timings::default();
    progress.phase(Phase::Preparing);
    let runner = timed(&mut timings.prepare, make)?;
    if let Origin::Recording { warnings } = &runner.prepared().origin {
        warnings.iter().for_each(|warning| progress.warn(warning));
    }
    progress.phase(Phase::Golden);
    let uses_checkpoints = options.accelerations.checkpoints && runner.uses_checkpoints();
    let survey = timed(&mut timings.golden, || {
        profiled(campaign, runner.prepared(), uses_checkpoints, options.workers)
    })?;
    let (experiment, recorded) = Experiment::from_profiled_run(campaign, &*runner, survey)?;
    progress.phase(Phase::Planning);
    let run = Run { campaign, faults, options, runner: &*runner, experiment: &experiment };
    let record = Record { timings, ..run.record() };
    run.inject_all(&lock, recorded, record, progress)
}

/// Returns the injection mechanism of a campaign: `path` if given, otherwise the default of its
/// device.
///
/// # Errors
/// [`CampaignError::RequiresEmbedded`], [`CampaignError::UnreachableWithHooks`],
/// [`CampaignError::OtherPlatform`].
pub(crate) fn injection_path(
    campaign: &Campaign,
    path: Option<InjectionPath>,
) -> Result<InjectionPath, CampaignError> {
    let path = match (campaign.device().is_hardware(), path) {
        (false, path) => path.unwrap_or_default(),
        (true, Some(InjectionPath::Embedded)) => {
            return Err(campaign.requires_embedded("injection inside the GPU"));
        }
        (true, _) => InjectionPath::Hook,
    };
    if path == InjectionPath::Hook {
        if let CampaignWorkload::Application(application) = &campaign.workload
            && application.gpus != ApplicationGpus::default()
        {
            return Err(CampaignError::SeveralGpus);
        }
        let hooks = campaign.target.hooks()?;
        if let Some(faults) = &campaign.faults {
            hooks.check_target(faults.fault.target)?;
        }
    }
    match campaign.faults.as_ref().map(|faults| faults.fault.target) {
        Some(FaultTarget::Scratch) if campaign.device() == CampaignDevice::Cuda => {
            Err(CampaignError::UnreachableOnCuda(FaultTarget::Scratch))
        }
        Some(target) if path == InjectionPath::Hook && target.part_of_sum().is_some() => {
            Err(CampaignError::UnreachableWithHooks(target))
        }
        _ => Ok(path),
    }
}

/// A run of a whole campaign.
struct Run<'a> {
    campaign: &'a Campaign,
    faults: &'a Faults,
    options: &'a RunOptions,
    runner: &'a dyn Runner,
    experiment: &'a Experiment<'a>,
}

/// Progress of a run.
struct State<'a> {
    lock: &'a FolderLock,
    record: Record,
    monitor: CampaignMonitor,
    /// The file of the rows; `None` before the first injection.
    file: Option<ResultsFile<'a>>,
    recorded: Option<RecordedRun>,
    self_test: Option<SelfTest>,
}

impl Run<'_> {
    /// Injects the faults that have no rows in the folder.
    fn inject_all(
        &self,
        lock: &FolderLock,
        recorded: Option<RecordedRun>,
        mut record: Record,
        progress: &mut dyn Progress,
    ) -> Result<Report, CampaignError> {
        let Run { campaign, options, experiment, .. } = *self;
        let mut monitor = experiment.scheme.monitor();
        if options.resume {
            let plan = |monitor: &CampaignMonitor| experiment.plan(monitor);
            let prepared = experiment.prepared();
            read_existing_rows(lock, &mut monitor, prepared, plan, |row| {
                record.done.add(row.outcome);
            })?;
        }
        let done_before = monitor.count();
        let mut state = State { lock, record, monitor, file: None, recorded, self_test: None };
        let injected = loop {
            let plan = experiment.plan(&state.monitor)?;
            let was_allocated = state.monitor.standard_deviations().is_some();
            let injected = match (self.inject_plan(&plan, &mut state, progress), &state.file) {
                // Nothing was written, so there is no record to update.
                (Err(error), None) => return Err(error),
                (injected, _) => injected,
            };
            // After the pilot, the remaining faults are allocated to the strata.
            let is_allocated = state.monitor.standard_deviations().is_some();
            let was_pilot = is_allocated && !was_allocated;
            if injected.is_err() || !was_pilot || state.monitor.is_goal_met() {
                break injected;
            }
        };
        let State { mut record, monitor, self_test, .. } = state;
        let done = record.done.total();
        record.injections_per_second = (done - done_before) as f64 / record.timings.inject;
        record.looks = monitor.looks().to_vec();
        let injected = match injected {
            Err(CampaignError::Interrupted) => Ok(()),
            injected => injected,
        };
        record.status = match &injected {
            Err(_) => Status::Failed,
            Ok(()) if done < record.planned && !monitor.is_goal_met() => Status::Interrupted,
            Ok(()) => Status::Complete,
        };
        record.error = injected.as_ref().err().map(CampaignError::to_string);
        let summary = monitor.summary();
        let summarised = write_summary(lock, &campaign.name, &summary);
        let columns = match record.status {
            Status::Complete => write_columns(lock, campaign.format),
            _ => Ok(()),
        };
        let recorded = record.write(lock);
        // A full disk, or a folder that was taken over, makes all four fail; the first error is the
        // cause.
        injected?;
        summarised?;
        columns?;
        recorded?;
        let has_columns =
            campaign.format == ResultsFormat::Parquet && record.status == Status::Complete;
        let names = [RESULTS, SUMMARY, RATES, RECORD].into_iter();
        let names = names.chain(has_columns.then_some(PARQUET));
        let files = names.map(|name| options.folder.join(name)).collect();
        Ok(Report { record, summary, self_test, files })
    }

    /// Injects the faults of a plan that have no rows yet, until the goal is met.
    fn inject_plan(
        &self,
        plan: &Plan<'_>,
        state: &mut State<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), CampaignError> {
        let Run { campaign, options, runner, experiment, .. } = *self;
        let part = state.monitor.count()..plan.count();
        let is_last = plan.count() == experiment.scheme.count();
        let recorded = if is_last { state.recorded.take() } else { state.recorded.clone() };
        let inject_options =
            InjectOptions { accelerations: options.accelerations, workers: options.workers };
        let (first, clock) = (Batches::first(&part), Instant::now());
        experiment.with_injections(plan, first, recorded, inject_options, |injections| {
            state.record.timings.rehearsal += clock.elapsed().as_secs_f64();
            let file = match &mut state.file {
                Some(file) => file,
                none => {
                    let record = &mut state.record;
                    if options.self_test {
                        progress.phase(Phase::SelfTest);
                        let Injections { injector, classifier, .. } = *injections;
                        let prepared = runner.prepared();
                        let tested = self_test::self_test(prepared, plan, injector, classifier);
                        // A cancelled self-test has no result.
                        state.self_test = Some(campaign.unless_cancelled(tested)?);
                    }
                    campaign.unless_cancelled(Ok(()))?;
                    none.insert(begin(state.lock, record, progress)?)
                }
            };
            if state.monitor.is_goal_met() {
                return Ok(());
            }
            let clock = Instant::now();
            let (monitor, done) = (&mut state.monitor, &mut state.record.done);
            let injected = injections.inject(part, |row| {
                file.write(&row)?;
                progress.injected(row.outcome);
                done.add(row.outcome);
                let looks = monitor.looks().len();
                monitor.add(&row);
                monitor.looks()[looks..].iter().for_each(|look| progress.look(look));
                Ok(if monitor.is_goal_met() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                })
            });
            state.record.timings.inject += clock.elapsed().as_secs_f64();
            injected
        })
    }

    /// The record before the first injection.
    fn record(&self) -> Record {
        Record {
            status: Status::Running,
            error: None,
            facts: self.experiment.facts(Versions::new(self.runner.prepared())),
            host: Host::current(),
            workers: self.options.workers.get(),
            planned: self.experiment.scheme.count(),
            confidence: self.faults.sample.confidence.probability(),
            looks: Vec::new(),
            done: Counts::default(),
            timings: Timings::default(),
            injections_per_second: 0.0,
        }
    }
}

/// Opens the table for the next row.
fn begin<'a>(
    lock: &'a FolderLock,
    record: &Record,
    progress: &mut dyn Progress,
) -> Result<ResultsFile<'a>, CampaignError> {
    let is_new = record.done.total() == 0;
    if is_new {
        folder::clear(lock)?;
    }
    record.write(lock)?;
    progress.phase(Phase::Injecting { count: record.planned });
    let file = if is_new { ResultsFile::create(lock)? } else { ResultsFile::append(lock)? };
    for outcome in Outcome::ALL {
        (0..record.done.get(outcome)).for_each(|_| progress.injected(outcome));
    }
    Ok(file)
}

/// Executes `step` and stores its duration in `seconds`.
fn timed<T>(seconds: &mut f64, step: impl FnOnce() -> T) -> T {
    let clock = Instant::now();
    let result = step();
    *seconds = clock.elapsed().as_secs_f64();
    result
}
