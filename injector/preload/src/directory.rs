//! Interception of functions for folders, links and absolute paths.

use crate::paths::{folder, redirect};
use crate::real::{fail, real};
use libc::{DIR, c_char, c_int, size_t, ssize_t};
use std::ffi::CStr;

#[unsafe(no_mangle)]
unsafe extern "C" fn opendir(path: *const c_char) -> *mut DIR {
    // SAFETY: the program's zero-terminated path.
    let path = unsafe { redirect(path) };
    real!(opendir(path.as_ptr()): fn(*const c_char) -> *mut DIR, std::ptr::null_mut())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readlink(path: *const c_char, text: *mut c_char, size: size_t) -> ssize_t {
    // SAFETY: the program's zero-terminated path.
    let path = unsafe { redirect(path) };
    real!(readlink(path.as_ptr(), text, size):
        fn(*const c_char, *mut c_char, size_t) -> ssize_t, fail(libc::ENOSYS) as ssize_t)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readlinkat(
    folder: c_int,
    path: *const c_char,
    text: *mut c_char,
    size: size_t,
) -> ssize_t {
    // SAFETY: the program's zero-terminated path.
    let path = unsafe { redirect(path) };
    real!(readlinkat(folder, path.as_ptr(), text, size):
        fn(c_int, *const c_char, *mut c_char, size_t) -> ssize_t, fail(libc::ENOSYS) as ssize_t)
}

/// Removes the folder with the driver's files from the beginning of a path.
///
/// # Safety
/// `path` is null, or a zero-terminated path that may be written.
unsafe fn remove_folder(path: *mut c_char) -> *mut c_char {
    if path.is_null() {
        return path;
    }
    // SAFETY: promised by the caller; the rest of the path moves down with its zero.
    unsafe {
        let bytes = CStr::from_ptr(path).to_bytes();
        let is_prefix = |folder: &&[u8]| bytes.starts_with(folder) && bytes.len() > folder.len();
        if let Some(prefix) = folder().filter(is_prefix).map(<[u8]>::len) {
            let rest = bytes.len() - prefix + 1;
            std::ptr::copy(path.add(prefix), path, rest);
        }
    }
    path
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realpath(path: *const c_char, buffer: *mut c_char) -> *mut c_char {
    // SAFETY: the program's zero-terminated path.
    let path = unsafe { redirect(path) };
    let found = real!(realpath(path.as_ptr(), buffer):
        fn(*const c_char, *mut c_char) -> *mut c_char, std::ptr::null_mut());
    // SAFETY: the program's buffer or a new one, written by the C library.
    if path.is_redirected() { unsafe { remove_folder(found) } } else { found }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __realpath_chk(
    path: *const c_char,
    buffer: *mut c_char,
    size: size_t,
) -> *mut c_char {
    // SAFETY: the program's zero-terminated path.
    let path = unsafe { redirect(path) };
    let found = real!(__realpath_chk(path.as_ptr(), buffer, size):
        fn(*const c_char, *mut c_char, size_t) -> *mut c_char, std::ptr::null_mut());
    // SAFETY: the program's buffer or a new one, written by the C library.
    if path.is_redirected() { unsafe { remove_folder(found) } } else { found }
}
