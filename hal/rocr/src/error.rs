//! Errors of runtime calls.

use hsa_sys::{HSA_STATUS_SUCCESS, hsa_status_t};

/// The error of a failed call of AMD's runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed with status {:#x} ({})", status.0, meaning(*status))]
pub struct HsaError {
    /// The function called.
    pub call: &'static str,
    /// The returned status.
    pub status: hsa_status_t,
}

impl HsaError {
    /// Converts the status of a call to a result.
    ///
    /// # Errors
    /// [`HsaError`] if the call failed.
    pub fn check(call: &'static str, status: hsa_status_t) -> Result<(), HsaError> {
        if status == HSA_STATUS_SUCCESS { Ok(()) } else { Err(HsaError { call, status }) }
    }
}

/// Description of common statuses.
fn meaning(status: hsa_status_t) -> &'static str {
    match status.0 {
        0x1001 => "invalid argument",
        0x1003 => "invalid allocation",
        0x1004 => "invalid agent",
        0x1008 => "out of resources",
        0x100b => "the runtime is not initialized",
        0x100d => "incompatible arguments",
        0x1010 => "invalid code object",
        0x1013 => "invalid symbol name",
        0x1014 => "variable already defined",
        0x1015 => "undefined variable",
        0x1016 => "wave exception",
        0x1017 => "invalid instruction set name",
        41 => "aperture violation",
        42 => "illegal instruction",
        43 => "memory fault",
        _ => "see hsa_status_t in hsa.h",
    }
}
