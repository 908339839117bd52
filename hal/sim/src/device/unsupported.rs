//! Features that the simulator does not support.

use flipwave_device::DeviceError;

/// Errors returned for unsupported features.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The target is not supported.
    #[error("unsupported target {wanted}: the embedded GPU executes code for {}", supported.join(", "))]
    Target {
        /// Requested target.
        wanted: String,
        /// Supported processors.
        supported: Vec<&'static str>,
    },
    /// The target has no strict level.
    #[error(
        "no strict rules for {target}: the strict level supports {}; run without it",
        known.join(", ")
    )]
    StrictLevel {
        /// Target of the device.
        target: String,
        /// Processors with known rules.
        known: Vec<&'static str>,
    },
}

impl From<Unsupported> for DeviceError {
    fn from(reason: Unsupported) -> DeviceError {
        DeviceError::Unsupported(Box::new(reason))
    }
}
