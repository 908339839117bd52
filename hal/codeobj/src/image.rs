//! The memory image of a loaded code object.

use crate::relocation::{Relocation, RelocationKind};
use crate::symbol::Definition;
use crate::{CodeObject, CodeObjectError};

/// What a loader puts into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// What was added to every ELF virtual address.
    pub base: u64,
    /// Address in memory of the first byte: the base plus the lowest virtual address.
    pub address: u64,
    /// The bytes, all segments and the gaps between them, relocations applied.
    pub bytes: Vec<u8>,
}

impl CodeObject {
    /// The memory image with ELF virtual address 0 at `base`, which should be a multiple of the
    /// page size. Every symbol must be defined in the code object itself.
    pub fn load_image(&self, base: u64) -> Result<Image, CodeObjectError> {
        self.load_image_with(base, |_| None)
    }

    /// Like [`CodeObject::load_image`]; `resolve` gives the address in memory of symbols that
    /// the code object does not define.
    pub fn load_image_with(
        &self,
        base: u64,
        resolve: impl Fn(&str) -> Option<u64>,
    ) -> Result<Image, CodeObjectError> {
        let lowest = self.segments().first().map_or(0, |segment| segment.address);
        let size = self.segments().last().map_or(0, |segment| segment.end()) - lowest;
        let address = base
            .checked_add(lowest)
            .filter(|address| address.checked_add(size).is_some())
            .ok_or(CodeObjectError::TooLarge {
                what: "load address",
                unit: "bytes",
                size: base,
                limit: u64::MAX - lowest - size,
            })?;
        // Segments are sorted, disjoint, and at most IMAGE_LIMIT long together.
        let mut image = Image { base, address, bytes: vec![0; size as usize] };
        for segment in self.segments() {
            let start = (segment.address - lowest) as usize;
            let end = start + segment.bytes().len();
            if let Some(memory) = image.bytes.get_mut(start..end) {
                memory.copy_from_slice(segment.bytes());
            }
        }
        for relocation in self.relocations() {
            let value = value(relocation, base, &resolve)?;
            let width = relocation.kind.size() as usize;
            let memory = relocation
                .place
                .checked_sub(lowest)
                .and_then(|start| usize::try_from(start).ok())
                .and_then(|start| image.bytes.get_mut(start..start.checked_add(width)?))
                .ok_or_else(|| CodeObjectError::Relocation {
                    place: relocation.place,
                    found: "a place outside the memory image".to_owned(),
                    expected: "a place inside it",
                })?;
            if let Some(value) = value.to_le_bytes().get(..width) {
                memory.copy_from_slice(value);
            }
        }
        Ok(image)
    }
}

/// The value to write; its low bytes count, as many as the kind writes.
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
            Err(overflow("a distance of 32 bits"))
        }
        RelocationKind::Rel32 => Ok(distance),
        RelocationKind::Relative64 => Ok(base.wrapping_add_signed(relocation.addend)),
        RelocationKind::Rel16 => {
            let words = distance.wrapping_sub(4).cast_signed() >> 2;
            match i16::try_from(words) {
                Ok(words) if distance.is_multiple_of(4) => Ok(i64::from(words).cast_unsigned()),
                _ => Err(overflow("a distance of 16 bits in words")),
            }
        }
    }
}
