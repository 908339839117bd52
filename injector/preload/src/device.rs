//! Devices, and which files are theirs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A device of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// `/dev/kfd`.
    Compute,
    /// A node below `/dev/dri` by its minor number.
    Render(u32),
}

/// Render nodes that there can be.
const RENDER: u32 = 16;
/// The minor number of the first.
const FIRST: u32 = 128;
/// The major number of nodes below `/dev/dri`, and one of those that the system gives as it likes.
const MAJOR: [u32; 2] = [226, 234];

/// A file's number, and its file system's with one added: 0 is no file.
#[derive(Default)]
struct File([AtomicU64; 2]);

/// By place: the compute device, render nodes.
static FILES: [File; 1 + RENDER as usize] =
    [const { File([AtomicU64::new(0), AtomicU64::new(0)]) }; 1 + RENDER as usize];

/// Whether a device was ever opened.
static IS_ANY_OPEN: AtomicBool = AtomicBool::new(false);

impl Device {
    /// The device at a path that begins with `/dev/`.
    pub fn at(path: &[u8]) -> Option<Device> {
        if path == b"/dev/kfd" {
            return Some(Device::Compute);
        }
        let number = path.strip_prefix(b"/dev/dri/renderD")?;
        let number: u32 = std::str::from_utf8(number).ok()?.parse().ok()?;
        (FIRST..FIRST + RENDER).contains(&number).then_some(Device::Render(number))
    }

    /// Its minor number, if it is a render node.
    pub fn minor(self) -> Option<u32> {
        match self {
            Device::Compute => None,
            Device::Render(minor) => Some(minor),
        }
    }

    fn place(self) -> usize {
        self.minor().map_or(0, |minor| 1 + (minor - FIRST) as usize)
    }

    /// Its number as a device, for `st_rdev`.
    pub fn number(self) -> libc::dev_t {
        match self {
            Device::Compute => libc::makedev(MAJOR[1], 0),
            Device::Render(minor) => libc::makedev(MAJOR[0], minor),
        }
    }

    /// Whether a file is a device at all.
    pub fn is_any_open() -> bool {
        IS_ANY_OPEN.load(Ordering::Acquire)
    }

    /// Says that a file is this device.
    pub fn remember(self, file_system: u64, file: u64) {
        IS_ANY_OPEN.store(true, Ordering::Release);
        let File([system, number]) = &FILES[self.place()];
        number.store(file, Ordering::Relaxed);
        system.store(file_system.wrapping_add(1), Ordering::Release);
    }

    /// The device that a file is.
    pub fn of_file(file_system: u64, file: u64) -> Option<Device> {
        let is_own = |File([system, number]): &File| {
            system.load(Ordering::Acquire) == file_system.wrapping_add(1)
                && number.load(Ordering::Relaxed) == file
        };
        let place = FILES.iter().position(is_own)? as u32;
        Some(place.checked_sub(1).map_or(Device::Compute, |index| Device::Render(FIRST + index)))
    }
}
