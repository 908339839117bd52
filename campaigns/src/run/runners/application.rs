//! Applications. Each run executes the application under AMD's runtime or the stand-in for CUDA's, on the
//! embedded GPU or on this machine's GPU.

use super::hooked::HookInjectors;
use super::runner::{Inject, Runner};
use crate::application::{Application, Comparison, Format, JudgedOutputs};
use crate::attached::process::{ProcessRuns, ProgramKind, StruckRun, known_result};
use crate::attached::{AttachedProgram, RecordedRun};
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::element::ElementType;
use crate::program::prepare::Prepared;
use crate::run::injection_path::InjectionPath;
use crate::run::outcome::ComparedEnding;
use crate::severity::ShownOutput;
use flipwave_injector::{Accelerations, Checkpoints, Golden, Injection, Planned, Site};
use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

/// Runner of an application. Faults are planned on a recorded run.
pub(super) struct ApplicationRunner<'a> {
    campaign: &'a Campaign,
    runs: ProcessRuns<'a>,
    prepared: Prepared,
}

impl<'a> ApplicationRunner<'a> {
    pub fn new(
        campaign: &'a Campaign,
        application: &'a Application,
        path: InjectionPath,
    ) -> Result<Self, CampaignError> {
        let attached = AttachedProgram::new(campaign, Cow::Borrowed(application))?;
        let mut runs = ProcessRuns::new(campaign, attached, ProgramKind::Application)?;
        let interrupt = campaign.cancellation.stopped();
        let RecordedRun { prepared, process } =
            runs.attached.record(campaign, &runs.golden, interrupt)?;
        runs.process = process;
        let prepared = Prepared { path, ..prepared };
        Ok(ApplicationRunner { campaign, runs, prepared })
    }
}

impl Runner for ApplicationRunner<'_> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn shown_outputs<'a>(&self, _: &'a Golden) -> Result<Vec<ShownOutput<'a>>, CampaignError> {
        let ProcessRuns { attached, golden, .. } = &self.runs;
        let contents = attached.application.compared_outputs(&golden.first)?;
        let outputs =
            attached.application.comparisons.iter().filter_map(|comparison| match comparison {
                Comparison::Output { output, format } => Some((output, format)),
                Comparison::Check(_) => None,
            });
        let shown =
            outputs.zip(contents).enumerate().map(|(place, ((output, format), content))| {
                let (element, extents) = match format {
                    Format::Elements { element, extents, .. } => (*element, *extents),
                    Format::Exact | Format::Text { .. } => (ElementType::U8, None),
                };
                let name = output.to_string();
                ShownOutput::new(place, name, element, extents, Cow::from(content))
            });
        Ok(shown.collect())
    }

    fn injector<'a>(
        &'a self,
        golden: &'a Golden,
        _checkpoints: Option<Checkpoints>,
        accelerations: Accelerations,
    ) -> Result<Box<dyn Inject + 'a>, CampaignError> {
        let hooks = match self.prepared.path {
            InjectionPath::Embedded => None,
            InjectionPath::Hook => {
                let method = self.campaign.target.hooks()?;
                Some(HookInjectors::new(method, &self.prepared.workload, golden)?)
            }
        };
        self.runs.write_limits(golden)?;
        let (runs, interrupt) = (&self.runs, self.campaign.cancellation.stopped());
        let is_judged = self.campaign.severity.is_some();
        Ok(Box::new(InApplication { runs, hooks, accelerations, is_judged, interrupt }))
    }
}

struct InApplication<'a> {
    runs: &'a ProcessRuns<'a>,
    hooks: Option<HookInjectors<'a>>,
    accelerations: Accelerations,
    /// `true` if a judge receives the outputs of wrong runs.
    is_judged: bool,
    interrupt: &'a AtomicBool,
}

impl Inject for InApplication<'_> {
    fn inject(&self, site: &Site) -> Result<Injection<ComparedEnding>, CampaignError> {
        let StruckRun { struck, fault, ran } = match &self.hooks {
            None => self.runs.inject(site, self.interrupt)?,
            Some(hooks) => hooks.inject_in_process(site, |codes| {
                self.runs.inject_with_hooks(site, codes, None, self.interrupt)
            })?,
        };
        if let Some(kind) = fault {
            return Ok(Injection { struck, ending: ComparedEnding::Stopped(kind.into()) });
        }
        let ProcessRuns { attached, golden, .. } = self.runs;
        let judged = attached.application.judge(golden, &ran, self.interrupt)?;
        let ending = match judged.outputs() {
            Err(cause) => ComparedEnding::Stopped(cause),
            Ok(JudgedOutputs { is_correct, difference }) => {
                let outputs = (self.is_judged && !is_correct)
                    .then(|| attached.application.compared_outputs(&ran))
                    .transpose()?
                    .map(|outputs| outputs.into_iter().map(Into::into).collect());
                ComparedEnding::Completed {
                    is_correct,
                    difference,
                    detector: None,
                    wave_instructions: None,
                    outputs,
                }
            }
        };
        Ok(Injection { struck, ending })
    }

    fn inject_planned(
        &self,
        planned: &Planned,
    ) -> Result<Injection<ComparedEnding>, CampaignError> {
        known_result(planned, self.accelerations).map_or_else(|| self.inject(&planned.site), Ok)
    }
}
