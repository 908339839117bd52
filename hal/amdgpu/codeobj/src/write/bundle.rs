//! Files that hold several code objects, with some of them replaced.

use super::{PAGE, WriteError};
use crate::BundleEntry;
use crate::bundle::{BUNDLE_MAGIC, RawEntry, each_bundle, entries, is_bundle};

/// The file with each code object that `replace` has another one for replaced by it. Takes what
/// [`entries`] takes but programs for the host; `replace` is asked in the order of [`entries`].
/// Compressed bundles come back uncompressed.
///
/// # Errors
/// A file that cannot be read, or a program for the host: the loader finds its code objects by
/// their places, and what grows has no room there.
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
                "a code object or an offload bundle, as `clang-offload-bundler` makes it",
            )),
        };
    }
    let mut old = old.iter();
    let mut new = Vec::new();
    each_bundle(file, 0, |bundle| {
        let contents = bundle.iter().map(|entry| {
            let replaced = match entry.is_host() {
                true => None,
                false => old.next().and_then(&mut replace),
            };
            replaced.unwrap_or_else(|| entry.contents.to_vec())
        });
        let contents: Vec<Vec<u8>> = contents.collect();
        append(&mut new, &bundle, &contents);
    })?;
    Ok(new)
}

/// Appends a bundle: its magic, the number of entries, each entry's offset, size and id, and the
/// contents on pages of their own.
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
