//! Injection with hooks.

use crate::error::CampaignError;
use flipwave_injector::{Fault, Injection, InjectionError, Selection, Site, Unreached, Workload};

/// Injection with hooks in the code of a platform, on its simulated GPUs.
pub trait HookMethod: Sync {
    /// Returns the words that `fault` can strike in the selection but hooks cannot.
    ///
    /// # Errors
    /// [`CampaignError`] if hooks cannot be inserted into the code.
    fn unreached(
        &self,
        workload: &Workload,
        fault: &Fault,
        selection: &Selection,
    ) -> Result<Unreached, CampaignError>;

    /// Creates an injector for a workload, to be used by one worker.
    ///
    /// # Errors
    /// [`CampaignError`] if there is no compiler for hooks.
    fn injector<'a>(
        &self,
        workload: &'a Workload,
    ) -> Result<Box<dyn HookInjection + 'a>, CampaignError>;

    /// Returns `true` if hooks can strike sites of this kind.
    fn supports(&self, site: &Site) -> bool;

    /// Returns `true` if runs with hooks count the instructions of the original code, and no others.
    fn counts_originals(&self) -> bool;
}

/// Injects faults into one workload with hooks.
pub trait HookInjection: Send {
    /// Runs the workload with a fault at `site`. `limits` are the watchdog limits of the dispatches.
    ///
    /// # Errors
    /// [`InjectionError`] if the fault was not injected as the site describes.
    fn inject(&mut self, site: &Site, limits: &[u64]) -> Result<Injection, InjectionError>;
}
