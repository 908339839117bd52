//! One injection again.

use crate::campaign::Campaign;
use crate::error::CampaignError;
use crate::golden::golden;
use crate::injectors::{InjectionPath, Injectors};
use crate::outcome::{Rules, Verdict};
use crate::program::prepare_emulated;
use flipwave_device::DeviceFault;
use flipwave_injector::{Accelerations, Ending, Site, Struck, StruckWorkgroups, foresee};

/// What one injection did.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// What was struck.
    pub struck: Struck,
    /// The outcome.
    pub verdict: Verdict,
    /// The dispatch that the device stopped, and why and where, if it did.
    pub fault: Option<(u32, DeviceFault)>,
}

/// Runs a campaign's program with one fault at `site`.
///
/// # Errors
/// [`CampaignError`] if the program cannot be put together, does not complete without a fault,
/// or never comes to the site.
pub fn replay(
    campaign: &Campaign,
    site: &Site,
    path: InjectionPath,
) -> Result<Replay, CampaignError> {
    let prepared = prepare_emulated(campaign)?;
    let golden = golden(campaign, &prepared.workload, &prepared.formats)?;
    let none = Accelerations::NONE;
    let struck = StruckWorkgroups::default();
    let injectors = Injectors::new(&prepared.workload, &golden, struck, path, none)?;
    let injection = injectors.inject_site(site).map_err(|error| Box::new(error).into());
    let injection = campaign.unless_stopped(injection)?;
    let rules = Rules {
        golden: &golden,
        formats: &prepared.formats,
        timing_threshold: campaign.faults.as_ref().map_or(0.0, |faults| faults.timing_threshold),
        counts_instructions: path.counts_instructions(),
    };
    let foreseen = foresee(&prepared.workload, site)?.and_then(|own| own.value);
    let verdict = rules.classify(&injection, foreseen.map(|(fate, _)| fate));
    let fault = match injection.ending {
        Ending::Completed { .. } => None,
        Ending::Faulted { dispatch, fault } => Some((dispatch, fault)),
    };
    Ok(Replay { struck: injection.struck, verdict, fault })
}
