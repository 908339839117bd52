//! Paths of the driver and their redirection.

use crate::device::Device;
use std::ffi::CStr;
use std::sync::OnceLock;

/// Paths that are redirected, with all paths below them. They are redirected whether this machine
/// has them or not: the application does not see a GPU of the machine.
const DRIVER_PATHS: [&[u8]; 7] = [
    b"/dev/kfd",
    b"/dev/dri",
    b"/sys/devices/virtual/kfd",
    b"/sys/class/kfd",
    b"/sys/class/drm",
    b"/sys/module/amdgpu",
    b"/sys/dev/char/226:",
];

/// A path that the program passed, or the path to which it is redirected.
pub struct Redirected {
    original: *const libc::c_char,
    /// Zero-terminated path in the folder with the driver's files.
    target: Option<[u8; libc::PATH_MAX as usize]>,
}

impl Redirected {
    /// The zero-terminated path to pass to the C library.
    pub fn as_ptr(&self) -> *const libc::c_char {
        self.target.as_ref().map_or(self.original, |target| target.as_ptr().cast())
    }

    pub fn is_redirected(&self) -> bool {
        self.target.is_some()
    }
}

/// The folder with the driver's files; `None` if the application was not given one.
pub fn folder() -> Option<&'static [u8]> {
    static FOLDER: OnceLock<Option<&'static [u8]>> = OnceLock::new();
    *FOLDER.get_or_init(|| {
        // SAFETY: the name and the value end with a zero; the value is copied at once.
        let value = unsafe {
            let value = libc::getenv(c"FLIPWAVE_DEVICES".as_ptr());
            if value.is_null() { None } else { Some(CStr::from_ptr(value).to_bytes().to_vec()) }
        };
        value.map(|value| &*value.leak())
    })
}

/// The bytes of a path if it is a driver path. Costs two comparisons for most other paths.
///
/// # Safety
/// `path` is null or ends with a zero.
unsafe fn driver_path<'a>(path: *const libc::c_char) -> Option<&'a [u8]> {
    if path.is_null() {
        return None;
    }
    // SAFETY: promised by the caller; a byte is read only if none before it is zero.
    let bytes = unsafe {
        let byte = |index: usize| *path.add(index) as u8;
        if byte(0) != b'/' || !matches!(byte(1), b'd' | b's') {
            return None;
        }
        CStr::from_ptr(path).to_bytes()
    };
    let contains = |prefix: &&[u8]| {
        let rest = bytes.strip_prefix(*prefix);
        rest.is_some_and(|rest| prefix.ends_with(b":") || matches!(rest.first(), None | Some(b'/')))
    };
    (DRIVER_PATHS.iter().any(contains) && folder().is_some()).then_some(bytes)
}

/// Redirects a path if it is a driver path.
///
/// # Safety
/// `path` is null or ends with a zero.
pub unsafe fn redirect(path: *const libc::c_char) -> Redirected {
    // SAFETY: promised by the caller.
    let target = unsafe { driver_path(path) }.and_then(target);
    Redirected { original: path, target }
}

/// The zero-terminated path of a driver path in the folder; `None` if it is too long.
fn target(path: &[u8]) -> Option<[u8; libc::PATH_MAX as usize]> {
    let folder = folder()?;
    let mut bytes = [0; libc::PATH_MAX as usize];
    let end = folder.len() + path.len();
    bytes.get_mut(..end + 1)?;
    bytes[..folder.len()].copy_from_slice(folder);
    bytes[folder.len()..end].copy_from_slice(path);
    Some(bytes)
}

/// The device at a path.
///
/// # Safety
/// `path` is null or ends with a zero.
pub unsafe fn device(path: *const libc::c_char) -> Option<Device> {
    // SAFETY: promised by the caller.
    Device::from_path(unsafe { driver_path(path) }?)
}
