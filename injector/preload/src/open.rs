//! Interception of functions that open files.

use crate::agent;
use crate::paths::{device, redirect};
use crate::real::{fail, real};
use libc::{FILE, c_char, c_int, mode_t};

/// Intercepts functions that open a path. Without O_CREAT, programs pass no mode: the undefined
/// argument is passed on, and ignored, as in the C library.
macro_rules! open {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
                // SAFETY: the program's zero-terminated path.
                if let Some(device) = unsafe { device(path) } {
                    return agent::open(device, flags);
                }
                // SAFETY: as above.
                let path = unsafe { redirect(path) };
                real!($name(path.as_ptr(), flags, mode):
                    fn(*const c_char, c_int, mode_t) -> c_int, fail(libc::ENOSYS))
            }
        )*
    };
}
open! { open open64 __open_2 __open64_2 }

/// Intercepts functions that open a path relative to a folder.
macro_rules! open_at {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                folder: c_int,
                path: *const c_char,
                flags: c_int,
                mode: mode_t,
            ) -> c_int {
                // SAFETY: the program's zero-terminated path.
                if let Some(device) = unsafe { device(path) } {
                    return agent::open(device, flags);
                }
                // SAFETY: as above.
                let path = unsafe { redirect(path) };
                real!($name(folder, path.as_ptr(), flags, mode):
                    fn(c_int, *const c_char, c_int, mode_t) -> c_int, fail(libc::ENOSYS))
            }
        )*
    };
}
open_at! { openat openat64 __openat_2 __openat64_2 }

/// Intercepts functions that open a path as a stream. Programs do not open devices as streams.
macro_rules! open_stream {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut FILE {
                // SAFETY: the program's zero-terminated path.
                let path = unsafe { redirect(path) };
                real!($name(path.as_ptr(), mode):
                    fn(*const c_char, *const c_char) -> *mut FILE, std::ptr::null_mut())
            }
        )*
    };
}
open_stream! { fopen fopen64 }
