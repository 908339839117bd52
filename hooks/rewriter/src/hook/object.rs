//! Relocatable objects that clang writes for hooks.

use super::{DataPointer, HookData, HookSymbol};
use object::elf::RelocationType;
use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object as _, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
    SectionFlags, SectionIndex, SectionKind, SymbolIndex, SymbolKind, elf,
};
use std::collections::BTreeMap;

/// 64 bits of an address (AMDGPUUsage, "Relocation Records").
const R_AMDGPU_ABS64: RelocationType = RelocationType(3);
/// Low 32 bits of a distance.
const R_AMDGPU_REL32_LO: RelocationType = RelocationType(10);
/// High 32 bits of a distance.
const R_AMDGPU_REL32_HI: RelocationType = RelocationType(11);
/// Distance of 64 bits from the relocated place.
const R_AMDGPU_REL64: RelocationType = RelocationType(5);

/// A parsed object.
pub(super) struct Object<'a> {
    file: ElfFile64<'a, LittleEndian>,
    /// Offset of each data section in the data, by section index.
    sections: BTreeMap<usize, u64>,
    pub data: HookData,
}

/// The machine code of a function.
pub(super) struct WrapperCode<'a> {
    pub bytes: &'a [u8],
    /// References to symbols, by offset of the literal.
    pub references: BTreeMap<u64, SymbolReference>,
}

/// Target of a literal in an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SymbolReference {
    /// Low half of the distance from the literal to an offset in the data.
    Low(u64),
    /// High half of this distance.
    High(u64),
    /// The whole distance, in a literal of 64 bits.
    Wide(u64),
    /// A symbol that is not data of the source.
    Other(String),
}

/// Errors returned when reading an object.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObjectError {
    #[error("{0}")]
    Malformed(#[from] object::Error),
    #[error("{0}")]
    Unexpected(String),
}

impl<'a> Object<'a> {
    /// Parses an object and collects its data.
    pub fn parse(bytes: &'a [u8]) -> Result<Object<'a>, ObjectError> {
        let file = ElfFile64::<LittleEndian>::parse(bytes)?;
        let mut object = Object { file, sections: BTreeMap::new(), data: HookData::default() };
        object.collect_sections()?;
        object.collect_symbols()?;
        object.collect_pointers()?;
        Ok(object)
    }

    /// Concatenates the data sections, with zero-initialized sections last.
    fn collect_sections(&mut self) -> Result<(), ObjectError> {
        let data = &mut self.data;
        data.alignment = 1;
        let mut sections: Vec<_> = self.file.sections().filter(is_data).collect();
        sections.sort_by_key(|section| section.kind() == SectionKind::UninitializedData);
        for section in sections {
            let alignment = section.align().max(1);
            data.alignment = data.alignment.max(alignment);
            let start = data.size().checked_next_multiple_of(alignment).ok_or_else(|| {
                ObjectError::Unexpected("the data exceed the address space".into())
            })?;
            if section.kind() == SectionKind::UninitializedData {
                data.zeros = start - data.bytes.len() as u64 + section.size();
            } else {
                data.bytes.resize(start as usize, 0);
                data.bytes.extend_from_slice(section.data()?);
            }
            self.sections.insert(section.index().0, start);
        }
        Ok(())
    }

    /// Collects the variables.
    fn collect_symbols(&mut self) -> Result<(), ObjectError> {
        for symbol in self.file.symbols() {
            let start = symbol.section_index().and_then(|index| self.sections.get(&index.0));
            if let (Some(start), SymbolKind::Data) = (start, symbol.kind()) {
                let entry = HookSymbol { offset: start + symbol.address(), size: symbol.size() };
                self.data.symbols.insert(symbol.name()?.to_owned(), entry);
            }
        }
        Ok(())
    }

    /// Collects pointers in the data.
    fn collect_pointers(&mut self) -> Result<(), ObjectError> {
        for (section, start) in &self.sections {
            for (at, relocation) in
                self.file.section_by_index(SectionIndex(*section))?.relocations()
            {
                let to = self.target(relocation.target(), relocation.addend())?;
                let absolute =
                    relocation.flags() == RelocationFlags::Elf { r_type: R_AMDGPU_ABS64 };
                match to {
                    Ok(to) if absolute => {
                        self.data.pointers.push(DataPointer { at: start + at, to });
                    }
                    Ok(_) => {
                        let found = format!("relocation {:?} in data", relocation.flags());
                        return Err(ObjectError::Unexpected(found));
                    }
                    Err(name) => {
                        let found = format!(
                            "a variable contains the address of `{name}`, which is not a variable of the source"
                        );
                        return Err(ObjectError::Unexpected(found));
                    }
                }
            }
        }
        self.data.pointers.sort_by_key(|pointer| pointer.at);
        Ok(())
    }

    /// Offset in the data of a relocation's target, or the name of a target that is not data.
    fn target(
        &self,
        target: RelocationTarget,
        addend: i64,
    ) -> Result<Result<u64, String>, ObjectError> {
        let RelocationTarget::Symbol(SymbolIndex(index)) = target else {
            return Err(ObjectError::Unexpected("a relocation without a symbol".into()));
        };
        let symbol = self.file.symbol_by_index(SymbolIndex(index))?;
        let start = symbol.section_index().and_then(|index| self.sections.get(&index.0));
        if let Some(start) = start {
            return Ok(Ok(start.wrapping_add(symbol.address()).wrapping_add_signed(addend)));
        }
        // Functions of the source are named by their sections.
        Ok(Err(match (symbol.name()?, symbol.section_index()) {
            ("", Some(index)) => {
                let name = self.file.section_by_index(index)?.name()?;
                name.strip_prefix(".text.").unwrap_or(name).to_owned()
            }
            (name, _) => name.to_owned(),
        }))
    }

    /// Machine code of a function.
    pub fn code(&self, name: &str) -> Result<WrapperCode<'a>, ObjectError> {
        let missing = || ObjectError::Unexpected(format!("no code for {name}"));
        let symbol = self.file.symbol_by_name(name).ok_or_else(missing)?;
        let section = self.file.section_by_index(symbol.section_index().ok_or_else(missing)?)?;
        let (start, size) = (symbol.address(), symbol.size());
        let bytes = usize::try_from(start)
            .ok()
            .zip(usize::try_from(size).ok())
            .and_then(|(start, size)| Some(start..start.checked_add(size)?));
        let bytes = bytes.and_then(|range| section.data().ok()?.get(range)).ok_or_else(missing)?;
        let mut references = BTreeMap::new();
        for (at, relocation) in section.relocations() {
            let Some(at) = at.checked_sub(start).filter(|at| *at < size) else { continue };
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let reference = match (self.target(relocation.target(), relocation.addend())?, r_type) {
                (Ok(offset), R_AMDGPU_REL32_LO) => SymbolReference::Low(offset),
                (Ok(offset), R_AMDGPU_REL32_HI) => SymbolReference::High(offset),
                (Ok(offset), R_AMDGPU_REL64) => SymbolReference::Wide(offset),
                (Ok(_), _) => SymbolReference::Other(format!("relocation {r_type:?}")),
                (Err(name), _) => SymbolReference::Other(name),
            };
            references.insert(at, reference);
        }
        Ok(WrapperCode { bytes, references })
    }
}

/// Returns `true` for loaded sections that are neither code nor notes.
fn is_data<'a>(section: &impl ObjectSection<'a>) -> bool {
    let SectionFlags::Elf { sh_flags, sh_type } = section.flags() else { return false };
    sh_flags.contains(elf::SHF_ALLOC)
        && !sh_flags.contains(elf::SHF_EXECINSTR)
        && matches!(sh_type, elf::SHT_PROGBITS | elf::SHT_NOBITS)
        && section.size() > 0
}
