//! One injection again.

use crate::campaign::Campaign;
use crate::error::CampaignError;
use crate::outcome::{Verdict, classify};
use crate::prepare::prepare_emulated;
use flipwave_device::DeviceFault;
use flipwave_injector::{Ending, Site, inject};

/// What one injection did.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The register's value before the fault.
    pub before: u32,
    /// Its value after it.
    pub after: u32,
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
pub fn replay(campaign: &Campaign, site: &Site) -> Result<Replay, CampaignError> {
    let prepared = prepare_emulated(campaign)?;
    let golden = prepared.workload.golden()?;
    let injection =
        inject(&prepared.workload, site, &golden.instruction_limits()).map_err(Box::new)?;
    let verdict = classify(&injection.ending, &golden, &prepared.formats);
    let fault = match injection.ending {
        Ending::Completed { .. } => None,
        Ending::Faulted { dispatch, fault } => Some((dispatch, fault)),
    };
    Ok(Replay { before: injection.before, after: injection.after, verdict, fault })
}
