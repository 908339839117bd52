//! Code objects in memory of the program.
//!
//! A program without AMD's loader keeps its code objects, ELF files, somewhere in its memory, and
//! copies no more than code and kernel descriptors to a GPU. Names of kernels are only in the files,
//! which may not be linked.

mod relocatable;

use crate::store::touched_pages;
use crate::user_memory::read_bytes;
use flipwave_codeobj::CodeObject;
use std::ops::Range;

/// Largest file that is read, in bytes.
const MAX_FILE: u64 = 64 << 20;
/// Largest mapping that is searched, in bytes. Larger ones are reserved address space.
const MAX_MAPPING: u64 = 4 << 30;
/// Number of bytes that are searched at a time.
const WINDOW: u64 = 1 << 20;
/// Multiple of bytes at which files start: memory allocators align to more.
const ALIGNMENT: usize = 8;
/// First bytes of a code object: ELF, 64 bits, little endian, version 1, `ELFOSABI_AMDGPU_HSA`.
const MAGIC: [u8; 8] = [0x7f, b'E', b'L', b'F', 2, 1, 1, 64];

/// The first code object in private memory of the program that `is_wanted`.
pub fn find_code_object(is_wanted: impl Fn(&CodeObject) -> bool) -> Option<CodeObject> {
    let mappings = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut windows = mappings.lines().filter_map(private_memory).flat_map(touched_windows);
    windows.find_map(|window| {
        let bytes = read_bytes(window.start, (window.end - window.start) as usize)?;
        let starts = bytes.chunks(ALIGNMENT).enumerate().filter(|(_, chunk)| *chunk == MAGIC);
        let addresses = starts.map(|(index, _)| window.start + (index * ALIGNMENT) as u64);
        addresses.filter_map(code_object_at).find(&is_wanted)
    })
}

/// The address range of a line of `/proc/self/maps` (proc_pid_maps(5)), if it is private, writable
/// memory without a file.
fn private_memory(line: &str) -> Option<Range<u64>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let [access, _offset, _device, file] = std::array::from_fn(|_| fields.next());
    let is_private = access?.starts_with("rw") && access?.ends_with('p') && file? == "0";
    let number = |text| u64::from_str_radix(text, 16).ok();
    let range = number(start)?..number(end)?;
    (is_private && range.end - range.start <= MAX_MAPPING).then_some(range)
}

/// Splits the pages of a range that have been written into windows.
fn touched_windows(range: Range<u64>) -> Vec<Range<u64>> {
    use crate::memory::PAGE;
    let mut windows: Vec<Range<u64>> = Vec::new();
    // Without information about pages, nothing is searched.
    for page in touched_pages(range).unwrap_or_default() {
        match windows.last_mut() {
            Some(last) if last.end == page && last.end - last.start < WINDOW => last.end += PAGE,
            _ => windows.push(page..page + PAGE),
        }
    }
    windows
}

/// The code object at an address of the program.
fn code_object_at(address: u64) -> Option<CodeObject> {
    const HEADER: usize = 64;
    let header = read_bytes(address, HEADER)?;
    let field = |at: usize, bytes: usize| {
        header[at..at + bytes].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    };
    // `e_shoff`, `e_shentsize` and `e_shnum`: linkers write the section headers last.
    let size = field(40, 8).checked_add(field(58, 2) * field(60, 2))?;
    if size > MAX_FILE {
        return None;
    }
    let file = relocatable::linked(read_bytes(address, size as usize)?)?;
    CodeObject::from_bytes(file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_writable_memory_without_a_file_is_searched() {
        let range = |line| private_memory(line);
        assert_eq!(range("1000-3000 rw-p 00000000 00:00 0 "), Some(0x1000..0x3000));
        assert_eq!(range("1000-3000 rw-p 00000000 00:00 0     [heap]"), Some(0x1000..0x3000));
        assert_eq!(range("1000-3000 r--p 00000000 00:00 0 "), None);
        assert_eq!(range("1000-3000 rw-s 00000000 00:01 7     /memfd:gpu"), None);
        assert_eq!(range("1000-3000 rw-p 00000000 08:01 7     /lib/libc.so.6"), None);
        assert_eq!(range("1000-200001000 rw-p 00000000 00:00 0 "), None);
    }

    #[test]
    fn garbage_after_the_magic_number_is_no_code_object() {
        let mut bytes = vec![0u64; 4096];
        bytes[8] = u64::from_le_bytes(MAGIC);
        bytes[13] = u64::MAX;
        assert!(code_object_at(&raw const bytes[8] as u64).is_none());
        bytes[13] = 64;
        assert!(code_object_at(&raw const bytes[8] as u64).is_none());
    }
}
