//! Reconstruction of a code object from loaded memory.

use crate::bytes::{Content, array};
use crate::elf::{Elf, end_in_memory};
use crate::{CodeObject, CodeObjectError};
use object::LittleEndian as LE;
use object::elf::{self, Dyn64, FileHeader64, ProgramHeader64, Sym64};
use object::pod;
use object::write::elf::{Encoder, SectionHeader};
use std::ops::Range;

impl CodeObject {
    /// Reconstructs a code object from the memory at its ELF virtual address 0; `image` may have
    /// unrelated bytes after the code object. The result contains only what is loaded: no debug
    /// information, and only dynamic symbols. Relocations are applied, and variables have their values
    /// in memory.
    ///
    /// # Errors
    /// [`CodeObjectError`] if the image does not begin with the headers, or if a segment or a table lies
    /// outside the image.
    pub fn from_memory(mut image: Vec<u8>) -> Result<CodeObject, CodeObjectError> {
        // The section headers are not loaded.
        set_section_table(&mut image, 0, 0);
        let content = Content::new(image);
        let elf = Elf::parse(&content)?;
        let mut sections = vec![("", SectionHeader::default())];
        let mut segment_starts = Vec::new();
        let mut dynamic = None;
        for header in elf.program_headers {
            let range = range_in(&content, header.p_vaddr.get(LE), header.p_filesz.get(LE))?;
            segment_starts.push(range.start as u64);
            match header.p_type.get(LE) {
                elf::PT_LOAD => sections.push(segment_section(header.p_flags.get(LE), range)),
                elf::PT_DYNAMIC => dynamic = Some(range),
                _ => {}
            }
        }
        let loaded = sections.clone();
        let tables = dynamic.map(|range| DynamicTables::read(&content, range)).transpose()?;
        if let Some(tables) = &tables {
            sections.extend(tables.sections(sections.len() as u32));
        }
        let mut file = content.to_vec();
        let end = end_in_memory(&file).and_then(|end| usize::try_from(end).ok());
        file.truncate(end.unwrap_or(usize::MAX));
        // File offsets in the new file equal ELF virtual addresses.
        let headers = elf.program_header_table()..;
        let headers = structures_mut::<ProgramHeader64<LE>>(file.get_mut(headers));
        for (header, start) in headers.iter_mut().zip(segment_starts) {
            header.p_offset.set(LE, start);
        }
        let symbols = tables.map(|tables| tables.symbols).unwrap_or_default();
        for symbol in structures_mut::<Sym64<LE>>(file.get_mut(symbols)) {
            let index = symbol.st_shndx.get(LE);
            if index != elf::SHN_UNDEF && index.0 < elf::SHN_LORESERVE {
                let address = symbol.st_value.get(LE);
                let section = loaded.iter().position(|(_, section)| {
                    (section.sh_addr..section.sh_addr + section.sh_size).contains(&address)
                });
                let index = section.map_or(elf::SHN_ABS, |index| elf::SymbolSection(index as u16));
                symbol.st_shndx.set(LE, index);
            }
        }
        append_sections(&mut file, sections);
        CodeObject::from_bytes(file)
    }
}

/// The section of a loadable segment.
fn segment_section(flags: elf::ProgramFlags, range: Range<usize>) -> (&'static str, SectionHeader) {
    let (name, flags) = if flags.contains(elf::PF_X) {
        (".text", elf::SHF_ALLOC | elf::SHF_EXECINSTR)
    } else if flags.contains(elf::PF_W) {
        (".data", elf::SHF_ALLOC | elf::SHF_WRITE)
    } else {
        (".rodata", elf::SHF_ALLOC)
    };
    let header = SectionHeader {
        sh_type: elf::SHT_PROGBITS,
        sh_flags: flags,
        sh_addralign: 1,
        ..SectionHeader::default()
    };
    (name, located(header, &range))
}

/// Sets the location of a section, whose file offset equals its ELF virtual address.
fn located(header: SectionHeader, range: &Range<usize>) -> SectionHeader {
    let (start, size) = (range.start as u64, range.len() as u64);
    SectionHeader { sh_addr: start, sh_offset: start, sh_size: size, ..header }
}

/// Locations of the dynamic symbols and their strings.
struct DynamicTables {
    symbols: Range<usize>,
    strings: Range<usize>,
}

impl DynamicTables {
    /// Reads the locations from the dynamic segment. The hash table has the number of symbols; without
    /// one, the strings are assumed to follow the symbols.
    fn read(content: &Content, dynamic: Range<usize>) -> Result<DynamicTables, CodeObjectError> {
        let bytes = content.get(dynamic).unwrap_or_default();
        let count = bytes.len() / size_of::<Dyn64<LE>>();
        let entries = pod::slice_from_bytes::<Dyn64<LE>>(bytes, count)
            .map_or(&[][..], |(entries, _)| entries);
        let value = |tag: elf::DynamicTag| {
            let entry = entries.iter().find(|entry| entry.d_tag.get(LE) == tag);
            entry.map_or(0, |entry| entry.d_val.get(LE))
        };
        let (symbols, strings) = (value(elf::DT_SYMTAB), value(elf::DT_STRTAB));
        let symbol_size = size_of::<Sym64<LE>>() as u64;
        let count = match value(elf::DT_HASH) {
            0 => strings.saturating_sub(symbols) / symbol_size,
            hash => {
                let chain_count = array(content, range_in(content, hash, 8)?.start + 4);
                chain_count.map_or(0, u32::from_le_bytes).into()
            }
        };
        Ok(DynamicTables {
            symbols: range_in(content, symbols, count.saturating_mul(symbol_size))?,
            strings: range_in(content, strings, value(elf::DT_STRSZ))?,
        })
    }

    /// The sections of the tables, of which the first gets the section index `index`.
    fn sections(&self, index: u32) -> [(&'static str, SectionHeader); 2] {
        let symbols = encoder().dynsym_section_header(index + 1, 1);
        let strings = encoder().dynstr_section_header();
        [(".dynsym", located(symbols, &self.symbols)), (".dynstr", located(strings, &self.strings))]
    }
}

/// Appends the section names and the section headers to a file.
fn append_sections(file: &mut Vec<u8>, mut sections: Vec<(&'static str, SectionHeader)>) {
    let names_start = file.len();
    sections.push((".shstrtab", encoder().strtab_section_header()));
    for (name, header) in &mut sections {
        header.sh_name = (file.len() - names_start) as u32;
        file.extend(name.as_bytes());
        file.push(0);
    }
    if let Some((_, names)) = sections.last_mut() {
        names.sh_offset = names_start as u64;
        names.sh_size = (file.len() - names_start) as u64;
    }
    file.resize(file.len().next_multiple_of(8), 0);
    let table = file.len() as u64;
    for (_, header) in &sections {
        encoder().section_header(file, header);
    }
    set_section_table(file, table, sections.len() as u16);
}

/// Sets the location of the section header table in the file header. The last section has the names.
fn set_section_table(file: &mut [u8], offset: u64, count: u16) {
    if let Ok((header, _)) = pod::from_bytes_mut::<FileHeader64<LE>>(file) {
        header.e_shoff.set(LE, offset);
        header
            .e_shentsize
            .set(LE, if count > 0 { encoder().section_header_size() as u16 } else { 0 });
        header.e_shnum.set(LE, count);
        header.e_shstrndx.set(LE, elf::SymbolSection(count.saturating_sub(1)));
    }
}

fn encoder() -> Encoder<LE> {
    Encoder::new(LE, true, elf::EM_AMDGPU)
}

/// Views bytes as whole structures; empty without bytes.
fn structures_mut<T: pod::Pod>(bytes: Option<&mut [u8]>) -> &mut [T] {
    let bytes = bytes.unwrap_or_default();
    let count = bytes.len() / size_of::<T>();
    pod::slice_from_bytes_mut(bytes, count).map_or(&mut [], |(structures, _)| structures)
}

/// Range of `size` bytes at ELF virtual address `start` of the image.
fn range_in(content: &Content, start: u64, size: u64) -> Result<Range<usize>, CodeObjectError> {
    let end = start.checked_add(size).filter(|end| *end <= content.len() as u64);
    let end = end.ok_or_else(|| {
        let expected = format!("an end in memory of at most {:#x}", content.len());
        CodeObjectError::malformed("part of a loaded code object", start, expected)
    })?;
    Ok(start as usize..end as usize)
}
