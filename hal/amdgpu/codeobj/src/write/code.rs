//! Replacement of code, and updates of the symbols and relocations that refer to it.

use super::moved::CodeMap;
use super::{NewContents, PAGE, WriteError};
use crate::{CodeObject, RelocationKind};
use object::build::elf::{Builder, SectionData, SectionId, Symbol};
use object::elf;
use std::ops::Range;

/// Overwrites contents of the section at an address.
pub(super) fn patch(
    builder: &mut Builder<'_>,
    address: u64,
    bytes: &[u8],
) -> Result<(), WriteError> {
    for section in &mut builder.sections {
        let is_alloc = section.is_alloc();
        let SectionData::Data(data) = &mut section.data else { continue };
        let Some(start) = address.checked_sub(section.sh_addr).filter(|_| is_alloc) else {
            continue;
        };
        let range = usize::try_from(start)
            .ok()
            .and_then(|start| Some(start..start.checked_add(bytes.len())?))
            .filter(|range| range.end <= data.len());
        if let Some(patched) = range.and_then(|range| data.to_mut().get_mut(range)) {
            patched.copy_from_slice(bytes);
            return Ok(());
        }
    }
    Err(WriteError::unsupported(
        format!("address {address:#x} is not in a code or data section"),
        "patches inside one code or data section",
    ))
}

/// Current contents at an address.
pub(super) fn bytes_at<const N: usize>(builder: &Builder<'_>, address: u64) -> Option<[u8; N]> {
    builder.sections.iter().filter(|section| section.is_alloc()).find_map(|section| {
        let SectionData::Data(data) = &section.data else { return None };
        let start = usize::try_from(address.checked_sub(section.sh_addr)?).ok()?;
        data.get(start..)?.first_chunk().copied()
    })
}

/// Removes the code section from its segment and replaces its contents and address.
pub(super) fn replace_text<'a>(
    builder: &mut Builder<'a>,
    contents: &'a NewContents,
) -> Result<(), WriteError> {
    let is_text = |section: &&mut object::build::elf::Section<'_>| {
        section.is_alloc() && section.sh_flags.contains(elf::SHF_EXECINSTR)
    };
    let text = builder.sections.iter_mut().find(is_text).ok_or_else(|| {
        WriteError::unsupported("no loaded code section", "one loaded code section")
    })?;
    text.sh_addr = contents.address;
    text.sh_addralign = PAGE;
    text.data = SectionData::Data(contents.bytes.as_slice().into());
    let id = text.id();
    for segment in &mut builder.segments {
        let count = segment.sections.len();
        segment.sections.retain(|section| *section != id);
        if segment.sections.len() < count {
            // A segment that contained only the code becomes empty.
            segment.delete |= segment.sections.is_empty();
            segment.p_flags.0 &= !elf::PF_X.0;
        }
    }
    Ok(())
}

/// Updates the symbols and relocations that refer to moved code. If the old code is kept, references
/// to instructions that have not moved stay unchanged.
pub(super) fn update_references(
    builder: &mut Builder<'_>,
    map: &CodeMap,
    object: &CodeObject,
) -> Result<(), WriteError> {
    let old_code: Vec<Range<u64>> =
        object.text().map(|text| text.address..text.address.saturating_add(text.size)).collect();
    let references = References { map, old_code };
    let is_text: Vec<SectionId> = builder
        .sections
        .iter()
        .filter(|section| section.is_alloc() && section.sh_flags.contains(elf::SHF_EXECINSTR))
        .map(|section| section.id())
        .collect();
    let is_text = |section: Option<SectionId>| section.is_some_and(|id| is_text.contains(&id));
    for symbol in &mut builder.symbols {
        if is_text(symbol.section) {
            references.update_symbol(symbol)?;
        }
    }
    for symbol in &mut builder.dynamic_symbols {
        if is_text(symbol.section) {
            references.update_symbol(symbol)?;
        }
    }
    references.update_relocations(builder, object)
}

struct References<'a> {
    map: &'a CodeMap,
    /// Address ranges of the old code.
    old_code: Vec<Range<u64>>,
}

impl References<'_> {
    fn is_code(&self, address: u64) -> bool {
        self.old_code.iter().any(|range| range.contains(&address))
    }

    /// New address for a reference to `old`; `None` if `old` is in replaced code and has no new
    /// address.
    fn new_address(&self, old: u64) -> Option<u64> {
        let stays = self.map.keeps_old_code() || !self.is_code(old);
        self.map.new_address(old).or(stays.then_some(old))
    }

    fn update_symbol<const DYNAMIC: bool>(
        &self,
        symbol: &mut Symbol<'_, DYNAMIC>,
    ) -> Result<(), WriteError> {
        let start = symbol.st_value;
        // A symbol after the last instruction has the end of the code as its address.
        let at_end = self.old_code.iter().any(|range| range.end == start);
        if !self.is_code(start) && !at_end {
            return Ok(());
        }
        let moved = match self.map.new_address(start) {
            Some(moved) => moved,
            None if self.map.keeps_old_code() => return Ok(()),
            None if symbol.st_type() == elf::STT_FUNC => {
                return Err(WriteError::NotMoved {
                    what: format!("function `{}`", String::from_utf8_lossy(&symbol.name)),
                    address: start,
                });
            }
            // Labels in the padding between functions move to the end of the preceding code.
            None => self.map.end_before(start).unwrap_or(start),
        };
        if symbol.st_size > 0 {
            let new = self.map.new_range(start..start.saturating_add(symbol.st_size));
            symbol.st_size = new.map_or(0, |new| new.end.saturating_sub(moved));
        }
        symbol.st_value = moved;
        Ok(())
    }

    /// Updates relocations of data that refer to code. Relocations of replaced code are an error.
    fn update_relocations(
        &self,
        builder: &mut Builder<'_>,
        object: &CodeObject,
    ) -> Result<(), WriteError> {
        let mut targets = object.relocations().iter().map(target);
        for section in &mut builder.sections {
            let is_alloc = section.is_alloc();
            let SectionData::DynamicRelocation(relocations) = &mut section.data else { continue };
            if !is_alloc {
                continue;
            }
            // Type 0 is R_AMDGPU_NONE, which `CodeObject::relocations` skips.
            for relocation in relocations.iter_mut().filter(|relocation| relocation.r_type.0 != 0) {
                let Some((symbol, target)) = targets.next() else { continue };
                if !self.map.keeps_old_code() && self.is_code(relocation.r_offset) {
                    let what = format!("a relocation of the code at {:#x}", relocation.r_offset);
                    return Err(WriteError::unsupported(
                        what,
                        "only data relocations, to move code",
                    ));
                }
                let Some(target) = target.filter(|target| self.is_code(*target)) else { continue };
                let not_moved = || WriteError::NotMoved {
                    what: format!("the relocation at {:#x}", relocation.r_offset),
                    address: target,
                };
                let moved = self.new_address(target).ok_or_else(not_moved)?;
                let symbol = match symbol {
                    0 => 0,
                    symbol => self.new_address(symbol).ok_or_else(not_moved)?,
                };
                relocation.r_addend = moved.wrapping_sub(symbol).cast_signed();
            }
        }
        Ok(())
    }
}

/// Returns the address of the relocation's symbol (0 without one) and of its target. The target is
/// `None` if updating the symbol suffices.
fn target(relocation: &crate::Relocation) -> (u64, Option<u64>) {
    let symbol = match &relocation.symbol {
        Some(symbol) if symbol.definition == crate::Definition::Address => symbol.address,
        Some(_) => return (0, None),
        None => 0,
    };
    let is_absolute = matches!(
        relocation.kind,
        RelocationKind::Abs32
            | RelocationKind::Abs32Lo
            | RelocationKind::Abs32Hi
            | RelocationKind::Abs64
            | RelocationKind::Relative64
    );
    let target = symbol.wrapping_add_signed(relocation.addend);
    // The addend of a PC-relative relocation often is the field's offset in its instruction.
    (symbol, is_absolute.then_some(target))
}
