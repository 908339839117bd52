//! Features that the simulator does not support.

use flipwave_device::DeviceError;

/// Errors returned for unsupported features.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The target is not supported.
    #[error("the embedded GPU executes code for {}, not for {wanted}", supported.join(", "))]
    Target {
        /// Requested target.
        wanted: String,
        /// Supported processors.
        supported: Vec<&'static str>,
    },
    /// The target has no strict level.
    #[error(
        "the strict level has the rules of {}, not those of {target}; run without it",
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
