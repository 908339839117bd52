//! What runs a campaign's program: without a fault, and with one.
//!
//! A runner gives the program as a workload, on which faults are planned; its fault-free run, with
//! which the others are compared; and what comes of each fault. Which of them runs a campaign
//! follows from the workload and the way of injecting, in [`runner`] alone. What a runner reports
//! of a fault is made an outcome by [`crate::run::outcome`].

mod application;
mod embedded;
mod hooked;
mod rocr;
mod runner;

pub(crate) use runner::{Inject, Runner};

use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::program::prepare::Prepared;
use crate::program::prepare_emulated;
use crate::run::injection_path::InjectionPath;
use application::ApplicationRunner;
use embedded::EmbeddedRunner;
use hooked::HookRunner;
use rocr::RocrRunner;

/// The runner of a campaign whose faults are injected along `path`.
///
/// # Errors
/// [`CampaignError`] if the program cannot be put together, or does not run on the campaign's
/// device.
pub(crate) fn runner<'a>(
    campaign: &'a Campaign,
    path: InjectionPath,
) -> Result<Box<dyn Runner + 'a>, CampaignError> {
    match &campaign.workload {
        CampaignWorkload::Application(application) => {
            Ok(Box::new(ApplicationRunner::new(campaign, application, path)?))
        }
        CampaignWorkload::Kernels(kernels) if kernels.device.is_hardware() => {
            Ok(Box::new(RocrRunner::new(campaign, kernels)?))
        }
        CampaignWorkload::Kernels(_) | CampaignWorkload::Capture(_) => {
            in_this_process(campaign, path)
        }
    }
}

/// The runner of a campaign's program in this process, on the embedded GPU: of an application, one
/// recorded run of it.
///
/// # Errors
/// [`CampaignError`] if the program cannot be put together.
pub(crate) fn in_this_process<'a>(
    campaign: &'a Campaign,
    path: InjectionPath,
) -> Result<Box<dyn Runner + 'a>, CampaignError> {
    Ok(of_prepared(prepare_emulated(campaign)?, path))
}

/// The runner of a program that is put together, in this process on the embedded GPU.
pub(crate) fn of_prepared<'a>(prepared: Prepared, path: InjectionPath) -> Box<dyn Runner + 'a> {
    let prepared = Prepared { path, ..prepared };
    match path {
        InjectionPath::Embedded => Box::new(EmbeddedRunner { prepared }),
        InjectionPath::Hook => Box::new(HookRunner { prepared }),
    }
}
