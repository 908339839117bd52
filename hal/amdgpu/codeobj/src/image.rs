//! The memory image of a loaded code object.

use crate::bytes::FileBytes;
use crate::relocation::{Relocation, RelocationKind};
use crate::symbol::Definition;
use crate::{CodeObject, CodeObjectError, Segment};
use std::ops::Range;

/// The memory image that a loader creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Load base: the address of ELF virtual address 0.
    pub base: u64,
    /// Memory address of the first byte: the base plus the lowest ELF virtual address.
    pub address: u64,
    /// All segments and the gaps between them, with relocations applied.
    pub bytes: Vec<u8>,
}

impl CodeObject {
    /// Returns the memory image with ELF virtual address 0 at `base`, which should be a multiple of
    /// the page size.
    ///
    /// # Errors
    /// [`CodeObjectError::UndefinedSymbol`] if a relocation needs a symbol that the code object does
    /// not define; other [`CodeObjectError`]s if a relocation cannot be applied.
    pub fn load_image(&self, base: u64) -> Result<Image, CodeObjectError> {
        self.load_image_with(base, |_| None)
    }

    /// Like [`CodeObject::load_image`], but `resolve` returns the memory addresses of symbols that
    /// the code object does not define.
    ///
    /// # Errors
    /// As [`CodeObject::load_image`], for symbols that `resolve` does not define either.
    pub fn load_image_with(
        &self,
        base: u64,
        resolve: impl Fn(&str) -> Option<u64>,
    ) -> Result<Image, CodeObjectError> {
        let span = self.span();
        let part = self.load_part_with(base, span.clone(), resolve)?;
        Ok(Image { base, address: base + span.start, bytes: part.to_vec() })
    }

    /// The ELF virtual addresses from the start of the first segment to the end of the last.
    pub fn span(&self) -> Range<u64> {
        let lowest = self.segments().first().map_or(0, |segment| segment.address);
        lowest..self.segments().last().map_or(lowest, |segment| segment.end())
    }

    /// Like [`CodeObject::load_image_with`], but returns only a part of [`CodeObject::span`]. Shares
    /// the file's bytes instead of copying them if one segment contains the whole part and no
    /// relocation changes it.
    ///
    /// # Errors
    /// As [`CodeObject::load_image_with`].
    pub fn load_part_with(
        &self,
        base: u64,
        part: Range<u64>,
        resolve: impl Fn(&str) -> Option<u64>,
    ) -> Result<FileBytes, CodeObjectError> {
        let span = self.span();
        let size = span.end - span.start;
        base.checked_add(span.start).filter(|address| address.checked_add(size).is_some()).ok_or(
            CodeObjectError::TooLarge {
                what: "load address",
                unit: "bytes",
                size: base,
                limit: u64::MAX - span.start - size,
            },
        )?;
        let part = part.start.clamp(span.start, span.end)..part.end.clamp(span.start, span.end);
        let mut values = Vec::new();
        for relocation in self.relocations() {
            let value = value(relocation, base, &resolve)?;
            let width = relocation.kind.size();
            let end = relocation.place.checked_add(width);
            if relocation.place < span.start || end.is_none_or(|end| end > span.end) {
                return Err(CodeObjectError::Relocation {
                    place: relocation.place,
                    found: "an address outside the memory image".to_owned(),
                    expected: "an address inside the memory image",
                });
            }
            if relocation.place < part.end && end.is_some_and(|end| end > part.start) {
                values.push((relocation.place, value.to_le_bytes(), width as usize));
            }
        }
        let is_whole = |segment: &&Segment| {
            let start = part.start.checked_sub(segment.address);
            start.is_some_and(|start| {
                start + (part.end - part.start) <= segment.bytes().len() as u64
            })
        };
        if values.is_empty()
            && let Some(segment) = self.segments().iter().find(is_whole)
        {
            let start = part.start - segment.address;
            return Ok(segment.contents().part(start as usize, (part.end - part.start) as usize));
        }
        // Segments are sorted, disjoint, and together span at most IMAGE_LIMIT bytes.
        let mut bytes = vec![0; (part.end - part.start) as usize];
        for segment in self.segments() {
            copy_overlap(&mut bytes, &part, segment.address, segment.bytes());
        }
        for (address, value, width) in values {
            copy_overlap(&mut bytes, &part, address, value.get(..width).unwrap_or_default());
        }
        Ok(FileBytes::from_vec(bytes))
    }
}

/// Copies the bytes of `contents`, located at `address`, that lie in `part` into `memory`, which
/// holds the addresses `part`.
fn copy_overlap(memory: &mut [u8], part: &Range<u64>, address: u64, contents: &[u8]) {
    let start = address.max(part.start);
    let end = (address + contents.len() as u64).min(part.end);
    if start >= end {
        return;
    }
    let destination = (start - part.start) as usize..(end - part.start) as usize;
    let source = (start - address) as usize..(end - address) as usize;
    if let (Some(destination), Some(source)) = (memory.get_mut(destination), contents.get(source)) {
        destination.copy_from_slice(source);
    }
}

/// The relocation's value, of which the low [`RelocationKind::size`] bytes are written.
fn value(
    relocation: &Relocation,
    base: u64,
    resolve: impl Fn(&str) -> Option<u64>,
) -> Result<u64, CodeObjectError> {
    let symbol = match &relocation.symbol {
        None => 0,
        Some(symbol) => match symbol.definition {
            Definition::Address => base.wrapping_add(symbol.address),
            Definition::Absolute => symbol.address,
            Definition::Undefined => match resolve(&symbol.name) {
                Some(address) => address,
                None if symbol.weak => 0,
                None => {
                    return Err(CodeObjectError::UndefinedSymbol {
                        name: symbol.name.to_string(),
                        place: relocation.place,
                    });
                }
            },
        },
    };
    let sum = symbol.wrapping_add_signed(relocation.addend);
    let distance = sum.wrapping_sub(base.wrapping_add(relocation.place));
    let overflow = |expected| CodeObjectError::Relocation {
        place: relocation.place,
        found: format!("a value that {} cannot hold", relocation.kind),
        expected,
    };
    match relocation.kind {
        RelocationKind::Abs64 | RelocationKind::Abs32Lo => Ok(sum),
        RelocationKind::Abs32Hi => Ok(sum >> 32),
        RelocationKind::Abs32 if sum > u32::MAX.into() => Err(overflow("at most 32 bits")),
        RelocationKind::Abs32 => Ok(sum),
        RelocationKind::Rel64 | RelocationKind::Rel32Lo => Ok(distance),
        RelocationKind::Rel32Hi => Ok(distance >> 32),
        RelocationKind::Rel32 if i32::try_from(distance.cast_signed()).is_err() => {
            Err(overflow("a 32-bit distance"))
        }
        RelocationKind::Rel32 => Ok(distance),
        RelocationKind::Relative64 => Ok(base.wrapping_add_signed(relocation.addend)),
        RelocationKind::Rel16 => {
            let words = distance.wrapping_sub(4).cast_signed() >> 2;
            match i16::try_from(words) {
                Ok(words) if distance.is_multiple_of(4) => Ok(i64::from(words).cast_unsigned()),
                _ => Err(overflow("a 16-bit distance in words")),
            }
        }
    }
}
