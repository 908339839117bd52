//! Interception of functions that inspect files.

use crate::device::Device;
use crate::paths::{device as device_at, redirect};
use crate::real::{fail, real};
use libc::{c_char, c_int, c_uint, stat as Status};

/// Status of an open file.
pub fn file_status(file: c_int) -> Option<Status> {
    // SAFETY: writes one structure of numbers. A system call, as this crate intercepts the
    // function.
    unsafe {
        let mut status: Status = std::mem::zeroed();
        (libc::syscall(libc::SYS_fstat, file, &raw mut status) == 0).then_some(status)
    }
}

/// The device that an open file represents.
pub fn device(file: c_int) -> Option<Device> {
    // Saves most programs a system call for each intercepted call.
    let status = Device::is_any_open().then(|| file_status(file))??;
    Device::from_file(status.st_dev, status.st_ino)
}

/// Changes the status of a file to that of a device.
///
/// # Safety
/// `status` is null or valid.
unsafe fn show_device(device: Device, status: *mut Status) {
    // SAFETY: promised by the caller.
    if let Some(status) = unsafe { status.as_mut() } {
        status.st_mode = libc::S_IFCHR | 0o666;
        status.st_rdev = device.number();
        status.st_size = 0;
    }
}

/// Intercepts functions that return the status of a path.
macro_rules! path_status {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(path: *const c_char, status: *mut Status) -> c_int {
                // SAFETY: the program's zero-terminated path.
                let (path, device) = unsafe { (redirect(path), device_at(path)) };
                let result = real!($name(path.as_ptr(), status):
                    fn(*const c_char, *mut Status) -> c_int, fail(libc::ENOSYS));
                if let (0, Some(device)) = (result, device) {
                    // SAFETY: the program's structure, written by the C library.
                    unsafe { show_device(device, status) };
                }
                result
            }
        )*
    };
}
path_status! { stat stat64 lstat lstat64 }

/// Intercepts the functions of [`path_status`] in programs that were linked before version 2.33 of
/// the C library.
macro_rules! path_status_versioned {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                version: c_int,
                path: *const c_char,
                status: *mut Status,
            ) -> c_int {
                // SAFETY: the program's zero-terminated path.
                let (path, device) = unsafe { (redirect(path), device_at(path)) };
                let result = real!($name(version, path.as_ptr(), status):
                    fn(c_int, *const c_char, *mut Status) -> c_int, fail(libc::ENOSYS));
                if let (0, Some(device)) = (result, device) {
                    // SAFETY: the program's structure, written by the C library.
                    unsafe { show_device(device, status) };
                }
                result
            }
        )*
    };
}
path_status_versioned! { __xstat __xstat64 __lxstat __lxstat64 }

/// Changes the status of an open file if the file represents a device.
///
/// # Safety
/// `status` is null or valid, and written if `result` is 0.
unsafe fn show_device_of_file(result: c_int, status: *mut Status) -> c_int {
    // SAFETY: promised by the caller.
    let written = unsafe { status.as_ref() }.filter(|_| result == 0);
    let device = written.and_then(|status| Device::from_file(status.st_dev, status.st_ino));
    if let Some(device) = device {
        // SAFETY: promised by the caller.
        unsafe { show_device(device, status) };
    }
    result
}

/// Intercepts functions that return the status of an open file.
macro_rules! open_file_status {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(file: c_int, status: *mut Status) -> c_int {
                let result = real!($name(file, status):
                    fn(c_int, *mut Status) -> c_int, fail(libc::ENOSYS));
                // SAFETY: the program's structure, written by the C library.
                unsafe { show_device_of_file(result, status) }
            }
        )*
    };
}
open_file_status! { fstat fstat64 }

/// Intercepts the functions of [`open_file_status`] in programs that were linked before version
/// 2.33 of the C library.
macro_rules! open_file_status_versioned {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(version: c_int, file: c_int, status: *mut Status) -> c_int {
                let result = real!($name(version, file, status):
                    fn(c_int, c_int, *mut Status) -> c_int, fail(libc::ENOSYS));
                // SAFETY: the program's structure, written by the C library.
                unsafe { show_device_of_file(result, status) }
            }
        )*
    };
}
open_file_status_versioned! { __fxstat __fxstat64 }

/// Intercepts functions that return the status of a path relative to a folder, or of an open file.
macro_rules! path_status_at {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                folder: c_int,
                path: *const c_char,
                status: *mut Status,
                flags: c_int,
            ) -> c_int {
                // SAFETY: the program's zero-terminated path.
                let (path, device) = unsafe { (redirect(path), device_at(path)) };
                let result = real!($name(folder, path.as_ptr(), status, flags):
                    fn(c_int, *const c_char, *mut Status, c_int) -> c_int, fail(libc::ENOSYS));
                match (result, device) {
                    // SAFETY: the program's structure, written by the C library.
                    (0, Some(device)) => unsafe { show_device(device, status) },
                    // SAFETY: as above.
                    _ => unsafe {
                        show_device_of_file(result, status);
                    },
                }
                result
            }
        )*
    };
}
path_status_at! { fstatat fstatat64 }

#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    status: *mut libc::statx,
) -> c_int {
    // SAFETY: the program's zero-terminated path.
    let (path, device) = unsafe { (redirect(path), device_at(path)) };
    let result = real!(statx(folder, path.as_ptr(), flags, mask, status):
        fn(c_int, *const c_char, c_int, c_uint, *mut libc::statx) -> c_int, fail(libc::ENOSYS));
    // SAFETY: the program's structure, written by the C library.
    let written = unsafe { status.as_mut() }.filter(|_| result == 0);
    let Some(status) = written else { return result };
    let file_system = libc::makedev(status.stx_dev_major, status.stx_dev_minor);
    if let Some(device) = device.or_else(|| Device::from_file(file_system, status.stx_ino)) {
        status.stx_mode = (libc::S_IFCHR | 0o666) as u16;
        let number = device.number();
        (status.stx_rdev_major, status.stx_rdev_minor) = (libc::major(number), libc::minor(number));
        status.stx_size = 0;
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the program's zero-terminated path.
    let path = unsafe { redirect(path) };
    real!(access(path.as_ptr(), mode): fn(*const c_char, c_int) -> c_int, fail(libc::ENOSYS))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn faccessat(
    folder: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's zero-terminated path.
    let path = unsafe { redirect(path) };
    real!(faccessat(folder, path.as_ptr(), mode, flags):
        fn(c_int, *const c_char, c_int, c_int) -> c_int, fail(libc::ENOSYS))
}
