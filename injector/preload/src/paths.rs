//! Which paths are the driver's, and where they lead.

use crate::device::Device;
use std::ffi::CStr;
use std::sync::OnceLock;

/// What lies below these is Flipwave's, whether this machine has it or not: a GPU that it has is not
/// the application's.
const OWN: [&[u8]; 7] = [
    b"/dev/kfd",
    b"/dev/dri",
    b"/sys/devices/virtual/kfd",
    b"/sys/class/kfd",
    b"/sys/class/drm",
    b"/sys/module/amdgpu",
    b"/sys/dev/char/226:",
];

/// A path in the folder with the driver's files, with a zero at its end.
pub struct Led {
    bytes: [u8; libc::PATH_MAX as usize],
}

impl Led {
    pub fn as_ptr(&self) -> *const libc::c_char {
        self.bytes.as_ptr().cast()
    }
}

/// The folder with the driver's files, if the application was given one.
pub fn folder() -> Option<&'static [u8]> {
    static FOLDER: OnceLock<Option<&'static [u8]>> = OnceLock::new();
    *FOLDER.get_or_init(|| {
        // SAFETY: the name ends with a zero, and so does the value, which is copied at once.
        let value = unsafe {
            let value = libc::getenv(c"FLIPWAVE_DEVICES".as_ptr());
            if value.is_null() { None } else { Some(CStr::from_ptr(value).to_bytes().to_vec()) }
        };
        value.map(|value| &*value.leak())
    })
}

/// The bytes of a path that may be the driver's; nothing for nearly all others, at a glance.
///
/// # Safety
/// `path` is null or ends with a zero.
unsafe fn own<'a>(path: *const libc::c_char) -> Option<&'a [u8]> {
    if path.is_null() {
        return None;
    }
    // SAFETY: promised by the caller; each byte is looked at only if none before it is the last.
    let bytes = unsafe {
        let byte = |index: usize| *path.add(index) as u8;
        if byte(0) != b'/' || !matches!(byte(1), b'd' | b's') {
            return None;
        }
        CStr::from_ptr(path).to_bytes()
    };
    let is_below = |own: &&[u8]| {
        let rest = bytes.strip_prefix(*own);
        rest.is_some_and(|rest| own.ends_with(b":") || matches!(rest.first(), None | Some(b'/')))
    };
    (OWN.iter().any(is_below) && folder().is_some()).then_some(bytes)
}

/// Where a path leads, if it is the driver's.
///
/// # Safety
/// `path` is null or ends with a zero.
pub unsafe fn led(path: *const libc::c_char) -> Option<Led> {
    // SAFETY: promised by the caller.
    let own = unsafe { own(path) }?;
    let folder = folder()?;
    let mut bytes = [0; libc::PATH_MAX as usize];
    let end = folder.len() + own.len();
    // One that is too long is passed on, and refused.
    bytes.get_mut(..end + 1)?;
    bytes[..folder.len()].copy_from_slice(folder);
    bytes[folder.len()..end].copy_from_slice(own);
    Some(Led { bytes })
}

/// The device at a path.
///
/// # Safety
/// `path` is null or ends with a zero.
pub unsafe fn device(path: *const libc::c_char) -> Option<Device> {
    // SAFETY: promised by the caller.
    Device::at(unsafe { own(path) }?)
}
