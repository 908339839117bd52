//! The driver's shared library, opened at run time.

use crate::CudaError;
use crate::functions::Functions;
use flipwave_host::shared_library::SharedLibrary;
use std::ffi::{CStr, CString, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;

/// Environment variable with the path of the library, if it is not the one that the dynamic linker finds.
pub const LIBRARY_VARIABLE: &str = "FLIPWAVE_LIBCUDA";

/// The library's name.
const NAME: &str = "libcuda.so.1";

/// Errors returned when opening the driver or a GPU.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The library, or a library that it depends on, cannot be loaded.
    #[error(
        "cannot open NVIDIA's driver: {reason}; install the driver of the GPU (Debian: nvidia-driver), or set \
         {LIBRARY_VARIABLE} to the path of {NAME}"
    )]
    Missing {
        /// The dynamic linker's message.
        reason: String,
    },
    /// The library lacks a function.
    #[error(
        "NVIDIA's driver {library} has no function `{function}`; expected a driver for CUDA 11 or later"
    )]
    NoFunction {
        /// The library.
        library: String,
        /// The function's name.
        function: String,
    },
    /// A call of the driver failed.
    #[error(
        "NVIDIA's driver: {0}; check with `nvidia-smi` that a GPU is present and that this user may use it"
    )]
    Call(#[from] CudaError),
    /// The number of the GPU is out of range.
    #[error("no GPU {wanted} (counted from 0): NVIDIA's driver has {present} GPUs")]
    NoGpu {
        /// The requested number.
        wanted: usize,
        /// Number of GPUs.
        present: usize,
    },
}

/// Opens the library that the environment variable or the dynamic linker names. It stays open until the process exits.
///
/// # Errors
/// [`OpenError::Missing`], [`OpenError::NoFunction`].
pub fn open() -> Result<Functions, OpenError> {
    let named = std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty());
    open_named(named.as_deref().unwrap_or(OsStr::new(NAME)))
}

fn open_named(library: &OsStr) -> Result<Functions, OpenError> {
    let missing = |reason| OpenError::Missing { reason };
    let path = CString::new(library.as_bytes())
        .map_err(|_| missing(format!("{LIBRARY_VARIABLE} contains a zero byte")))?;
    // SAFETY: loading the library runs the vendor's initialization code, as linking would.
    let opened = unsafe { SharedLibrary::open(&path) }.map_err(missing)?;
    let find = |function: &'static CStr| -> Result<*mut c_void, OpenError> {
        opened.find(function).ok_or_else(|| OpenError::NoFunction {
            library: library.to_string_lossy().into_owned(),
            function: function.to_string_lossy().into_owned(),
        })
    };
    // SAFETY: the driver's functions have the signatures in its header, which later versions keep under these names.
    unsafe { Functions::find(find) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_missing_driver_names_the_library_and_the_variable() {
        let error = open_named(OsStr::new("libno-such-driver.so.1")).expect_err("no library");
        let text = error.to_string();
        assert!(
            text.contains("libno-such-driver.so.1") && text.contains(LIBRARY_VARIABLE),
            "{text}"
        );
    }

    #[test]
    fn library_without_driver_functions_is_rejected() {
        let error = open_named(OsStr::new("libc.so.6")).expect_err("not the driver");
        assert!(error.to_string().contains("libc.so.6 has no function `cuInit`"), "{error}");
    }
}
