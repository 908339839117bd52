//! Memory-mapped files.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;

/// A read-only memory mapping of a file.
///
/// Pages are read on first access. Use it only for short accesses to files that no other process
/// modifies: writes by others become visible, and an access beyond a truncated end raises SIGBUS.
#[derive(Debug)]
pub struct MappedFile {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value and is never written.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps a regular file.
    ///
    /// # Errors
    /// If the file cannot be opened or mapped.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        let file = flipwave_host::input::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if length == 0 {
            return Ok(MappedFile { start: NonNull::dangling(), length });
        }
        let (access, flags) = (libc::PROT_READ, libc::MAP_PRIVATE);
        // SAFETY: creates a new mapping of `length` bytes of an open file.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(MappedFile { start, length })
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `length` bytes are mapped at `start` until this value is dropped; for an empty
        // file `start` is dangling, which is valid for a slice of length 0.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: mapped by `open`, and nothing borrows it any more.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
        }
    }
}
