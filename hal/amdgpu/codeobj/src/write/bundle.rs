//! Replacement of code objects in offload bundles.

use super::{PAGE, WriteError};
use crate::BundleEntry;
use crate::bundle::{BUNDLE_MAGIC, RawEntry, each_bundle, entries, is_bundle};

/// Returns the file with each code object replaced by the result of `replace`; `None` keeps the code
/// object. `replace` is called in the order of [`entries`]. Accepts the same files as [`entries`],
/// except host programs. Compressed bundles become uncompressed.
///
/// # Errors
/// [`WriteError`] if the file is invalid or a host program, whose code objects have fixed offsets and
/// no room to grow.
pub fn replace_code_objects(
    file: &[u8],
    mut replace: impl FnMut(&BundleEntry) -> Option<Vec<u8>>,
) -> Result<Vec<u8>, WriteError> {
    let old = entries(file)?;
    if !is_bundle(file) {
        return match &old[..] {
            [entry] if entry.bytes == file => Ok(replace(entry).unwrap_or_else(|| file.to_vec())),
            _ => Err(WriteError::unsupported(
                "a program for the host",
                "a code object or an offload bundle, as written by `clang-offload-bundler`",
            )),
        };
    }
    let mut old = old.iter();
    let mut new = Vec::new();
    each_bundle(file, 0, |bundle| {
        let contents = bundle.iter().map(|entry| {
            let replaced = if entry.is_host() { None } else { old.next().and_then(&mut replace) };
            replaced.unwrap_or_else(|| entry.contents.to_vec())
        });
        let contents: Vec<Vec<u8>> = contents.collect();
        append(&mut new, &bundle, &contents);
    })?;
    Ok(new)
}

/// Appends a bundle: its magic, the number of entries, each entry's offset, size and id, and the
/// page-aligned contents.
fn append(file: &mut Vec<u8>, entries: &[RawEntry<'_>], contents: &[Vec<u8>]) {
    file.resize(file.len().next_multiple_of(PAGE as usize), 0);
    let ids: usize = entries.iter().map(|entry| 24 + entry.id.len()).sum();
    let mut end = (BUNDLE_MAGIC.len() + 8 + ids) as u64;
    let mut header = BUNDLE_MAGIC.to_vec();
    header.extend((entries.len() as u64).to_le_bytes());
    let mut body = vec![0; end as usize];
    for (entry, contents) in entries.iter().zip(contents) {
        let offset = if contents.is_empty() { end } else { end.next_multiple_of(PAGE) };
        for field in [offset, contents.len() as u64, entry.id.len() as u64] {
            header.extend(field.to_le_bytes());
        }
        header.extend(entry.id.as_bytes());
        body.resize(offset as usize, 0);
        body.extend(contents);
        end = offset + contents.len() as u64;
    }
    file.extend(&header);
    file.extend(body.get(header.len()..).unwrap_or_default());
}
