//! Loading of object code into executable memory.
//!
//! Supports what compiled modules use: sections with code and constants, and PC-relative relocations
//! between them. Everything else is an error.

use object::elf::{R_X86_64_PC32, R_X86_64_PLT32};
use object::read::{Object, ObjectSection, ObjectSymbol};
use object::{RelocationFlags, RelocationTarget, SectionIndex, SectionKind, SymbolSection};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;

/// Errors returned when loading object code.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are not a valid object file.
    #[error("not an object file: {0}")]
    Format(#[from] object::read::Error),
    /// The object lacks a required symbol or part.
    #[error("the object needs {0}, which it does not have")]
    Missing(String),
    /// A relocation has an unsupported type or an out-of-range value.
    #[error("unsupported relocation at {offset:#x} of section {section}: {flags:?}")]
    Relocation {
        /// The section's name.
        section: String,
        /// Offset in the section, in bytes.
        offset: u64,
        /// The relocation type.
        flags: RelocationFlags,
    },
    /// The system cannot allocate executable memory.
    #[error("no executable memory: {0}")]
    Memory(#[from] rustix::io::Errno),
}

/// Loaded executable code, which is unmapped on drop.
#[derive(Debug)]
pub struct Code {
    start: NonNull<c_void>,
    length: usize,
    entry: NonNull<()>,
}

// SAFETY: this value owns the memory, which is not written after loading.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: mapped by `load` with this length. Callers of the code borrow this value.
        let _ = unsafe { munmap(self.start.as_ptr(), self.length) };
    }
}

/// Maximum size of the loaded sections, in bytes. Far below 2 GiB, the range of PC-relative
/// relocations.
const MAX_SIZE: u64 = 1 << 26;

impl Code {
    /// Loads an object file. The function `entry` becomes [`Code::entry`].
    ///
    /// # Errors
    /// [`LoadError`] if the object is invalid or has unsupported parts.
    pub fn load(object: &[u8], entry: &str) -> Result<Code, LoadError> {
        let file = object::read::elf::ElfFile64::<object::Endianness>::parse(object)?;
        let (offsets, length) = section_offsets(&file)?;
        let entry = file
            .symbols()
            .find(|symbol| symbol.is_definition() && symbol.name() == Ok(entry))
            .and_then(|symbol| symbol_offset(&symbol, &offsets))
            .filter(|offset| *offset < length as u64)
            .ok_or_else(|| LoadError::Missing(format!("a function `{entry}`")))?;
        let mut image = vec![0; length];
        for (index, offset) in &offsets {
            let section = file.section_by_index(*index)?;
            let data = section.data()?;
            let bytes =
                image.get_mut(*offset as usize..).and_then(|tail| tail.get_mut(..data.len()));
            bytes.ok_or_else(|| LoadError::Missing("its bytes".into()))?.copy_from_slice(data);
            relocate(&file, &section, *offset, &offsets, &mut image)?;
        }
        map(&image, entry)
    }

    /// Address of the entry function.
    pub fn entry(&self) -> NonNull<()> {
        self.entry
    }
}

type File<'a> = object::read::elf::ElfFile64<'a, object::Endianness>;

/// Returns the image offsets of the loaded sections, and the size of the image.
fn section_offsets(file: &File<'_>) -> Result<(HashMap<SectionIndex, u64>, usize), LoadError> {
    let (mut offsets, mut end) = (HashMap::new(), 0u64);
    for section in file.sections() {
        let kind = section.kind();
        let is_loaded = matches!(
            kind,
            SectionKind::Text | SectionKind::ReadOnlyData | SectionKind::ReadOnlyString
        );
        let is_frame = section.name() == Ok(".eh_frame");
        if !is_loaded || is_frame {
            continue;
        }
        let alignment = section.align().clamp(1, 4096);
        let start = end.next_multiple_of(alignment);
        end = start.saturating_add(section.size());
        if end > MAX_SIZE {
            return Err(LoadError::Missing("a reasonable size".into()));
        }
        offsets.insert(section.index(), start);
    }
    Ok((offsets, end as usize))
}

/// Image offset of a symbol in a loaded section.
fn symbol_offset<'a>(
    symbol: &impl ObjectSymbol<'a>,
    section_offsets: &HashMap<SectionIndex, u64>,
) -> Option<u64> {
    let SymbolSection::Section(section) = symbol.section() else { return None };
    Some(section_offsets.get(&section)?.wrapping_add(symbol.address()))
}

/// Applies the relocations of the section at image offset `section_start`.
fn relocate<'a>(
    file: &File<'a>,
    section: &impl ObjectSection<'a>,
    section_start: u64,
    section_offsets: &HashMap<SectionIndex, u64>,
    image: &mut [u8],
) -> Result<(), LoadError> {
    for (offset, relocation) in section.relocations() {
        let flags = relocation.flags();
        let unsupported = || LoadError::Relocation {
            section: section.name().unwrap_or_default().to_owned(),
            offset,
            flags,
        };
        let RelocationFlags::Elf { r_type: R_X86_64_PC32 | R_X86_64_PLT32 } = flags else {
            return Err(unsupported());
        };
        let RelocationTarget::Symbol(symbol) = relocation.target() else {
            return Err(unsupported());
        };
        let symbol = file.symbol_by_index(symbol)?;
        let target = symbol_offset(&symbol, section_offsets).ok_or_else(|| {
            LoadError::Missing(format!("`{}`", symbol.name().unwrap_or_default()))
        })?;
        let place = section_start.wrapping_add(offset);
        // System V ABI, AMD64 supplement, "Relocation Types": S + A - P.
        let value = target.wrapping_add_signed(relocation.addend()).wrapping_sub(place) as i64;
        let value = i32::try_from(value).map_err(|_| unsupported())?;
        let start = usize::try_from(place).ok();
        let field = start.and_then(|start| image.get_mut(start..)?.get_mut(..4));
        field.ok_or_else(unsupported)?.copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

/// Copies an image to new memory, and makes the memory executable and read-only.
fn map(image: &[u8], entry: u64) -> Result<Code, LoadError> {
    let length = image.len().next_multiple_of(rustix::param::page_size());
    // SAFETY: the mapping is new, large enough for the image and exclusive until it is returned in
    // `Code`, which unmaps it.
    unsafe {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let start = mmap_anonymous(std::ptr::null_mut(), length, protection, MapFlags::PRIVATE)?;
        std::ptr::copy_nonoverlapping(image.as_ptr(), start.cast(), image.len());
        let (start, address) = (NonNull::new_unchecked(start), start.byte_add(entry as usize));
        let code = Code { start, length, entry: NonNull::new_unchecked(address.cast()) };
        mprotect(start.as_ptr(), length, MprotectFlags::READ | MprotectFlags::EXEC)?;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compiler, Extensions, InProcess};

    fn compiled(ir: &str) -> Vec<u8> {
        InProcess.compile(ir, Extensions::Avx2).expect("valid IR")
    }

    #[test]
    fn loaded_code_executes_and_reads_its_constants() {
        let ir = "define i32 @f(i32 %x) nounwind {\n  %v = insertelement <4 x i32> poison, i32 %x, i64 0\n  \
                  %w = shufflevector <4 x i32> %v, <4 x i32> poison, <4 x i32> zeroinitializer\n  \
                  %m = mul <4 x i32> %w, <i32 3, i32 5, i32 70, i32 11>\n  \
                  %r = call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> %m)\n  ret i32 %r\n}\n\
                  declare i32 @llvm.vector.reduce.add.v4i32(<4 x i32>)\n";
        let code = Code::load(&compiled(ir), "f").expect("an object");
        // SAFETY: the function has this type.
        let f = unsafe {
            std::mem::transmute::<NonNull<()>, unsafe extern "C" fn(u32) -> u32>(code.entry())
        };
        // SAFETY: the function has no side effects.
        assert_eq!(unsafe { f(2) }, 2 * (3 + 5 + 70 + 11));
    }

    #[test]
    fn error_names_missing_symbols() {
        let ir = "declare void @elsewhere()\ndefine void @f() nounwind {\n  \
                  call void @elsewhere()\n  ret void\n}\n";
        let error = Code::load(&compiled(ir), "f").expect_err("a missing function");
        assert_eq!(error.to_string(), "the object needs `elsewhere`, which it does not have");
        let error =
            Code::load(&compiled("define void @f() {\n  ret void\n}\n"), "g").expect_err("g");
        assert_eq!(error.to_string(), "the object needs a function `g`, which it does not have");
    }

    #[test]
    fn invalid_and_damaged_objects_do_not_panic() {
        assert!(Code::load(b"", "f").is_err());
        let object =
            compiled("@c = private constant i32 7\ndefine ptr @f() nounwind {\n  ret ptr @c\n}\n");
        assert!(Code::load(&object, "f").is_ok());
        for at in 0..object.len() {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = object.clone();
                damaged[at] ^= flip;
                let _ = Code::load(&damaged, "f");
            }
            let _ = Code::load(&object[..at], "f");
        }
    }
}
