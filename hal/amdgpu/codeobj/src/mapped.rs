//! Files that are not read before something of them is looked at.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;

/// The bytes of a file where the system shows them in memory.
///
/// They are read when they are looked at. So this is for short looks at files that nobody writes
/// meanwhile: what others change shows, and to look at what they cut off ends the program.
#[derive(Debug)]
pub struct MappedFile {
    place: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory is this value's own, and is never written.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Shows a regular file.
    ///
    /// # Errors
    /// Where it cannot be opened or shown.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        let file = flipwave_host::input::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if length == 0 {
            return Ok(MappedFile { place: NonNull::dangling(), length });
        }
        let (access, flags) = (libc::PROT_READ, libc::MAP_PRIVATE);
        // SAFETY: a new place for `length` bytes of a file that is open.
        let place =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, file.as_raw_fd(), 0) };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let place = NonNull::new(place.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(MappedFile { place, length })
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the file is shown there, for as many bytes, until this value is dropped; nothing of
        // it, or what no memory is needed for, if there are none.
        unsafe { std::slice::from_raw_parts(self.place.as_ptr(), self.length) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: shown by `open`, and nothing borrows it any more.
            unsafe { libc::munmap(self.place.as_ptr().cast(), self.length) };
        }
    }
}
