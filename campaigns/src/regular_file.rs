//! Files that a campaign names.

use std::io::{Error, Result};
use std::path::Path;

/// The content of a regular file. A device may go on for ever, and a pipe wait for ever.
///
/// # Errors
/// As of reading it; and where it is no regular file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    size(path)?;
    std::fs::read(path)
}

/// The bytes of a regular file.
///
/// # Errors
/// As [`read`].
pub(crate) fn size(path: &Path) -> Result<u64> {
    let metadata = std::fs::metadata(path)?;
    match metadata.is_file() {
        true => Ok(metadata.len()),
        false if metadata.is_dir() => Err(Error::other("it is a folder; expected a regular file")),
        false => Err(Error::other("it is a device or a pipe; expected a regular file")),
    }
}
