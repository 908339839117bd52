//! The embedded GPU behind a machine of any platform.

use super::other_platform::OtherPlatformError;
use flipwave_machine::Simulator;
use flipwave_sim::EmbeddedGpu;

/// The embedded GPU of a simulator.
///
/// # Errors
/// [`OtherPlatformError`] for machines of other platforms.
pub(crate) fn amdgpu(simulator: &Simulator) -> Result<&EmbeddedGpu, OtherPlatformError> {
    let other = || OtherPlatformError { target: simulator.architecture().target().to_owned() };
    simulator.downcast().ok_or_else(other)
}

/// The embedded GPU of a simulator.
///
/// # Errors
/// [`OtherPlatformError`] for machines of other platforms.
pub(crate) fn amdgpu_mut(
    simulator: &mut Simulator,
) -> Result<&mut EmbeddedGpu, OtherPlatformError> {
    let target = simulator.architecture().target().to_owned();
    simulator.downcast_mut().ok_or(OtherPlatformError { target })
}
