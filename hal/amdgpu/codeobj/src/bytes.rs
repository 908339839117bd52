//! Checked access to the bytes of a file.

use crate::CodeObjectError;
use std::ffi::CStr;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Shared ownership of a file's bytes.
#[derive(Clone)]
pub(crate) struct Content(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Content {
    pub(crate) fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Content {
        Content(Arc::new(bytes))
    }
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x} bytes", self.len())
    }
}

/// A range of a file that shares the file's memory.
#[derive(Clone)]
pub struct FileBytes {
    file: Content,
    range: Range<usize>,
}

impl FileBytes {
    /// Returns `size` bytes at `offset`. An error calls them `what`.
    pub(crate) fn new(
        file: &Content,
        what: &'static str,
        offset: u64,
        size: u64,
    ) -> Result<FileBytes, CodeObjectError> {
        let range = range(file, what, offset, size)?;
        Ok(FileBytes { file: file.clone(), range })
    }

    pub(crate) fn empty(file: &Content) -> FileBytes {
        FileBytes { file: file.clone(), range: 0..0 }
    }

    /// Takes ownership of `bytes` and returns the range of all of them.
    pub fn from_vec(bytes: Vec<u8>) -> FileBytes {
        let range = 0..bytes.len();
        FileBytes { file: Content::new(bytes), range }
    }

    /// Returns the `length` bytes at `start`, clamped to the range.
    pub(crate) fn part(&self, start: usize, length: usize) -> FileBytes {
        let start = self.range.start.saturating_add(start).min(self.range.end);
        let end = start.saturating_add(length).min(self.range.end);
        FileBytes { file: self.file.clone(), range: start..end }
    }

    /// Offset of the first byte, in bytes from the start of the file.
    pub(crate) fn offset(&self) -> u64 {
        self.range.start as u64
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.file.get(self.range.clone()).unwrap_or_default()
    }
}

impl std::fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}..{:#x}", self.range.start, self.range.end)
    }
}

/// Returns `size` bytes of `data` at `offset`. An error calls them `what`.
pub(crate) fn slice<'a>(
    data: &'a [u8],
    what: &'static str,
    offset: u64,
    size: u64,
) -> Result<&'a [u8], CodeObjectError> {
    Ok(data.get(range(data, what, offset, size)?).unwrap_or_default())
}

fn range(
    data: &[u8],
    what: &'static str,
    offset: u64,
    size: u64,
) -> Result<Range<usize>, CodeObjectError> {
    let end = offset.checked_add(size).filter(|end| *end <= data.len() as u64);
    match end {
        // Both fit in a usize: they are at most the length of a slice.
        Some(end) => Ok(offset as usize..end as usize),
        None => Err(CodeObjectError::malformed(
            what,
            offset,
            format!("{size:#x} bytes in a file of {:#x}", data.len()),
        )),
    }
}

/// Returns the `N` bytes at `offset`, or `None` if `data` is shorter.
pub(crate) fn array<const N: usize>(data: &[u8], offset: usize) -> Option<[u8; N]> {
    data.get(offset..)?.first_chunk().copied()
}

/// Limit on the total length of all names in one file, in bytes. Entries of a string table may
/// share suffixes, so names can be longer than their table; without a limit a small hostile file
/// would expand to huge names.
const LIMIT: usize = 256 << 20;

/// Reader of names that enforces a limit on their total length.
pub(crate) struct Names {
    remaining: usize,
}

impl Names {
    pub(crate) fn new() -> Names {
        Names { remaining: LIMIT }
    }

    /// Returns the NUL-terminated name at `offset` of `table`. Errors blame the structure `what` at
    /// byte `place` of the file, which refers to the name.
    pub(crate) fn read<'a>(
        &mut self,
        table: &'a [u8],
        offset: u32,
        what: &'static str,
        place: u64,
    ) -> Result<&'a str, CodeObjectError> {
        let tail = table.get(offset as usize..).ok_or_else(|| {
            let size = table.len();
            let expected = format!("a name inside the string table of {size:#x} bytes");
            CodeObjectError::malformed(what, place, expected)
        })?;
        let window = tail.get(..self.remaining).unwrap_or(tail);
        let name = CStr::from_bytes_until_nul(window).map_err(|_| {
            let expected = "a NUL-terminated name, all names together below 256 MiB";
            CodeObjectError::malformed(what, place, expected)
        })?;
        self.remaining -= name.count_bytes();
        name.to_str().map_err(|_| CodeObjectError::malformed(what, place, "a name in UTF-8"))
    }
}
