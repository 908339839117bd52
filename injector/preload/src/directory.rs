//! Folders and links.

use crate::paths::{folder, led};
use crate::real::{fail, real};
use libc::{DIR, c_char, c_int, size_t, ssize_t};
use std::ffi::CStr;

#[unsafe(no_mangle)]
unsafe extern "C" fn opendir(path: *const c_char) -> *mut DIR {
    // SAFETY: the program's, with a zero at its end.
    let own = unsafe { led(path) };
    let place = own.as_ref().map_or(path, |own| own.as_ptr());
    real!(opendir(place): fn(*const c_char) -> *mut DIR, std::ptr::null_mut())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readlink(path: *const c_char, text: *mut c_char, room: size_t) -> ssize_t {
    // SAFETY: the program's, with a zero at its end.
    let own = unsafe { led(path) };
    let place = own.as_ref().map_or(path, |own| own.as_ptr());
    real!(readlink(place, text, room):
        fn(*const c_char, *mut c_char, size_t) -> ssize_t, fail(libc::ENOSYS) as ssize_t)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readlinkat(
    from: c_int,
    path: *const c_char,
    text: *mut c_char,
    room: size_t,
) -> ssize_t {
    // SAFETY: the program's, with a zero at its end.
    let own = unsafe { led(path) };
    let place = own.as_ref().map_or(path, |own| own.as_ptr());
    real!(readlinkat(from, place, text, room):
        fn(c_int, *const c_char, *mut c_char, size_t) -> ssize_t, fail(libc::ENOSYS) as ssize_t)
}

/// Takes the folder's name from the beginning of a path that was found in it.
///
/// # Safety
/// `path` is null or ends with a zero, and may be written.
unsafe fn strip(path: *mut c_char) -> *mut c_char {
    if path.is_null() {
        return path;
    }
    // SAFETY: promised by the caller; what is moved ends with the zero, and moves down.
    unsafe {
        let length = CStr::from_ptr(path).count_bytes();
        let own = folder().filter(|own| CStr::from_ptr(path).to_bytes().starts_with(own));
        if let Some(own) = own.filter(|own| length > own.len()) {
            std::ptr::copy(path.add(own.len()), path, length - own.len() + 1);
        }
    }
    path
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realpath(path: *const c_char, place: *mut c_char) -> *mut c_char {
    // SAFETY: the program's, with a zero at its end.
    let own = unsafe { led(path) };
    let from = own.as_ref().map_or(path, |own| own.as_ptr());
    let found = real!(realpath(from, place):
        fn(*const c_char, *mut c_char) -> *mut c_char, std::ptr::null_mut());
    // SAFETY: the program's, or new; the C library has written it.
    if own.is_some() { unsafe { strip(found) } } else { found }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __realpath_chk(
    path: *const c_char,
    place: *mut c_char,
    room: size_t,
) -> *mut c_char {
    // SAFETY: the program's, with a zero at its end.
    let own = unsafe { led(path) };
    let from = own.as_ref().map_or(path, |own| own.as_ptr());
    let found = real!(__realpath_chk(from, place, room):
        fn(*const c_char, *mut c_char, size_t) -> *mut c_char, std::ptr::null_mut());
    // SAFETY: as above.
    if own.is_some() { unsafe { strip(found) } } else { found }
}
