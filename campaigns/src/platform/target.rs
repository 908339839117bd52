//! Targets of campaigns.

use super::other_platform::OtherPlatformError;
use super::{
    EmulationMethod, HardeningMethod, HookMethod, Platform, StrictMethod, ToolMethod, platforms,
};
use flipwave_arch::Architecture;
use flipwave_isa::Target;
use flipwave_ptx::Ptx;
use flipwave_sim::Amdgpu;
use std::fmt;
use std::sync::Arc;

/// The GPU that a campaign's code is for.
#[derive(Clone)]
pub struct CampaignTarget {
    architecture: Arc<dyn Architecture>,
    platform: &'static dyn Platform,
}

impl CampaignTarget {
    /// The target with a name.
    ///
    /// # Errors
    /// A message that lists the known targets.
    pub fn named(name: &str) -> Result<CampaignTarget, String> {
        let platforms = platforms();
        for platform in &platforms {
            if let Some(architecture) = platform.architecture(name) {
                return Ok(CampaignTarget { architecture, platform: *platform });
            }
        }
        let unknown =
            name.parse::<Target>().map_or_else(|error| error.to_string(), |_| name.into());
        let others: Vec<String> = platforms.iter().skip(1).flat_map(|all| all.targets()).collect();
        Err(match &others[..] {
            [] => unknown,
            others => format!("{unknown}; other platforms have {}", others.join(", ")),
        })
    }

    /// The instruction set.
    pub fn architecture(&self) -> &dyn Architecture {
        &*self.architecture
    }

    /// The platform.
    pub fn platform(&self) -> &'static dyn Platform {
        self.platform
    }

    /// Injection with hooks.
    ///
    /// # Errors
    /// [`OtherPlatformError`] if the platform has none.
    pub(crate) fn hooks(&self) -> Result<Box<dyn HookMethod>, OtherPlatformError> {
        self.platform.hooks(self.architecture())
    }

    /// The target, if its code is PTX.
    pub(crate) fn ptx(&self) -> Option<&Ptx> {
        self.architecture.as_any().downcast_ref()
    }

    /// Name of the GPU that applications find.
    pub(crate) fn gpu(&self) -> &str {
        match self.amdgpu() {
            Ok(target) => target.processor(),
            Err(_) => self.architecture.target(),
        }
    }

    /// Emulated instructions.
    ///
    /// # Errors
    /// [`OtherPlatformError`] if the platform has none.
    pub(crate) fn emulation(&self) -> Result<Box<dyn EmulationMethod>, OtherPlatformError> {
        self.platform.emulation(self.architecture())
    }

    /// The strict level.
    ///
    /// # Errors
    /// [`OtherPlatformError`] if the platform has none.
    pub(crate) fn strict(&self) -> Result<Box<dyn StrictMethod>, OtherPlatformError> {
        self.platform.strict(self.architecture())
    }

    /// Instrumentation tools.
    ///
    /// # Errors
    /// [`OtherPlatformError`] if the platform has none.
    pub(crate) fn tools(&self) -> Result<Box<dyn ToolMethod>, OtherPlatformError> {
        self.platform.tools(self.architecture())
    }

    /// Duplication of instructions.
    ///
    /// # Errors
    /// [`OtherPlatformError`] if the platform has none.
    pub(crate) fn hardening(&self) -> Result<Box<dyn HardeningMethod>, OtherPlatformError> {
        self.platform.hardening(self.architecture())
    }

    /// The AMD target.
    ///
    /// # Errors
    /// [`OtherPlatformError`] for targets of other platforms.
    pub(crate) fn amdgpu(&self) -> Result<&Target, OtherPlatformError> {
        let amdgpu = self.architecture.as_any().downcast_ref::<Amdgpu>();
        let other = || OtherPlatformError { target: self.to_string() };
        amdgpu.map(Amdgpu::target).ok_or_else(other)
    }
}

impl fmt::Display for CampaignTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.architecture.target())
    }
}

impl fmt::Debug for CampaignTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CampaignTarget").field(&self.architecture).finish()
    }
}

impl PartialEq for CampaignTarget {
    fn eq(&self, other: &CampaignTarget) -> bool {
        self.architecture.target() == other.architecture.target()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_found_by_name() {
        let target = CampaignTarget::named("gfx90a").expect("a target");
        assert_eq!(target.to_string(), "gfx90a");
        assert!(target.amdgpu().is_ok());
        let error = CampaignTarget::named("gfx9").expect_err("no target");
        assert!(error.contains("gfx9") && error.contains("gfx90a"), "{error}");
    }
}
