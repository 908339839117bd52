//! Layout: file offsets and addresses of sections and segments.

use super::{PAGE, WriteError};
use crate::{CodeObject, Segment};
use object::build::elf::{Builder, SectionData, SectionId};
use object::elf;
use std::ops::Range;

/// Size of the ELF header, which the program headers follow, in bytes.
const HEADER_SIZE: u64 = 64;

/// Size of a program header, in bytes.
const PROGRAM_HEADER_SIZE: u64 = 56;

/// Largest supported alignment: the largest page size that linkers use.
const MAX_ALIGNMENT: u64 = 2 << 20;

/// A loadable segment to add.
pub(super) struct NewSegment {
    pub(super) address: u64,
    pub(super) flags: elf::ProgramFlags,
    pub(super) file_size: u64,
    /// Size of the zero bytes after the file contents.
    pub(super) zero_size: u64,
}

/// Returns an error if loaded contents are outside all sections: editing would lose them.
pub(super) fn check(builder: &Builder<'_>, object: &CodeObject) -> Result<(), WriteError> {
    for section in &builder.sections {
        let align = section.sh_addralign;
        if align > MAX_ALIGNMENT || !(align == 0 || align.is_power_of_two()) {
            let what = format!("section `{}` is aligned to {align:#x}", section.name);
            return Err(WriteError::unsupported(what, "a power of two up to 2 MiB"));
        }
        if section.is_alloc() && !is_in_its_segment(section, object) {
            let what = format!("section `{}` is not contained in a segment", section.name);
            return Err(WriteError::unsupported(what, "loaded sections inside one segment"));
        }
    }
    let headers = builder.segments.count() as u64 * PROGRAM_HEADER_SIZE + HEADER_SIZE;
    object.segments().iter().try_for_each(|segment| check_contents(segment, object, headers))
}

/// Returns an error if a segment has nonzero contents outside the sections and the file's headers.
/// Zeros between sections are restored as padding. `headers` is the size of the headers.
fn check_contents(segment: &Segment, object: &CodeObject, headers: u64) -> Result<(), WriteError> {
    let end = segment.address.saturating_add(segment.bytes().len() as u64);
    let mut covered: Vec<Range<u64>> = object
        .sections()
        .iter()
        .filter(|section| section.allocated && !section.bytes().is_empty())
        .map(|section| {
            section.address..section.address.saturating_add(section.bytes().len() as u64)
        })
        .filter(|range| range.start < end && range.end > segment.address)
        .collect();
    if segment.file_offset() == 0 {
        covered.push(segment.address..segment.address.saturating_add(headers));
    }
    covered.push(end..end);
    covered.sort_by_key(|range| range.start);
    let mut address = segment.address;
    for range in covered {
        let gap = (address - segment.address) as usize
            ..(range.start.max(address) - segment.address) as usize;
        // The headers may extend beyond the segment; then there is no gap.
        let bytes = segment.bytes().get(gap).unwrap_or_default();
        if bytes.iter().any(|byte| *byte != 0) {
            let what = format!("contents at {address:#x} to {:#x} are in no section", range.start);
            return Err(WriteError::unsupported(what, "section headers for all of memory"));
        }
        address = address.max(range.end);
    }
    Ok(())
}

fn is_in_its_segment(section: &object::build::elf::Section<'_>, object: &CodeObject) -> bool {
    let Some(segment) = object.segment_at(flipwave_isa::Pc(section.sh_addr)).or_else(|| {
        // An empty section may be at the end of its segment.
        object.segments().iter().find(|segment| segment.end() == section.sh_addr)
    }) else {
        return false;
    };
    let offset = section.sh_addr - segment.address;
    let (size, in_file) = match section.sh_type {
        elf::SHT_NOBITS => (segment.memory_size, false),
        _ => (segment.bytes().len() as u64, true),
    };
    let same_offset = section.sh_offset.checked_sub(segment.file_offset()) == Some(offset);
    offset.checked_add(section.sh_size).is_some_and(|end| end <= size) && (same_offset || !in_file)
}

/// Assigns file offsets to all sections and segments. Adds the new segments, and a segment with the
/// note and the symbol tables, which may have grown, at `tables_address`.
pub(super) fn place(
    builder: &mut Builder<'_>,
    mut new: Vec<NewSegment>,
    tables_address: u64,
) -> Result<(), WriteError> {
    let tables = place_tables(builder, tables_address)?;
    let notes = note_range(builder);
    new.push(tables);
    new.sort_by_key(|segment| segment.address);
    for segment in &new {
        add_segment(builder, segment);
    }
    builder.header.e_phoff = HEADER_SIZE;
    let headers = HEADER_SIZE + builder.program_headers_size();
    let first_section = builder
        .sections
        .iter()
        .filter(|section| section.is_alloc() && section.sh_type != elf::SHT_NOBITS)
        .map(|section| section.sh_addr)
        .min();
    let mut end = headers;
    let mut loaded: Vec<Placed> = Vec::new();
    for segment in builder.segments.iter_mut().filter(|segment| segment.is_load()) {
        let has_room =
            first_section.is_none_or(|first| first >= segment.p_vaddr.saturating_add(headers));
        // The first segment keeps the headers if it contained them and they still fit.
        let with_headers =
            loaded.is_empty() && segment.p_offset == 0 && segment.p_filesz >= headers && has_room;
        let align = segment.p_align.max(1);
        if !align.is_power_of_two() || align > MAX_ALIGNMENT {
            let what = format!("segment at {:#x} is aligned to {align:#x}", segment.p_vaddr);
            return Err(WriteError::unsupported(what, "a power of two up to 2 MiB"));
        }
        // Offset and address must be congruent modulo the page size.
        let offset = if with_headers {
            0
        } else {
            end + (segment.p_vaddr.wrapping_sub(end) & (align.max(PAGE) - 1))
        };
        segment.p_offset = offset;
        end = end.max(offset.saturating_add(segment.p_filesz));
        let addresses = segment.p_vaddr..segment.p_vaddr.saturating_add(segment.p_memsz);
        loaded.push(Placed { addresses, offset, with_headers });
    }
    place_sections(builder, &loaded);
    place_other_segments(builder, &loaded, notes)
}

/// A loadable segment with its file offset.
struct Placed {
    addresses: Range<u64>,
    offset: u64,
    /// The segment begins with the file's headers.
    with_headers: bool,
}

/// File offset of an address.
fn offset_of(loaded: &[Placed], address: u64) -> Option<u64> {
    let contains = |segment: &&Placed| segment.addresses.contains(&address);
    // An empty section or segment may be at the end of a segment.
    let ends_at = |segment: &&Placed| segment.addresses.end == address;
    let segment = loaded.iter().find(contains).or_else(|| loaded.iter().find(ends_at))?;
    Some(segment.offset + (address - segment.addresses.start))
}

fn place_sections(builder: &mut Builder<'_>, loaded: &[Placed]) {
    for section in &mut builder.sections {
        section.sh_addralign = section.sh_addralign.max(1);
        if section.is_alloc() {
            // Every loaded section is in a segment: `check` has validated the file's sections.
            section.sh_offset = offset_of(loaded, section.sh_addr).unwrap_or(section.sh_offset);
        }
    }
}

/// Places segments that describe parts of loadable segments.
fn place_other_segments(
    builder: &mut Builder<'_>,
    loaded: &[Placed],
    notes: Option<Range<u64>>,
) -> Result<(), WriteError> {
    let headers = builder.program_headers_size();
    let with_headers = loaded.iter().find(|segment| segment.with_headers);
    for segment in builder.segments.iter_mut().filter(|segment| !segment.is_load()) {
        match segment.p_type {
            elf::PT_PHDR => match with_headers {
                Some(first) => {
                    segment.p_vaddr = first.addresses.start + HEADER_SIZE;
                    (segment.p_filesz, segment.p_memsz) = (headers, headers);
                }
                // PT_PHDR must not refer to headers that are not loaded.
                None => segment.delete = true,
            },
            elf::PT_NOTE => {
                let Some(notes) = &notes else {
                    let what = "a note segment without a note section";
                    return Err(WriteError::unsupported(what, "note sections for note segments"));
                };
                segment.p_vaddr = notes.start;
                let size = notes.end - notes.start;
                (segment.p_filesz, segment.p_memsz) = (size, size);
            }
            // Such as PT_GNU_STACK.
            _ if segment.p_memsz == 0 => continue,
            _ => {}
        }
        segment.p_paddr = segment.p_vaddr;
        segment.p_offset = offset_of(loaded, segment.p_vaddr).ok_or_else(|| {
            let what = format!("a segment of type {:#x} outside memory", segment.p_type.0);
            WriteError::unsupported(what, "segments inside loadable segments")
        })?;
    }
    Ok(())
}

fn add_segment(builder: &mut Builder<'_>, new: &NewSegment) {
    let segment = builder.segments.add();
    segment.p_type = elf::PT_LOAD;
    segment.p_flags = new.flags;
    segment.p_vaddr = new.address;
    segment.p_paddr = new.address;
    segment.p_filesz = new.file_size;
    segment.p_memsz = new.file_size + new.zero_size;
    segment.p_align = PAGE;
}

/// Returns `true` if editing may change the section's size.
fn may_grow(data: &SectionData<'_>) -> bool {
    matches!(
        data,
        SectionData::Note(_)
            | SectionData::DynamicSymbol
            | SectionData::DynamicString
            | SectionData::Hash
            | SectionData::GnuHash
            | SectionData::GnuVersym
            | SectionData::GnuVerdef
            | SectionData::GnuVerneed
    )
}

/// Assigns consecutive addresses, starting at `address`, to the sections that may have grown, notes
/// first. Returns the segment that contains them.
fn place_tables(builder: &mut Builder<'_>, address: u64) -> Result<NewSegment, WriteError> {
    builder.delete_orphan_symbols();
    let mut tables: Vec<(bool, SectionId, u64, u64)> = builder
        .sections
        .iter()
        .filter(|section| section.is_alloc() && may_grow(&section.data))
        .map(|section| {
            let is_note = matches!(section.data, SectionData::Note(_));
            // Notes must be contiguous.
            let align = if is_note { 4 } else { section.sh_addralign.max(8) };
            (!is_note, section.id(), builder.section_size(section), align)
        })
        .collect();
    tables.sort_by_key(|(after_notes, ..)| *after_notes);
    let mut end = address;
    for (_, id, size, align) in &tables {
        let start = end.checked_next_multiple_of(*align);
        let start_and_end = start.and_then(|start| Some((start, start.checked_add(*size)?)));
        let Some((start, next)) = start_and_end else {
            return Err(WriteError::Place {
                what: "the symbol tables",
                address,
                expected: "room in the address space".to_owned(),
            });
        };
        let section = builder.sections.get_mut(*id);
        section.sh_addr = start;
        section.sh_addralign = *align;
        end = next;
    }
    Ok(NewSegment { address, flags: elf::PF_R, file_size: end - address, zero_size: 0 })
}

/// Address range of the notes.
fn note_range(builder: &Builder<'_>) -> Option<Range<u64>> {
    let notes = || {
        let is_note = |data: &SectionData<'_>| matches!(data, SectionData::Note(_));
        builder.sections.iter().filter(move |note| note.is_alloc() && is_note(&note.data))
    };
    let start = notes().map(|note| note.sh_addr).min()?;
    let end = notes().map(|note| note.sh_addr + builder.section_size(note)).max()?;
    Some(start..end)
}
