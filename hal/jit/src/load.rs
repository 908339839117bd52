//! Object code in executable memory.
//!
//! Only what such code is made of is understood: sections with code and constants, whose parts refer to
//! each other relative to where they are. Whatever else an object asks for is refused.

use object::elf::{R_X86_64_PC32, R_X86_64_PLT32};
use object::read::{Object, ObjectSection, ObjectSymbol};
use object::{RelocationFlags, RelocationTarget, SectionIndex, SectionKind, SymbolSection};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;

/// What keeps object code from being loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is no object file.
    #[error("not an object file: {0}")]
    Format(#[from] object::read::Error),
    /// It needs something that is not in it.
    #[error("the object needs {0}, which it does not have")]
    Missing(String),
    /// It refers to something in a way that is not understood, or further than the way reaches.
    #[error("relocation at {offset:#x} of section {section} is not understood: {flags:?}")]
    Relocation {
        /// The section's name.
        section: String,
        /// Where in it.
        offset: u64,
        /// What is asked for.
        flags: RelocationFlags,
    },
    /// The system has no memory for it.
    #[error("no executable memory: {0}")]
    Memory(#[from] rustix::io::Errno),
}

/// Executable code. It is gone when this is dropped.
#[derive(Debug)]
pub struct Code {
    start: NonNull<c_void>,
    length: usize,
    entry: NonNull<()>,
}

// SAFETY: the memory belongs to this value alone, and nobody writes to it any more.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: mapped by `load`, of this length. Who executes the code borrows this.
        let _ = unsafe { munmap(self.start.as_ptr(), self.length) };
    }
}

/// Most bytes of an object that is loaded: what refers to something reaches 2 GiB.
const LARGEST: u64 = 1 << 26;

impl Code {
    /// Loads an object, of which the function `entry` is to be called.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load(object: &[u8], entry: &str) -> Result<Code, LoadError> {
        let file = object::read::elf::ElfFile64::<object::Endianness>::parse(object)?;
        let (places, length) = places(&file)?;
        let entry = file
            .symbols()
            .find(|symbol| symbol.is_definition() && symbol.name() == Ok(entry))
            .and_then(|symbol| address(&symbol, &places))
            .filter(|offset| *offset < length as u64)
            .ok_or_else(|| LoadError::Missing(format!("a function `{entry}`")))?;
        let mut image = vec![0; length];
        for (index, place) in &places {
            let section = file.section_by_index(*index)?;
            let data = section.data()?;
            let bytes =
                image.get_mut(*place as usize..).and_then(|rest| rest.get_mut(..data.len()));
            bytes.ok_or_else(|| LoadError::Missing("its bytes".into()))?.copy_from_slice(data);
            relocate(&file, &section, *place, &places, &mut image)?;
        }
        map(&image, entry)
    }

    /// The address of the function asked for.
    pub fn entry(&self) -> NonNull<()> {
        self.entry
    }
}

type File<'a> = object::read::elf::ElfFile64<'a, object::Endianness>;

/// Offsets of sections in memory, and how many bytes all take.
fn places(file: &File<'_>) -> Result<(HashMap<SectionIndex, u64>, usize), LoadError> {
    let (mut places, mut end) = (HashMap::new(), 0u64);
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
        if end > LARGEST {
            return Err(LoadError::Missing("a reasonable size".into()));
        }
        places.insert(section.index(), start);
    }
    Ok((places, end as usize))
}

/// Where a symbol lies in memory, if it is loaded.
fn address<'a>(symbol: &impl ObjectSymbol<'a>, places: &HashMap<SectionIndex, u64>) -> Option<u64> {
    let SymbolSection::Section(section) = symbol.section() else { return None };
    Some(places.get(&section)?.wrapping_add(symbol.address()))
}

/// Puts into a section what it says of other places.
fn relocate<'a>(
    file: &File<'a>,
    section: &impl ObjectSection<'a>,
    place: u64,
    places: &HashMap<SectionIndex, u64>,
    image: &mut [u8],
) -> Result<(), LoadError> {
    for (offset, relocation) in section.relocations() {
        let flags = relocation.flags();
        let refused = || LoadError::Relocation {
            section: section.name().unwrap_or_default().to_owned(),
            offset,
            flags,
        };
        let RelocationFlags::Elf { r_type: R_X86_64_PC32 | R_X86_64_PLT32 } = flags else {
            return Err(refused());
        };
        let RelocationTarget::Symbol(symbol) = relocation.target() else { return Err(refused()) };
        let symbol = file.symbol_by_index(symbol)?;
        let target = address(&symbol, places).ok_or_else(|| {
            LoadError::Missing(format!("`{}`", symbol.name().unwrap_or_default()))
        })?;
        let at = place.wrapping_add(offset);
        // System V ABI, AMD64 supplement, "Relocation Types": S + A - P.
        let value = target.wrapping_add_signed(relocation.addend()).wrapping_sub(at) as i64;
        let value = i32::try_from(value).map_err(|_| refused())?;
        let bytes = usize::try_from(at).ok().and_then(|at| image.get_mut(at..)?.get_mut(..4));
        bytes.ok_or_else(refused)?.copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

/// Memory with these bytes, which can be executed, and not written any more.
fn map(image: &[u8], entry: u64) -> Result<Code, LoadError> {
    let length = image.len().next_multiple_of(rustix::param::page_size());
    // SAFETY: new memory, where the system wants it. It is large enough for the image, nobody else has
    // it while it is written, and it is given back by `Code`.
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
    use crate::{Compiler, Extensions, Here};

    fn compiled(ir: &str) -> Vec<u8> {
        Here.compile(ir, Extensions::Avx2).expect("IR that is right")
    }

    #[test]
    fn code_that_was_compiled_is_called_and_finds_its_constants() {
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
        // SAFETY: it only computes.
        assert_eq!(unsafe { f(2) }, 2 * (3 + 5 + 70 + 11));
    }

    #[test]
    fn what_an_object_does_not_have_itself_is_refused_by_name() {
        let ir = "declare void @elsewhere()\ndefine void @f() nounwind {\n  call void @elsewhere()\n  ret void\n}\n";
        let error = Code::load(&compiled(ir), "f").expect_err("a missing function");
        assert_eq!(error.to_string(), "the object needs `elsewhere`, which it does not have");
        let error =
            Code::load(&compiled("define void @f() {\n  ret void\n}\n"), "g").expect_err("g");
        assert_eq!(error.to_string(), "the object needs a function `g`, which it does not have");
    }

    #[test]
    fn bytes_that_are_no_object_or_a_damaged_one_are_no_code_and_no_panic() {
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
