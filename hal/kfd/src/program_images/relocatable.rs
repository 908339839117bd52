//! Relocatable object files. A program that loads code itself may place the sections of such a file
//! in memory without linking it.

use std::ops::Range;

/// `R_AMDGPU_REL64` (AMDGPUUsage, "Relocation Records"): the distance of a symbol from the place.
const REL64: u64 = 5;

// Section types and flags, program header types and flags (ELF-64 Object File Format 1.5).
const PROGBITS: u64 = 1;
const SYMTAB: u64 = 2;
const RELA: u64 = 4;
const NOTE: u64 = 7;
const NOBITS: u64 = 8;
const SHF_WRITE: u64 = 1;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const PF_X: u32 = 1;
const PF_W: u32 = 2;
const PF_R: u32 = 4;
/// Size of an entry of a symbol table, and of one of a relocation table.
const ENTRY: usize = 24;
const SECTION_HEADER: usize = 64;
const PROGRAM_HEADER: u64 = 56;

/// Links a relocatable file to a shared object of which every section is loaded at its offset in the
/// file. Returns files of other types unchanged, and `None` for files that need another relocation
/// than distances between their own symbols.
pub fn linked(bytes: Vec<u8>) -> Option<Vec<u8>> {
    const TYPE: usize = 16;
    const ET_REL: u64 = 1;
    const ET_DYN: u64 = 3;
    let mut file = File(bytes);
    if file.get(TYPE, 2)? != ET_REL {
        return Some(file.0);
    }
    file.put(TYPE, 2, ET_DYN)?;
    let sections = file.sections()?;
    for section in &sections {
        if section.is_loaded() {
            file.put(section.header + 16, 8, section.contents.start as u64)?;
        }
    }
    for section in sections.iter().filter(|section| section.kind == SYMTAB) {
        file.place_symbols(section, &sections)?;
    }
    for section in sections.iter().filter(|section| section.kind == RELA) {
        file.relocate(section, &sections)?;
    }
    file.add_program_headers(&sections)?;
    Some(file.0)
}

/// Bytes of a file.
struct File(Vec<u8>);

/// A section header.
struct Section {
    /// Offset of the header in the file.
    header: usize,
    kind: u64,
    flags: u64,
    /// Offsets of the contents in the file; empty without contents.
    contents: Range<usize>,
    /// Size in bytes, of sections without contents as well.
    size: u64,
    link: u64,
    info: u64,
    alignment: u64,
}

impl Section {
    fn is_loaded(&self) -> bool {
        self.flags & SHF_ALLOC != 0 && self.size > 0
    }
}

impl File {
    /// A little-endian number of `bytes` bytes.
    fn get(&self, at: usize, bytes: usize) -> Option<u64> {
        let bytes = self.0.get(at..at.checked_add(bytes)?)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn put(&mut self, at: usize, bytes: usize, value: u64) -> Option<()> {
        let place = self.0.get_mut(at..at.checked_add(bytes)?)?;
        place.copy_from_slice(&value.to_le_bytes()[..bytes]);
        Some(())
    }

    fn sections(&self) -> Option<Vec<Section>> {
        let table = usize::try_from(self.get(40, 8)?).ok()?;
        let count = self.get(60, 2)? as usize;
        if self.get(58, 2)? as usize != SECTION_HEADER {
            return None;
        }
        let section = |index: usize| {
            let header = table.checked_add(index * SECTION_HEADER)?;
            let field = |at: usize, bytes: usize| self.get(header.checked_add(at)?, bytes);
            let (kind, size) = (field(4, 4)?, field(32, 8)?);
            let offset = usize::try_from(field(24, 8)?).ok()?;
            let end = offset.checked_add(usize::try_from(size).ok()?)?;
            let section = Section {
                header,
                kind,
                flags: field(8, 8)?,
                contents: if kind == NOBITS { offset..offset } else { offset..end },
                size,
                link: field(40, 4)?,
                info: field(44, 4)?,
                alignment: field(48, 8)?,
            };
            // Memory without contents has no place in the file.
            let is_valid = section.contents.end <= self.0.len()
                && !(section.is_loaded() && section.kind == NOBITS);
            is_valid.then_some(section)
        };
        (0..count).map(section).collect()
    }

    /// Turns offsets in sections to addresses.
    fn place_symbols(&mut self, table: &Section, sections: &[Section]) -> Option<()> {
        for symbol in table.contents.clone().step_by(ENTRY) {
            let index = self.get(symbol + 6, 2)? as usize;
            // Section 0 and reserved numbers are no sections.
            if let Some(section) = sections.get(index).filter(|_| index > 0) {
                let value = self.get(symbol + 8, 8)?;
                self.put(symbol + 8, 8, value.wrapping_add(section.contents.start as u64))?;
            }
        }
        Some(())
    }

    /// Applies the relocations of a loaded section.
    fn relocate(&mut self, table: &Section, sections: &[Section]) -> Option<()> {
        let target = sections.get(usize::try_from(table.info).ok()?)?;
        let symbols = sections.get(usize::try_from(table.link).ok()?)?;
        for entry in table.contents.clone().step_by(ENTRY).filter(|_| target.is_loaded()) {
            let [offset, info, addend] = [0, 8, 16].map(|at| self.get(entry + at, 8));
            let (offset, info, addend) = (offset?, info?, addend?);
            let symbol = usize::try_from(info >> 32).ok()?.checked_mul(ENTRY)?;
            let symbol = symbols.contents.start.checked_add(symbol)?;
            let is_defined = symbol < symbols.contents.end && self.get(symbol + 6, 2)? != 0;
            if info & 0xffff_ffff != REL64 || !is_defined {
                return None;
            }
            let place = target.contents.start.checked_add(usize::try_from(offset).ok()?)?;
            let value = self.get(symbol + 8, 8)?.wrapping_add(addend).wrapping_sub(place as u64);
            self.put(place, 8, value)?;
        }
        // The table is done with.
        self.put(table.header + 4, 4, PROGBITS)
    }

    /// Appends program headers: a segment for each loaded section.
    fn add_program_headers(&mut self, sections: &[Section]) -> Option<()> {
        let mut loaded: Vec<&Section> =
            sections.iter().filter(|section| section.is_loaded()).collect();
        loaded.sort_by_key(|section| section.contents.start);
        let notes = loaded.iter().filter(|section| section.kind == NOTE);
        let segments: Vec<(u32, &Section)> = loaded
            .iter()
            .map(|section| (PT_LOAD, *section))
            .chain(notes.map(|section| (PT_NOTE, *section)))
            .collect();
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self.put(32, 8, self.0.len() as u64)?;
        self.put(54, 2, PROGRAM_HEADER)?;
        self.put(56, 2, segments.len() as u64)?;
        for (kind, section) in segments {
            let flag = |flag, bit| if section.flags & flag != 0 { bit } else { 0 };
            let access = PF_R | flag(SHF_WRITE, PF_W) | flag(SHF_EXECINSTR, PF_X);
            self.0.extend(kind.to_le_bytes());
            self.0.extend(access.to_le_bytes());
            let start = section.contents.start as u64;
            // Offset, virtual and physical address, sizes in the file and in memory, alignment.
            let fields = [start, start, start, section.size, section.size, section.alignment];
            self.0.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_codeobj::CodeObject;
    use std::process::Command;

    const SOURCE: &str = "
        __attribute__((amdgpu_kernel)) void first(__attribute__((address_space(1))) int *p) { *p = 1; }
        __attribute__((amdgpu_kernel)) void second(__attribute__((address_space(1))) int *p) { *p = 2; }
    ";

    /// The object file of the source, and the code object that LLVM's linker makes of it.
    fn compiled() -> [Vec<u8>; 2] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("code.c"), SOURCE).expect("written");
        let run = |program: &str, arguments: &[&str]| {
            let status = Command::new(program).args(arguments).current_dir(&folder).status();
            assert!(status.expect("it starts").success());
        };
        let target = ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-nogpulib"];
        run("clang-22", &[&target[..], &["-O2", "-c", "code.c", "-o", "code.o"]].concat());
        run("ld.lld-22", &["-shared", "code.o", "-o", "code.co"]);
        ["code.o", "code.co"].map(|name| std::fs::read(path(name)).expect("compiled"))
    }

    #[test]
    fn kernels_of_a_relocatable_file_are_those_of_the_linked_one() {
        let [object, expected] = compiled();
        assert!(CodeObject::parse(&object).is_err(), "already linked");
        let result = CodeObject::from_bytes(linked(object).expect("linked")).expect("valid");
        let expected = CodeObject::from_bytes(expected).expect("valid");
        assert_eq!(result.kernels().len(), 2);
        for (kernel, expected_kernel) in result.kernels().iter().zip(expected.kernels()) {
            assert_eq!(kernel.name, expected_kernel.name);
            let code = |object: &CodeObject, entry| object.bytes_at(entry, 64).map(<[u8]>::to_vec);
            let entries = (kernel.descriptor.entry, expected_kernel.descriptor.entry);
            assert!(code(&result, entries.0).is_some());
            assert_eq!(code(&result, entries.0), code(&expected, entries.1));
            assert_eq!(kernel.descriptor.rsrc1, expected_kernel.descriptor.rsrc1);
            assert_eq!(kernel.descriptor.rsrc2, expected_kernel.descriptor.rsrc2);
        }
        assert_eq!(linked(expected.bytes().to_vec()).as_deref(), Some(expected.bytes()));
    }

    #[test]
    fn damaged_files_are_not_linked_or_refused_later() {
        let [object, _] = compiled();
        // The section headers are at the end.
        for length in 0..object.len() - SECTION_HEADER {
            assert!(linked(object[..length].to_vec()).is_none(), "{length} bytes");
        }
        for at in 0..object.len() {
            let mut damaged = object.clone();
            damaged[at] ^= 0xff;
            // Any result is fine; a panic is not.
            let _ = linked(damaged).map(CodeObject::from_bytes);
        }
    }
}
