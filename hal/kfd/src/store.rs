//! Backing store of a device's memory: a file in memory (memfd), of which programs map parts as
//! they would map parts of the device. Pages take no memory before they are written.

use crate::memory::PAGE;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Length of the memory: more than twice that of any board, as host memory for GPUs is in the file as
/// well.
const BYTES: u64 = 1 << 40;
/// Bytes for the description of an allocation.
pub const DESCRIPTION: u64 = 512;
/// Length of the file. Descriptions follow the memory, with one place for each page, so that another
/// process finds that of the memory that it imports.
const FILE_BYTES: u64 = BYTES + BYTES / PAGE * DESCRIPTION;
/// Allocations of at least this size are aligned to it.
const LARGE_PAGE: u64 = 2 << 20;

/// Backing store of a device's memory.
pub struct Store {
    file: File,
    /// `true` if the memory is in the file. Otherwise the file only represents the device, and the
    /// memory is an anonymous mapping of this process.
    is_in_file: bool,
    /// Address of the whole store in this process.
    base: u64,
    /// Start and end offset of each allocation.
    used: Mutex<BTreeMap<u64, u64>>,
    /// Allocations whose memory is in a file of another process, by start offset.
    imported: Mutex<BTreeMap<u64, Imported>>,
}

/// Memory that was imported from another process.
struct Imported {
    file: File,
    /// Start offset in that file.
    offset: u64,
    /// End offset in this store.
    end: u64,
}

/// Maps a part of a file over an existing mapping. Makes the system call itself: the C library's
/// function is intercepted by the preload shim.
///
/// # Safety
/// The addresses belong to a store, and nobody uses them.
unsafe fn map_over(address: u64, bytes: u64, file: RawFd, offset: u64) -> io::Result<()> {
    let protection = libc::c_long::from(libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let (flags, file) = (libc::c_long::from(flags), libc::c_long::from(file));
    // SAFETY: promised by the caller.
    unsafe {
        if libc::syscall(libc::SYS_mmap, address, bytes, protection, flags, file, offset) == -1 {
            return Err(io::Error::last_os_error());
        }
        exclude_from_fork_and_dump(address, bytes);
    }
    Ok(())
}

/// Keeps a mapping out of forked processes and core dumps.
///
/// # Safety
/// The mapping belongs to a store.
unsafe fn exclude_from_fork_and_dump(address: u64, bytes: u64) {
    // SAFETY: promised by the caller; only advice.
    unsafe {
        libc::madvise(address as *mut _, bytes as usize, libc::MADV_DONTDUMP);
        libc::madvise(address as *mut _, bytes as usize, libc::MADV_DONTFORK);
    }
}

/// A mapping of a device's memory that a program requests: the arguments of mmap(2).
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "described in mmap(2)")]
pub struct Mapping {
    pub address: u64,
    pub bytes: u64,
    pub protection: libc::c_int,
    pub flags: libc::c_int,
    pub offset: u64,
}

/// A part of a store, which is freed when it is dropped.
pub struct Allocation {
    store: Arc<Store>,
    /// Start offset in the store.
    pub offset: u64,
    /// Address in this process.
    pub host: u64,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.store.free(self.offset);
    }
}

/// Sets the length of a store's file. Returns `false` without changing it where the system limits
/// the size of files (`ulimit -f`): the limit is not meant for memory.
fn set_length(file: &File) -> io::Result<bool> {
    // SAFETY: writes one structure of numbers, and changes the caller's file.
    let result = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0 && limit.rlim_cur < FILE_BYTES {
            return Ok(false);
        }
        libc::ftruncate(file.as_raw_fd(), FILE_BYTES as i64)
    };
    if result == 0 { Ok(true) } else { Err(io::Error::last_os_error()) }
}

/// Offset of the description of the allocation that starts at an offset.
fn description_offset(offset: u64) -> u64 {
    BYTES + offset / PAGE * DESCRIPTION
}

fn invalid() -> io::Error {
    io::Error::from_raw_os_error(libc::EINVAL)
}

impl Store {
    /// Creates an empty store.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn new(name: &CStr) -> io::Result<Store> {
        // SAFETY: creates a file, or fails.
        let file = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just created, and not used elsewhere.
        let file = unsafe { File::from_raw_fd(file) };
        let length = BYTES as usize;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        let is_in_file = set_length(&file)?;
        let (mapped_file, flags) =
            if is_in_file { (file.as_raw_fd(), flags) } else { (-1, flags | libc::MAP_ANONYMOUS) };
        // SAFETY: the file created above; new memory, which replaces none.
        let base = unsafe {
            let null = std::ptr::null_mut();
            let base = libc::mmap(null, length, protection, flags, mapped_file, 0);
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            exclude_from_fork_and_dump(base as u64, BYTES);
            base
        };
        // Offset 0 is never allocated: programs take it for none.
        let used = Mutex::new(BTreeMap::from([(0, PAGE)]));
        let imported = Mutex::default();
        Ok(Store { file, is_in_file, base: base as u64, used, imported })
    }

    /// Duplicates the file for a program that opens the device with these flags of open(2).
    ///
    /// # Errors
    /// Errors of the system.
    pub fn open(&self, flags: libc::c_int) -> io::Result<RawFd> {
        let survives_exec = flags & libc::O_CLOEXEC == 0;
        let command = if survives_exec { libc::F_DUPFD } else { libc::F_DUPFD_CLOEXEC };
        // SAFETY: the store's file.
        let file = unsafe { libc::fcntl(self.file.as_raw_fd(), command, 0) };
        if file < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
    }

    /// Maps a part of the store for a program, as mmap(2) would map the device. Returns the
    /// address.
    ///
    /// # Errors
    /// Errors of the system.
    ///
    /// # Safety
    /// As for mmap(2): a mapping at a fixed address is replaced.
    pub unsafe fn map(&self, mapping: Mapping) -> io::Result<u64> {
        let Mapping { address, bytes, protection, flags, offset } = mapping;
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= BYTES) && bytes > 0;
        if !is_inside || !offset.is_multiple_of(PAGE) {
            return Err(invalid());
        }
        let imported = self.imported();
        let (file, offset) = match imported.range(..=offset).next_back() {
            Some((start, import)) if offset < import.end => {
                if offset + bytes > import.end {
                    return Err(invalid());
                }
                (import.file.as_raw_fd(), import.offset + (offset - start))
            }
            _ => (self.file.as_raw_fd(), offset),
        };
        // System calls, as the C library's functions are intercepted by the preload shim.
        // SAFETY: promised by the caller; the file and the source address are the store's.
        let result = unsafe {
            if self.is_in_file {
                libc::syscall(libc::SYS_mmap, address, bytes, protection, flags, file, offset)
            } else {
                let flags = flags & !libc::MAP_SHARED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let reserved =
                    libc::syscall(libc::SYS_mmap, address, bytes, libc::PROT_NONE, flags, -1, 0);
                if reserved == -1 {
                    return Err(io::Error::last_os_error());
                }
                // With an old size of 0, mremap(2) makes a second mapping of shared memory.
                let remap_flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                let from = self.base + offset;
                let mapped = libc::syscall(libc::SYS_mremap, from, 0, bytes, remap_flags, reserved);
                if mapped != -1 && libc::mprotect(mapped as *mut _, bytes as usize, protection) != 0
                {
                    -1
                } else {
                    mapped
                }
            }
        };
        if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result as u64) }
    }

    /// Allocates zeroed bytes at the lowest free offset; `None` if there is no room.
    pub fn allocate(self: &Arc<Store>, bytes: u64) -> Option<Allocation> {
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
        Some(Allocation { store: Arc::clone(self), offset, host: self.base + offset })
    }

    fn free(&self, offset: u64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(end) = used.remove(&offset) else { return };
        if self.imported().remove(&offset).is_some() {
            let (address, file) = (self.base + offset, self.file.as_raw_fd());
            // SAFETY: nobody uses these bytes any more. If it fails, they are never allocated
            // again.
            if unsafe { map_over(address, end - offset, file, offset) }.is_err() {
                used.insert(offset, end);
            }
            return;
        }
        // SAFETY: nobody uses these bytes any more. If it fails, the next allocation finds the old
        // content, as on a GPU.
        unsafe {
            if self.is_in_file {
                let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                let description = description_offset(offset);
                for (start, end) in [(offset, end), (description, description + DESCRIPTION)] {
                    let (start, length) = (start as i64, (end - start) as i64);
                    libc::fallocate(self.file.as_raw_fd(), hole, start, length);
                }
            } else {
                let start = (self.base + offset) as *mut _;
                libc::madvise(start, (end - offset) as usize, libc::MADV_REMOVE);
            }
        }
    }

    fn imported(&self) -> MutexGuard<'_, BTreeMap<u64, Imported>> {
        self.imported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes memory of another process's device a part of this store: `bytes` bytes from `offset`
    /// in its file.
    ///
    /// # Errors
    /// `EINVAL` if the file is not a store's, and errors of the system.
    pub fn import(
        self: &Arc<Store>,
        file: File,
        offset: u64,
        bytes: u64,
    ) -> io::Result<Allocation> {
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= BYTES) && bytes > 0;
        if !self.is_in_file || !is_inside || file.metadata()?.len() != FILE_BYTES {
            return Err(invalid());
        }
        let allocation = self.allocate(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: just allocated, and not used elsewhere.
        unsafe { map_over(allocation.host, bytes, file.as_raw_fd(), offset) }?;
        let end = allocation.offset + bytes;
        self.imported().insert(allocation.offset, Imported { file, offset, end });
        Ok(allocation)
    }

    /// Calls `access` with the file that has an allocation's memory, and the offset of the
    /// allocation's description in it.
    fn with_description<T>(
        &self,
        allocation: &Allocation,
        access: impl FnOnce(&File, u64) -> io::Result<T>,
    ) -> io::Result<T> {
        if !self.is_in_file {
            return Err(invalid());
        }
        let imported = self.imported();
        let (file, offset) = match imported.get(&allocation.offset) {
            Some(import) => (&import.file, import.offset),
            None => (&self.file, allocation.offset),
        };
        access(file, description_offset(offset))
    }

    /// Reads the description of an allocation: bytes that programs attach to memory, also those of
    /// other processes that share the memory. Initially 0.
    ///
    /// # Errors
    /// `EINVAL` for memory that is in no file, and errors of the system.
    pub fn read_description(&self, allocation: &Allocation, bytes: &mut [u8]) -> io::Result<()> {
        self.with_description(allocation, |file, offset| file.read_exact_at(bytes, offset))
    }

    /// Writes the description of an allocation: at most [`DESCRIPTION`] bytes.
    ///
    /// # Errors
    /// Those of [`Store::read_description`], and `EINVAL` for more bytes.
    pub fn write_description(&self, allocation: &Allocation, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > DESCRIPTION {
            return Err(invalid());
        }
        self.with_description(allocation, |file, offset| file.write_all_at(bytes, offset))
    }

    /// The file with an allocation's memory, as a file descriptor of this process, and the offset
    /// in it; `None` for memory that is in no file.
    pub fn file_and_offset(&self, allocation: &Allocation) -> Option<(RawFd, u64)> {
        if !self.is_in_file {
            return None;
        }
        let imported = self.imported();
        let import = imported.get(&allocation.offset);
        let location = import.map(|import| (import.file.as_raw_fd(), import.offset));
        Some(location.unwrap_or((self.file.as_raw_fd(), allocation.offset)))
    }

    /// Returns `true` if a range of addresses of this process is in the store.
    pub fn contains(&self, host: &Range<u64>) -> bool {
        self.base <= host.start && host.end <= self.base + BYTES
    }

    /// Addresses of the pages of a range in this process that may be nonzero.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn touched(&self, host: Range<u64>) -> io::Result<Vec<u64>> {
        if !self.is_in_file {
            return resident_pages(host);
        }
        let seek = |offset: u64, whence: libc::c_int| {
            // SAFETY: the store's file, whose position nobody else uses.
            let found = unsafe { libc::lseek(self.file.as_raw_fd(), offset as i64, whence) };
            if found >= 0 { Ok(Some(found as u64)) } else { none_if_beyond_end() }
        };
        let (mut offset, end) = (host.start - self.base, host.end - self.base);
        let is_imported = |(_, import): (&u64, &Imported)| offset < import.end;
        if self.imported().range(..=offset).next_back().is_some_and(is_imported) {
            return Ok(host.step_by(PAGE as usize).collect());
        }
        let mut pages = Vec::new();
        while offset < end
            && let Some(start) = seek(offset, libc::SEEK_DATA)?.filter(|start| *start < end)
        {
            offset = seek(start, libc::SEEK_HOLE)?.unwrap_or(end).min(end);
            let first = start / PAGE * PAGE;
            pages.extend((first..offset).step_by(PAGE as usize).map(|page| self.base + page));
        }
        Ok(pages)
    }
}

/// Converts the last system error: `None` if lseek(2) found nothing up to the end of the file.
fn none_if_beyond_end() -> io::Result<Option<u64>> {
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENXIO) { Ok(None) } else { Err(error) }
}

/// Addresses of the pages of a range of shared anonymous memory that may be nonzero, unless some
/// are swapped out.
///
/// # Errors
/// Errors of the system.
fn resident_pages(host: Range<u64>) -> io::Result<Vec<u64>> {
    let mut resident = vec![0u8; ((host.end - host.start) / PAGE) as usize];
    let length = (host.end - host.start) as usize;
    // SAFETY: the buffer has one byte per page.
    let result = unsafe { libc::mincore(host.start as *mut _, length, resident.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let pages = (host.start..host.end).step_by(PAGE as usize).zip(resident);
    Ok(pages.filter(|(_, is_resident)| is_resident & 1 != 0).map(|(page, _)| page).collect())
}

/// Addresses of the pages of a range of private memory that may be nonzero (`/proc/self/pagemap`,
/// see the kernel's `pagemap.rst`).
///
/// # Errors
/// Errors of the system.
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
        // SAFETY: mapped by `new`; each allocation holds a reference to the store, so none is left.
        unsafe { libc::munmap(self.base as *mut _, BYTES as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    fn word(host: u64) -> *mut u64 {
        host as *mut u64
    }

    #[test]
    fn imported_memory_is_shared_until_it_is_freed() {
        let stores = [c"flipwave-gpu-1", c"flipwave-gpu-2"];
        let [importer, exporter] = stores.map(|name| Arc::new(Store::new(name).unwrap()));
        let exported = exporter.allocate(4 * PAGE).unwrap();
        let (file, start) = exporter.file_and_offset(&exported).unwrap();
        // SAFETY: a duplicated file, and memory that was just allocated.
        let file = unsafe {
            *word(exported.host + PAGE) = 42;
            File::from(OwnedFd::from_raw_fd(libc::dup(file)))
        };
        let is_refused =
            |offset, bytes| importer.import(file.try_clone().unwrap(), offset, bytes).is_err();
        assert!(is_refused(BYTES, PAGE) && is_refused(start, BYTES) && is_refused(start, 0));
        let imported = importer.import(file, start + PAGE, 2 * PAGE).unwrap();
        // SAFETY: both are allocated.
        unsafe {
            assert_eq!(*word(imported.host), 42);
            *word(imported.host + PAGE) = 43;
            assert_eq!(*word(exported.host + 2 * PAGE), 43);
        }
        let range = imported.host..imported.host + 2 * PAGE;
        assert_eq!(importer.touched(range).unwrap(), [imported.host, imported.host + PAGE]);
        assert_eq!(importer.file_and_offset(&imported).unwrap().1, start + PAGE);
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let (bytes, offset) = (2 * PAGE, imported.offset);
        let mapping = Mapping { address: 0, bytes, protection, flags, offset };
        // SAFETY: new memory.
        unsafe {
            let mapped = importer.map(mapping).unwrap();
            assert_eq!(*word(mapped + PAGE), 43);
            libc::munmap(mapped as *mut _, 2 * PAGE as usize);
            assert!(importer.map(Mapping { bytes: 3 * PAGE, ..mapping }).is_err());
        }
        let host = imported.host;
        drop(imported);
        let reused = importer.allocate(2 * PAGE).unwrap();
        // SAFETY: both are allocated.
        unsafe {
            assert_eq!((reused.host, *word(reused.host), *word(reused.host + PAGE)), (host, 0, 0));
            assert_eq!(*word(exported.host + PAGE), 42);
        }
    }

    #[test]
    fn allocations_do_not_overlap_and_are_zeroed_when_reused() {
        let store = Arc::new(Store::new(c"parts").unwrap());
        let first = store.allocate(PAGE).unwrap();
        let second = store.allocate(3 << 20).unwrap();
        assert_ne!(first.offset, 0);
        assert!(second.offset >= first.offset + PAGE && second.offset.is_multiple_of(LARGE_PAGE));
        // SAFETY: just allocated.
        unsafe { *(first.host as *mut u8) = 7 };
        let offset = first.offset;
        drop(first);
        let reused = store.allocate(PAGE).unwrap();
        assert_eq!(reused.offset, offset);
        // SAFETY: just allocated.
        assert_eq!(unsafe { *(reused.host as *const u8) }, 0);
        let is_refused = |bytes| store.allocate(bytes).is_none();
        assert!(is_refused(u64::MAX - PAGE) && is_refused(BYTES - PAGE));
    }

    #[test]
    fn pages_written_through_any_mapping_are_touched() {
        let store = Arc::new(Store::new(c"touched").unwrap());
        let allocation = store.allocate(1 << 20).unwrap();
        let range = allocation.host..allocation.host + (1 << 20);
        assert!(store.contains(&range) && !store.contains(&(0..PAGE)));
        assert_eq!(store.touched(range.clone()).unwrap(), []);
        let page = allocation.host + 5 * PAGE;
        // SAFETY: just allocated.
        unsafe { *((page + 8) as *mut u8) = 7 };
        assert_eq!(store.touched(range).unwrap(), [page]);
        let private = Box::new([1u8; 3 * PAGE as usize]);
        let inner = (private.as_ptr() as u64).next_multiple_of(PAGE);
        assert_eq!(touched_pages(inner..inner + PAGE).unwrap(), [inner]);
    }

    /// A store as it is created where the size of files is limited.
    fn store_without_file() -> Store {
        let mut store = Store::new(c"none").unwrap();
        let (length, protection) = (BYTES as usize, libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_ANONYMOUS;
        // SAFETY: replaces the mapping of the store, of which nothing is allocated.
        let base = unsafe {
            libc::munmap(store.base as *mut _, length);
            libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0)
        };
        assert_ne!(base, libc::MAP_FAILED);
        (store.base, store.is_in_file) = (base as u64, false);
        store
    }

    #[test]
    fn mappings_of_a_program_share_the_memory_of_the_store() {
        for store in [Store::new(c"mapped").unwrap(), store_without_file()] {
            let store = Arc::new(store);
            let allocation = store.allocate(3 * PAGE).unwrap();
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            let offset = allocation.offset;
            let mapping = Mapping { address: 0, bytes: PAGE, protection, flags, offset };
            // SAFETY: new memory.
            let mapped = unsafe { store.map(mapping) }.unwrap();
            let second = Mapping {
                offset: offset + PAGE,
                flags: flags | libc::MAP_FIXED,
                address: mapped,
                ..mapping
            };
            let all = allocation.host..allocation.host + 3 * PAGE;
            // SAFETY: both are mapped; the second replaces the first.
            unsafe {
                word(mapped).write_volatile(42);
                assert_eq!(word(allocation.host).read_volatile(), 42);
                assert_eq!(store.map(second).unwrap(), mapped);
                assert_eq!(word(mapped).read_volatile(), 0);
                word(allocation.host + PAGE).write_volatile(43);
                assert_eq!(word(mapped).read_volatile(), 43);
                let touched = store.touched(all).unwrap();
                assert_eq!(touched, [allocation.host, allocation.host + PAGE]);
                libc::munmap(mapped as *mut _, PAGE as usize);
                for wrong in [Mapping { offset: BYTES, ..mapping }, Mapping { bytes: 0, ..mapping }]
                {
                    assert!(store.map(wrong).is_err());
                }
            }
            drop(allocation);
            let reused = store.allocate(3 * PAGE).unwrap();
            // SAFETY: just allocated.
            assert_eq!((reused.offset, unsafe { *word(reused.host) }), (offset, 0));
        }
    }
}
