//! Symbols, and the function that an address belongs to.

use crate::CodeObjectError;
use crate::bytes::Names;
use crate::elf::{Elf, Section};
use flipwave_isa::Pc;
use object::LittleEndian as LE;
use object::elf::{self, Sym64};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

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

/// The symbols of `.symtab`, then those that only `.dynsym` has.
pub(crate) fn merge(static_symbols: Vec<Symbol>, dynamic: &[Symbol]) -> Vec<Symbol> {
    let known: HashSet<Arc<str>> =
        static_symbols.iter().map(|symbol| Arc::clone(&symbol.name)).collect();
    let mut symbols = static_symbols;
    symbols.extend(dynamic.iter().filter(|symbol| !known.contains(&symbol.name)).cloned());
    symbols.retain(|symbol| !symbol.name.is_empty());
    symbols
}

/// Reads the first section of type `table` (`SHT_SYMTAB` or `SHT_DYNSYM`), in the file's order:
/// relocations name symbols by their place in it.
pub(crate) fn read(
    elf: &Elf<'_>,
    table: elf::SectionType,
    names: &mut Names,
) -> Result<Vec<Symbol>, CodeObjectError> {
    let Some((index, header)) =
        elf.section_headers.iter().enumerate().find(|(_, header)| header.sh_type.get(LE) == table)
    else {
        return Ok(Vec::new());
    };
    let entries = elf.section_bytes(index as u64)?;
    let strings = elf.section_bytes(header.sh_link.get(LE).into())?;
    let (raw, rest) = object::pod::slice_from_all_bytes::<Sym64<LE>>(&entries)
        .map(|raw| (raw, false))
        .unwrap_or((&[], true));
    if rest {
        return Err(CodeObjectError::malformed(
            "symbol table",
            entries.offset(),
            format!("entries of 24 bytes; it has {:#x} bytes", entries.len()),
        ));
    }
    raw.iter().map(|raw| symbol(raw, &strings, names, entries.offset())).collect()
}

fn symbol(
    raw: &Sym64<LE>,
    strings: &[u8],
    names: &mut Names,
    place: u64,
) -> Result<Symbol, CodeObjectError> {
    let name = match raw.st_name.get(LE) {
        0 => Arc::from(""),
        offset => names.read(strings, offset, "symbol table", place)?,
    };
    let (kind, bind) = (raw.st_info.0 & 0xf, raw.st_info.0 >> 4);
    let kind = match elf::SymbolType(kind) {
        elf::STT_FUNC => SymbolKind::Function,
        elf::SymbolType(STT_AMDGPU_HSA_KERNEL) => SymbolKind::KernelDescriptor,
        elf::STT_OBJECT if name.ends_with(DESCRIPTOR_SUFFIX) => SymbolKind::KernelDescriptor,
        elf::STT_OBJECT => SymbolKind::Object,
        elf::STT_SECTION => SymbolKind::Section,
        elf::STT_FILE => SymbolKind::File,
        _ => SymbolKind::Other,
    };
    Ok(Symbol {
        name,
        address: raw.st_value.get(LE),
        size: raw.st_size.get(LE),
        kind,
        definition: match raw.st_shndx.get(LE) {
            elf::SHN_UNDEF => Definition::Undefined,
            elf::SHN_ABS => Definition::Absolute,
            _ => Definition::Address,
        },
        global: bind != elf::STB_LOCAL.0,
        weak: bind == elf::STB_WEAK.0,
    })
}

/// Functions by address.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    /// Sorted by start; the number is the symbol's index.
    extents: Vec<(Range<u64>, usize)>,
}

impl Functions {
    /// A function without a size reaches to the next one, or to the end of its section.
    pub(crate) fn new(symbols: &[Symbol], sections: &[Section]) -> Functions {
        let mut extents: Vec<(Range<u64>, usize)> = symbols
            .iter()
            .enumerate()
            .filter(|(_, symbol)| {
                symbol.kind == SymbolKind::Function && symbol.definition == Definition::Address
            })
            .map(|(index, symbol)| {
                (symbol.address..symbol.address.saturating_add(symbol.size), index)
            })
            .collect();
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
        Functions { extents }
    }

    /// Index of the symbol of the function that holds an address, and the function's extent.
    pub(crate) fn at(&self, pc: Pc) -> Option<(usize, Range<u64>)> {
        let above = self.extents.partition_point(|(extent, _)| extent.start <= pc.0);
        let (extent, index) = self.extents.get(above.checked_sub(1)?)?;
        extent.contains(&pc.0).then(|| (*index, extent.clone()))
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
