//! The runtime's shared library, opened at run time.

use crate::functions::Functions;
use crate::types::hsa_status_t;
use flipwave_host::shared_library::SharedLibrary;
use std::ffi::{CStr, c_void};

/// The runtime's shared object name.
const SONAME: &CStr = c"libhsa-runtime64.so.1";

/// The runtime's library, which stays open until the process exits.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// The runtime's functions.
    pub functions: Functions,
}

/// Errors returned when opening the runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// The library, or a library that it depends on, cannot be loaded.
    #[error(
        "cannot open AMD's runtime: {reason}; install ROCm (Debian: libhsa-runtime64-1), or add the \
         runtime's folder to LD_LIBRARY_PATH"
    )]
    Missing {
        /// The dynamic linker's message.
        reason: String,
    },
    /// The library lacks a function.
    #[error("AMD's runtime has no function `{function}`; expected ROCm 5.2 or later")]
    NoFunction {
        /// The function's name.
        function: String,
    },
}

impl Library {
    /// Opens the runtime.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn open() -> Result<Library, LibraryError> {
        Library::open_named(SONAME)
    }

    fn open_named(name: &CStr) -> Result<Library, LibraryError> {
        // SAFETY: loading the library runs the vendor's initialization code, as linking would.
        let library = unsafe { SharedLibrary::open(name) }
            .map_err(|reason| LibraryError::Missing { reason })?;
        let find = |function: &'static CStr| {
            let missing =
                || LibraryError::NoFunction { function: function.to_string_lossy().into_owned() };
            library.find(function).ok_or_else(missing)
        };
        // SAFETY: the runtime's functions have the signatures in its headers.
        Ok(Library { functions: unsafe { Functions::find(find)? } })
    }
}

/// Unmaps virtual memory: address, size in bytes.
pub type hsa_amd_vmem_unmap = unsafe extern "C" fn(*mut c_void, usize) -> hsa_status_t;

/// Looks up `hsa_amd_vmem_unmap` in the runtime that this process has loaded. Returns `None` if no
/// runtime is loaded or an older one lacks the function.
pub fn find_vmem_unmap() -> Option<hsa_amd_vmem_unmap> {
    let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
    // SAFETY: RTLD_NOLOAD loads nothing; the names are NUL-terminated, and the function has this type.
    unsafe {
        let library = libc::dlopen(SONAME.as_ptr(), flags);
        if library.is_null() {
            return None;
        }
        let address = libc::dlsym(library, c"hsa_amd_vmem_unmap".as_ptr());
        std::mem::transmute::<*mut c_void, Option<hsa_amd_vmem_unmap>>(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_missing_runtime_names_its_source() {
        let error = Library::open_named(c"libno-such-runtime.so.1").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("libno-such-runtime.so.1"), "{text}");
        assert!(text.contains("ROCm") && text.contains("LD_LIBRARY_PATH"), "{text}");
    }

    #[test]
    fn library_without_runtime_functions_is_rejected() {
        let error = Library::open_named(c"libc.so.6").unwrap_err();
        assert_eq!(error, LibraryError::NoFunction { function: "hsa_init".to_owned() });
    }
}
