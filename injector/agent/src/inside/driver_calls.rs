//! Where programs that open a device of the driver arrive. `flipwave-preload` finds these functions by
//! their names.

use flipwave_kfd::{Mapping, enter_range, map_device, open_device, request_device};
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::sync::Arc;

/// Opens the compute device, for which `minor` is negative, or the render node with this minor
/// number: a file, or an error of the system with its sign changed.
#[unsafe(no_mangle)]
pub extern "C" fn flipwave_open_device(minor: i32, flags: c_int) -> c_int {
    open_device(u32::try_from(minor).ok(), flags)
}

/// Answers a request on a device, named as for [`flipwave_open_device`]: 0, or an error of the system with
/// its sign changed.
///
/// # Safety
/// `argument` is what the kernel's headers say of this request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flipwave_request_device(
    minor: i32,
    request: c_ulong,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { request_device(u32::try_from(minor).ok(), request, argument) }
}

/// What the application submits from now on belongs to the range of this name, or to none where it is null.
///
/// # Safety
/// `range` is null, or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flipwave_enter_range(range: *const c_char) {
    // SAFETY: promised by the caller.
    let range = (!range.is_null()).then(|| unsafe { CStr::from_ptr(range) });
    enter_range(range.map(|range| Arc::from(range.to_string_lossy())));
}

/// Maps a part of a device, named as for [`flipwave_open_device`], with the arguments of `mmap`: the
/// place, or an error of the system with its sign changed.
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
