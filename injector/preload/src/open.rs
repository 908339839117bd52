//! What opens files.

use crate::driver;
use crate::paths::{device, led};
use crate::real::{fail, real};
use libc::{FILE, c_char, c_int, mode_t};

/// Functions that open a path. Without O_CREAT nobody gives a mode: what is passed on then is what
/// stands in its place, as with the C library's own.
macro_rules! open {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
                // SAFETY: the program's, with a zero at its end.
                if let Some(device) = unsafe { device(path) } {
                    return driver::open(device, flags);
                }
                // SAFETY: as above.
                let own = unsafe { led(path) };
                let place = own.as_ref().map_or(path, |own| own.as_ptr());
                real!($name(place, flags, mode):
                    fn(*const c_char, c_int, mode_t) -> c_int, fail(libc::ENOSYS))
            }
        )*
    };
}
open! { open open64 __open_2 __open64_2 }

/// The same from a folder.
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
                // SAFETY: the program's, with a zero at its end.
                if let Some(device) = unsafe { device(path) } {
                    return driver::open(device, flags);
                }
                // SAFETY: as above.
                let own = unsafe { led(path) };
                let place = own.as_ref().map_or(path, |own| own.as_ptr());
                real!($name(folder, place, flags, mode):
                    fn(c_int, *const c_char, c_int, mode_t) -> c_int, fail(libc::ENOSYS))
            }
        )*
    };
}
open_at! { openat openat64 __openat_2 __openat64_2 }

/// The same as a stream. Nobody opens a device so.
macro_rules! open_stream {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut FILE {
                // SAFETY: the program's, with a zero at its end.
                let own = unsafe { led(path) };
                let place = own.as_ref().map_or(path, |own| own.as_ptr());
                real!($name(place, mode):
                    fn(*const c_char, *const c_char) -> *mut FILE, std::ptr::null_mut())
            }
        )*
    };
}
open_stream! { fopen fopen64 }
