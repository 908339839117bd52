//! The C library's functions, before which ours stand.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the C library, found when it is needed for the first time.
pub struct Real {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Real {
    pub const fn new(name: &'static CStr) -> Real {
        Real { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address; null where the C library has none.
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

/// Says that something is not there, as the C library does.
pub fn fail(error: libc::c_int) -> libc::c_int {
    // SAFETY: this thread's own.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// Calls the function of the C library that ours stands before. Where there is none, ours is called by
/// nobody.
macro_rules! real {
    ($name:ident($($argument:expr),*): fn($($type:ty),*) -> $result:ty, $none:expr) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new(
            match ::std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
        );
        let address = REAL.address();
        if address.is_null() {
            $none
        } else {
            type Function = unsafe extern "C" fn($($type),*) -> $result;
            // SAFETY: the C library's function of this name, which has this type; and called with
            // what our caller has given for it.
            unsafe {
                let real = ::std::mem::transmute::<*mut ::std::ffi::c_void, Function>(address);
                real($($argument),*)
            }
        }
    }};
}
pub(crate) use real;
