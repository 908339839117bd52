//! A campaign that is ready to inject all or some of its faults, with its fault space and golden
//! run.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::faults::Faults;
use crate::golden::{Reference, check_same};
use crate::outputs::compared::compared;
use crate::program::prepare::Prepared;
use crate::results::record::{CampaignFacts, CampaignIdentity, Versions};
use crate::results::row::row;
use crate::run::batches::{BATCH, Batches};
use crate::run::outcome::Classifier;
use crate::run::process_site::process_text;
use crate::run::runners::{Inject, Runner};
use crate::run::workers::{Workers, in_order};
use crate::sample::Scheme;
use crate::severity::Judge;
use flipwave_analysis::{CampaignMonitor, Row};
use flipwave_injector::{
    Accelerations, Checkpoints, FidelityRecord, Golden, Plan, PlanError, Planned, Profile,
    ProfiledRun, RecordedRun, ResolvingLimits, ResolvingRun,
};
use std::any::Any;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// A campaign that is ready to inject any of its faults.
pub(crate) struct Experiment<'a> {
    campaign: &'a Campaign,
    pub faults: &'a Faults,
    runner: &'a dyn Runner,
    /// Results of the first golden run.
    pub reference: Reference,
    /// Fidelity of the first golden run; `None` if the campaign does not run on the embedded GPU.
    pub fidelity: Option<FidelityRecord>,
    pub profile: Profile,
    /// The sampling scheme.
    pub scheme: Scheme,
}

/// Result of the second golden run, which resolved the first faults.
struct Resolved {
    /// The golden run that faulty runs are compared with.
    golden: Golden,
    checkpoints: Option<Checkpoints>,
    /// Faults of the first batch.
    faults: Vec<Planned>,
}

/// Options of injections. None of them changes rows.
#[derive(Clone, Copy)]
pub(crate) struct InjectOptions {
    pub accelerations: Accelerations,
    /// Number of threads that resolve and inject faults.
    pub workers: NonZeroUsize,
}

/// Injects the faults of a plan, batch by batch.
pub(crate) struct Injections<'a> {
    experiment: &'a Experiment<'a>,
    plan: &'a Plan<'a>,
    pub injector: &'a dyn Inject,
    pub classifier: Classifier<'a>,
    judge: Option<&'a Judge<'a>>,
    workers: NonZeroUsize,
    /// Faults of the first batch, until they are injected.
    first: Option<FirstBatch>,
}

/// Resolved faults of the first batch.
struct FirstBatch {
    /// Index of the first fault.
    start: u64,
    faults: Vec<Planned>,
}

impl<'a> Experiment<'a> {
    /// Creates an experiment from the results, the fidelity and the profile of the first golden
    /// run.
    ///
    /// # Errors
    /// [`CampaignError::NoFaults`], [`CampaignError::Statistics`], and errors of the runner without
    /// outputs.
    pub fn new(
        campaign: &'a Campaign,
        runner: &'a dyn Runner,
        reference: Reference,
        fidelity: FidelityRecord,
        profile: Profile,
    ) -> Result<Experiment<'a>, CampaignError> {
        let faults = campaign.faults()?;
        Ok(Experiment {
            campaign,
            faults,
            runner,
            reference,
            fidelity: runner.outputs()?.is_none().then_some(fidelity),
            scheme: Scheme::new(faults, &profile, campaign.severity.is_some())?,
            profile,
        })
    }

    /// Creates an experiment from a first golden run in this process. Also returns the recording of
    /// the run, which the second one uses.
    ///
    /// # Errors
    /// As [`Experiment::new`].
    pub fn from_profiled_run(
        campaign: &'a Campaign,
        runner: &'a dyn Runner,
        ProfiledRun { golden, profile, fidelity, recorded }: ProfiledRun,
    ) -> Result<(Experiment<'a>, Option<RecordedRun>), CampaignError> {
        let (reference, fidelity) = (Reference::new(&golden), FidelityRecord::of(&fidelity));
        Ok((Experiment::new(campaign, runner, reference, fidelity, profile)?, recorded))
    }

    /// The plan of the faults that are known after the rows in `monitor`.
    ///
    /// # Errors
    /// [`PlanError::EmptyFaultSpace`].
    pub fn plan(&self, monitor: &CampaignMonitor) -> Result<Plan<'_>, PlanError> {
        let workload = &self.runner.prepared().workload;
        Plan::new(workload, &self.profile, self.campaign.seed, &self.scheme.sampling(monitor))
    }

    /// Facts about the campaign for its record.
    pub fn facts(&self, versions: Versions) -> CampaignFacts {
        let Experiment { reference, fidelity, profile, faults, scheme, .. } = self;
        CampaignFacts {
            campaign: CampaignIdentity::new(self.campaign, faults),
            file: self.campaign.file.clone(),
            compared: compared(self.campaign, self.runner.prepared()),
            versions,
            fault_space: profile.fault_space.clone(),
            counted: profile.counted(),
            design: scheme.design.clone(),
            fidelity: fidelity.clone(),
            golden_wave_instructions: reference.wave_instructions(),
            instruction_limits: reference.instruction_limits(),
        }
    }

    /// Resolves the faults of `indices`, the first ones of a part of `plan`, in a second golden
    /// run, and calls `act`, which can inject faults of the plan. `recorded` comes from the first
    /// golden run.
    ///
    /// # Errors
    /// Errors of `act`; [`CampaignError::NotDeterministic`] if the second run differs from the
    /// first, [`CampaignError::Plan`]; others if the runner cannot inject.
    pub fn with_injections<T>(
        &self,
        plan: &Plan<'_>,
        indices: impl IntoIterator<Item = u64>,
        recorded: Option<RecordedRun>,
        InjectOptions { accelerations, workers }: InjectOptions,
        act: impl FnOnce(&mut Injections<'_>) -> Result<T, CampaignError>,
    ) -> Result<T, CampaignError> {
        let indices: Vec<u64> = indices.into_iter().collect();
        let start = indices.first().copied();
        let Resolved { golden, checkpoints, faults } =
            self.resolve(plan, indices, recorded, workers)?;
        let injector = self.runner.injector(&golden, checkpoints, accelerations)?;
        let judge = self.judge(&golden)?;
        act(&mut Injections {
            experiment: self,
            plan,
            injector: &*injector,
            classifier: Classifier {
                golden: &golden,
                timing_threshold: self.faults.timing_threshold,
            },
            judge: judge.as_ref(),
            workers,
            first: start.map(|start| FirstBatch { start, faults }),
        })
    }

    /// Checks that a second golden run equals the first.
    ///
    /// # Errors
    /// [`CampaignError::NotDeterministic`] if it does not.
    pub fn check_deterministic(
        &self,
        plan: &Plan<'_>,
        recorded: Option<RecordedRun>,
    ) -> Result<(), CampaignError> {
        let first = 0..plan.count().min(1);
        self.resolve(plan, first, recorded, NonZeroUsize::MIN).map(drop)
    }

    fn resolve(
        &self,
        plan: &Plan<'_>,
        indices: impl IntoIterator<Item = u64>,
        recorded: Option<RecordedRun>,
        threads: NonZeroUsize,
    ) -> Result<Resolved, CampaignError> {
        let limits = ResolvingLimits { state_bytes: Checkpoints::MOST_BYTES, threads };
        let resolved = plan.resolve(indices, &self.reference.statistics, recorded, limits)?;
        let ResolvingRun { golden, faults, checkpoints } = resolved;
        check_same(&self.runner.prepared().workload, &self.reference, &golden)?;
        let golden = match self.runner.outputs()? {
            Some(outputs) => Golden { outputs, ..golden },
            None => golden,
        };
        Ok(Resolved { golden, checkpoints, faults })
    }

    /// The judge of SDC, if the campaign has one.
    ///
    /// # Errors
    /// [`CampaignError`] if the golden run left no outputs for the judge.
    fn judge<'g>(&'g self, golden: &'g Golden) -> Result<Option<Judge<'g>>, CampaignError> {
        match self.campaign.severity {
            Some(_) => Ok(Judge::for_campaign(self.campaign, self.runner.shown_outputs(golden)?)),
            None => Ok(None),
        }
    }

    /// The program.
    pub fn prepared(&self) -> &Prepared {
        self.runner.prepared()
    }
}

impl Injections<'_> {
    /// Injects the faults with these indices. `take` receives their rows on this thread, in order,
    /// until it returns [`ControlFlow::Break`].
    ///
    /// # Errors
    /// The first error of an injection or of `take`, after `take` has received all earlier rows;
    /// [`CampaignError::Interrupted`] if the campaign was cancelled.
    pub fn inject(
        &mut self,
        range: Range<u64>,
        mut take: impl FnMut(Row) -> Result<ControlFlow<()>, CampaignError>,
    ) -> Result<(), CampaignError> {
        let first = self.first.take_if(|first| first.start == range.start);
        let (this, Range { start, end }) = (&*self, range.clone());
        let campaign = this.experiment.campaign;
        thread::scope(|scope| {
            let batches = Batches::new(this.plan, range, scope);
            if let Some(FirstBatch { faults, .. }) = first {
                batches.put_first(faults);
            }
            let work = |offset| {
                let index = start + offset;
                let row = batches
                    .fault(index)
                    .map_err(CampaignError::from)
                    .and_then(|planned| this.inject_one(index, &planned));
                // A cancelled run has no outcome.
                campaign.unless_cancelled(row)
            };
            let stopped = campaign.cancellation.stopped();
            let workers = Workers { threads: this.workers, ahead: BATCH };
            let taken = in_order(end - start, workers, stopped, work, |row| {
                match row.and_then(&mut take) {
                    Ok(ControlFlow::Continue(())) => Ok(()),
                    Ok(ControlFlow::Break(())) => Err(None),
                    Err(error) => Err(Some(error)),
                }
            });
            taken.or_else(|error| error.map_or(Ok(()), Err))
        })
    }

    /// Faults of the first batch, unless they have been injected.
    pub fn first_faults(&self) -> &[Planned] {
        self.first.as_ref().map_or(&[], |first| &first.faults)
    }

    /// Injects one fault of the plan. A panic becomes an error with the site, so that the campaign
    /// keeps its rows.
    ///
    /// # Errors
    /// The error of the injection.
    pub fn inject_one(&self, index: u64, planned: &Planned) -> Result<Row, CampaignError> {
        let Injections { experiment, injector, classifier, judge, .. } = self;
        let stratum = experiment.scheme.strata().get(planned.stratum).map_or("", String::as_str);
        let injected = match catch_unwind(AssertUnwindSafe(|| injector.inject_planned(planned))) {
            Ok(Ok(injected)) => injected,
            Ok(Err(reason)) => {
                let workload = &experiment.runner.prepared().workload;
                let reason = Box::new(reason.at_declared_register(workload, &planned.site));
                return Err(CampaignError::Injection { index, reason });
            }
            Err(panic) => {
                let site = experiment.runner.prepared().workload.site_text(&planned.site);
                return Err(CampaignError::Panic { index, site, message: panic_message(&*panic) });
            }
        };
        let verdict = classifier.verdict(&injected, planned.next_use());
        let verdict = verdict.judged(*judge, index, &injected.ending)?;
        let row = row(index, planned, stratum, &injected.struck, &verdict);
        let Prepared { labels, process, workload, .. } = experiment.runner.prepared();
        let label = row.dispatch.and_then(|dispatch| labels.get(dispatch as usize)?.clone());
        let site = process_text(*process, &workload.site_text(&planned.site));
        Ok(Row { site, location: workload.place_text(&planned.site), label, ..row })
    }
}

/// Message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_messages_are_extracted() {
        let message = |panic: Box<dyn Any + Send>| panic_message(&*panic);
        assert_eq!(message(Box::new("literal")), "literal");
        assert_eq!(message(Box::new("formatted".to_owned())), "formatted");
        assert!(message(Box::new(7)).contains("panic"));
    }
}
