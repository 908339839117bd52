//! Access to the C library's functions that the shim intercepts.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// An intercepted function of the C library, looked up on first use.
pub struct Real {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Real {
    pub const fn new(name: &'static CStr) -> Real {
        Real { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Address of the function; null if the C library does not have it.
    pub fn address(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Sets `errno` and returns -1, as functions of the C library do.
pub fn fail(error: libc::c_int) -> libc::c_int {
    // SAFETY: the variable of this thread.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// Calls the C library's function of a name. Evaluates to `$missing` if the C library does not have
/// it; then no program calls it either.
macro_rules! real {
    ($name:ident($($argument:expr),*): fn($($type:ty),*) -> $result:ty, $missing:expr) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new(
            match ::std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
        );
        let address = REAL.address();
        if address.is_null() {
            $missing
        } else {
            type Function = unsafe extern "C" fn($($type),*) -> $result;
            // SAFETY: the C library's function of this name, which has this type, with the
            // arguments of the program.
            unsafe {
                let real = ::std::mem::transmute::<*mut ::std::ffi::c_void, Function>(address);
                real($($argument),*)
            }
        }
    }};
}
pub(crate) use real;
