//! Platforms: what a campaign needs of the GPUs of one instruction set.
//!
//! A platform knows targets, creates machines that execute their code, and loads programs. Everything
//! else in this crate that plans, injects, classifies and reports faults knows no instruction set. The
//! platforms of AMD and of PTX are always present; [`register_platform`] adds others.

mod amdgpu;
mod amdgpu_detector;
mod amdgpu_emulation;
mod amdgpu_hardening;
mod amdgpu_hooks;
mod amdgpu_machine;
mod amdgpu_strict;
mod amdgpu_tools;
mod detector;
mod emulation;
mod hardening;
mod hooks;
mod loader;
pub(crate) mod other_platform;
mod ptx;
mod ptx_detector;
mod ptx_device;
mod ptx_emulation;
mod ptx_hardening;
mod ptx_hooks;
mod ptx_lockstep;
mod ptx_strict;
mod ptx_tools;
mod strict;
mod target;
mod tools;

pub use detector::{DetectorCounter, DetectorMethod, LoadedDetector};
pub use emulation::{
    EmulatedDispatch, EmulatedRun, EmulationError, EmulationMethod, ExecutedProxy,
};
pub use hardening::{
    CodeFile, DifferenceCounter, HardenedModule, HardeningMethod, LockstepSummary,
};
pub use hooks::{HookInjection, HookMethod, HookMethodError, HookedCodes};
pub use loader::{Addresses, LoadedMachine, ProgramLoader};
pub use strict::{RuleViolation, StrictError, StrictMethod};
pub use target::CampaignTarget;
pub use tools::{ToolMethod, ToolRun};

pub(crate) use amdgpu::AmdgpuLoader;
pub(crate) use amdgpu_machine::{amdgpu, amdgpu_mut};
pub(crate) use ptx::PtxLoader;

use crate::program::error::PrepareError;
use amdgpu::AmdgpuPlatform;
use flipwave_arch::Architecture;
use other_platform::OtherPlatformError;
use ptx::PtxPlatform;
use std::sync::{Arc, PoisonError, RwLock};

/// GPUs of one instruction set, simulated in this process.
pub trait Platform: Sync {
    /// The instruction set of the target with a name; `None` if the platform has no such target.
    fn architecture(&self, target: &str) -> Option<Arc<dyn Architecture>>;

    /// Names of the targets, for error messages.
    fn targets(&self) -> Vec<String>;

    /// Creates a machine of a target of this platform, without code.
    ///
    /// # Errors
    /// [`PrepareError`] if the target's code cannot be executed.
    fn machine(
        &self,
        architecture: &dyn Architecture,
    ) -> Result<Box<dyn LoadedMachine>, PrepareError>;

    /// Injection with hooks in the code of a target of this platform.
    ///
    /// # Errors
    /// An error that names the target if the platform has none.
    fn hooks(
        &self,
        architecture: &dyn Architecture,
    ) -> Result<Box<dyn HookMethod>, OtherPlatformError> {
        Err(OtherPlatformError { target: architecture.target().to_owned() })
    }

    /// Emulated instructions in the code of a target of this platform.
    ///
    /// # Errors
    /// An error that names the target if the platform has none.
    fn emulation(
        &self,
        architecture: &dyn Architecture,
    ) -> Result<Box<dyn EmulationMethod>, OtherPlatformError> {
        Err(OtherPlatformError { target: architecture.target().to_owned() })
    }

    /// The strict level of a target of this platform.
    ///
    /// # Errors
    /// An error that names the target if the platform has none.
    fn strict(
        &self,
        architecture: &dyn Architecture,
    ) -> Result<Box<dyn StrictMethod>, OtherPlatformError> {
        Err(OtherPlatformError { target: architecture.target().to_owned() })
    }

    /// Instrumentation tools in the code of a target of this platform.
    ///
    /// # Errors
    /// An error that names the target if the platform has none.
    fn tools(
        &self,
        architecture: &dyn Architecture,
    ) -> Result<Box<dyn ToolMethod>, OtherPlatformError> {
        Err(OtherPlatformError { target: architecture.target().to_owned() })
    }

    /// Duplication of instructions in the code of a target of this platform.
    ///
    /// # Errors
    /// An error that names the target if the platform has none.
    fn hardening(
        &self,
        architecture: &dyn Architecture,
    ) -> Result<Box<dyn HardeningMethod>, OtherPlatformError> {
        Err(OtherPlatformError { target: architecture.target().to_owned() })
    }
}

/// Platforms in addition to those of this crate.
static REGISTERED: RwLock<Vec<&'static dyn Platform>> = RwLock::new(Vec::new());

/// Adds a platform for campaigns that are read from now on. If several platforms know a target, the first
/// one is used.
pub fn register_platform(platform: &'static dyn Platform) {
    REGISTERED.write().unwrap_or_else(PoisonError::into_inner).push(platform);
}

/// All platforms.
fn platforms() -> Vec<&'static dyn Platform> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    let amdgpu: &'static dyn Platform = &AmdgpuPlatform;
    [amdgpu, &PtxPlatform].into_iter().chain(registered.iter().copied()).collect()
}
