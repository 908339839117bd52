//! A campaign from its file to its results.

use crate::campaign::Campaign;
use crate::device::CampaignDevice;
use crate::error::CampaignError;
use crate::faults::{Faults, SampleSize};
use crate::folder::{self, FolderError};
use crate::golden::{check_same, surveyed};
use crate::lock::FolderLock;
use crate::outcome::{Classifier, Verdict};
use crate::prepare::Origin;
use crate::progress::{Phase, Progress};
use crate::record::{
    CampaignIdentity, Counts, Host, Record, Status, Timings, Versions, wave_instructions,
};
use crate::results::{ResultsFile, write_summary};
use crate::resume::rows_left;
use crate::runners::{Inject, InjectionPath, Runner, runner};
use crate::self_test::{self, SelfTest};
use crate::windows::{WINDOW, Windows};
use crate::workers::in_order;
use flipwave_analysis::{Outcome, Row, Summary, Tallies, Workgroup};
use flipwave_injector::{
    Accelerations, Allocation, FidelityRecord, Golden, Lanes, Place, Plan, PlanError, Planned,
    Profile, Rehearsal, Sampling, SavedStates, Struck, Survey, Touched,
};
use std::any::Any;
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

/// How a campaign is run. None of it changes `results.csv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Where the results go.
    pub folder: PathBuf,
    /// Worker threads.
    pub workers: NonZeroUsize,
    /// Go on with what an earlier run of the same campaign has left in the folder.
    pub resume: bool,
    /// Replace results in the folder, of whichever campaign.
    pub force: bool,
    /// Take the folder from another run that cannot be seen from this machine.
    pub take_over: bool,
    /// The ways to be faster that are taken.
    pub accelerations: Accelerations,
    /// How faults are injected, if not as the campaign's device does it.
    pub path: Option<InjectionPath>,
    /// First inject faults whose outcomes are known.
    pub self_test: bool,
}

impl RunOptions {
    /// A run into `folder` as the program does it by default.
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

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it went, as in `run.json`.
    pub record: Record,
    /// Rates, as in `summary.csv`.
    pub summary: Summary,
    /// What the self-test did, if one was asked for.
    pub self_test: Option<SelfTest>,
}

/// Runs a campaign. Each injection is in `results.csv` as soon as all before it are.
///
/// When the campaign's attendance stops all runs, injections under way end without an outcome, and
/// the report says that the run was interrupted.
///
/// # Errors
/// [`CampaignError`]. If an injection fails, the rows before it stay on disk, and `run.json`
/// says what failed. Where runs are to stop before the first injection, the error of the run under
/// way, which says where it was, or [`CampaignError::Interrupted`].
pub fn run(
    campaign: &Campaign,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Report, CampaignError> {
    let faults = campaign.faults()?;
    let lock = FolderLock::take(&options.folder, options.take_over).map_err(FolderError::from)?;
    folder::check_files(&options.folder)?;
    if !options.force || options.resume {
        folder::check(&options.folder, &campaign.digest, campaign.seed)?;
    }
    if !options.force && !options.resume {
        folder::check_no_results(&options.folder)?;
    }
    let path = match (campaign.device(), options.path) {
        (CampaignDevice::Embedded, path) => path.unwrap_or_default(),
        (CampaignDevice::Rocr, Some(InjectionPath::Embedded)) => {
            return Err(CampaignError::OnlyEmbedded("injections inside of the GPU"));
        }
        (CampaignDevice::Rocr, _) if options.self_test => {
            return Err(CampaignError::OnlyEmbedded("the self-test"));
        }
        (CampaignDevice::Rocr, _) => InjectionPath::Hook,
    };
    let mut timings = Timings::default();
    progress.phase(Phase::Preparing);
    let runner = timed(&mut timings.prepare, || runner(campaign, path))?;
    if let Origin::Recording { warnings } = &runner.prepared().origin {
        warnings.iter().for_each(|warning| progress.warn(warning));
    }
    progress.phase(Phase::Golden);
    let takes_states = options.accelerations.saved_states && runner.takes_states();
    let Survey { golden, profile, touched } =
        timed(&mut timings.golden, || surveyed(campaign, runner.prepared(), takes_states))?;
    let experiment = Experiment::new(campaign, faults, &*runner, golden, profile)?;
    progress.phase(Phase::Planning);
    let plan = experiment.plan()?;
    let record = Record { timings, ..experiment.record(options, plan.count()) };
    thread::scope(|scope| {
        let windows = Windows::new(&plan, scope);
        experiment.inject_all(options, (&windows, &lock), touched, record, progress)
    })
}

/// Everything that injections need.
struct Experiment<'a> {
    campaign: &'a Campaign,
    runner: &'a dyn Runner,
    /// The first run without a fault.
    golden: Golden,
    profile: Profile,
    sampling: Sampling,
    strata: Vec<String>,
    faults: &'a Faults,
}

impl<'a> Experiment<'a> {
    fn new(
        campaign: &'a Campaign,
        faults: &'a Faults,
        runner: &'a dyn Runner,
        golden: Golden,
        profile: Profile,
    ) -> Result<Experiment<'a>, CampaignError> {
        Ok(Experiment {
            campaign,
            runner,
            golden,
            strata: profile.strata().map(|stratum| stratum.name).collect(),
            sampling: sampling(faults, &profile)?,
            profile,
            faults,
        })
    }

    /// Injects what the folder has no rows of yet.
    fn inject_all(
        &self,
        options: &RunOptions,
        (windows, lock): (&Windows<'_, '_>, &FolderLock),
        touched: Option<Touched>,
        mut record: Record,
        progress: &mut dyn Progress,
    ) -> Result<Report, CampaignError> {
        let campaign = self.campaign;
        let mut tallies = Tallies::new(self.faults.confidence);
        let done_before = match options.resume {
            true => rows_left(lock, windows.plan, |row| {
                tallies.add(row);
                record.done.add(row.outcome);
            })?,
            false => 0,
        };
        let indices = windows.around(done_before);
        let Rehearsal { golden: again, fidelity, faults, states } =
            timed(&mut record.timings.rehearsal, || {
                windows.plan.rehearse(indices, &self.golden, touched, SavedStates::MOST_BYTES)
            })?;
        let prepared = self.runner.prepared();
        check_same(&prepared.workload, &self.golden, &again)?;
        windows.put(done_before, faults);
        let golden = match self.runner.outputs()? {
            Some(outputs) => Cow::Owned(Golden { outputs, ..again }),
            None => {
                record.fidelity = Some(FidelityRecord::of(&fidelity));
                drop(again);
                Cow::Borrowed(&self.golden)
            }
        };
        let injector = self.runner.injector(&golden, states, options.accelerations)?;
        let threshold = self.faults.timing_threshold;
        let classifier = Classifier { golden: &golden, timing_threshold: threshold };
        let mut self_test = None;
        if options.self_test {
            progress.phase(Phase::SelfTest);
            let tested = self_test::self_test(prepared, windows.plan, &*injector, classifier);
            // What was stopped came out in no way.
            self_test = Some(campaign.unless_stopped(tested)?);
        }
        campaign.unless_stopped(Ok(()))?;
        if done_before == 0 {
            folder::clear(lock)?;
        }
        record.write(lock)?;

        progress.phase(Phase::Injecting { count: record.planned });
        let clock = Instant::now();
        let mut file = match done_before {
            0 => ResultsFile::create(lock)?,
            _ => ResultsFile::append(lock)?,
        };
        for outcome in Outcome::ALL {
            (0..record.done.of(outcome)).for_each(|_| progress.injected(outcome));
        }
        let injected = in_order(
            record.planned - done_before,
            (options.workers, WINDOW),
            campaign.attendance.stopped(),
            |index| {
                let index = done_before + index;
                let row = windows
                    .fault(index)
                    .map_err(CampaignError::from)
                    .and_then(|planned| self.inject(&*injector, classifier, (index, &planned)));
                // What was stopped has no outcome, whatever it looks like.
                campaign.unless_stopped(row)
            },
            |row: Result<Row, CampaignError>| {
                let row = row?;
                file.write(&row)?;
                progress.injected(row.outcome);
                tallies.add(&row);
                record.done.add(row.outcome);
                Ok(())
            },
        );

        let done = record.done.total();
        record.timings.inject = clock.elapsed().as_secs_f64();
        record.injections_per_second = (done - done_before) as f64 / record.timings.inject;
        let injected = match injected {
            Err(CampaignError::Interrupted) => Ok(()),
            injected => injected,
        };
        record.status = match &injected {
            Err(_) => Status::Failed,
            Ok(()) if done < record.planned => Status::Interrupted,
            Ok(()) => Status::Complete,
        };
        record.error = injected.as_ref().err().map(CampaignError::to_string);
        let summary = tallies.summary();
        let summarised = write_summary(lock, &campaign.name, &summary);
        let recorded = record.write(lock);
        // A full disk, or a folder that was taken over, stops all three: the first is what stopped the
        // campaign.
        injected?;
        summarised?;
        recorded?;
        Ok(Report { record, summary, self_test })
    }

    /// The faults.
    fn plan(&self) -> Result<Plan<'_>, PlanError> {
        let workload = &self.runner.prepared().workload;
        Plan::new(workload, &self.profile, self.campaign.seed, self.sampling)
    }

    /// One injection of the plan. A panic is the tool's failure, not the campaign's loss: it
    /// becomes an error that names the site.
    fn inject(
        &self,
        injector: &dyn Inject,
        classifier: Classifier<'_>,
        (index, planned): (u64, &Planned),
    ) -> Result<Row, CampaignError> {
        let stratum = self.strata.get(planned.stratum).map_or("", String::as_str);
        let injected = match catch_unwind(AssertUnwindSafe(|| injector.inject_planned(planned))) {
            Ok(Ok(injected)) => injected,
            Ok(Err(reason)) => {
                return Err(CampaignError::Injection { index, reason: Box::new(reason) });
            }
            Err(panic) => {
                let site = planned.site.to_string();
                return Err(CampaignError::Panic { index, site, message: panic_message(&*panic) });
            }
        };
        let verdict = classifier.verdict(&injected, planned.fate());
        Ok(row(index, planned, stratum, &injected.struck, &verdict))
    }

    fn record(&self, options: &RunOptions, planned: u64) -> Record {
        Record {
            status: Status::Running,
            error: None,
            campaign: CampaignIdentity::of(self.campaign, self.faults),
            versions: Versions {
                flipwave: env!("CARGO_PKG_VERSION"),
                compiler: match &self.runner.prepared().origin {
                    Origin::Kernels { compiler } => compiler.clone(),
                    Origin::Recording { .. } => None,
                },
            },
            host: Host::this(),
            workers: options.workers.get(),
            population: self.profile.population.clone(),
            counted: self.profile.counted(),
            fidelity: None,
            golden_wave_instructions: wave_instructions(&self.golden),
            instruction_limits: self.golden.instruction_limits(),
            planned,
            confidence: self.faults.confidence.probability(),
            done: Counts::default(),
            timings: Timings::default(),
            injections_per_second: 0.0,
        }
    }
}

/// Does `step` and says in `seconds` how long it took.
fn timed<T>(seconds: &mut f64, step: impl FnOnce() -> T) -> T {
    let clock = Instant::now();
    let result = step();
    *seconds = clock.elapsed().as_secs_f64();
    result
}

/// How the faults are drawn from a population. A margin holds for the rate of every stratum: each
/// gets as many faults as the one that takes most. The rate of all, weighted, has a narrower
/// interval then.
fn sampling(faults: &Faults, profile: &Profile) -> Result<Sampling, CampaignError> {
    Ok(match faults.size {
        SampleSize::Exhaustive => Sampling::Exhaustive,
        SampleSize::Count(count) => Sampling::Random { count, allocation: faults.allocation },
        SampleSize::Precision { margin } => {
            let strata: Vec<u64> =
                profile.strata().map(|own| own.places).filter(|places| *places > 0).collect();
            let most = strata.iter().max().map_or(0, |most| *most);
            let each = flipwave_analysis::sample_size(most, margin, faults.confidence, 0.5)?;
            let count = each.saturating_mul(strata.len() as u64);
            Sampling::Random { count, allocation: Allocation::Equal }
        }
    })
}

/// The line of `results.csv` for an injection.
fn row(index: u64, planned: &Planned, stratum: &str, struck: &Struck, verdict: &Verdict) -> Row {
    let site = &planned.site;
    let event = site.event();
    let run = verdict.run();
    let is_masked = verdict.outcome() == Outcome::Masked;
    Row {
        index,
        site: site.to_string(),
        kernel: planned.kernel.clone(),
        dispatch: event.map(|event| event.dispatch),
        workgroup: event.map(|event| Workgroup(event.workgroup)),
        wave: event.and_then(|event| event.wave),
        lane: match site.lanes {
            Some(Lanes::One(lane)) => Some(lane.0),
            _ => None,
        },
        pc: event.map(|event| event.pc.0),
        opcode: planned.opcode.to_owned(),
        group: planned.group.to_string(),
        line: planned.line.clone(),
        occurrence: event.map(|event| event.occurrence),
        place: match site.place {
            Place::Register(register) | Place::Source(register) => register.to_string(),
            place => place.to_string(),
        },
        mask: struck.mask(),
        before: struck.before,
        after: struck.after,
        words: struck.words,
        stratum: (!stratum.is_empty()).then(|| stratum.to_owned()),
        weight: planned.weight,
        outcome: verdict.outcome(),
        cause: verdict.cause().map(str::to_owned),
        elements_wrong: run.map(|run| run.difference.elements_wrong),
        max_abs_error: run.map(|run| run.difference.max_abs_error),
        max_rel_error: run.map(|run| run.difference.max_rel_error),
        instructions: run.and_then(|run| run.instructions),
        timing_changed: run.filter(|_| is_masked).and_then(|run| run.timing_changed),
    }
}

/// What a panic said.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Difference;
    use crate::outcome::{CompletedRun, MaskedCause};
    use flipwave_injector::Group;

    fn planned() -> Planned {
        let site = "dispatch=1 workgroup=3,1,0 wave=2 pc=0x1a9c occurrence=5 lane=17 \
                    register=v4 flip=0x00000400";
        Planned {
            site: site.parse().expect("a site"),
            kernel: Some("matmul".to_owned()),
            opcode: "v_fma_f32",
            group: Group::Valu,
            line: None,
            stratum: 0,
            weight: 1.0,
            foresight: None,
        }
    }

    fn row_of(verdict: &Verdict) -> Row {
        let struck = Struck { before: 0x400, after: 0, words: 1 };
        row(7, &planned(), "", &struck, verdict)
    }

    #[test]
    fn a_row_repeats_the_site_and_states_the_verdict() {
        let difference =
            Difference { elements_wrong: 3, max_abs_error: 0.5, max_rel_error: f64::INFINITY };
        let run = CompletedRun { difference, instructions: Some(5), timing_changed: Some(true) };
        let row = row_of(&Verdict::Sdc(run));
        assert_eq!(row.site, planned().site.to_string());
        assert_eq!((row.index, row.dispatch, row.wave, row.lane), (7, Some(1), Some(2), Some(17)));
        assert_eq!((row.mask, row.before, row.after), (0x400, 0x400, 0));
        assert_eq!((row.outcome, row.cause.as_deref()), (Outcome::Sdc, None));
        assert_eq!(row.elements_wrong, Some(3));
        assert_eq!((row.instructions, row.timing_changed), (Some(5), None), "no right outputs");
        assert_eq!((row.max_abs_error, row.max_rel_error), (Some(0.5), Some(f64::INFINITY)));
    }

    #[test]
    fn a_stopped_run_has_a_cause_and_no_errors() {
        let row = row_of(&Verdict::Due { cause: "watchdog" });
        assert_eq!((row.outcome, row.cause.as_deref()), (Outcome::Due, Some("watchdog")));
        assert_eq!((row.elements_wrong, row.max_abs_error, row.max_rel_error), (None, None, None));
        assert_eq!((row.instructions, row.timing_changed), (None, None));
        let cause = MaskedCause::Dead;
        let masked = row_of(&Verdict::Masked { cause, run: CompletedRun::default() });
        assert_eq!((masked.cause.as_deref(), masked.timing_changed), (Some("dead"), None));
    }

    #[test]
    fn what_a_panic_says_is_kept() {
        let said = |panic: Box<dyn Any + Send>| panic_message(&*panic);
        assert_eq!(said(Box::new("literal")), "literal");
        assert_eq!(said(Box::new("formatted".to_owned())), "formatted");
        assert!(said(Box::new(7)).contains("panic"));
    }
}
