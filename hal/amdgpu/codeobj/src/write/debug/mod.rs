//! Updates of DWARF debug information for moved code.

mod entries;
mod frames;
mod lines;

use super::moved::CodeMap;
use crate::{CodeObject, CodeObjectError, lines::contents};
use gimli::write::{ConvertError, EndianVec, Sections};
use gimli::{EndianSlice, LittleEndian, SectionId};
use object::build::elf::{Builder, SectionData};
use object::elf;
use std::borrow::Cow;
use std::collections::BTreeMap;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Errors returned when converting debug information.
#[derive(Debug, thiserror::Error)]
enum DebugError {
    #[error("{0}")]
    Contents(#[from] CodeObjectError),
    #[error("{0}")]
    Read(#[from] gimli::Error),
    #[error("{0}")]
    Convert(#[from] ConvertError),
    #[error("{0}")]
    Write(#[from] gimli::write::Error),
}

/// Common prefix of the names of debug sections.
const PREFIX: &[u8] = b".debug_";

const FRAMES: &str = ".debug_frame";

/// Updates the debug information for moved code. If that fails, removes it and returns the reason.
pub(super) fn update(
    builder: &mut Builder<'_>,
    object: &CodeObject,
    map: &CodeMap,
) -> Option<String> {
    let has_debug = object.sections().iter().any(|section| section.name.starts_with(".debug_"));
    let converted = if has_debug { convert(object, map) } else { Ok(BTreeMap::new()) };
    for section in &mut builder.sections {
        let is_debug = !section.is_alloc() && section.name.starts_with(PREFIX);
        // Relocations that the static linker kept with --emit-relocs are no longer valid.
        section.delete |= is_debug || matches!(section.data, SectionData::Relocation(_));
    }
    match converted {
        Ok(sections) => {
            for (name, bytes) in sections {
                let section = builder.sections.add();
                section.name = name.as_bytes().into();
                section.sh_type = elf::SHT_PROGBITS;
                section.sh_addralign = 1;
                section.data = SectionData::Data(bytes.into());
            }
            None
        }
        Err(reason) => {
            Some(format!("cannot update the debug information for the moved code: {reason}"))
        }
    }
}

/// Returns the converted debug sections by name.
fn convert(
    object: &CodeObject,
    map: &CodeMap,
) -> Result<BTreeMap<&'static str, Vec<u8>>, DebugError> {
    let mut old: BTreeMap<&str, Cow<'_, [u8]>> = BTreeMap::new();
    for section in object.sections().iter().filter(|section| !section.allocated) {
        if section.name.starts_with(".debug_") {
            old.insert(&section.name, contents(section)?);
        }
    }
    let section = |id: SectionId| {
        let bytes = old.get(id.name()).map_or(&[][..], |bytes| bytes);
        Ok::<_, DebugError>(EndianSlice::new(bytes, LittleEndian))
    };
    let dwarf = gimli::read::Dwarf::load(section)?;
    let mut sections = Sections::new(EndianVec::new(LittleEndian));
    entries::convert(&dwarf, map)?.write(&mut sections)?;
    let mut new = BTreeMap::new();
    sections.for_each(|id, bytes| {
        if !bytes.slice().is_empty() {
            new.insert(id.name(), bytes.slice().to_vec());
        }
        Ok::<_, DebugError>(())
    })?;
    // The other sections are valid without unwinding rules.
    if let Some(frames) = old.get(FRAMES).and_then(|frames| frames::convert(frames, map)) {
        new.insert(FRAMES, frames);
    }
    Ok(new)
}
