//! The metadata note with changed values, laid out again.

use crate::CodeObjectError;
use crate::metadata::{decode, find};
use rmpv::Value;
use std::collections::BTreeMap;

/// Values of a kernel's metadata to change; what is `None` stays. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataChange {
    /// Vector registers used; on gfx90a and gfx940 AccVGPRs included.
    pub vgpr_count: Option<u32>,
    /// Accumulation vector registers used.
    pub agpr_count: Option<u32>,
    /// Scalar registers used.
    pub sgpr_count: Option<u32>,
    /// Scratch a lane always needs.
    pub private_segment_fixed_size: Option<u32>,
    /// LDS a workgroup always needs.
    pub group_segment_fixed_size: Option<u32>,
    /// Size of the arguments.
    pub kernarg_segment_size: Option<u32>,
    /// The stack grows beyond what the descriptor states.
    pub uses_dynamic_stack: Option<bool>,
}

impl MetadataChange {
    /// The changed values, by their keys in the note.
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

/// A note section with the metadata of some kernels changed; nothing if it has no metadata.
/// `start` is where the section lies in the file.
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
    // A vector takes everything, so this never fails.
    rmpv::encode::write_value(&mut changed, &document).map_err(|reason| {
        CodeObjectError::malformed("metadata note", offset, format!("a document ({reason})"))
    })?;
    Ok(replace(section, (offset - start) as usize, contents.len(), &changed))
}

/// The note section with another document at `offset` in place of `length` bytes.
fn replace(section: &[u8], offset: usize, length: usize, document: &[u8]) -> Option<Vec<u8>> {
    let rest = offset + length.next_multiple_of(4);
    let mut new = section.get(..offset)?.to_vec();
    // The size stands after the name's size, and the name is "AMDGPU" in eight bytes.
    let size = new.get_mut(offset - 16..offset - 12)?;
    size.copy_from_slice(&u32::try_from(document.len()).ok()?.to_le_bytes());
    new.extend_from_slice(document);
    new.resize(new.len().next_multiple_of(4), 0);
    new.extend_from_slice(section.get(rest..).unwrap_or_default());
    Some(new)
}

/// The map of a kernel.
fn kernel_mut(document: &mut Value, index: usize) -> Option<&mut Vec<(Value, Value)>> {
    let Value::Map(root) = document else { return None };
    let (_, kernels) = root.iter_mut().find(|(key, _)| key.as_str() == Some("amdhsa.kernels"))?;
    let Value::Array(kernels) = kernels else { return None };
    match kernels.get_mut(index)? {
        Value::Map(kernel) => Some(kernel),
        _ => None,
    }
}

/// Sets a key where it stands; a new one goes where it belongs in order, as LLVM has them.
fn set(map: &mut Vec<(Value, Value)>, key: &str, value: Value) {
    // The last of several counts to a reader.
    if let Some((_, old)) = map.iter_mut().rfind(|(known, _)| known.as_str() == Some(key)) {
        *old = value;
        return;
    }
    let after = map.iter().position(|(known, _)| known.as_str().is_some_and(|known| known > key));
    map.insert(after.unwrap_or(map.len()), (Value::from(key), value));
}
