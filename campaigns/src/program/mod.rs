//! Preparation of a campaign's program, for all kinds of workloads.

pub mod buffers;
pub mod cancellable;
pub mod capture;
pub mod compile;
pub mod compile_ptx;
pub mod detector;
pub mod device_libraries;
pub mod error;
pub mod heap;
pub mod image;
pub mod launch;
pub mod object_file;
pub mod prepare;
mod replay_device;
pub mod triton;

use crate::attached::recorded;
use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::program::prepare::{Prepared, prepare};
use crate::run::process_site::ProcessSite;
use flipwave_injector::Site;

/// Prepares a campaign's program: prepares kernels, replaces their proxy instructions with the code
/// that emulates them, and inserts the detector; reads a capture, or records a run of an application.
///
/// # Errors
/// [`CampaignError`].
pub(crate) fn prepare_emulated(campaign: &Campaign) -> Result<Prepared, CampaignError> {
    match &campaign.workload {
        CampaignWorkload::Application(application) => recorded(campaign, application),
        CampaignWorkload::Capture(source) => capture::prepare_checked(campaign, source),
        CampaignWorkload::Kernels(kernels) => {
            let mut prepared = prepare(campaign)?;
            if !kernels.instructions.is_empty() {
                let method = campaign.target.emulation()?;
                method.install(&kernels.instructions, &mut prepared.workload)?;
            }
            if let Some(file) = &kernels.detector {
                prepared.formats.extend(detector::insert(
                    file,
                    &campaign.target,
                    &mut prepared.workload,
                )?);
            }
            Ok(prepared)
        }
    }
}

/// Resolves the name of a site's register in the process that the campaign injects into. A capture contains one
/// process.
///
/// # Errors
/// [`CampaignError::OtherProcess`] if the site names another process, [`CampaignError::Site`] if it names an unknown
/// register.
pub(crate) fn site_in(
    campaign: &Campaign,
    prepared: &Prepared,
    site: ProcessSite,
) -> Result<Site, CampaignError> {
    let site = match campaign.workload {
        CampaignWorkload::Capture(_) => site.site,
        _ => site.in_process(prepared.process)?,
    };
    Ok(prepared.workload.resolve_names(site).map_err(Box::new)?)
}
