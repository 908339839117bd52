//! Injection with hooks.

use flipwave_injector::{
    Fault, FaultTarget, Injection, InjectionError, Selection, Site, Unreached, Workload,
};
use flipwave_injector_ptx::LaneReach;
use flipwave_ptx_hooks::PtxHookError;
use flipwave_tools::ToolError;

/// Errors returned when hooks cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HookMethodError {
    /// Hooks cannot be compiled, or not inserted into AMD code objects.
    #[error(transparent)]
    Amdgpu(#[from] Box<ToolError>),
    /// Hooks cannot be compiled, or not inserted into PTX modules.
    #[error(transparent)]
    Ptx(#[from] Box<PtxHookError>),
    /// Hooks cannot strike a target.
    #[error("hooks cannot strike target {0} on this platform; inject without `--by hook`")]
    Target(FaultTarget),
}

/// Injection with hooks in the code of a platform, on its simulated GPUs.
pub trait HookMethod: Sync {
    /// Checks that hooks can strike a target at some instructions.
    ///
    /// # Errors
    /// [`HookMethodError::Target`].
    fn check_target(&self, _target: FaultTarget) -> Result<(), HookMethodError> {
        Ok(())
    }

    /// Returns the words that `fault` can strike in the selection but hooks cannot.
    ///
    /// # Errors
    /// [`HookMethodError`] if hooks cannot be inserted into the code.
    fn unreached(
        &self,
        workload: &Workload,
        fault: &Fault,
        selection: &Selection,
    ) -> Result<Unreached, HookMethodError>;

    /// Creates an injector for a workload, to be used by one worker.
    ///
    /// # Errors
    /// [`HookMethodError`] if there is no compiler for hooks.
    fn injector<'a>(
        &self,
        workload: &'a Workload,
    ) -> Result<Box<dyn HookInjection + 'a>, HookMethodError>;

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

    /// Returns code with hooks that inject a fault at `site` and strike lanes as `reach` says, for another process.
    ///
    /// # Errors
    /// [`InjectionError`] if hooks cannot inject the fault.
    fn code(
        &mut self,
        site: &Site,
        limits: &[u64],
        reach: LaneReach,
    ) -> Result<HookedCodes, InjectionError>;
}

/// Code with hooks for the process of a program.
#[derive(Clone, Debug)]
pub enum HookedCodes {
    /// Code objects of AMD GPUs.
    Amdgpu(Vec<flipwave_injector_amdgpu::HookedCode>),
    /// PTX modules.
    Ptx(Vec<flipwave_injector_ptx::HookedCode>),
}
