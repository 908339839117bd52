//! The runtime, opened when the program runs.

use crate::functions::Functions;
use crate::types::hsa_status_t;
use std::ffi::{CStr, c_void};

/// The runtime's name.
const SONAME: &CStr = c"libhsa-runtime64.so.1";

/// The runtime, open for as long as the process lives.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// Its functions.
    pub functions: Functions,
}

/// No runtime, or another one than was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// It is not there, or something that it needs is not.
    #[error(
        "AMD's runtime cannot be opened: {reason}; it comes with ROCm (Debian: libhsa-runtime64-1), \
         and LD_LIBRARY_PATH may name its folder"
    )]
    Missing {
        /// In the linker's words.
        reason: String,
    },
    /// It lacks a function.
    #[error("AMD's runtime has no `{function}`; ROCm 5.2 or later is expected")]
    NoFunction {
        /// Its name.
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
        // SAFETY: loading the vendor's library runs the vendor's code, as linking to it would.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(LibraryError::Missing { reason: linker_error() });
        }
        let find = |function: &'static CStr| {
            // SAFETY: the library is open, and stays so.
            let address = unsafe { libc::dlsym(library, function.as_ptr()) };
            let missing =
                || LibraryError::NoFunction { function: function.to_string_lossy().into_owned() };
            if address.is_null() { Err(missing()) } else { Ok(address) }
        };
        // SAFETY: functions of the runtime, which keeps to its headers.
        Ok(Library { functions: unsafe { Functions::find(find)? } })
    }
}

/// Unmaps virtual memory: where it is mapped, and bytes.
pub type hsa_amd_vmem_unmap = unsafe extern "C" fn(*mut c_void, usize) -> hsa_status_t;

/// What unmaps virtual memory in a runtime that this process has loaded; older ones have none.
pub fn virtual_memory_unmap() -> Option<hsa_amd_vmem_unmap> {
    let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
    // SAFETY: loads nothing; names end with a zero, and the function has this type.
    unsafe {
        let library = libc::dlopen(SONAME.as_ptr(), flags);
        if library.is_null() {
            return None;
        }
        let address = libc::dlsym(library, c"hsa_amd_vmem_unmap".as_ptr());
        std::mem::transmute::<*mut c_void, Option<hsa_amd_vmem_unmap>>(address)
    }
}

/// Why the linker failed.
fn linker_error() -> String {
    // SAFETY: text of the linker's, or null, until the next call in this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: text that ends with a zero.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_is_not_there_is_said_with_where_it_comes_from() {
        let error = Library::open_named(c"libno-such-runtime.so.1").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("libno-such-runtime.so.1"), "{text}");
        assert!(text.contains("ROCm") && text.contains("LD_LIBRARY_PATH"), "{text}");
    }

    #[test]
    fn another_library_is_no_runtime() {
        let error = Library::open_named(c"libc.so.6").unwrap_err();
        assert_eq!(error, LibraryError::NoFunction { function: "hsa_init".to_owned() });
    }
}
