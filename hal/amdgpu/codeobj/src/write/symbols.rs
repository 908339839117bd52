//! Symbols of new data, and the tables that find symbols by name.

use super::Added;
use object::build::elf::{Builder, SectionId};
use object::elf;

/// Adds the symbols to both tables: the dynamic one is what a runtime reads, the other what tools
/// read. `sections` are those of the data's bytes and of its zeros.
pub(super) fn add(builder: &mut Builder<'_>, added: &Added, sections: &[SectionId]) {
    for symbol in &added.symbols {
        let in_zeros = symbol.offset >= added.bytes.len() as u64;
        let section = sections.get(usize::from(in_zeros)).or(sections.first()).copied();
        let address = added.address + symbol.offset;
        let name = symbol.name.as_bytes().to_vec();
        // One type per table, and both have the same fields.
        macro_rules! define {
            ($table:expr) => {
                let new = $table.add();
                new.name = name.clone().into();
                new.section = section;
                // The section counts; this says only that there is one.
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

/// Sizes the hash tables for the symbols there are now, as lld does.
pub(super) fn size_hash_tables(builder: &mut Builder<'_>) {
    let count = builder.dynamic_symbols.count() as u32;
    builder.hash_bucket_count = count + 1;
    builder.gnu_hash_bucket_count = count / 4 + 1;
    builder.gnu_hash_bloom_shift = 26;
    // Twelve bits of 64-bit words for each symbol.
    builder.gnu_hash_bloom_count = (count.saturating_mul(12) / 64).max(1).next_power_of_two();
}
