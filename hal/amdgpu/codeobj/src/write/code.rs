//! Code that moves, and everything that refers to it.

use super::moved::CodeMap;
use super::{Added, PAGE, WriteError};
use crate::{CodeObject, RelocationKind};
use object::build::elf::{Builder, SectionData, SectionId, Symbol};
use object::elf;
use std::ops::Range;

/// Writes over the contents of the section that holds an address.
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
        if let Some(place) = range.and_then(|range| data.to_mut().get_mut(range)) {
            place.copy_from_slice(bytes);
            return Ok(());
        }
    }
    Err(WriteError::unsupported(
        format!("address {address:#x} is not in one section of plain bytes"),
        "code and data in such sections",
    ))
}

/// Contents at an address, as they are to be written.
pub(super) fn bytes_at<const N: usize>(builder: &Builder<'_>, address: u64) -> Option<[u8; N]> {
    builder.sections.iter().filter(|section| section.is_alloc()).find_map(|section| {
        let SectionData::Data(data) = &section.data else { return None };
        let start = usize::try_from(address.checked_sub(section.sh_addr)?).ok()?;
        data.get(start..)?.first_chunk().copied()
    })
}

/// Takes the section of code out of its segment and gives it its new contents.
pub(super) fn replace_text(builder: &mut Builder<'_>, added: &Added) -> Result<(), WriteError> {
    let is_text = |section: &&mut object::build::elf::Section<'_>| {
        section.is_alloc() && section.sh_flags.contains(elf::SHF_EXECINSTR)
    };
    let text = builder.sections.iter_mut().find(is_text).ok_or_else(|| {
        WriteError::unsupported("no section with code", "one that is part of the memory image")
    })?;
    text.sh_addr = added.address;
    text.sh_addralign = PAGE;
    text.data = SectionData::Data(added.bytes.clone().into());
    let id = text.id();
    for segment in &mut builder.segments {
        let had = segment.sections.len();
        segment.sections.retain(|section| *section != id);
        if segment.sections.len() < had {
            // Nothing is left of a segment that held only the code.
            segment.delete |= segment.sections.is_empty();
            segment.p_flags.0 &= !elf::PF_X.0;
        }
    }
    Ok(())
}

/// Mends what refers to the code: symbols and relocations. Where the old code is kept, what has
/// not moved is still there.
pub(super) fn follow(
    builder: &mut Builder<'_>,
    map: &CodeMap,
    object: &CodeObject,
) -> Result<(), WriteError> {
    let old: Vec<Range<u64>> =
        object.text().map(|text| text.address..text.address.saturating_add(text.size)).collect();
    let follow = Follow { map, old };
    let is_text: Vec<SectionId> = builder
        .sections
        .iter()
        .filter(|section| section.is_alloc() && section.sh_flags.contains(elf::SHF_EXECINSTR))
        .map(|section| section.id())
        .collect();
    let is_text = |section: Option<SectionId>| section.is_some_and(|id| is_text.contains(&id));
    for symbol in &mut builder.symbols {
        if is_text(symbol.section) {
            follow.symbol(symbol)?;
        }
    }
    for symbol in &mut builder.dynamic_symbols {
        if is_text(symbol.section) {
            follow.symbol(symbol)?;
        }
    }
    follow.relocations(builder, object)
}

struct Follow<'a> {
    map: &'a CodeMap,
    /// Addresses of the old code.
    old: Vec<Range<u64>>,
}

impl Follow<'_> {
    fn is_code(&self, address: u64) -> bool {
        self.old.iter().any(|old| old.contains(&address))
    }

    /// Where an address of code is now.
    fn address(&self, old: u64) -> Option<u64> {
        self.map.start(old).or(Some(old).filter(|old| self.map.keeps_old() || !self.is_code(*old)))
    }

    fn symbol<const DYNAMIC: bool>(
        &self,
        symbol: &mut Symbol<'_, DYNAMIC>,
    ) -> Result<(), WriteError> {
        let start = symbol.st_value;
        // A symbol of a place after the last instruction has the end of the code as its address.
        let at_end = self.old.iter().any(|old| old.end == start);
        if !self.is_code(start) && !at_end {
            return Ok(());
        }
        let moved = match self.map.start(start) {
            Some(moved) => moved,
            None if self.map.keeps_old() => return Ok(()),
            None if symbol.st_type() == elf::STT_FUNC => {
                return Err(WriteError::NotMoved {
                    what: format!("function `{}`", String::from_utf8_lossy(&symbol.name)),
                    address: start,
                });
            }
            // Padding between functions is nobody's; labels there stay after the code before.
            None => self.map.end_before(start).unwrap_or(start),
        };
        if symbol.st_size > 0 {
            let new = self.map.range(start..start.saturating_add(symbol.st_size));
            symbol.st_size = new.map_or(0, |new| new.end.saturating_sub(moved));
        }
        symbol.st_value = moved;
        Ok(())
    }

    /// Relocations of data that hold addresses of code; those of code that moves cannot follow.
    fn relocations(
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
            // Type 0 means nothing, and is not among those read.
            for relocation in relocations.iter_mut().filter(|relocation| relocation.r_type.0 != 0) {
                let Some((symbol, target)) = targets.next() else { continue };
                if !self.map.keeps_old() && self.is_code(relocation.r_offset) {
                    let what = format!("a relocation of the code at {:#x}", relocation.r_offset);
                    return Err(WriteError::unsupported(what, "relocations of data, to move code"));
                }
                let Some(target) = target.filter(|target| self.is_code(*target)) else { continue };
                let not_moved = || WriteError::NotMoved {
                    what: format!("the relocation at {:#x}", relocation.r_offset),
                    address: target,
                };
                let moved = self.address(target).ok_or_else(not_moved)?;
                let symbol = match symbol {
                    0 => 0,
                    symbol => self.address(symbol).ok_or_else(not_moved)?,
                };
                relocation.r_addend = moved.wrapping_sub(symbol).cast_signed();
            }
        }
        Ok(())
    }
}

/// The symbol's address (0 without one), and the address that the relocation refers to; nothing
/// if that follows its symbol by itself.
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
    // The addend of a distance often says where in an instruction the place is.
    (symbol, is_absolute.then_some(target))
}
