//! Extraction of kernels: a small code object with some kernels of another one, for tools that change
//! one kernel of a library and should not process the whole library.

use super::layout::{self, NewSegment};
use super::symbols::NewSymbol;
use super::{PAGE, WriteError};
use crate::symbol::Entry;
use crate::{CodeObject, Definition, Kernel, Section, metadata};
use flipwave_isa::Pc;
use object::build::elf::{self as build, Builder, SectionData, SectionId};
use object::elf::{self, FileHeader64};
use object::read::elf::FileHeader;
use object::{Endianness, LittleEndian as LE};
use std::ops::Range;

/// Size in bytes of the first segment, which contains the file's headers and has room for more program
/// headers. AMD's loader requires contents at address 0.
const HEADERS_SIZE: u64 = 1024;

/// Maximum number of data sections. Each takes a program header, and half of [`HEADERS_SIZE`] is left
/// for segments that are added later.
const MAX_DATA_SECTIONS: usize = 5;

/// Sections that are created again, and sections without meaning for the hardware.
const REBUILT_SECTIONS: [&str; 7] =
    [".note", ".dynsym", ".gnu.hash", ".hash", ".dynstr", ".dynamic", ".relro_padding"];

impl CodeObject {
    /// Returns `true` if a second copy of the code would behave like the original: there is one code
    /// section, and there are no relocations and no variables, of which a copy would have its own.
    /// Symbols of HIP that identify the compilation unit do not count as variables.
    pub fn can_extract_kernels(&self) -> bool {
        let is_writable = |section: &&Section| {
            let mut segments = self.segments().iter().filter(|segment| segment.writable);
            section.allocated
                && section.size > 0
                && !is_rebuilt(section)
                && segments
                    .any(|segment| (segment.address..segment.end()).contains(&section.address))
        };
        let writable: Vec<&Section> = self.sections().iter().filter(is_writable).collect();
        let is_in_writable = |entry: &Entry<'_>| {
            entry.definition() == Definition::Address
                && writable.iter().any(|section| addresses(section).contains(&entry.address()))
        };
        let unit_ids = self
            .symbol_table()
            .iter()
            .filter(|entry| is_in_writable(entry) && entry.name().starts_with("__hip_cuid_"));
        let unit_ids_size: u64 = unit_ids.map(|entry| entry.symbol().size).sum();
        self.relocations().is_empty()
            && self.text().count() == 1
            && writable.iter().map(|section| section.size).sum::<u64>() <= unit_ids_size
    }

    /// Returns a code object with the kernels at the given indices and the code in `functions`, which
    /// are ELF virtual addresses. Code and constant data keep their addresses. Other code, labels and
    /// debug information are omitted.
    ///
    /// # Errors
    /// [`WriteError::Unsupported`] if [`CodeObject::can_extract_kernels`] returns `false` or a function
    /// is outside the code section.
    pub fn extract_kernels(
        &self,
        kernels: &[usize],
        functions: &[Range<u64>],
    ) -> Result<CodeObject, WriteError> {
        if !self.can_extract_kernels() {
            return Err(unsupported("a code object whose code cannot be loaded twice"));
        }
        let kernels: Vec<&Kernel> =
            kernels.iter().filter_map(|index| self.kernels().get(*index)).collect();
        let (text_address, code) = self
            .code_of(&kernels, functions)
            .ok_or_else(|| unsupported("functions outside the code"))?;
        let data: Vec<&Section> =
            self.sections().iter().filter(|section| self.is_constant_data(section)).collect();
        let starts = data.iter().map(|section| section.address).chain([text_address]);
        if starts.min().is_some_and(|start| start < HEADERS_SIZE) || data.len() > MAX_DATA_SECTIONS
        {
            return Err(unsupported("no room for headers before the data"));
        }
        let ends = data.iter().map(|section| addresses(section).end);
        let end = ends.chain([text_address + code.len() as u64]).max().unwrap_or(0);
        let descriptors: Vec<&str> = kernels.iter().map(|kernel| &*kernel.symbol).collect();
        let note = metadata::extract_kernels(&self.notes()?, &descriptors)?;

        let mut file = Extract::new(self)?;
        let alloc = elf::SHF_ALLOC;
        file.add_section(".note", elf::SHT_NOTE, alloc, SectionData::Note(note.into()));
        file.add_section(".dynsym", elf::SHT_DYNSYM, alloc, SectionData::DynamicSymbol);
        file.add_section(".dynstr", elf::SHT_STRTAB, alloc, SectionData::DynamicString);
        let mut data_ids = Vec::new();
        for section in data {
            let bytes = SectionData::Data(section.bytes().into());
            let id = file.add_loaded(&section.name, alloc, section.address, bytes);
            data_ids.push((addresses(section), id));
        }
        let flags = alloc | elf::SHF_EXECINSTR;
        let text = file.add_loaded(".text", flags, text_address, SectionData::Data(code.into()));
        let no_flags = elf::SectionFlags(0);
        file.add_section(".symtab", elf::SHT_SYMTAB, no_flags, SectionData::Symbol);
        file.add_section(".strtab", elf::SHT_STRTAB, no_flags, SectionData::String);
        file.add_section(".shstrtab", elf::SHT_STRTAB, no_flags, SectionData::SectionString);

        for kernel in &kernels {
            let address = kernel.descriptor.address;
            let section = data_ids.iter().find(|(addresses, _)| addresses.contains(&address));
            let (_, id) = section.ok_or_else(|| unsupported("a descriptor in no section"))?;
            file.define(&NewSymbol {
                name: &kernel.symbol,
                section: Some(*id),
                kind: elf::STT_OBJECT,
                bind: elf::STB_GLOBAL,
                address,
                size: 64,
            });
        }
        let is_kept = |address| {
            functions.iter().any(|function| function.contains(&address))
                || kernels.iter().any(|kernel| kernel.entry().0 == address)
        };
        for function in self.functions().iter().filter(|function| is_kept(function.address)) {
            file.define(&NewSymbol {
                name: &function.name,
                section: Some(text),
                kind: elf::STT_FUNC,
                bind: if function.global { elf::STB_GLOBAL } else { elf::STB_LOCAL },
                address: function.address,
                size: function.size,
            });
        }
        Ok(CodeObject::from_bytes(file.finish(end.next_multiple_of(PAGE))?)?)
    }

    /// Returns the address and contents of the smallest range with all `functions` and all prologues
    /// of `kernels`. Other code in the range is zero.
    fn code_of(&self, kernels: &[&Kernel], functions: &[Range<u64>]) -> Option<(u64, Vec<u8>)> {
        let entries = kernels.iter().map(|kernel| kernel.entry().0);
        let start = functions.iter().map(|function| function.start).chain(entries).min()?;
        let end = functions.iter().map(|function| function.end).max()?;
        if start < self.text().next()?.address {
            return None;
        }
        let length = usize::try_from(end.checked_sub(start)?).ok()?;
        let original = self.bytes_at(Pc(start), length)?;
        let mut code = vec![0; length];
        let prologues = kernels.iter().map(|kernel| {
            let entry = kernel.entry().0;
            entry..kernel.start().0.max(entry)
        });
        for kept in functions.iter().cloned().chain(prologues) {
            let range = (kept.start - start) as usize..(kept.end - start) as usize;
            if let (Some(to), Some(from)) = (code.get_mut(range.clone()), original.get(range)) {
                to.copy_from_slice(from);
            }
        }
        Some((start, code))
    }

    fn is_constant_data(&self, section: &Section) -> bool {
        section.allocated
            && !section.executable
            && !is_rebuilt(section)
            && !section.bytes().is_empty()
            && self.segment_at(Pc(section.address)).is_some_and(|segment| !segment.writable)
    }
}

fn is_rebuilt(section: &Section) -> bool {
    REBUILT_SECTIONS.contains(&&*section.name) || section.name.starts_with(".note.")
}

fn addresses(section: &Section) -> Range<u64> {
    section.address..section.address.saturating_add(section.size)
}

fn unsupported(what: &str) -> WriteError {
    WriteError::unsupported(what, "code without variables and relocations, and room for headers")
}

/// The extracted code object under construction.
struct Extract<'a> {
    builder: Builder<'a>,
    segments: Vec<NewSegment>,
}

impl<'a> Extract<'a> {
    fn new(original: &CodeObject) -> Result<Extract<'a>, WriteError> {
        let header = FileHeader64::<LE>::parse(original.bytes())
            .map_err(|reason| unsupported(&reason.to_string()))?;
        let mut builder = Builder::new(Endianness::Little, true);
        builder.header.os_abi = header.e_ident().os_abi;
        builder.header.abi_version = header.e_ident().abi_version;
        builder.header.e_type = header.e_type(LE);
        builder.header.e_machine = header.e_machine(LE);
        builder.header.e_flags = header.e_flags(LE);
        let note = builder.segments.add();
        note.p_type = elf::PT_NOTE;
        note.p_flags = elf::PF_R;
        note.p_align = 4;
        let flags = elf::PF_R;
        let headers = NewSegment { address: 0, flags, file_size: HEADERS_SIZE, zero_size: 0 };
        Ok(Extract { builder, segments: vec![headers] })
    }

    fn add_section(
        &mut self,
        name: &'a str,
        kind: elf::SectionType,
        flags: elf::SectionFlags,
        data: SectionData<'a>,
    ) -> &mut build::Section<'a> {
        let section = self.builder.sections.add();
        section.name = name.into();
        section.sh_type = kind;
        section.sh_flags = flags;
        section.data = data;
        section
    }

    /// Adds code or data in its own segment.
    fn add_loaded(
        &mut self,
        name: &'a str,
        flags: elf::SectionFlags,
        address: u64,
        data: SectionData<'a>,
    ) -> SectionId {
        let section = self.add_section(name, elf::SHT_PROGBITS, flags, data);
        section.sh_addr = address;
        section.sh_addralign = if flags.contains(elf::SHF_EXECINSTR) { 4 } else { 1 };
        let (id, flags) = (section.id(), section.p_flags());
        let file_size = self.builder.section_size(self.builder.sections.get(id));
        self.segments.push(NewSegment { address, flags, file_size, zero_size: 0 });
        id
    }

    /// Defines a symbol, in `.dynsym` only if it is global.
    fn define(&mut self, symbol: &NewSymbol<'a>) {
        symbol.define(&mut self.builder.symbols);
        if symbol.bind == elf::STB_GLOBAL {
            symbol.define(&mut self.builder.dynamic_symbols);
        }
    }

    /// Writes the file, with the note and the dynamic symbol table at `tables_address`.
    fn finish(mut self, tables_address: u64) -> Result<Vec<u8>, WriteError> {
        layout::place(&mut self.builder, self.segments, tables_address)?;
        let mut bytes = Vec::new();
        self.builder.write(&mut bytes)?;
        Ok(bytes)
    }
}
