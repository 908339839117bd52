//! Devices of the driver and the open files that represent them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A device of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// `/dev/kfd`.
    Compute,
    /// A render node below `/dev/dri`, by minor number.
    Render(u32),
}

/// Largest number of render nodes.
const RENDER_NODES: u32 = 16;
/// Minor number of the first render node.
const FIRST_RENDER_MINOR: u32 = 128;
/// Major number of `/dev/kfd`, one of those that the system assigns dynamically.
const KFD_MAJOR: u32 = 234;
/// Major number of nodes below `/dev/dri`.
const DRM_MAJOR: u32 = 226;

/// Identity of a file: file system plus 1, and inode number. The file system 0 is no file.
#[derive(Default)]
struct File([AtomicU64; 2]);

/// Files of the compute device and of the render nodes.
static FILES: [File; 1 + RENDER_NODES as usize] =
    [const { File([AtomicU64::new(0), AtomicU64::new(0)]) }; 1 + RENDER_NODES as usize];

/// `true` once a device was opened.
static IS_ANY_OPEN: AtomicBool = AtomicBool::new(false);

impl Device {
    /// The device at a path below `/dev`.
    pub fn from_path(path: &[u8]) -> Option<Device> {
        if path == b"/dev/kfd" {
            return Some(Device::Compute);
        }
        let minor = path.strip_prefix(b"/dev/dri/renderD")?;
        let minor: u32 = std::str::from_utf8(minor).ok()?.parse().ok()?;
        let minors = FIRST_RENDER_MINOR..FIRST_RENDER_MINOR + RENDER_NODES;
        minors.contains(&minor).then_some(Device::Render(minor))
    }

    /// Minor number of a render node; `None` for the compute device.
    pub fn minor(self) -> Option<u32> {
        match self {
            Device::Compute => None,
            Device::Render(minor) => Some(minor),
        }
    }

    /// Index in [`FILES`].
    fn index(self) -> usize {
        self.minor().map_or(0, |minor| 1 + (minor - FIRST_RENDER_MINOR) as usize)
    }

    /// Device number, for `st_rdev`.
    pub fn number(self) -> libc::dev_t {
        match self {
            Device::Compute => libc::makedev(KFD_MAJOR, 0),
            Device::Render(minor) => libc::makedev(DRM_MAJOR, minor),
        }
    }

    /// Returns `true` once a device was opened.
    pub fn is_any_open() -> bool {
        IS_ANY_OPEN.load(Ordering::Acquire)
    }

    /// Records that a file represents this device.
    pub fn set_file(self, file_system: u64, inode: u64) {
        IS_ANY_OPEN.store(true, Ordering::Release);
        let File([known_system, known_inode]) = &FILES[self.index()];
        known_inode.store(inode, Ordering::Relaxed);
        known_system.store(file_system.wrapping_add(1), Ordering::Release);
    }

    /// The device that a file represents.
    pub fn from_file(file_system: u64, inode: u64) -> Option<Device> {
        let is_same = |File([known_system, known_inode]): &File| {
            known_system.load(Ordering::Acquire) == file_system.wrapping_add(1)
                && known_inode.load(Ordering::Relaxed) == inode
        };
        let index = FILES.iter().position(is_same)? as u32;
        let render = |index| Device::Render(FIRST_RENDER_MINOR + index);
        Some(index.checked_sub(1).map_or(Device::Compute, render))
    }
}
