//! What can be wrong with a code object.

/// Why a file could not be read as a code object. Offsets are bytes from the start of the file
/// (of the code object, where it was taken out of a bundle).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeObjectError {
    /// The bytes are neither a code object nor anything that holds one.
    #[error("not an AMDGPU code object: {found}; expected {expected}")]
    NotCodeObject {
        /// What the bytes are.
        found: String,
        /// What they should have been.
        expected: &'static str,
    },
    /// A relocatable object, which a loader does not take.
    #[error(
        "a relocatable object, which is not linked; link it: ld.lld -shared --no-undefined -o \
         LINKED FILE"
    )]
    NotLinked,
    /// A code object version that is not read.
    #[error(
        "code object with ABI version {abi_version} (byte 0x8 of the ELF header); expected 1 to 4, \
         which are code object versions 3 to 6"
    )]
    UnsupportedVersion {
        /// `EI_ABIVERSION`.
        abi_version: u8,
    },
    /// A processor that the instruction set crate does not support.
    #[error(
        "processor number {machine:#x} in the ELF header's flags (byte 0x30) is not known; \
         expected one of {}",
        known_processors()
    )]
    UnknownProcessor {
        /// `EF_AMDGPU_MACH`.
        machine: u8,
    },
    /// A structure lies outside the file or contradicts itself.
    #[error("{what} at byte {offset:#x} is malformed; expected {expected}")]
    Malformed {
        /// The structure.
        what: &'static str,
        /// Where it is, in bytes from the start of the file.
        offset: u64,
        /// What should be there.
        expected: String,
    },
    /// A size field asks for more than any sane code object has.
    #[error("{what} of {size:#x} {unit}; expected at most {limit:#x}")]
    TooLarge {
        /// What the size is of.
        what: &'static str,
        /// What it is counted in.
        unit: &'static str,
        /// The size stated.
        size: u64,
        /// The largest size accepted.
        limit: u64,
    },
    /// The metadata note says something that cannot be used.
    #[error("metadata note at byte {offset:#x}, {place}: expected {expected}, found {found}")]
    Metadata {
        /// Where the note's contents begin, in bytes from the start of the file.
        offset: u64,
        /// The entry, such as `amdhsa.kernels[0].args[1].size`.
        place: String,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A kernel of the metadata has no descriptor.
    #[error("kernel `{kernel}` has no kernel descriptor; expected a symbol `{symbol}` {expected}")]
    MissingDescriptor {
        /// The kernel's name in the metadata.
        kernel: String,
        /// The descriptor's symbol.
        symbol: String,
        /// What the symbol should be.
        expected: &'static str,
    },
    /// A descriptor whose entry is not code.
    #[error(
        "kernel descriptor at address {descriptor:#x} puts the entry at {entry:#x}; expected an \
         address in an executable segment"
    )]
    EntryOutsideCode {
        /// The descriptor's ELF virtual address.
        descriptor: u64,
        /// The entry's ELF virtual address.
        entry: u64,
    },
    /// A relocation against a symbol that nothing defines.
    #[error("undefined symbol `{name}`, needed by the relocation at address {place:#x}")]
    UndefinedSymbol {
        /// The symbol.
        name: String,
        /// ELF virtual address of the place to relocate.
        place: u64,
    },
    /// A relocation that cannot be applied at load time.
    #[error("relocation at address {place:#x} has {found}; expected {expected}")]
    Relocation {
        /// ELF virtual address of the place to relocate.
        place: u64,
        /// What is wrong.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
    /// DWARF line information that cannot be read.
    #[error("section {section} at byte {offset:#x}: {reason}; expected DWARF 2 to 5")]
    LineTable {
        /// The section.
        section: &'static str,
        /// Offset of the unit in the section, in bytes.
        offset: u64,
        /// What the DWARF reader says.
        reason: gimli::Error,
    },
    /// Compressed data that does not decompress.
    #[error("compressed data at byte {offset:#x}: {reason}; expected {expected}")]
    Compression {
        /// Where the compressed data begin, in bytes from the start of the file.
        offset: u64,
        /// What the decoder says.
        reason: String,
        /// What should be there.
        expected: String,
    },
    /// No code object fits the wanted target.
    #[error("no code object for {wanted}; the file has {}", list(.present))]
    NoMatchingTarget {
        /// The target asked for.
        wanted: String,
        /// Entry ids of the targets that are present.
        present: Vec<String>,
    },
    /// Several code objects fit, and one was asked for.
    #[error("several code objects fit; expected one of {}", list(.present))]
    SeveralCodeObjects {
        /// Entry ids of the code objects that fit.
        present: Vec<String>,
    },
}

impl CodeObjectError {
    pub(crate) fn malformed(
        what: &'static str,
        offset: u64,
        expected: impl Into<String>,
    ) -> CodeObjectError {
        CodeObjectError::Malformed { what, offset, expected: expected.into() }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn known_processors() -> String {
    flipwave_isa::Target::names().collect::<Vec<_>>().join(", ")
}
