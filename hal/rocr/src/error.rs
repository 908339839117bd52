//! Calls of the runtime that fail.

use hsa_sys::{HSA_STATUS_SUCCESS, hsa_status_t};

/// A call of AMD's runtime that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed with status {:#x} ({})", status.0, meaning(*status))]
pub struct HsaError {
    /// The function.
    pub call: &'static str,
    /// How it ended; `hsa_status_t` of `hsa.h`.
    pub status: hsa_status_t,
}

impl HsaError {
    /// What the status of a call says.
    ///
    /// # Errors
    /// [`HsaError`] if it did not succeed.
    pub fn check(call: &'static str, status: hsa_status_t) -> Result<(), HsaError> {
        if status == HSA_STATUS_SUCCESS { Ok(()) } else { Err(HsaError { call, status }) }
    }
}

/// In words, for what is met in practice.
fn meaning(status: hsa_status_t) -> &'static str {
    match status.0 {
        0x1001 => "invalid argument",
        0x1003 => "invalid allocation",
        0x1004 => "invalid agent",
        0x1008 => "out of resources",
        0x100b => "the runtime is not initialized",
        0x100d => "incompatible arguments",
        0x1010 => "invalid code object",
        0x1013 => "no such symbol",
        0x1014 => "a variable is defined twice",
        0x1015 => "a variable is not defined",
        0x1016 => "an exception of a wave",
        0x1017 => "no such instruction set",
        41 => "aperture violation",
        42 => "illegal instruction",
        43 => "memory fault",
        _ => "see hsa_status_t in hsa.h",
    }
}
