//! Runners execute the program of a campaign, with and without a fault.
//!
//! A runner provides the program as a workload, on which faults are planned; the golden run, with
//! which faulty runs are compared; and the result of each fault, which [`crate::run::outcome`]
//! classifies. Only [`runner`] selects the runner of a campaign, by its workload and the injection
//! mechanism.

mod application;
mod embedded;
mod hardware;
mod hooked;
mod runner;

pub(crate) use runner::{Inject, Runner};

use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::program::prepare::Prepared;
use crate::program::prepare_emulated;
use crate::run::injection_path::InjectionPath;
use application::ApplicationRunner;
use embedded::EmbeddedRunner;
use hardware::HardwareRunner;
use hooked::HookRunner;

/// Creates the runner of a campaign whose faults are injected with `path`.
///
/// # Errors
/// [`CampaignError`] if the program cannot be assembled, or does not run on the campaign's device.
pub(crate) fn runner<'a>(
    campaign: &'a Campaign,
    path: InjectionPath,
) -> Result<Box<dyn Runner + 'a>, CampaignError> {
    match &campaign.workload {
        CampaignWorkload::Application(application) => {
            Ok(Box::new(ApplicationRunner::new(campaign, application, path)?))
        }
        CampaignWorkload::Kernels(kernels) if kernels.device.is_hardware() => {
            Ok(Box::new(HardwareRunner::new(campaign, kernels)?))
        }
        CampaignWorkload::Kernels(_) | CampaignWorkload::Capture(_) => {
            in_process_runner(campaign, path)
        }
    }
}

/// Creates a runner that executes a campaign's program in this process, on the embedded GPU; for an
/// application, a recorded run of it.
///
/// # Errors
/// [`CampaignError`] if the program cannot be assembled.
pub(crate) fn in_process_runner<'a>(
    campaign: &'a Campaign,
    path: InjectionPath,
) -> Result<Box<dyn Runner + 'a>, CampaignError> {
    let prepared = prepare_emulated(campaign)?;
    Ok(match path {
        InjectionPath::Embedded => embedded_runner(prepared),
        InjectionPath::Hook => {
            let prepared = Prepared { path, ..prepared };
            Box::new(HookRunner { prepared, method: campaign.target.hooks()? })
        }
    })
}

/// Creates a runner that executes an assembled program in this process, on the embedded GPU, and injects inside
/// of it.
pub(crate) fn embedded_runner<'a>(prepared: Prepared) -> Box<dyn Runner + 'a> {
    let prepared = Prepared { path: InjectionPath::Embedded, ..prepared };
    Box::new(EmbeddedRunner { prepared })
}
