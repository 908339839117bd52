//! Symbols, and the function that an address belongs to.

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

/// `STT_AMDGPU_HSA_KERNEL`, the type older toolchains give to kernel descriptors.
const STT_AMDGPU_HSA_KERNEL: u8 = 10;

/// Suffix of a kernel descriptor's symbol (AMDGPUUsage, "Symbols").
pub(crate) const DESCRIPTOR_SUFFIX: &str = ".kd";

/// What a symbol names.
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
    /// Anything else, plain labels included.
    Other,
}

/// Where a symbol has its value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definition {
    /// The code object defines it: the value is an ELF virtual address.
    Address,
    /// The value is a number that loading does not change.
    Absolute,
    /// Something else has to define it.
    Undefined,
}

/// A symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name, mangled as in the file.
    pub name: Arc<str>,
    /// ELF virtual address, where [`Symbol::definition`] says that it is one.
    pub address: u64,
    /// Size in bytes; zero if the file does not say.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
    /// Where its value comes from.
    pub definition: Definition,
    /// Visible outside its own source file.
    pub global: bool,
    /// An undefined weak symbol is no error: its value is zero.
    pub weak: bool,
}

/// A symbol table of the file. Its names are checked, and made when they are asked for: a library's
/// code object has hundreds of thousands of labels, which nobody wants to know.
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
            let none = || FileBytes::empty(elf.file);
            return Ok(Table { entries: none(), strings: none() });
        };
        let entries = elf.section_bytes(index as u64)?;
        let strings = elf.section_bytes(header.sh_link.get(LE).into())?;
        let (what, place) = ("symbol table", entries.offset());
        let raw = object::pod::slice_from_all_bytes::<Sym64<LE>>(&entries).map_err(|()| {
            let expected = format!("entries of 24 bytes; it has {:#x} bytes", entries.len());
            CodeObjectError::malformed(what, place, expected)
        })?;
        for raw in raw.iter().filter(|raw| raw.st_name.get(LE) != 0) {
            names.read(&strings, raw.st_name.get(LE), what, place)?;
        }
        Ok(Table { entries, strings })
    }

    /// Its entries, in the file's order: relocations name symbols by their place in it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        // Checked when it was read.
        let all = object::pod::slice_from_all_bytes(&self.entries).unwrap_or_default();
        all.iter().map(|raw| Entry { raw, strings: &self.strings })
    }

    /// The symbol of a number.
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
        // Checked when the table was read.
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

/// The named symbols of `.symtab`, then those that only `.dynsym` has.
#[derive(Clone, Debug)]
pub(crate) struct Symbols {
    of_linker: Table,
    of_loader: Table,
    /// Places in `.dynsym` of those that it has alone.
    only_of_loader: Vec<usize>,
    all: OnceLock<Vec<Symbol>>,
}

impl Symbols {
    pub(crate) fn new(of_linker: Table, of_loader: Table) -> Symbols {
        let mut missing: FxHashSet<&str> = of_loader.iter().map(Entry::name).collect();
        missing.remove("");
        // Global ones first: labels are many, and seldom those that are looked for.
        for locals in [false, true] {
            let mut entries = of_linker.iter().filter(|entry| entry.is_local() == locals);
            while let Some(entry) = entries.next().filter(|_| !missing.is_empty()) {
                missing.remove(entry.name());
            }
        }
        let loader = of_loader.iter().enumerate();
        let only = loader.filter(|(_, entry)| missing.contains(entry.name()));
        let only_of_loader = only.map(|(index, _)| index).collect();
        Symbols { of_linker, of_loader, only_of_loader, all: OnceLock::new() }
    }

    /// The table that relocations name symbols of.
    pub(crate) fn of_loader(&self) -> &Table {
        &self.of_loader
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        let loader = self.of_loader.iter().enumerate();
        let only = loader.filter(|(index, _)| self.only_of_loader.binary_search(index).is_ok());
        let all = self.of_linker.iter().chain(only.map(|(_, entry)| entry));
        all.filter(|entry| !entry.name().is_empty())
    }

    pub(crate) fn all(&self) -> &[Symbol] {
        self.all.get_or_init(|| self.iter().map(Entry::symbol).collect())
    }
}

/// Functions by address.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    /// In the file's order.
    pub(crate) symbols: Vec<Symbol>,
    /// Sorted by start; the number is the symbol's index.
    extents: Vec<(Range<u64>, usize)>,
}

impl Functions {
    /// A function without a size reaches to the next one, or to the end of its section.
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
        // Aliases of one address share its extent, so the next function is the next address.
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

    /// The symbol of the function that holds an address, and the function's extent.
    pub(crate) fn at(&self, pc: Pc) -> Option<(&Symbol, Range<u64>)> {
        let above = self.extents.partition_point(|(extent, _)| extent.start <= pc.0);
        let (extent, index) = self.extents.get(above.checked_sub(1)?)?;
        let symbol = self.symbols.get(*index)?;
        extent.contains(&pc.0).then(|| (symbol, extent.clone()))
    }

    /// Where the first function after an address begins.
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
