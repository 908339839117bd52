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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of the file, none of which are there in the beginning: more than any board has, twice, as
/// memory of the host that a GPU may access is in it, too.
const BYTES: u64 = 1 << 40;
/// Allocations of this size or more begin at a multiple of it.
const LARGE_PAGE: u64 = 2 << 20;

/// The memory of a device.
pub struct Store {
    file: OwnedFd,
    /// Whether the file has the bytes. If not it only stands for them, and this process alone does.
    is_in_file: bool,
    /// Where this process has all of it.
    base: u64,
    /// What is used: offsets of first bytes, and of those after the last.
    used: Mutex<BTreeMap<u64, u64>>,
    /// What of it is in other processes' files, by offsets of first bytes.
    adopted: Mutex<BTreeMap<u64, Adopted>>,
}

/// Memory of another process.
struct Adopted {
    file: File,
    /// Where it begins in that file.
    offset: u64,
    /// The offset after its last byte, here.
    end: u64,
}

/// Maps a file over what is mapped there. The system call itself, as what stands before the function
/// asks us.
///
/// # Safety
/// The place is a device's, and nobody uses it.
unsafe fn map_over(place: u64, bytes: u64, file: RawFd, offset: u64) -> io::Result<()> {
    let access = libc::c_long::from(libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let (flags, file) = (libc::c_long::from(flags), libc::c_long::from(file));
    // SAFETY: promised by the caller.
    unsafe {
        if libc::syscall(libc::SYS_mmap, place, bytes, access, flags, file, offset) == -1 {
            return Err(io::Error::last_os_error());
        }
        keep(place, bytes);
    }
    Ok(())
}

/// Has a mapping be no child's, nor in a dump.
///
/// # Safety
/// It is a device's.
unsafe fn keep(place: u64, bytes: u64) {
    // SAFETY: promised by the caller; it is advice.
    unsafe {
        libc::madvise(place as *mut _, bytes as usize, libc::MADV_DONTDUMP);
        libc::madvise(place as *mut _, bytes as usize, libc::MADV_DONTFORK);
    }
}

/// What a program wants to map of a device's memory: the arguments of `mmap`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "mmap(2) says what they are")]
pub struct Mapping {
    pub place: u64,
    pub bytes: u64,
    pub access: libc::c_int,
    pub flags: libc::c_int,
    pub offset: u64,
}

/// A part of a device's memory, which is given back when it is dropped.
pub struct Part {
    store: Arc<Store>,
    /// Where it begins in the file.
    pub offset: u64,
    /// Where this process has it.
    pub host: u64,
}

/// Gives a file its length; whether it has it. Where the system limits how long files may be
/// (`ulimit -f`), which is not meant for memory, it has none.
fn lengthen(file: &OwnedFd) -> io::Result<bool> {
    // SAFETY: writes one structure of numbers, and changes a file of ours.
    let result = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0 && limit.rlim_cur < BYTES {
            return Ok(false);
        }
        libc::ftruncate(file.as_raw_fd(), BYTES as i64)
    };
    if result == 0 { Ok(true) } else { Err(io::Error::last_os_error()) }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.store.free(self.offset);
    }
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
        let is_in_file = lengthen(&file)?;
        let (own, flags) = match is_in_file {
            true => (file.as_raw_fd(), flags),
            false => (-1, flags | libc::MAP_ANONYMOUS),
        };
        // SAFETY: a file of ours; new memory, which replaces none.
        let base = unsafe {
            let base = libc::mmap(std::ptr::null_mut(), length, access, flags, own, 0);
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            keep(base as u64, BYTES);
            base
        };
        // Programs take an offset of 0 for none.
        let used = Mutex::new(BTreeMap::from([(0, PAGE)]));
        let adopted = Mutex::default();
        Ok(Store { file, is_in_file, base: base as u64, used, adopted })
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

    /// Maps a part of the memory for a program, as `mmap` would of a file that has it; the place.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Safety
    /// As with `mmap`: what is at a fixed place is replaced.
    pub unsafe fn map(&self, mapping: Mapping) -> io::Result<u64> {
        let Mapping { place, bytes, access, flags, offset } = mapping;
        let is_whole = offset.checked_add(bytes).is_some_and(|end| end <= BYTES) && bytes > 0;
        if !is_whole || !offset.is_multiple_of(PAGE) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let adopted = self.adopted();
        let (file, offset) = match adopted.range(..=offset).next_back() {
            Some((start, own)) if offset < own.end => {
                if offset + bytes > own.end {
                    return Err(io::Error::from_raw_os_error(libc::EINVAL));
                }
                (own.file.as_raw_fd(), own.offset + (offset - start))
            }
            _ => (self.file.as_raw_fd(), offset),
        };
        // The system calls themselves, as what stands before the functions asks us.
        // SAFETY: promised by the caller; the rest is ours.
        let result = unsafe {
            if self.is_in_file {
                libc::syscall(libc::SYS_mmap, place, bytes, access, flags, file, offset)
            } else {
                let flags = flags & !libc::MAP_SHARED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let reserved =
                    libc::syscall(libc::SYS_mmap, place, bytes, libc::PROT_NONE, flags, -1, 0);
                if reserved == -1 {
                    return Err(io::Error::last_os_error());
                }
                // Of no bytes, it makes another mapping of what is shared (mremap(2)).
                let way = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                let from = self.base + offset;
                let place = libc::syscall(libc::SYS_mremap, from, 0, bytes, way, reserved);
                if place != -1 && libc::mprotect(place as *mut _, bytes as usize, access) != 0 {
                    -1
                } else {
                    place
                }
            }
        };
        if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result as u64) }
    }

    /// Zeroed bytes, at the lowest place that is free; nothing if there is none.
    pub fn allocate(self: &Arc<Store>, bytes: u64) -> Option<Part> {
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
        Some(Part { store: Arc::clone(self), offset, host: self.base + offset })
    }

    fn free(&self, offset: u64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(end) = used.remove(&offset) else { return };
        if self.adopted().remove(&offset).is_some() {
            let (place, own) = (self.base + offset, self.file.as_raw_fd());
            // SAFETY: bytes that nobody has any more. If it fails they are never given again.
            if unsafe { map_over(place, end - offset, own, offset) }.is_err() {
                used.insert(offset, end);
            }
            return;
        }
        // SAFETY: bytes that nobody has any more. If it fails the next to get them finds what was
        // there, as on a GPU.
        unsafe {
            if self.is_in_file {
                let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                let (start, length) = (offset as i64, (end - offset) as i64);
                libc::fallocate(self.file.as_raw_fd(), hole, start, length);
            } else {
                let start = (self.base + offset) as *mut _;
                libc::madvise(start, (end - offset) as usize, libc::MADV_REMOVE);
            }
        }
    }
}

impl Store {
    fn adopted(&self) -> MutexGuard<'_, BTreeMap<u64, Adopted>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes memory of another process's device a part of this one: from `offset` in its file on.
    ///
    /// # Errors
    /// The system's, and `EINVAL` if that is no device's memory.
    pub fn adopt(self: &Arc<Store>, file: File, offset: u64, bytes: u64) -> io::Result<Part> {
        let is_within = offset.checked_add(bytes).is_some_and(|end| end <= BYTES) && bytes > 0;
        if !self.is_in_file || !is_within || file.metadata()?.len() != BYTES {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let part = self.allocate(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: just allocated, and nobody else's.
        unsafe { map_over(part.host, bytes, file.as_raw_fd(), offset) }?;
        let end = part.offset + bytes;
        self.adopted().insert(part.offset, Adopted { file, offset, end });
        Ok(part)
    }

    /// The file that a part is in, by its number in this process, and where; nothing if it is in none.
    pub fn place_in_file(&self, part: &Part) -> Option<(RawFd, u64)> {
        if !self.is_in_file {
            return None;
        }
        let adopted = self.adopted();
        let other = adopted.get(&part.offset).map(|own| (own.file.as_raw_fd(), own.offset));
        Some(other.unwrap_or((self.file.as_raw_fd(), part.offset)))
    }

    /// Whether these addresses of this process are in it.
    pub fn holds(&self, host: &Range<u64>) -> bool {
        self.base <= host.start && host.end <= self.base + BYTES
    }

    /// Of pages at these addresses of this process, those that may not be zero.
    ///
    /// # Errors
    /// The system's.
    pub fn touched(&self, host: Range<u64>) -> io::Result<Vec<u64>> {
        if !self.is_in_file {
            return resident_pages(host);
        }
        let seek = |offset: u64, what: libc::c_int| {
            // SAFETY: a file of ours, whose position nobody else needs.
            let found = unsafe { libc::lseek(self.file.as_raw_fd(), offset as i64, what) };
            if found >= 0 { Ok(Some(found as u64)) } else { none_if_beyond() }
        };
        let (mut offset, end) = (host.start - self.base, host.end - self.base);
        let is_adopted = |(_, own): (&u64, &Adopted)| offset < own.end;
        if self.adopted().range(..=offset).next_back().is_some_and(is_adopted) {
            return Ok(host.step_by(PAGE as usize).collect());
        }
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

/// The same of memory that processes share without a file, as long as none of it is swapped out.
///
/// # Errors
/// The system's.
fn resident_pages(host: Range<u64>) -> io::Result<Vec<u64>> {
    let mut resident = vec![0u8; ((host.end - host.start) / PAGE) as usize];
    let length = (host.end - host.start) as usize;
    // SAFETY: a byte for each page.
    let result = unsafe { libc::mincore(host.start as *mut _, length, resident.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let pages = (host.start..host.end).step_by(PAGE as usize).zip(resident);
    Ok(pages.filter(|(_, is_resident)| is_resident & 1 != 0).map(|(page, _)| page).collect())
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
    fn memory_of_another_device_is_the_same_bytes_until_it_is_given_back() {
        let stores = [c"flipwave-gpu-1", c"flipwave-gpu-2"];
        let [own, other] = stores.map(|name| Arc::new(Store::new(name).unwrap()));
        let theirs = other.allocate(4 * PAGE).unwrap();
        let word = |host: u64| host as *mut u64;
        let (file, start) = other.place_in_file(&theirs).unwrap();
        // SAFETY: a file of the test's, and memory that was just allocated.
        let file = unsafe {
            *word(theirs.host + PAGE) = 42;
            File::from(OwnedFd::from_raw_fd(libc::dup(file)))
        };
        let refused = |offset, bytes| own.adopt(file.try_clone().unwrap(), offset, bytes).is_err();
        assert!(refused(BYTES, PAGE) && refused(start, BYTES) && refused(start, 0));
        let ours = own.adopt(file, start + PAGE, 2 * PAGE).unwrap();
        // SAFETY: both are there.
        unsafe {
            assert_eq!(*word(ours.host), 42);
            *word(ours.host + PAGE) = 43;
            assert_eq!(*word(theirs.host + 2 * PAGE), 43);
        }
        let range = ours.host..ours.host + 2 * PAGE;
        assert_eq!(own.touched(range).unwrap(), [ours.host, ours.host + PAGE]);
        assert_eq!(own.place_in_file(&ours).unwrap().1, start + PAGE);
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let mapping = Mapping { place: 0, bytes: 2 * PAGE, access, flags, offset: ours.offset };
        // SAFETY: new memory.
        unsafe {
            let place = own.map(mapping).unwrap();
            assert_eq!(*word(place + PAGE), 43);
            libc::munmap(place as *mut _, 2 * PAGE as usize);
            assert!(own.map(Mapping { bytes: 3 * PAGE, ..mapping }).is_err());
        }
        let host = ours.host;
        drop(ours);
        let again = own.allocate(2 * PAGE).unwrap();
        // SAFETY: allocated, all of them.
        unsafe {
            assert_eq!((again.host, *word(again.host), *word(again.host + PAGE)), (host, 0, 0));
            assert_eq!(*word(theirs.host + PAGE), 42);
        }
    }

    #[test]
    fn parts_are_apart_and_zero_when_they_are_used_again() {
        let store = Arc::new(Store::new(c"parts").unwrap());
        let first = store.allocate(PAGE).unwrap();
        let second = store.allocate(3 << 20).unwrap();
        assert_ne!(first.offset, 0);
        assert!(second.offset >= first.offset + PAGE && second.offset.is_multiple_of(LARGE_PAGE));
        // SAFETY: just allocated.
        unsafe { *(first.host as *mut u8) = 7 };
        let offset = first.offset;
        drop(first);
        let again = store.allocate(PAGE).unwrap();
        assert_eq!(again.offset, offset);
        // SAFETY: as above.
        assert_eq!(unsafe { *(again.host as *const u8) }, 0);
        let is_refused = |bytes| store.allocate(bytes).is_none();
        assert!(is_refused(u64::MAX - PAGE) && is_refused(BYTES - PAGE));
    }

    #[test]
    fn pages_that_were_written_through_any_mapping_are_touched() {
        let store = Arc::new(Store::new(c"touched").unwrap());
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

    /// As where files may not be long.
    fn without_file() -> Store {
        let mut store = Store::new(c"none").unwrap();
        let (length, access) = (BYTES as usize, libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_ANONYMOUS;
        // SAFETY: replaces nothing but what the store has, of which nothing is used.
        let base = unsafe {
            libc::munmap(store.base as *mut _, length);
            libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0)
        };
        assert_ne!(base, libc::MAP_FAILED);
        (store.base, store.is_in_file) = (base as u64, false);
        store
    }

    #[test]
    fn a_program_that_maps_memory_has_the_same_bytes() {
        for store in [Store::new(c"mapped").unwrap(), without_file()] {
            let store = Arc::new(store);
            let part = store.allocate(3 * PAGE).unwrap();
            let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            let mapping = Mapping { place: 0, bytes: PAGE, access, flags, offset: part.offset };
            // SAFETY: new memory.
            let place = unsafe { store.map(mapping) }.unwrap();
            let second = Mapping {
                offset: part.offset + PAGE,
                flags: flags | libc::MAP_FIXED,
                place,
                ..mapping
            };
            let all = part.host..part.host + 3 * PAGE;
            // SAFETY: both are mapped; the second replaces the first.
            unsafe {
                (place as *mut u64).write_volatile(42);
                assert_eq!((part.host as *const u64).read_volatile(), 42);
                assert_eq!(store.map(second).unwrap(), place);
                assert_eq!((place as *const u64).read_volatile(), 0);
                ((part.host + PAGE) as *mut u64).write_volatile(43);
                assert_eq!((place as *const u64).read_volatile(), 43);
                assert_eq!(store.touched(all).unwrap(), [part.host, part.host + PAGE]);
                libc::munmap(place as *mut _, PAGE as usize);
                for wrong in [Mapping { offset: BYTES, ..mapping }, Mapping { bytes: 0, ..mapping }]
                {
                    assert!(store.map(wrong).is_err());
                }
            }
            let offset = part.offset;
            drop(part);
            let again = store.allocate(3 * PAGE).unwrap();
            // SAFETY: just allocated.
            assert_eq!((again.offset, unsafe { *(again.host as *const u64) }), (offset, 0));
        }
    }
}
