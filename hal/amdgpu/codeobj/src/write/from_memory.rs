//! A code object from memory: what a loader has left of a file.

use crate::bytes::Content;
use crate::elf::{Elf, end_in_memory};
use crate::{CodeObject, CodeObjectError};
use object::LittleEndian as LE;
use object::elf;
use std::ops::Range;

const SECTION_HEADER: u16 = 64;
const PROGRAM_HEADER: usize = 56;
const SYMBOL: usize = 24;

/// Where the ELF header has the section headers' place, their size, how many there are and which has their
/// names, and where an entry of the program header table has its offset in the file.
const SECTION_TABLE: Range<usize> = 40..48;
const SECTION_COUNTS: Range<usize> = 58..64;
const OFFSET: usize = 8;
/// Where a symbol has the index of its section.
const SYMBOL_SECTION: usize = 6;

/// What is made of a segment, and of the tables in one.
struct NewSection {
    name: &'static [u8],
    kind: elf::SectionType,
    flags: elf::SectionFlags,
    place: Range<usize>,
    /// The section of a table's strings.
    link: u32,
    entry: usize,
}

impl CodeObject {
    /// A code object from memory where a loader has put it: all from its ELF virtual address 0 on, and
    /// whatever follows. It has no more than is loaded: no debug information, and of symbols those that
    /// others may refer to. Relocations are done, and variables have the values that they had there.
    ///
    /// # Errors
    /// [`CodeObjectError`] if the headers are not at the beginning, or something that they name is not there.
    pub fn from_memory(mut image: Vec<u8>) -> Result<CodeObject, CodeObjectError> {
        // The section headers are not loaded.
        for place in [SECTION_TABLE, SECTION_COUNTS] {
            image.get_mut(place).into_iter().for_each(|own| own.fill(0));
        }
        let content = Content::new(image);
        let elf = Elf::parse(&content)?;
        let table = elf.program_header_table();
        let mut sections = vec![NewSection::nothing()];
        let mut segments = Vec::new();
        let mut dynamic = None;
        for header in elf.program_headers {
            let place = inside(&content, header.p_vaddr.get(LE), header.p_filesz.get(LE))?;
            segments.push(place.start);
            match header.p_type.get(LE) {
                elf::PT_LOAD => {
                    sections.push(NewSection::of_segment(header.p_flags.get(LE), place))
                }
                elf::PT_DYNAMIC => dynamic = Some(place),
                _ => {}
            }
        }
        let loaded = sections.len();
        let tables = dynamic.map(|place| Tables::read(&content, place)).transpose()?;
        if let Some(tables) = &tables {
            sections.extend(tables.sections(loaded));
        }
        let mut file = content.get(..).unwrap_or_default().to_vec();
        let end = end_in_memory(&file).and_then(|end| usize::try_from(end).ok());
        file.truncate(end.unwrap_or(usize::MAX));
        // What was loaded is in the new file where it was in memory.
        for (index, start) in segments.into_iter().enumerate() {
            put(&mut file, table + index * PROGRAM_HEADER + OFFSET, &(start as u64).to_le_bytes());
        }
        for place in tables.map(|own| own.symbols).unwrap_or_default().step_by(SYMBOL) {
            let word = |at: usize, bytes: usize| read(&file, place + at, bytes);
            let (section, value) = (word(SYMBOL_SECTION, 2), word(8, 8) as usize);
            if section != u64::from(elf::SHN_UNDEF.0) && section < u64::from(elf::SHN_LORESERVE) {
                let own = sections[..loaded].iter().position(|own| own.place.contains(&value));
                let own = own.map_or(elf::SHN_ABS.0, |own| own as u16);
                put(&mut file, place + SYMBOL_SECTION, &own.to_le_bytes());
            }
        }
        add_sections(&mut file, sections);
        CodeObject::from_bytes(file)
    }
}

impl NewSection {
    fn nothing() -> NewSection {
        NewSection {
            name: b"",
            kind: elf::SHT_NULL,
            flags: elf::SectionFlags(0),
            place: 0..0,
            link: 0,
            entry: 0,
        }
    }

    fn of_segment(flags: elf::ProgramFlags, place: Range<usize>) -> NewSection {
        let (name, more) = match (flags.contains(elf::PF_X), flags.contains(elf::PF_W)) {
            (true, _) => (&b".text"[..], elf::SHF_EXECINSTR.0),
            (_, true) => (&b".data"[..], elf::SHF_WRITE.0),
            _ => (&b".rodata"[..], 0),
        };
        let flags = elf::SectionFlags(elf::SHF_ALLOC.0 | more);
        NewSection { name, kind: elf::SHT_PROGBITS, flags, place, ..NewSection::nothing() }
    }
}

/// The dynamic symbols and their strings.
struct Tables {
    symbols: Range<usize>,
    strings: Range<usize>,
}

impl Tables {
    /// Reads where they are. How many symbols there are only a hash table says.
    fn read(content: &Content, dynamic: Range<usize>) -> Result<Tables, CodeObjectError> {
        let entries =
            dynamic.step_by(16).map(|at| (read(content, at, 8), read(content, at + 8, 8)));
        let entries: Vec<(u64, u64)> = entries.collect();
        let value = |tag: elf::DynamicTag| {
            entries.iter().find(|(own, _)| *own == tag.0 as u64).map_or(0, |(_, value)| *value)
        };
        let (symbols, strings) = (value(elf::DT_SYMTAB), value(elf::DT_STRTAB));
        let count = match value(elf::DT_HASH) {
            0 => strings.saturating_sub(symbols) / SYMBOL as u64,
            hash => read(content, inside(content, hash, 8)?.start + 4, 4),
        };
        Ok(Tables {
            symbols: inside(content, symbols, count.saturating_mul(SYMBOL as u64))?,
            strings: inside(content, strings, value(elf::DT_STRSZ))?,
        })
    }

    /// Their sections, the first of which gets an index.
    fn sections(&self, index: usize) -> [NewSection; 2] {
        let section = |name, kind, place: &Range<usize>| NewSection {
            name,
            kind,
            flags: elf::SHF_ALLOC,
            place: place.clone(),
            ..NewSection::nothing()
        };
        let symbols = section(b".dynsym", elf::SHT_DYNSYM, &self.symbols);
        let strings = section(b".dynstr", elf::SHT_STRTAB, &self.strings);
        [NewSection { link: index as u32 + 1, entry: SYMBOL, ..symbols }, strings]
    }
}

/// Adds the headers of sections, and a section of their names.
fn add_sections(file: &mut Vec<u8>, mut sections: Vec<NewSection>) {
    let name = b".shstrtab";
    let names: Vec<u8> = sections
        .iter()
        .map(|own| own.name)
        .chain([&name[..]])
        .flat_map(|name| [name, b"\0"].concat())
        .collect();
    let place = file.len()..file.len() + names.len();
    file.extend(names);
    sections.push(NewSection { name, kind: elf::SHT_STRTAB, place, ..NewSection::nothing() });
    file.resize(file.len().next_multiple_of(8), 0);
    let table = file.len() as u64;
    let mut name = 0u32;
    for own in &sections {
        let address = if own.flags.contains(elf::SHF_ALLOC) { own.place.start } else { 0 };
        file.extend(name.to_le_bytes());
        file.extend(own.kind.0.to_le_bytes());
        let (start, size) = (own.place.start as u64, own.place.len() as u64);
        for word in [own.flags.0, address as u64, start, size] {
            file.extend(word.to_le_bytes());
        }
        file.extend(own.link.to_le_bytes());
        file.extend(0u32.to_le_bytes());
        file.extend(1u64.to_le_bytes());
        file.extend((own.entry as u64).to_le_bytes());
        name += own.name.len() as u32 + 1;
    }
    put(file, SECTION_TABLE.start, &table.to_le_bytes());
    let count = sections.len() as u16;
    let counts = [SECTION_HEADER, count, count - 1].map(u16::to_le_bytes);
    put(file, SECTION_COUNTS.start, counts.as_flattened());
}

/// A part of memory.
fn inside(content: &Content, start: u64, size: u64) -> Result<Range<usize>, CodeObjectError> {
    let end = start.checked_add(size).filter(|end| *end <= content.len() as u64);
    let end = end.ok_or_else(|| {
        let expected = format!("an end in memory of at most {:#x}", content.len());
        CodeObjectError::malformed("part of a loaded code object", start, expected)
    })?;
    Ok(start as usize..end as usize)
}

/// A number, as far as it is there.
fn read(bytes: &[u8], at: usize, size: usize) -> u64 {
    let own = bytes.iter().skip(at).take(size).rev();
    own.fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = file.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
