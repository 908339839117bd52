//! Functions that the preload shim calls when the application uses a device of the driver. The shim finds
//! them by name.

use flipwave_kfd::{Mapping, enter_range, map_device, open_device, request_device};
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::sync::Arc;

/// Opens the compute device, if `minor` is negative, or the render node with this minor number. Returns a
/// file descriptor or a negative error number.
#[unsafe(no_mangle)]
pub extern "C" fn flipwave_open_device(minor: i32, flags: c_int) -> c_int {
    open_device(u32::try_from(minor).ok(), flags)
}

/// Handles an ioctl request on a device, identified as for [`flipwave_open_device`]. Returns 0 or a negative
/// error number.
///
/// # Safety
/// `argument` must be valid for the request, as defined in the kernel's headers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flipwave_request_device(
    minor: i32,
    request: c_ulong,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { request_device(u32::try_from(minor).ok(), request, argument) }
}

/// Assigns the following submissions of the application to the range with this name, or to none if it is
/// null.
///
/// # Safety
/// `range` must be null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flipwave_enter_range(range: *const c_char) {
    // SAFETY: promised by the caller.
    let range = (!range.is_null()).then(|| unsafe { CStr::from_ptr(range) });
    enter_range(range.map(|range| Arc::from(range.to_string_lossy())));
}

/// Maps a part of a device, identified as for [`flipwave_open_device`], with the arguments of `mmap`. Returns
/// the address or a negative error number.
///
/// # Safety
/// As with `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flipwave_map_device(
    minor: i32,
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    offset: i64,
) -> i64 {
    let (address, bytes, offset) = (address as u64, bytes as u64, offset as u64);
    let mapping = Mapping { address, bytes, protection, flags, offset };
    // SAFETY: promised by the caller.
    unsafe { map_device(u32::try_from(minor).ok(), mapping) }
}
