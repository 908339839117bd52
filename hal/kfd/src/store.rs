//! What memory of a device is made of: a file in memory, of which programs map parts as they would of
//! the device. Nothing of it is there before it is written.

use crate::memory::PAGE;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// Bytes of the file, none of which are there in the beginning: more than any board has, twice, as
/// memory of the host that a GPU may access is in it, too.
const BYTES: u64 = 1 << 40;
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
        // SAFETY: a file of ours; new memory, which replaces none. It is no child's, nor in a dump.
        let base = unsafe {
            if libc::ftruncate(file.as_raw_fd(), BYTES as i64) != 0 {
                return Err(io::Error::last_os_error());
            }
            let base = libc::mmap(std::ptr::null_mut(), length, access, flags, file.as_raw_fd(), 0);
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::madvise(base, length, libc::MADV_DONTDUMP);
            libc::madvise(base, length, libc::MADV_DONTFORK);
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
        if bytes > BYTES {
            return None;
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let align = if bytes >= LARGE_PAGE { LARGE_PAGE } else { PAGE };
        let mut offset = 0;
        for (start, end) in used.iter() {
            if offset + bytes <= *start {
                break;
            }
            offset = end.next_multiple_of(align);
        }
        let end = offset + bytes;
        if end > BYTES {
            return None;
        }
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

impl Store {
    /// Whether these addresses of this process are in it.
    pub fn holds(&self, host: &Range<u64>) -> bool {
        self.base <= host.start && host.end <= self.base + BYTES
    }

    /// Of pages at these addresses of this process, those that are not zero for sure.
    ///
    /// # Errors
    /// The system's.
    pub fn touched(&self, host: Range<u64>) -> io::Result<Vec<u64>> {
        let seek = |offset: u64, what: libc::c_int| {
            // SAFETY: a file of ours, whose position nobody else needs.
            let found = unsafe { libc::lseek(self.file.as_raw_fd(), offset as i64, what) };
            if found >= 0 { Ok(Some(found as u64)) } else { none_if_beyond() }
        };
        let (mut offset, end) = (host.start - self.base, host.end - self.base);
        let mut pages = Vec::new();
        while offset < end
            && let Some(start) = seek(offset, libc::SEEK_DATA)?.filter(|start| *start < end)
        {
            offset = seek(start, libc::SEEK_HOLE)?.unwrap_or(end).min(end);
            let first = start / PAGE * PAGE;
            pages.extend((first..offset).step_by(PAGE as usize).map(|at| self.base + at));
        }
        Ok(pages)
    }
}

/// What the system says where a file has nothing more.
fn none_if_beyond() -> io::Result<Option<u64>> {
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENXIO) { Ok(None) } else { Err(error) }
}

/// The same of memory that is in no file (`/proc/self/pagemap`, see the kernel's `pagemap.rst`).
///
/// # Errors
/// The system's.
pub fn touched_pages(host: Range<u64>) -> io::Result<Vec<u64>> {
    const PRESENT_OR_SWAPPED: u64 = 3 << 62;
    let pages = host.start / PAGE..host.end.div_ceil(PAGE);
    let mut entries = vec![0; (pages.end - pages.start) as usize * 8];
    File::open("/proc/self/pagemap")?.read_exact_at(&mut entries, pages.start * 8)?;
    let (entries, _) = entries.as_chunks::<8>();
    let touched = |entry: &[u8; 8]| u64::from_le_bytes(*entry) & PRESENT_OR_SWAPPED != 0;
    let touched = pages.zip(entries).filter(|(_, entry)| touched(entry));
    Ok(touched.map(|(page, _)| page * PAGE).collect())
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
        assert_eq!([store.allocate(u64::MAX - PAGE), store.allocate(BYTES - PAGE)], [None, None]);
    }

    #[test]
    fn pages_that_were_written_through_any_mapping_are_touched() {
        let store = Store::new(c"touched").unwrap();
        let part = store.allocate(1 << 20).unwrap();
        let range = part.host..part.host + (1 << 20);
        assert!(store.holds(&range) && !store.holds(&(0..PAGE)));
        assert_eq!(store.touched(range.clone()).unwrap(), []);
        let page = part.host + 5 * PAGE;
        // SAFETY: just allocated.
        unsafe { *((page + 8) as *mut u8) = 7 };
        assert_eq!(store.touched(range).unwrap(), [page]);
        let own = Box::new([1u8; 3 * PAGE as usize]);
        let inner = (own.as_ptr() as u64).next_multiple_of(PAGE);
        assert_eq!(touched_pages(inner..inner + PAGE).unwrap(), [inner]);
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
