//! Code objects in the data of other files, without an offload bundle. Some libraries contain them as
//! arrays of bytes.

use crate::CodeObject;
use crate::bundle::BundleEntry;
use object::LittleEndian as LE;
use object::elf::{ELFCLASS64, ELFMAG, EM_AMDGPU, FileHeader64, SHT_NOBITS};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

/// Size of the header of a 64-bit ELF file.
const HEADER_BYTES: usize = 64;

/// Finds the code objects in the data of a file, which is not a code object itself. Their ids contain
/// their position.
pub(crate) fn embedded(file: &[u8]) -> Vec<BundleEntry> {
    let mut found = Vec::new();
    // A file begins with its own header.
    let mut position = 1;
    while let Some(start) = next_header(file, position) {
        let data = &file[start..];
        match size(data).and_then(|size| data.get(..size)) {
            Some(bytes) => {
                if let Ok(object) = CodeObject::parse(bytes) {
                    let target = object.target().clone();
                    found.push(BundleEntry {
                        bundle: found.len(),
                        id: format!("amdgcn-amd-amdhsa--{target} at byte {start:#x}"),
                        target: Some(target),
                        bytes: bytes.to_vec(),
                    });
                }
                // No part of the file is read twice.
                position = start + bytes.len();
            }
            None => position = start + 1,
        }
    }
    found
}

/// Returns the position of the next header of a 64-bit ELF file for AMD GPUs, from `position` on.
fn next_header(file: &[u8], position: usize) -> Option<usize> {
    let mut position = position;
    loop {
        let rest = file.get(position..)?;
        let start = position + rest.windows(ELFMAG.len()).position(|part| *part == ELFMAG)?;
        let header = file.get(start..start + HEADER_BYTES)?;
        let machine = u16::from_le_bytes([header[18], header[19]]);
        if header[4] == ELFCLASS64.0 && machine == EM_AMDGPU.0 {
            return Some(start);
        }
        position = start + 1;
    }
}

/// Returns the size of the ELF file at the start of `data`: the end of its last part.
fn size(data: &[u8]) -> Option<usize> {
    let header = FileHeader64::<LE>::parse(data).ok()?;
    let segments = header.program_headers(LE, data).ok()?;
    let sections = header.section_headers(LE, data).ok()?;
    let mut end = HEADER_BYTES as u64;
    for segment in segments {
        end = end.max(segment.p_offset(LE).checked_add(segment.p_filesz(LE))?);
    }
    for section in sections.iter().filter(|section| section.sh_type(LE) != SHT_NOBITS) {
        end = end.max(section.sh_offset(LE).checked_add(section.sh_size(LE))?);
    }
    let table = u64::from(header.e_shentsize(LE)).checked_mul(sections.len() as u64)?;
    end = end.max(header.e_shoff(LE).checked_add(table)?);
    usize::try_from(end).ok()
}
