//! Kernels on this machine's GPU through AMD's runtime or NVIDIA's driver. Each run is a process of `flipwave launch`.

use super::hooked::HookInjectors;
use super::runner::{Inject, Runner};
use crate::application::{ApplicationRun, Ended, Output};
use crate::attached::process::{ProcessRuns, ProgramKind, StruckRun, known_result};
use crate::attached::{AttachError, AttachedProgram};
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::kernels::Kernels;
use crate::program::launch;
use crate::program::prepare::{Prepared, prepare};
use crate::run::due_cause::DueCause;
use crate::run::injection_path::InjectionPath;
use crate::run::outcome::ComparedEnding;
use flipwave_injector::{Accelerations, Checkpoints, Ending, Golden, Injection, Planned, Site};
use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

/// Runner of kernels on this machine's GPU.
pub(super) struct HardwareRunner<'a> {
    campaign: &'a Campaign,
    runs: ProcessRuns<'a>,
    /// Files to which a run writes the outputs.
    outputs: Vec<Output>,
    prepared: Prepared,
}

impl<'a> HardwareRunner<'a> {
    pub fn new(campaign: &'a Campaign, kernels: &Kernels) -> Result<Self, CampaignError> {
        let application = launch::application(campaign, kernels)?;
        let attached = AttachedProgram::new(campaign, Cow::Owned(application))?;
        let runs = ProcessRuns::new(campaign, attached, ProgramKind::Launch)?;
        // Proxy instructions are not supported on hardware, so they are not replaced.
        let prepared = Prepared { path: InjectionPath::Hook, ..prepare(campaign)? };
        Ok(HardwareRunner { campaign, runs, outputs: launch::outputs(kernels), prepared })
    }
}

impl Runner for HardwareRunner<'_> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn outputs(&self) -> Result<Option<Vec<flipwave_injector::Output>>, CampaignError> {
        read_outputs(&self.outputs, &self.runs.golden.first).map(Some)
    }

    fn injector<'a>(
        &'a self,
        golden: &'a Golden,
        _checkpoints: Option<Checkpoints>,
        accelerations: Accelerations,
    ) -> Result<Box<dyn Inject + 'a>, CampaignError> {
        let method = self.campaign.target.hooks()?;
        let hooks = HookInjectors::new(method, &self.prepared.workload, golden)?;
        let interrupt = self.campaign.cancellation.stopped();
        Ok(Box::new(OnHardware { runner: self, golden, hooks, accelerations, interrupt }))
    }
}

struct OnHardware<'a> {
    runner: &'a HardwareRunner<'a>,
    golden: &'a Golden,
    hooks: HookInjectors<'a>,
    accelerations: Accelerations,
    interrupt: &'a AtomicBool,
}

impl Inject for OnHardware<'_> {
    fn inject(&self, site: &Site) -> Result<Injection<ComparedEnding>, CampaignError> {
        let HardwareRunner { runs, outputs, prepared, .. } = self.runner;
        let run = self.hooks.inject_in_process(site, |codes| {
            let addresses = Some(launch::ADDRESSES.into());
            runs.inject_with_hooks(site, codes, addresses, self.interrupt)
        })?;
        let StruckRun { struck, fault, ran } = run;
        let ending = match (fault, ran.ended) {
            (Some(kind), _) => ComparedEnding::Stopped(DueCause::Device(kind)),
            (None, Ended::Exited(0)) => {
                let (outputs, statistics) = (read_outputs(outputs, &ran)?, Vec::new());
                let ending = Ending::Completed { outputs, statistics };
                ComparedEnding::new(self.golden, &prepared.formats, ending).without_instructions()
            }
            // `flipwave launch` itself failed.
            (None, Ended::Exited(_)) => {
                let message = String::from_utf8_lossy(&ran.stderr);
                return Err(AttachError::Failed(message.trim().to_owned()).into());
            }
            (None, ended) => ComparedEnding::Stopped(ended.due_cause()),
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

/// Reads the outputs that a run has written.
fn read_outputs(
    outputs: &[Output],
    ran: &ApplicationRun,
) -> Result<Vec<flipwave_injector::Output>, CampaignError> {
    let content = |output: &Output| {
        let bytes = ran.output(output)?;
        // A successful run has written all outputs.
        let bytes = bytes.ok_or_else(|| AttachError::Failed(format!("{output} is missing")))?;
        Ok(bytes.into_owned().into())
    };
    outputs.iter().map(content).collect()
}
