//! Symbols of new data, and the hash tables of the dynamic symbols.

use super::NewContents;
use object::build::elf::{Builder, SectionId};
use object::elf;

/// Adds the symbols of new data to `.dynsym`, which runtimes read, and to `.symtab`, which tools read.
/// `sections` are the section of the bytes and, if present, the section of the zeros.
pub(super) fn add(builder: &mut Builder<'_>, contents: &NewContents, sections: &[SectionId]) {
    for symbol in &contents.symbols {
        let in_zeros = symbol.offset >= contents.bytes.len() as u64;
        let section = sections.get(usize::from(in_zeros)).or(sections.first()).copied();
        let address = contents.address + symbol.offset;
        let name = symbol.name.as_bytes().to_vec();
        // The tables have different types with the same fields.
        macro_rules! define {
            ($table:expr) => {
                let new = $table.add();
                new.name = name.clone().into();
                new.section = section;
                // The writer derives the section index from `section`; any value but SHN_UNDEF works.
                new.st_shndx = elf::SHN_ABS;
                new.set_st_info(elf::STB_GLOBAL, elf::STT_OBJECT);
                new.st_other = elf::STV_PROTECTED.into();
                new.st_value = address;
                new.st_size = symbol.size;
            };
        }
        define!(builder.symbols);
        define!(builder.dynamic_symbols);
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
