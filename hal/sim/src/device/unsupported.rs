//! What the embedded GPU does not do.

use flipwave_device::DeviceError;

/// What the embedded GPU does not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// Code for another target.
    #[error("the embedded GPU executes code for {}, not for {wanted}", supported.join(", "))]
    Target {
        /// The target asked for.
        wanted: String,
        /// The processors there are.
        supported: Vec<&'static str>,
    },
    /// The strict level of a target.
    #[error(
        "the strict level has the rules of {}, not those of {target}; run without it",
        known.join(", ")
    )]
    StrictLevel {
        /// The target of the device.
        target: String,
        /// The processors whose rules there are.
        known: Vec<&'static str>,
    },
}

impl From<Unsupported> for DeviceError {
    fn from(reason: Unsupported) -> DeviceError {
        DeviceError::Unsupported(Box::new(reason))
    }
}
