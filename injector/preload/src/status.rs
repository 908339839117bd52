//! What programs ask of a file without opening it.

use crate::device::Device;
use crate::paths::{device as device_at, led};
use crate::real::{fail, real};
use libc::{c_char, c_int, c_uint, stat as Status};

/// What the system says of an open file.
pub fn of_file(file: c_int) -> Option<Status> {
    // SAFETY: writes one structure of numbers.
    unsafe {
        let mut status: Status = std::mem::zeroed();
        // The system call itself: ours stands before the function.
        (libc::syscall(libc::SYS_fstat, file, &raw mut status) == 0).then_some(status)
    }
}

/// The device that an open file is.
pub fn device(file: c_int) -> Option<Device> {
    // Asking the system takes longer than what most programs would ask it for.
    let status = Device::is_any_open().then(|| of_file(file))??;
    Device::of_file(status.st_dev, status.st_ino)
}

/// Makes what the system says of a file what it would say of a device.
///
/// # Safety
/// `status` is null or the program's.
unsafe fn show(device: Device, status: *mut Status) {
    // SAFETY: promised by the caller.
    if let Some(status) = unsafe { status.as_mut() } {
        status.st_mode = libc::S_IFCHR | 0o666;
        status.st_rdev = device.number();
        status.st_size = 0;
    }
}

/// Functions that look at a path.
macro_rules! of_path {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(path: *const c_char, status: *mut Status) -> c_int {
                // SAFETY: the program's, with a zero at its end.
                let (own, device) = unsafe { (led(path), device_at(path)) };
                let place = own.as_ref().map_or(path, |own| own.as_ptr());
                let result = real!($name(place, status):
                    fn(*const c_char, *mut Status) -> c_int, fail(libc::ENOSYS));
                if let (0, Some(device)) = (result, device) {
                    // SAFETY: the program's; the system has written it.
                    unsafe { show(device, status) };
                }
                result
            }
        )*
    };
}
of_path! { stat stat64 lstat lstat64 }

/// The same as programs have it that were linked before the C library's version 2.33.
macro_rules! of_path_versioned {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                version: c_int,
                path: *const c_char,
                status: *mut Status,
            ) -> c_int {
                // SAFETY: the program's, with a zero at its end.
                let (own, device) = unsafe { (led(path), device_at(path)) };
                let place = own.as_ref().map_or(path, |own| own.as_ptr());
                let result = real!($name(version, place, status):
                    fn(c_int, *const c_char, *mut Status) -> c_int, fail(libc::ENOSYS));
                if let (0, Some(device)) = (result, device) {
                    // SAFETY: the program's; the system has written it.
                    unsafe { show(device, status) };
                }
                result
            }
        )*
    };
}
of_path_versioned! { __xstat __xstat64 __lxstat __lxstat64 }

/// Makes what the system says of an open file right, if it is a device.
///
/// # Safety
/// `status` is null or the program's, and written if `result` is 0.
unsafe fn correct(result: c_int, status: *mut Status) -> c_int {
    // SAFETY: promised by the caller.
    let known = unsafe { status.as_ref() }.filter(|_| result == 0);
    if let Some(device) = known.and_then(|known| Device::of_file(known.st_dev, known.st_ino)) {
        // SAFETY: promised by the caller.
        unsafe { show(device, status) };
    }
    result
}

/// Functions that look at an open file.
macro_rules! of_open_file {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(file: c_int, status: *mut Status) -> c_int {
                let result = real!($name(file, status):
                    fn(c_int, *mut Status) -> c_int, fail(libc::ENOSYS));
                // SAFETY: the program's; the system has written it.
                unsafe { correct(result, status) }
            }
        )*
    };
}
of_open_file! { fstat fstat64 }

/// The same, as above.
macro_rules! of_open_file_versioned {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(version: c_int, file: c_int, status: *mut Status) -> c_int {
                let result = real!($name(version, file, status):
                    fn(c_int, c_int, *mut Status) -> c_int, fail(libc::ENOSYS));
                // SAFETY: the program's; the system has written it.
                unsafe { correct(result, status) }
            }
        )*
    };
}
of_open_file_versioned! { __fxstat __fxstat64 }

/// Functions that look at a path from a folder, or at an open file.
macro_rules! of_path_at {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                folder: c_int,
                path: *const c_char,
                status: *mut Status,
                flags: c_int,
            ) -> c_int {
                // SAFETY: the program's, with a zero at its end.
                let (own, device) = unsafe { (led(path), device_at(path)) };
                let place = own.as_ref().map_or(path, |own| own.as_ptr());
                let result = real!($name(folder, place, status, flags):
                    fn(c_int, *const c_char, *mut Status, c_int) -> c_int, fail(libc::ENOSYS));
                match (result, device) {
                    // SAFETY: the program's; the system has written it.
                    (0, Some(device)) => unsafe { show(device, status) },
                    // SAFETY: as above.
                    _ => unsafe {
                        correct(result, status);
                    },
                }
                result
            }
        )*
    };
}
of_path_at! { fstatat fstatat64 }

#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    status: *mut libc::statx,
) -> c_int {
    // SAFETY: the program's, with a zero at its end.
    let (own, device) = unsafe { (led(path), device_at(path)) };
    let place = own.as_ref().map_or(path, |own| own.as_ptr());
    let result = real!(statx(folder, place, flags, mask, status):
        fn(c_int, *const c_char, c_int, c_uint, *mut libc::statx) -> c_int, fail(libc::ENOSYS));
    // SAFETY: the program's; the system has written it.
    let known = unsafe { status.as_mut() }.filter(|_| result == 0);
    let Some(known) = known else { return result };
    let file_system = libc::makedev(known.stx_dev_major, known.stx_dev_minor);
    if let Some(device) = device.or_else(|| Device::of_file(file_system, known.stx_ino)) {
        known.stx_mode = (libc::S_IFCHR | 0o666) as u16;
        let number = device.number();
        (known.stx_rdev_major, known.stx_rdev_minor) = (libc::major(number), libc::minor(number));
        known.stx_size = 0;
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the program's, with a zero at its end.
    let own = unsafe { led(path) };
    let place = own.as_ref().map_or(path, |own| own.as_ptr());
    real!(access(place, mode): fn(*const c_char, c_int) -> c_int, fail(libc::ENOSYS))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn faccessat(
    folder: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's, with a zero at its end.
    let own = unsafe { led(path) };
    let place = own.as_ref().map_or(path, |own| own.as_ptr());
    real!(faccessat(folder, place, mode, flags):
        fn(c_int, *const c_char, c_int, c_int) -> c_int, fail(libc::ENOSYS))
}
