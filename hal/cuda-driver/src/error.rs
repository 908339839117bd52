//! Errors of driver calls.

use crate::functions::{Functions, Status};
use std::ffi::{CStr, c_char};

/// The error of a failed call of NVIDIA's driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed with {name}, {description} (error {code})")]
pub struct CudaError {
    /// The function called.
    pub call: &'static str,
    /// The returned code (`CUresult`).
    pub code: i32,
    /// The code's name, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub name: String,
    /// The driver's description.
    pub description: String,
}

impl Functions {
    /// Converts the status of a call to a result.
    ///
    /// # Errors
    /// [`CudaError`] if the call failed.
    pub fn check(&self, call: &'static str, status: Status) -> Result<(), CudaError> {
        if status == Status(0) { Ok(()) } else { Err(self.error(call, status)) }
    }

    /// The error with which a call failed.
    pub fn error(&self, call: &'static str, status: Status) -> CudaError {
        let text = |query: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text = std::ptr::null();
            // SAFETY: `text` outlives the call, which writes the address of a static string or null to it.
            let found = unsafe { query(status, &mut text) };
            if found != Status(0) || text.is_null() {
                return None;
            }
            // SAFETY: a static string that ends with a zero.
            Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        CudaError {
            call,
            code: status.0,
            name: text(self.cuGetErrorName).unwrap_or_else(|| "an unknown error".to_owned()),
            description: text(self.cuGetErrorString).unwrap_or_else(|| "no description".to_owned()),
        }
    }
}
