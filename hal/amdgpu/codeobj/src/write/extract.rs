//! A code object with some of another one's functions: for those who want to change a kernel of a
//! library, and not to read all of it.

use super::WriteError;
use crate::metadata;
use crate::symbol::Entry;
use crate::{CodeObject, Definition, Section, Symbol};
use object::elf;
use std::ops::Range;

/// Pages that segments begin at, in bytes.
const PAGE: u64 = 4096;
const HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
const SECTION_HEADER: u64 = 64;
const SYMBOL: u64 = 24;

/// Room for the file's headers at the beginning of memory, which more segments may need later. AMD's
/// loader wants something to be at address 0.
const HEADERS: u64 = 1024;

/// Sections that are made anew, and what hardware does not need.
const LEFT_OUT: [&str; 7] =
    [".note", ".dynsym", ".gnu.hash", ".hash", ".dynstr", ".dynamic", ".relro_padding"];

impl CodeObject {
    /// Whether code of it loaded a second time would do the same: there are no variables, of which it
    /// would have its own, and no addresses in its data. Symbols that say which compilation a file is of
    /// are no variables.
    pub fn can_extract_kernels(&self) -> bool {
        let writable = || self.segments().iter().filter(|segment| segment.writable);
        let is_writable = |section: &&Section| {
            section.allocated
                && section.size > 0
                && !is_left_out(section)
                && writable()
                    .any(|own| own.address <= section.address && section.address < own.end())
        };
        let sections: Vec<&Section> = self.sections().iter().filter(is_writable).collect();
        let named = |entry: Entry<'_>| {
            entry.definition() == Definition::Address
                && sections
                    .iter()
                    .any(|own| (own.address..own.address + own.size).contains(&entry.address()))
        };
        let known: u64 = self
            .symbol_table()
            .iter()
            .filter(|entry| named(*entry) && entry.name().starts_with("__hip_cuid_"))
            .map(|entry| entry.symbol().size)
            .sum();
        self.relocations().is_empty()
            && self.text().count() == 1
            && sections.iter().map(|own| own.size).sum::<u64>() <= known
    }

    /// A code object with some kernels, by their indices, and the code of `functions` besides theirs.
    /// All has the address that it has here, and data that are not written are there, too. What else
    /// there is of code is left out, and so are labels and debug information.
    ///
    /// # Errors
    /// [`WriteError::Unsupported`] where [`CodeObject::can_extract_kernels`] says no, or the functions are no
    /// code of it.
    pub fn extract_kernels(
        &self,
        kernels: &[usize],
        functions: &[Range<u64>],
    ) -> Result<CodeObject, WriteError> {
        let unsupported = |what: &str| {
            WriteError::unsupported(
                what.to_owned(),
                "code without variables and relocations, and room for headers",
            )
        };
        if !self.can_extract_kernels() {
            return Err(unsupported("a code object whose code cannot be loaded twice"));
        }
        let chosen: Vec<_> =
            kernels.iter().filter_map(|index| self.kernels().get(*index)).collect();
        let entries = chosen.iter().map(|kernel| kernel.entry().0);
        let start = functions.iter().map(|own| own.start).chain(entries).min();
        let end = functions.iter().map(|own| own.end).max();
        let text = start.zip(end).and_then(|(start, end)| {
            let own = self.text().next()?;
            // A page that begins with code of others has it not.
            let length = usize::try_from(end.checked_sub(start)?).ok()?;
            let bytes = self.bytes_at(flipwave_isa::Pc(start), length)?;
            (start >= own.address).then_some((start, bytes))
        });
        let (text_address, code) = text.ok_or_else(|| unsupported("functions outside the code"))?;
        let mut bytes = vec![0; code.len()];
        for own in functions.iter().cloned().chain(
            chosen.iter().map(|kernel| kernel.entry().0..kernel.start().0.max(kernel.entry().0)),
        ) {
            let part = (own.start - text_address) as usize..(own.end - text_address) as usize;
            if let (Some(to), Some(from)) = (bytes.get_mut(part.clone()), code.get(part)) {
                to.copy_from_slice(from);
            }
        }
        let names: Vec<&str> = chosen.iter().map(|kernel| &*kernel.symbol).collect();
        let note = metadata::extract_kernels(&self.notes()?, &names)?;

        let mut file = File::default();
        let is_kept = |section: &&Section| {
            let segment = self.segment_at(flipwave_isa::Pc(section.address));
            section.allocated
                && !section.executable
                && !is_left_out(section)
                && !section.bytes().is_empty()
                && segment.is_some_and(|segment| !segment.writable)
        };
        let kept: Vec<&Section> = self.sections().iter().filter(is_kept).collect();
        let ends = kept.iter().map(|own| own.address + own.size);
        let end = ends.chain([text_address + bytes.len() as u64]).max().unwrap_or(0);
        let starts = kept.iter().map(|own| own.address).chain([text_address]);
        let most = (HEADERS - HEADER) / PROGRAM_HEADER - 2;
        if starts.min().is_some_and(|start| start < HEADERS) || kept.len() as u64 + 2 > most / 2 {
            return Err(unsupported("no room for headers before the data"));
        }
        // Behind all that has its address.
        let tables = end.next_multiple_of(PAGE);
        let mut symbols = Table::default();
        let is_inside = |own: &Symbol| functions.iter().any(|part| part.contains(&own.address));
        let is_kernel = |own: &Symbol| chosen.iter().any(|kernel| kernel.entry().0 == own.address);
        let functions = self.functions().iter().filter(|own| is_inside(own) || is_kernel(own));
        let functions: Vec<&Symbol> = functions.collect();
        let note_section = file.section(".note", elf::SHT_NOTE, tables, 4, note);
        let after = |file: &File, section: usize, align: u64| {
            let own = &file.sections[section];
            (own.address + own.bytes.len() as u64).next_multiple_of(align)
        };
        let mut data = Vec::new();
        let (dynamic, strings) = (note_section + 1, note_section + 2);
        let mut next = strings + 1;
        for section in &kept {
            data.push((next, *section));
            next += 1;
        }
        let text_index = next;
        let index_of = |address: u64| {
            let mut data = data.iter();
            let own =
                data.find(|(_, own)| (own.address..own.address + own.size).contains(&address));
            own.map(|(index, _)| *index)
        };
        for kernel in &chosen {
            let address = kernel.descriptor.address;
            let section =
                index_of(address).ok_or_else(|| unsupported("a descriptor in no section"))?;
            symbols.add(&kernel.symbol, elf::STT_OBJECT.0, section, address, 64, true);
        }
        let (exported, own): (Vec<&Symbol>, Vec<&Symbol>) =
            functions.into_iter().partition(|own| own.global);
        for symbol in exported {
            symbols.add(
                &symbol.name,
                elf::STT_FUNC.0,
                text_index,
                symbol.address,
                symbol.size,
                true,
            );
        }
        let address = after(&file, note_section, 8);
        let (entries, names) = symbols.contents();
        file.table(".dynsym", elf::SHT_DYNSYM, address, entries, strings, 1);
        let address = after(&file, dynamic, 8);
        file.section(".dynstr", elf::SHT_STRTAB, address, 1, names);
        let mut all = Table::default();
        for symbol in &own {
            all.add(&symbol.name, elf::STT_FUNC.0, text_index, symbol.address, symbol.size, false);
        }
        let locals = all.count();
        all.append(&symbols);
        for (_, section) in &data {
            file.section(
                &section.name,
                elf::SHT_PROGBITS,
                section.address,
                1,
                section.bytes().to_vec(),
            );
        }
        let text = file.section(".text", elf::SHT_PROGBITS, text_address, 4, bytes);
        file.sections[text].is_code = true;
        let loaded = file.sections.len();
        let (entries, names) = all.contents();
        let strings = file.sections.len() + 1;
        file.table(".symtab", elf::SHT_SYMTAB, 0, entries, strings, locals);
        file.section(".strtab", elf::SHT_STRTAB, 0, 1, names);
        Ok(CodeObject::from_bytes(file.bytes(self, loaded))?)
    }
}

fn is_left_out(section: &Section) -> bool {
    LEFT_OUT.contains(&&*section.name) || section.name.starts_with(".note.")
}

/// Symbols as a table has them.
#[derive(Default)]
struct Table {
    entries: Vec<u8>,
    names: Vec<u8>,
}

impl Table {
    fn add(&mut self, name: &str, kind: u8, section: usize, address: u64, size: u64, global: bool) {
        // The first name is the empty one.
        let place = 1 + self.names.len() as u32;
        self.names.extend(name.as_bytes());
        self.names.push(0);
        let bind = if global { elf::STB_GLOBAL } else { elf::STB_LOCAL };
        self.entries.extend(place.to_le_bytes());
        self.entries.push(bind.0 << 4 | kind);
        self.entries.push(if global { elf::STV_PROTECTED.0 } else { elf::STV_DEFAULT.0 });
        // Sections are counted from the empty one.
        self.entries.extend((section as u16 + 1).to_le_bytes());
        self.entries.extend(address.to_le_bytes());
        self.entries.extend(size.to_le_bytes());
    }

    /// Adds the symbols of another table.
    fn append(&mut self, other: &Table) {
        let shift = self.names.len() as u32;
        for entry in other.entries.chunks(SYMBOL as usize) {
            let (place, rest) = entry.split_at(4);
            let place = place.first_chunk().map_or(0, |place| u32::from_le_bytes(*place));
            self.entries.extend((place + shift).to_le_bytes());
            self.entries.extend(rest);
        }
        self.names.extend(&other.names);
    }

    /// How many symbols there are, the empty one included.
    fn count(&self) -> u32 {
        1 + self.entries.len() as u32 / SYMBOL as u32
    }

    /// The contents of the two sections.
    fn contents(&self) -> (Vec<u8>, Vec<u8>) {
        let empty = [0; SYMBOL as usize];
        ([&empty[..], &self.entries].concat(), [&[0][..], &self.names].concat())
    }
}

/// An ELF file in the making.
#[derive(Default)]
struct File {
    sections: Vec<NewSection>,
}

#[derive(Default)]
struct NewSection {
    name: String,
    kind: u32,
    /// 0 for what is not loaded.
    address: u64,
    align: u64,
    bytes: Vec<u8>,
    is_code: bool,
    /// Of tables: the section of their strings, and how many local symbols there are.
    link: usize,
    info: u32,
}

impl File {
    fn section(
        &mut self,
        name: &str,
        kind: elf::SectionType,
        address: u64,
        align: u64,
        bytes: Vec<u8>,
    ) -> usize {
        let (name, kind) = (name.to_owned(), kind.0);
        self.sections.push(NewSection {
            name,
            kind,
            address,
            align,
            bytes,
            ..NewSection::default()
        });
        self.sections.len() - 1
    }

    fn table(
        &mut self,
        name: &str,
        kind: elf::SectionType,
        address: u64,
        bytes: Vec<u8>,
        strings: usize,
        locals: u32,
    ) {
        let at = self.section(name, kind, address, 8, bytes);
        (self.sections[at].link, self.sections[at].info) = (strings + 1, locals);
    }

    /// The file. The first `loaded` sections are loaded, the tables among them in one segment, each of
    /// the others in its own.
    fn bytes(mut self, original: &CodeObject, loaded: usize) -> Vec<u8> {
        let names: Vec<u8> =
            self.sections.iter().flat_map(|own| [own.name.as_bytes(), &[0]].concat()).collect();
        let names = [&[0][..], &names, b".shstrtab\0"].concat();
        self.section(".shstrtab", elf::SHT_STRTAB, 0, 1, names);
        let tables = 3.min(loaded);
        let others = (tables..loaded).map(|at| at..at + 1);
        let mut segments: Vec<Range<usize>> = std::iter::once(0..tables).chain(others).collect();
        let mut file = vec![0; HEADERS as usize];
        let mut offsets = vec![0; self.sections.len()];
        for (at, section) in self.sections.iter().enumerate() {
            // What is loaded has the place in a page that it has in memory.
            let unit = if at < loaded { PAGE } else { section.align };
            let wanted = if at < loaded { section.address % PAGE } else { 0 };
            let is_first = !(1..tables).contains(&at);
            let place = match at.checked_sub(1).filter(|_| !is_first) {
                Some(before) => {
                    let before = &self.sections[before];
                    offsets[at - 1] + (section.address - before.address)
                }
                None => {
                    let page = (file.len() as u64).next_multiple_of(unit);
                    page + wanted
                }
            };
            file.resize(place as usize, 0);
            offsets[at] = place;
            file.extend(&section.bytes);
        }
        file.resize(file.len().next_multiple_of(8), 0);
        let section_headers = file.len() as u64;
        file.extend([0; SECTION_HEADER as usize]);
        let mut name = 1u32;
        for (at, section) in self.sections.iter().enumerate() {
            let mut flags = 0;
            if at < loaded {
                flags |= elf::SHF_ALLOC.0;
            }
            if section.is_code {
                flags |= elf::SHF_EXECINSTR.0;
            }
            let entry = if section.link > 0 { SYMBOL } else { 0 };
            file.extend(name.to_le_bytes());
            file.extend(section.kind.to_le_bytes());
            for word in [flags, section.address, offsets[at], section.bytes.len() as u64] {
                file.extend(word.to_le_bytes());
            }
            file.extend((section.link as u32).to_le_bytes());
            file.extend(section.info.to_le_bytes());
            file.extend(section.align.to_le_bytes());
            file.extend(entry.to_le_bytes());
            name += section.name.len() as u32 + 1;
        }
        let count = self.sections.len() as u16 + 1;
        let mut at = HEADER as usize;
        let place = |sections: &Range<usize>| {
            let (first, last) = (&self.sections[sections.start], &self.sections[sections.end - 1]);
            let size = last.address + last.bytes.len() as u64 - first.address;
            (offsets[sections.start], first.address, size)
        };
        let mut header =
            |kind: u32, flags: u32, (offset, address, size): (u64, u64, u64), align: u64| {
                let mut own = Vec::new();
                own.extend(kind.to_le_bytes());
                own.extend(flags.to_le_bytes());
                for word in [offset, address, address, size, size, align] {
                    own.extend(word.to_le_bytes());
                }
                if let Some(place) = file.get_mut(at..at + own.len()) {
                    place.copy_from_slice(&own);
                }
                at += own.len();
            };
        segments.sort_by_key(|own| self.sections[own.start].address);
        header(elf::PT_LOAD.0, elf::PF_R.0, (0, 0, HEADERS), PAGE);
        for sections in &segments {
            let is_code = self.sections[sections.start].is_code;
            let flags = if is_code { elf::PF_R.0 | elf::PF_X.0 } else { elf::PF_R.0 };
            header(elf::PT_LOAD.0, flags, place(sections), PAGE);
        }
        header(elf::PT_NOTE.0, elf::PF_R.0, place(&(0..1)), 4);
        // Identity, machine and flags are the original's.
        let old = original.bytes().get(..HEADER as usize).unwrap_or_default();
        let mut own = [0; HEADER as usize];
        own.get_mut(..old.len()).into_iter().for_each(|own| own.copy_from_slice(old));
        own[24..32].fill(0);
        own[32..40].copy_from_slice(&HEADER.to_le_bytes());
        own[40..48].copy_from_slice(&section_headers.to_le_bytes());
        own[52..54].copy_from_slice(&(HEADER as u16).to_le_bytes());
        own[54..56].copy_from_slice(&(PROGRAM_HEADER as u16).to_le_bytes());
        own[56..58].copy_from_slice(&(segments.len() as u16 + 2).to_le_bytes());
        own[58..60].copy_from_slice(&(SECTION_HEADER as u16).to_le_bytes());
        own[60..62].copy_from_slice(&count.to_le_bytes());
        own[62..64].copy_from_slice(&(count - 1).to_le_bytes());
        file[..HEADER as usize].copy_from_slice(&own);
        file
    }
}
