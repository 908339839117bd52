//! Changes of the metadata note.

use crate::CodeObjectError;
use crate::metadata::{decode, find};
use rmpv::Value;
use std::collections::BTreeMap;

/// New values for a kernel's metadata; `None` keeps the old value. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataChange {
    /// Vector registers used, including AccVGPRs on gfx90a and gfx940.
    pub vgpr_count: Option<u32>,
    /// Accumulation vector registers used.
    pub agpr_count: Option<u32>,
    /// Scalar registers used.
    pub sgpr_count: Option<u32>,
    /// Static scratch of a lane.
    pub private_segment_fixed_size: Option<u32>,
    /// Static LDS of a workgroup.
    pub group_segment_fixed_size: Option<u32>,
    /// Size of the kernarg segment.
    pub kernarg_segment_size: Option<u32>,
    /// The stack may grow beyond the descriptor's private segment size.
    pub uses_dynamic_stack: Option<bool>,
}

impl MetadataChange {
    /// The new values with their keys in the note.
    fn values(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let number = |key, value: Option<u32>| value.map(|value| (key, Value::from(value)));
        [
            number(".vgpr_count", self.vgpr_count),
            number(".agpr_count", self.agpr_count),
            number(".sgpr_count", self.sgpr_count),
            number(".private_segment_fixed_size", self.private_segment_fixed_size),
            number(".group_segment_fixed_size", self.group_segment_fixed_size),
            number(".kernarg_segment_size", self.kernarg_segment_size),
            self.uses_dynamic_stack.map(|value| (".uses_dynamic_stack", Value::from(value))),
        ]
        .into_iter()
        .flatten()
    }
}

/// Returns a note section with changed kernel metadata, or `None` if the section has no metadata
/// note. `start` is the section's offset in the file.
pub(super) fn rewrite(
    section: &[u8],
    start: u64,
    changes: &BTreeMap<usize, MetadataChange>,
) -> Result<Option<Vec<u8>>, CodeObjectError> {
    let Some((offset, contents)) = find(section, start)? else { return Ok(None) };
    let mut document = decode(contents, offset)?;
    for (kernel, change) in changes {
        if let Some(kernel) = kernel_mut(&mut document, *kernel) {
            change.values().for_each(|(key, value)| set(kernel, key, value));
        }
    }
    let mut changed = Vec::with_capacity(contents.len() + 64);
    // Writing to a vector never fails.
    rmpv::encode::write_value(&mut changed, &document).map_err(|reason| {
        CodeObjectError::malformed("metadata note", offset, format!("a document ({reason})"))
    })?;
    Ok(replace(section, (offset - start) as usize, contents.len(), &changed))
}

/// Returns the note section with the `length` bytes at `offset` replaced by another document.
fn replace(section: &[u8], offset: usize, length: usize, document: &[u8]) -> Option<Vec<u8>> {
    let next_note = offset + length.next_multiple_of(4);
    let mut new = section.get(..offset)?.to_vec();
    // Before the contents: size of the name, size of the contents, type, and "AMDGPU" in 8 bytes.
    let size = new.get_mut(offset - 16..offset - 12)?;
    size.copy_from_slice(&u32::try_from(document.len()).ok()?.to_le_bytes());
    new.extend_from_slice(document);
    new.resize(new.len().next_multiple_of(4), 0);
    new.extend_from_slice(section.get(next_note..).unwrap_or_default());
    Some(new)
}

/// The metadata map of a kernel.
fn kernel_mut(document: &mut Value, index: usize) -> Option<&mut Vec<(Value, Value)>> {
    let Value::Map(root) = document else { return None };
    let (_, kernels) = root.iter_mut().find(|(key, _)| key.as_str() == Some("amdhsa.kernels"))?;
    let Value::Array(kernels) = kernels else { return None };
    match kernels.get_mut(index)? {
        Value::Map(kernel) => Some(kernel),
        _ => None,
    }
}

/// Sets the value of a key. Inserts a missing key in sorted order, as LLVM does.
fn set(map: &mut Vec<(Value, Value)>, key: &str, value: Value) {
    // Readers use the last of duplicate keys.
    if let Some((_, old)) = map.iter_mut().rfind(|(known, _)| known.as_str() == Some(key)) {
        *old = value;
        return;
    }
    let after = map.iter().position(|(known, _)| known.as_str().is_some_and(|known| known > key));
    map.insert(after.unwrap_or(map.len()), (Value::from(key), value));
}
