//! Symbols, and the lookup of functions by address.

use crate::CodeObjectError;
use crate::bytes::{FileBytes, Names};
use crate::elf::{Elf, Section};
use flipwave_isa::Pc;
use object::LittleEndian as LE;
use object::elf::{self, Sym64};
use rustc_hash::FxHashSet;
use std::ffi::CStr;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// `STT_AMDGPU_HSA_KERNEL`, the symbol type that older toolchains use for kernel descriptors.
const STT_AMDGPU_HSA_KERNEL: u8 = 10;

/// Suffix of a kernel descriptor's symbol (AMDGPUUsage, "Symbols").
pub(crate) const DESCRIPTOR_SUFFIX: &str = ".kd";

/// The kind of entity that a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// The 64-byte descriptor of a kernel.
    KernelDescriptor,
    /// Code.
    Function,
    /// Data.
    Object,
    /// A section.
    Section,
    /// A source file.
    File,
    /// Anything else, including plain labels.
    Other,
}

/// The kind of definition of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definition {
    /// The code object defines the symbol: the value is an ELF virtual address.
    Address,
    /// The value is absolute: loading does not change it.
    Absolute,
    /// The code object does not define the symbol.
    Undefined,
}

/// A symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name, mangled as in the file.
    pub name: Arc<str>,
    /// The symbol's value: an ELF virtual address if the definition is [`Definition::Address`].
    pub address: u64,
    /// Size in bytes; zero if unknown.
    pub size: u64,
    /// The kind of entity named.
    pub kind: SymbolKind,
    /// The kind of definition.
    pub definition: Definition,
    /// Has non-local binding: visible outside its source file.
    pub global: bool,
    /// Has weak binding: if undefined, the value is zero.
    pub weak: bool,
}

/// A symbol table of the file. The names are validated once and decoded on demand: a library's code
/// object has hundreds of thousands of labels, most of which are never looked up.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    entries: FileBytes,
    strings: FileBytes,
}

impl Table {
    /// Reads the first section of a type (`SHT_SYMTAB` or `SHT_DYNSYM`).
    pub(crate) fn read(
        elf: &Elf<'_>,
        kind: elf::SectionType,
        names: &mut Names,
    ) -> Result<Table, CodeObjectError> {
        let headers = elf.section_headers.iter().enumerate();
        let found = headers.into_iter().find(|(_, header)| header.sh_type.get(LE) == kind);
        let Some((index, header)) = found else {
            let empty = || FileBytes::empty(elf.file);
            return Ok(Table { entries: empty(), strings: empty() });
        };
        let entries = elf.section_bytes(index as u64)?;
        let strings = elf.section_bytes(header.sh_link.get(LE).into())?;
        let (what, place) = ("symbol table", entries.offset());
        let raw = object::pod::slice_from_all_bytes::<Sym64<LE>>(&entries).map_err(|()| {
            let expected = format!("entries of 24 bytes, found {:#x} bytes", entries.len());
            CodeObjectError::malformed(what, place, expected)
        })?;
        for raw in raw.iter().filter(|raw| raw.st_name.get(LE) != 0) {
            names.read(&strings, raw.st_name.get(LE), what, place)?;
        }
        Ok(Table { entries, strings })
    }

    /// The entries in file order: relocations refer to symbols by index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        // `read` has validated the size.
        let all = object::pod::slice_from_all_bytes(&self.entries).unwrap_or_default();
        all.iter().map(|raw| Entry { raw, strings: &self.strings })
    }

    /// The symbol at an index.
    pub(crate) fn symbol(&self, index: usize) -> Option<Symbol> {
        self.iter().nth(index).map(Entry::symbol)
    }
}

/// An entry of a symbol table.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    raw: &'a Sym64<LE>,
    strings: &'a [u8],
}

impl<'a> Entry<'a> {
    pub(crate) fn name(self) -> &'a str {
        let tail = match self.raw.st_name.get(LE) {
            0 => &[],
            offset => self.strings.get(offset as usize..).unwrap_or_default(),
        };
        // `Table::read` has validated the name.
        CStr::from_bytes_until_nul(tail).ok().and_then(|name| name.to_str().ok()).unwrap_or("")
    }

    pub(crate) fn address(self) -> u64 {
        self.raw.st_value.get(LE)
    }

    pub(crate) fn kind(self) -> SymbolKind {
        match elf::SymbolType(self.raw.st_info.0 & 0xf) {
            elf::STT_FUNC => SymbolKind::Function,
            elf::SymbolType(STT_AMDGPU_HSA_KERNEL) => SymbolKind::KernelDescriptor,
            elf::STT_OBJECT if self.name().ends_with(DESCRIPTOR_SUFFIX) => {
                SymbolKind::KernelDescriptor
            }
            elf::STT_OBJECT => SymbolKind::Object,
            elf::STT_SECTION => SymbolKind::Section,
            elf::STT_FILE => SymbolKind::File,
            _ => SymbolKind::Other,
        }
    }

    pub(crate) fn definition(self) -> Definition {
        match self.raw.st_shndx.get(LE) {
            elf::SHN_UNDEF => Definition::Undefined,
            elf::SHN_ABS => Definition::Absolute,
            _ => Definition::Address,
        }
    }

    fn is_local(self) -> bool {
        self.raw.st_info.0 >> 4 == elf::STB_LOCAL.0
    }

    pub(crate) fn symbol(self) -> Symbol {
        Symbol {
            name: Arc::from(self.name()),
            address: self.address(),
            size: self.raw.st_size.get(LE),
            kind: self.kind(),
            definition: self.definition(),
            global: !self.is_local(),
            weak: self.raw.st_info.0 >> 4 == elf::STB_WEAK.0,
        }
    }
}

/// The named symbols of `.symtab`, then the symbols that are only in `.dynsym`.
#[derive(Clone, Debug)]
pub(crate) struct Symbols {
    /// `.symtab`.
    symtab: Table,
    /// `.dynsym`.
    dynsym: Table,
    /// Indices into `.dynsym` of the symbols that `.symtab` does not have, ascending.
    only_in_dynsym: Vec<usize>,
    all: OnceLock<Vec<Symbol>>,
}

impl Symbols {
    pub(crate) fn new(symtab: Table, dynsym: Table) -> Symbols {
        let mut missing: FxHashSet<&str> = dynsym.iter().map(Entry::name).collect();
        missing.remove("");
        // Global symbols first: the many local labels are rarely in `.dynsym`.
        for locals in [false, true] {
            let mut entries = symtab.iter().filter(|entry| entry.is_local() == locals);
            while let Some(entry) = entries.next().filter(|_| !missing.is_empty()) {
                missing.remove(entry.name());
            }
        }
        let only = dynsym.iter().enumerate().filter(|(_, entry)| missing.contains(entry.name()));
        let only_in_dynsym = only.map(|(index, _)| index).collect();
        Symbols { symtab, dynsym, only_in_dynsym, all: OnceLock::new() }
    }

    /// The dynamic symbol table, whose symbols relocations refer to.
    pub(crate) fn dynamic(&self) -> &Table {
        &self.dynsym
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        let dynamic = self.dynsym.iter().enumerate();
        let only = dynamic.filter(|(index, _)| self.only_in_dynsym.binary_search(index).is_ok());
        let all = self.symtab.iter().chain(only.map(|(_, entry)| entry));
        all.filter(|entry| !entry.name().is_empty())
    }

    pub(crate) fn all(&self) -> &[Symbol] {
        self.all.get_or_init(|| self.iter().map(Entry::symbol).collect())
    }
}

/// Functions, searchable by address.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    /// The function symbols in file order.
    pub(crate) symbols: Vec<Symbol>,
    /// Address range and index into `symbols` of each function, sorted by start address.
    extents: Vec<(Range<u64>, usize)>,
}

impl Functions {
    /// Collects the functions. A function without a size extends to the next function or to the end
    /// of its section.
    pub(crate) fn new(symbols: &Symbols, sections: &[Section]) -> Functions {
        let is_function = |entry: &Entry<'_>| {
            entry.kind() == SymbolKind::Function && entry.definition() == Definition::Address
        };
        let symbols: Vec<Symbol> = symbols.iter().filter(is_function).map(Entry::symbol).collect();
        let extent = |symbol: &Symbol| symbol.address..symbol.address.saturating_add(symbol.size);
        let mut extents: Vec<(Range<u64>, usize)> = symbols.iter().map(extent).zip(0..).collect();
        extents.sort_by_key(|(extent, _)| (extent.start, extent.end));
        let mut ends: Vec<Range<u64>> = sections
            .iter()
            .filter(|section| section.executable)
            .map(|section| section.address..section.address.saturating_add(section.size))
            .collect();
        ends.sort_by_key(|section| section.start);
        // Aliases at one address share its extent, so `next` is the next different address.
        let (mut start, mut next) = (u64::MAX, u64::MAX);
        for (extent, _) in extents.iter_mut().rev() {
            if extent.start < start {
                (start, next) = (extent.start, start);
            }
            if extent.is_empty() {
                extent.end = end_of(&ends, extent.start).unwrap_or(extent.start).min(next);
            }
        }
        Functions { symbols, extents }
    }

    /// The symbol and address range of the function that contains an address.
    pub(crate) fn at(&self, pc: Pc) -> Option<(&Symbol, Range<u64>)> {
        let above = self.extents.partition_point(|(extent, _)| extent.start <= pc.0);
        let (extent, index) = self.extents.get(above.checked_sub(1)?)?;
        let symbol = self.symbols.get(*index)?;
        extent.contains(&pc.0).then(|| (symbol, extent.clone()))
    }

    /// Start address of the first function after an address.
    pub(crate) fn next(&self, pc: Pc) -> Option<u64> {
        let above = self.extents.partition_point(|(extent, _)| extent.start <= pc.0);
        self.extents.get(above).map(|(extent, _)| extent.start)
    }
}

fn end_of(sections: &[Range<u64>], address: u64) -> Option<u64> {
    let above = sections.partition_point(|section| section.start <= address);
    let section = sections.get(above.checked_sub(1)?)?;
    section.contains(&address).then_some(section.end)
}
