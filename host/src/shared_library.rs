//! Shared libraries that are opened at run time, such as the runtime or the driver of a vendor.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// A shared library, which stays open until the process exits.
#[derive(Clone, Copy, Debug)]
pub struct SharedLibrary {
    handle: NonNull<c_void>,
}

impl SharedLibrary {
    /// Opens the library with this path, or this name that the dynamic linker finds.
    ///
    /// # Errors
    /// The dynamic linker's message.
    ///
    /// # Safety
    /// The library's initialization code must be safe to run in this process.
    pub unsafe fn open(name: &CStr) -> Result<SharedLibrary, String> {
        // SAFETY: the name is NUL-terminated; the caller answers for the initialization code.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(|handle| SharedLibrary { handle }).ok_or_else(linker_error)
    }

    /// Address of a function; `None` if the library lacks it.
    pub fn find(&self, function: &CStr) -> Option<*mut c_void> {
        // SAFETY: the library is open, and the name is NUL-terminated.
        let address = unsafe { libc::dlsym(self.handle.as_ptr(), function.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

/// The dynamic linker's last error message.
fn linker_error() -> String {
    // SAFETY: returns a string or null, valid until the next call in this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: the string is NUL-terminated.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_an_open_library_are_found_by_name() {
        // SAFETY: this process has loaded the library already.
        let library = unsafe { SharedLibrary::open(c"libc.so.6") }.expect("the C library");
        assert!(library.find(c"strlen").is_some());
        assert!(library.find(c"no_such_function").is_none());
    }

    #[test]
    fn error_of_a_missing_library_names_it() {
        // SAFETY: there is no such library.
        let error = unsafe { SharedLibrary::open(c"libno-such-library.so.1") }.unwrap_err();
        assert!(error.contains("libno-such-library.so.1"), "{error}");
    }
}
