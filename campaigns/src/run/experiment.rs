//! A campaign ready to inject: what its faults are drawn from, its fault-free run, and its injections,
//! whichever part of them is made here.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::faults::Faults;
use crate::golden::{Reference, check_same};
use crate::program::prepare::Prepared;
use crate::results::row::row;
use crate::run::outcome::Classifier;
use crate::run::process_site::ProcessSite;
use crate::run::runners::{Inject, Runner};
use crate::run::windows::{WINDOW, Windows};
use crate::run::workers::in_order;
use crate::sample::Scheme;
use crate::severity::Judge;
use flipwave_analysis::{Course, Row};
use flipwave_injector::{
    FidelityRecord, Golden, Plan, PlanError, Planned, Profile, Recorded, Rehearsal,
    RehearsalLimits, SavedStates, Survey,
};
use std::any::Any;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Everything that injections need, whichever they are.
pub(crate) struct Experiment<'a> {
    campaign: &'a Campaign,
    pub faults: &'a Faults,
    runner: &'a dyn Runner,
    /// The first run without a fault.
    pub reference: Reference,
    /// How exact it was; nothing where another device than the embedded GPU makes the runs.
    pub fidelity: Option<FidelityRecord>,
    pub profile: Profile,
    /// How the faults are drawn.
    pub scheme: Scheme,
}

/// What the second fault-free run has shown, which found the first faults.
pub(crate) struct Rehearsed {
    /// What faulty runs are compared with.
    pub golden: Golden,
    pub states: Option<SavedStates>,
    /// The faults of the first window.
    pub faults: Vec<Planned>,
}

/// What injects, and what forms the verdict.
#[derive(Clone, Copy)]
pub(crate) struct Injecting<'a> {
    pub injector: &'a dyn Inject,
    pub classifier: Classifier<'a>,
    pub judge: Option<&'a Judge<'a>>,
    pub workers: NonZeroUsize,
}

impl<'a> Experiment<'a> {
    /// The campaign whose program's fault-free run is `reference`, executed so exactly by the embedded
    /// GPU, with what was counted in it.
    ///
    /// # Errors
    /// [`CampaignError::NoFaults`], [`CampaignError::Statistics`]; where there are no outputs.
    pub fn new(
        campaign: &'a Campaign,
        runner: &'a dyn Runner,
        (reference, fidelity): (Reference, FidelityRecord),
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

    /// The same of a first run that was made here, and what is recorded of it for the second.
    ///
    /// # Errors
    /// As [`Experiment::new`].
    pub fn of_survey(
        campaign: &'a Campaign,
        runner: &'a dyn Runner,
        Survey { golden, profile, fidelity, recorded }: Survey,
    ) -> Result<(Experiment<'a>, Option<Recorded>), CampaignError> {
        let run = (Reference::of(&golden), FidelityRecord::of(&fidelity));
        Ok((Experiment::new(campaign, runner, run, profile)?, recorded))
    }

    /// The faults, as far as they are known when the campaign has come this far.
    ///
    /// # Errors
    /// [`PlanError::EmptyPopulation`].
    pub fn plan(&self, course: &Course) -> Result<Plan<'_>, PlanError> {
        let workload = &self.runner.prepared().workload;
        Plan::new(workload, &self.profile, self.campaign.seed, &self.scheme.sampling(course))
    }

    /// Runs without a fault once more, on so many threads at most, and checks that it is the same as the
    /// first time, of which `recorded` is known. Finds the faults of these indices, the first of a part
    /// of the plan.
    ///
    /// # Errors
    /// [`CampaignError::NotDeterministic`], [`CampaignError::Plan`]; where there are no outputs.
    pub fn rehearse(
        &self,
        plan: &Plan<'_>,
        indices: impl IntoIterator<Item = u64>,
        recorded: Option<Recorded>,
        threads: NonZeroUsize,
    ) -> Result<Rehearsed, CampaignError> {
        let limits = RehearsalLimits { state_bytes: SavedStates::MOST_BYTES, threads };
        let rehearsal = plan.rehearse(indices, &self.reference.statistics, recorded, limits)?;
        let Rehearsal { golden, faults, states } = rehearsal;
        check_same(&self.runner.prepared().workload, &self.reference, &golden)?;
        let golden = match self.runner.outputs()? {
            Some(outputs) => Golden { outputs, ..golden },
            None => golden,
        };
        Ok(Rehearsed { golden, states, faults })
    }

    /// Who judges SDC beside a fault-free run, if somebody does.
    ///
    /// # Errors
    /// [`CampaignError`] if that run left nothing that can be shown.
    pub fn judge<'g>(&'g self, golden: &'g Golden) -> Result<Option<Judge<'g>>, CampaignError> {
        match self.campaign.severity {
            Some(_) => Ok(Judge::of(self.campaign, self.runner.shown_outputs(golden)?)),
            None => Ok(None),
        }
    }

    /// What forms the verdicts beside a fault-free run.
    pub fn classifier<'g>(&self, golden: &'g Golden) -> Classifier<'g> {
        Classifier { golden, timing_threshold: self.faults.timing_threshold }
    }

    /// Injects the faults of `windows`. `take` gets their rows on this thread, in order, until it breaks.
    ///
    /// # Errors
    /// What an injection failed with, or `take`; [`CampaignError::Interrupted`] where runs were
    /// stopped. All rows before were taken.
    pub fn inject(
        &self,
        windows: &Windows<'_, '_>,
        injecting: Injecting<'_>,
        mut take: impl FnMut(Row) -> Result<ControlFlow<()>, CampaignError>,
    ) -> Result<(), CampaignError> {
        let Range { start, end } = windows.part();
        let stopped = self.campaign.attendance.stopped();
        let work = |offset| {
            let index = start + offset;
            let row = windows
                .fault(index)
                .map_err(CampaignError::from)
                .and_then(|planned| self.inject_one(injecting, (index, &planned)));
            // What was stopped has no outcome, whatever it looks like.
            self.campaign.unless_stopped(row)
        };
        let taken = in_order(end - start, (injecting.workers, WINDOW), stopped, work, |row| {
            match row.and_then(&mut take) {
                Ok(ControlFlow::Continue(())) => Ok(()),
                Ok(ControlFlow::Break(())) => Err(None),
                Err(error) => Err(Some(error)),
            }
        });
        taken.or_else(|ended| ended.map_or(Ok(()), Err))
    }

    /// The index of the process that is struck, where several dispatch kernels.
    pub fn process(&self) -> Option<u32> {
        self.runner.prepared().process
    }

    /// One injection of the plan. A panic is the tool's failure, not the campaign's loss: it
    /// becomes an error that names the site.
    ///
    /// # Errors
    /// What the injection failed with.
    pub fn inject_one(
        &self,
        Injecting { injector, classifier, judge, .. }: Injecting<'_>,
        (index, planned): (u64, &Planned),
    ) -> Result<Row, CampaignError> {
        let stratum = self.scheme.strata().get(planned.stratum).map_or("", String::as_str);
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
        let verdict = verdict.judged(judge, index, &injected)?;
        let row = row(index, planned, stratum, &injected.struck, &verdict);
        let Prepared { labels, process, .. } = self.runner.prepared();
        let label = row.dispatch.and_then(|dispatch| labels.get(dispatch as usize)?.clone());
        let site = ProcessSite { process: *process, site: planned.site }.to_string();
        Ok(Row { site, label, ..row })
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

    #[test]
    fn what_a_panic_says_is_kept() {
        let said = |panic: Box<dyn Any + Send>| panic_message(&*panic);
        assert_eq!(said(Box::new("literal")), "literal");
        assert_eq!(said(Box::new("formatted".to_owned())), "formatted");
        assert!(said(Box::new(7)).contains("panic"));
    }
}
