//! Small shared libraries that define a symbol version and depend on the agent.
//!
//! NVIDIA's runtime gives its functions a version with the library's name, such as `libcudart.so.12`, and programs
//! need a library that defines it. The dynamic loader finds the functions themselves in the agent, which has no
//! versions. (System V gABI, "Dynamic Linking"; Linux Standard Base, "Symbol Versioning".)

/// Size of the ELF header in bytes.
const HEADER: usize = 64;
/// Size of a program header in bytes.
const PROGRAM_HEADER: usize = 56;
/// Size of a definition of a version with its name in bytes.
const DEFINITION: u32 = 28;
/// Readable and writable.
const READ_WRITE: u32 = 6;

/// Offsets of parts of the file, which are also their addresses.
struct Layout {
    names: u64,
    symbols: u64,
    hash: u64,
    versions: u64,
    definitions: u64,
    end: u64,
}

/// The hash of a name (System V gABI, "Hash Table").
fn hash(name: &str) -> u32 {
    name.bytes().fold(0u32, |value, byte| {
        let value = (value << 4).wrapping_add(byte.into());
        let high = value & 0xf000_0000;
        (value ^ high >> 24) & !high
    })
}

/// An ELF file for x86-64 with the name and version `name`, which depends on the library at the path `needed`.
pub fn versioned_library(name: &str, needed: &str) -> Vec<u8> {
    let names = format!("\0{name}\0{needed}\0");
    let needed_name = name.len() as u64 + 2;
    let align = |offset: u64| offset.next_multiple_of(8);
    let start = (HEADER + 3 * PROGRAM_HEADER) as u64;
    let symbols = align(start + names.len() as u64);
    // One symbol, which has no name.
    let (hash_table, versions) = (symbols + 24, symbols + 40);
    let definitions = align(versions + 2);
    let dynamic = align(definitions + 2 * u64::from(DEFINITION));
    let entries = |layout: &Layout| -> Vec<[u64; 2]> {
        vec![
            [14, 1],                           // DT_SONAME
            [1, needed_name],                  // DT_NEEDED
            [4, layout.hash],                  // DT_HASH
            [5, layout.names],                 // DT_STRTAB
            [6, layout.symbols],               // DT_SYMTAB
            [10, names.len() as u64],          // DT_STRSZ
            [11, 24],                          // DT_SYMENT
            [0x6fff_fff0, layout.versions],    // DT_VERSYM
            [0x6fff_fffc, layout.definitions], // DT_VERDEF
            [0x6fff_fffd, 2],                  // DT_VERDEFNUM
            [0, 0],
        ]
    };
    let mut layout =
        Layout { names: start, symbols, hash: hash_table, versions, definitions, end: 0 };
    layout.end = dynamic + 16 * entries(&layout).len() as u64;

    let mut file = Vec::new();
    // 64 bits, little-endian, version 1; a shared library for x86-64.
    file.extend(b"\x7fELF\x02\x01\x01");
    file.resize(16, 0);
    put(&mut file, &[3u16, 62]);
    put(&mut file, &[1u32]);
    put(&mut file, &[0u64, HEADER as u64, 0]);
    put(&mut file, &[0u32]);
    put(&mut file, &[HEADER as u16, PROGRAM_HEADER as u16, 3, 64, 0, 0]);
    // PT_LOAD, PT_DYNAMIC and PT_GNU_STACK.
    for (kind, from, to, alignment) in
        [(1u32, 0, layout.end, 0x1000u64), (2, dynamic, layout.end, 8), (0x6474_e551, 0, 0, 16)]
    {
        put(&mut file, &[kind, READ_WRITE]);
        put(&mut file, &[from, from, from, to - from, to - from, alignment]);
    }
    file.extend(names.as_bytes());
    file.resize(hash_table as usize, 0);
    // One bucket and one chain, both empty.
    put(&mut file, &[1u32, 1, 0, 0]);
    file.resize(definitions as usize, 0);
    // The base definition has the library's name, too.
    for (flags, number, next) in [(1u16, 1u16, DEFINITION), (0, 2, 0)] {
        put(&mut file, &[1, flags, number, 1]);
        put(&mut file, &[hash(name), 20, next, 1, 0]);
    }
    file.resize(dynamic as usize, 0);
    entries(&layout).iter().for_each(|entry| put(&mut file, entry));
    file
}

/// A number in a file.
trait Number: Copy {
    /// Appends the number.
    fn append(self, file: &mut Vec<u8>);
}

macro_rules! number {
    ($($type:ty)*) => {
        $(impl Number for $type {
            fn append(self, file: &mut Vec<u8>) {
                file.extend(self.to_le_bytes());
            }
        })*
    };
}
number! { u16 u32 u64 }

/// Appends numbers.
fn put<N: Number>(file: &mut Vec<u8>, numbers: &[N]) {
    numbers.iter().for_each(|number| number.append(file));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The C library's loader loads the file, with the library that it depends on.
    #[test]
    fn loader_accepts_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("libversion.so.1");
        let load = |needed: &str| {
            std::fs::write(&file, versioned_library("libversion.so.1", needed)).expect("written");
            let name = std::ffi::CString::new(file.to_str().expect("text")).expect("no zero");
            // SAFETY: libraries of the C library, and a file without code.
            let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
            if library.is_null() {
                return false;
            }
            // SAFETY: an open library.
            let found = unsafe { libc::dlsym(library, c"cos".as_ptr()) };
            // SAFETY: as above.
            unsafe { libc::dlclose(library) };
            !found.is_null()
        };
        assert!(load("libm.so.6"));
        assert!(!load("libno_such_library.so.1"));
    }

    #[test]
    fn hashes_are_those_of_the_standard() {
        // From `readelf -V` of the C library.
        assert_eq!(hash("GLIBC_2.2.5"), 0x0969_1a75);
    }
}
