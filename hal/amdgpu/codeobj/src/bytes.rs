//! Checked access to the bytes of a file.

use crate::CodeObjectError;
use std::ffi::CStr;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The bytes of a file, wherever they are kept.
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

/// A part of a file, sharing the file's memory.
#[derive(Clone)]
pub struct FileBytes {
    file: Content,
    range: Range<usize>,
}

impl FileBytes {
    /// `size` bytes at `offset`, or an error that calls them `what`.
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

    /// All of some bytes.
    pub fn whole(bytes: Vec<u8>) -> FileBytes {
        let range = 0..bytes.len();
        FileBytes { file: Content::new(bytes), range }
    }

    /// A part of it; what is not there is left out.
    pub(crate) fn part(&self, start: usize, length: usize) -> FileBytes {
        let start = self.range.start.saturating_add(start).min(self.range.end);
        let end = start.saturating_add(length).min(self.range.end);
        FileBytes { file: self.file.clone(), range: start..end }
    }

    /// Where the part begins, in bytes from the start of the file.
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

/// `size` bytes of `data` at `offset`, or an error that calls them `what`.
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
        // Both fit usize: they are at most the length of a slice.
        Some(end) => Ok(offset as usize..end as usize),
        None => Err(CodeObjectError::malformed(
            what,
            offset,
            format!("{size:#x} bytes in a file of {:#x}", data.len()),
        )),
    }
}

/// The `N` bytes at `offset`, if there are as many.
pub(crate) fn array<const N: usize>(data: &[u8], offset: usize) -> Option<[u8; N]> {
    data.get(offset..)?.first_chunk().copied()
}

/// Most bytes that the names of one file may add up to. String tables share suffixes, so names
/// can be longer than their table; without a limit a small hostile file makes huge names.
const LIMIT: usize = 256 << 20;

/// Reads names, and refuses a file whose names add up to too much.
pub(crate) struct Names {
    left: usize,
}

impl Names {
    pub(crate) fn new() -> Names {
        Names { left: LIMIT }
    }

    /// The NUL-terminated name at `offset` of `table`. `what` and `place` (a byte of the file)
    /// say in errors who asked.
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
        let window = tail.get(..self.left).unwrap_or(tail);
        let name = CStr::from_bytes_until_nul(window).map_err(|_| {
            let expected = "a NUL-terminated name, all names together below 256 MiB";
            CodeObjectError::malformed(what, place, expected)
        })?;
        self.left -= name.count_bytes();
        name.to_str().map_err(|_| CodeObjectError::malformed(what, place, "a name in UTF-8"))
    }
}
