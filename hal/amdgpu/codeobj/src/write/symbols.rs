//! Symbols of new data, and the hash tables of the dynamic symbols.

use super::NewContents;
use object::build::elf::{Builder, SectionId, Symbols};
use object::elf;

/// A symbol to define.
pub(super) struct NewSymbol<'a> {
    pub(super) name: &'a str,
    pub(super) section: Option<SectionId>,
    pub(super) kind: elf::SymbolType,
    pub(super) bind: elf::SymbolBind,
    pub(super) address: u64,
    pub(super) size: u64,
}

impl<'a> NewSymbol<'a> {
    /// Adds the symbol to a table. Global symbols are protected.
    pub(super) fn define<const DYNAMIC: bool>(&self, table: &mut Symbols<'a, DYNAMIC>) {
        let visibility =
            if self.bind == elf::STB_LOCAL { elf::STV_DEFAULT } else { elf::STV_PROTECTED };
        let symbol = table.add();
        symbol.name = self.name.into();
        symbol.section = self.section;
        // The writer derives the section index from `section`; any value but SHN_UNDEF works.
        symbol.st_shndx = elf::SHN_ABS;
        symbol.set_st_info(self.bind, self.kind);
        symbol.st_other = visibility.into();
        symbol.st_value = self.address;
        symbol.st_size = self.size;
    }
}

/// Adds the symbols of new data to `.dynsym`, which runtimes read, and to `.symtab`, which tools read.
/// `sections` are the section of the bytes and, if present, the section of the zeros.
pub(super) fn add<'a>(
    builder: &mut Builder<'a>,
    contents: &'a NewContents,
    sections: &[SectionId],
) {
    for symbol in &contents.symbols {
        let in_zeros = symbol.offset >= contents.bytes.len() as u64;
        let new = NewSymbol {
            name: &symbol.name,
            section: sections.get(usize::from(in_zeros)).or(sections.first()).copied(),
            kind: elf::STT_OBJECT,
            bind: elf::STB_GLOBAL,
            address: contents.address + symbol.offset,
            size: symbol.size,
        };
        new.define(&mut builder.symbols);
        new.define(&mut builder.dynamic_symbols);
    }
}

/// Sets the sizes of the hash tables from the number of symbols, as lld does.
pub(super) fn size_hash_tables(builder: &mut Builder<'_>) {
    let count = builder.dynamic_symbols.count() as u32;
    builder.hash_bucket_count = count + 1;
    builder.gnu_hash_bucket_count = count / 4 + 1;
    builder.gnu_hash_bloom_shift = 26;
    // Twelve bits per symbol, in 64-bit words.
    builder.gnu_hash_bloom_count = (count.saturating_mul(12) / 64).max(1).next_power_of_two();
}
