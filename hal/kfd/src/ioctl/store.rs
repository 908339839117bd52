//! What memory of a device is made of: a file in memory, of which programs map parts as they would of
//! the device. Nothing of it is there before it is written.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

/// Bytes of the file, none of which are there in the beginning: more than any board has, twice, as
/// memory of the host that a GPU may access is in it, too.
const BYTES: u64 = 1 << 40;
const PAGE: u64 = 4096;
/// Allocations of this size or more begin at a multiple of it.
const LARGE_PAGE: u64 = 2 << 20;

/// The memory of a device.
pub struct Store {
    file: OwnedFd,
    /// Where this process has all of it.
    base: u64,
    /// What is used: offsets of first bytes, and of those after the last.
    used: Mutex<BTreeMap<u64, u64>>,
}

/// A part of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it begins in the file.
    pub offset: u64,
    /// Where this process has it.
    pub host: u64,
}

impl Store {
    /// Memory, of which nothing is used.
    ///
    /// # Errors
    /// The system's.
    pub fn new(name: &CStr) -> io::Result<Store> {
        // SAFETY: makes a file, or fails.
        let file = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let length = BYTES as usize;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: a file of ours; new memory, which replaces none. Children have the file itself.
        let base = unsafe {
            if libc::ftruncate(file.as_raw_fd(), BYTES as i64) != 0 {
                return Err(io::Error::last_os_error());
            }
            let base = libc::mmap(std::ptr::null_mut(), length, access, flags, file.as_raw_fd(), 0);
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::madvise(base, length, libc::MADV_DONTDUMP);
            base
        };
        // Programs take an offset of 0 for none.
        let used = Mutex::new(BTreeMap::from([(0, PAGE)]));
        Ok(Store { file, base: base as u64, used })
    }

    /// The file, for a program that opens the device with these flags.
    ///
    /// # Errors
    /// The system's.
    pub fn open(&self, flags: libc::c_int) -> io::Result<RawFd> {
        let keeps = flags & libc::O_CLOEXEC == 0;
        let command = if keeps { libc::F_DUPFD } else { libc::F_DUPFD_CLOEXEC };
        // SAFETY: a file of ours.
        let own = unsafe { libc::fcntl(self.file.as_raw_fd(), command, 0) };
        if own < 0 { Err(io::Error::last_os_error()) } else { Ok(own) }
    }

    /// Zeroed bytes, at the lowest place that is free; nothing if there is none.
    pub fn allocate(&self, bytes: u64) -> Option<Part> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let align = if bytes >= LARGE_PAGE { LARGE_PAGE } else { PAGE };
        let mut offset = 0;
        for (start, end) in used.iter() {
            if offset + bytes <= *start {
                break;
            }
            offset = end.next_multiple_of(align);
        }
        let end = offset.checked_add(bytes).filter(|end| *end <= BYTES)?;
        used.insert(offset, end);
        Some(Part { offset, host: self.base + offset })
    }

    /// Gives back what [`Store::allocate`] gave.
    pub fn free(&self, part: Part) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(end) = used.remove(&part.offset) else { return };
        let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (start, length) = (part.offset as i64, (end - part.offset) as i64);
        // SAFETY: bytes of the file that nobody has any more. If it fails the next to get them finds
        // what was there, as on a GPU.
        unsafe { libc::fallocate(self.file.as_raw_fd(), hole, start, length) };
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; who had parts of it has given them back.
        unsafe { libc::munmap(self.base as *mut _, BYTES as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_apart_and_zero_when_they_are_used_again() {
        let store = Store::new(c"parts").unwrap();
        let first = store.allocate(PAGE).unwrap();
        let second = store.allocate(3 << 20).unwrap();
        assert_ne!(first.offset, 0);
        assert!(second.offset >= first.offset + PAGE && second.offset.is_multiple_of(LARGE_PAGE));
        // SAFETY: just allocated.
        unsafe { *(first.host as *mut u8) = 7 };
        store.free(first);
        assert_eq!(store.allocate(PAGE), Some(first));
        // SAFETY: as above.
        assert_eq!(unsafe { *(first.host as *const u8) }, 0);
        assert_eq!(store.allocate(u64::MAX - PAGE), None);
    }

    #[test]
    fn a_program_that_maps_the_file_has_the_same_bytes() {
        let store = Store::new(c"mapped").unwrap();
        let part = store.allocate(PAGE).unwrap();
        let file = store.open(libc::O_CLOEXEC).unwrap();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory.
        let place = unsafe {
            let (null, offset) = (std::ptr::null_mut(), part.offset as i64);
            libc::mmap(null, PAGE as usize, access, libc::MAP_SHARED, file, offset)
        };
        assert_ne!(place, libc::MAP_FAILED);
        // SAFETY: both are mapped.
        unsafe {
            place.cast::<u64>().write_volatile(42);
            assert_eq!((part.host as *const u64).read_volatile(), 42);
            libc::munmap(place, PAGE as usize);
            libc::close(file);
        }
    }
}
