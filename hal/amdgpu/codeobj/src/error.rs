//! Errors of reading code objects.

/// Errors returned when reading a code object. Offsets are bytes from the start of the file, or
/// from the start of the code object if it was extracted from a bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeObjectError {
    /// The bytes are neither a code object nor a container of code objects.
    #[error("not an AMDGPU code object: {found}; expected {expected}")]
    NotCodeObject {
        /// Description of the bytes.
        found: String,
        /// The accepted formats.
        expected: &'static str,
    },
    /// The file is a relocatable object, which loaders reject.
    #[error(
        "not linked: the file is a relocatable object; link it with ld.lld -shared --no-undefined \
         -o LINKED FILE"
    )]
    NotLinked,
    /// The code object version is not supported.
    #[error(
        "unsupported ABI version {abi_version} (byte 0x8 of the ELF header); expected 1 to 4 (code \
         object versions 3 to 6)"
    )]
    UnsupportedVersion {
        /// `EI_ABIVERSION`.
        abi_version: u8,
    },
    /// The instruction set crate does not support the processor.
    #[error(
        "unknown processor number {machine:#x} in the ELF header's flags (byte 0x30); expected one \
         of {}",
        known_processors()
    )]
    UnknownProcessor {
        /// `EF_AMDGPU_MACH`.
        machine: u8,
    },
    /// A structure lies outside the file or is inconsistent.
    #[error("malformed {what} at byte {offset:#x}; expected {expected}")]
    Malformed {
        /// The structure.
        what: &'static str,
        /// Offset of the structure, in bytes from the start of the file.
        offset: u64,
        /// The expected contents.
        expected: String,
    },
    /// A size field exceeds the supported limit.
    #[error("{what} of {size:#x} {unit}; expected at most {limit:#x}")]
    TooLarge {
        /// The structure with the size.
        what: &'static str,
        /// Unit of the size.
        unit: &'static str,
        /// The size in the file.
        size: u64,
        /// The largest size accepted.
        limit: u64,
    },
    /// The metadata note has an unusable entry.
    #[error("metadata note at byte {offset:#x}, {place}: expected {expected}, found {found}")]
    Metadata {
        /// Offset of the note's contents, in bytes from the start of the file.
        offset: u64,
        /// The entry, such as `amdhsa.kernels[0].args[1].size`.
        place: String,
        /// The expected value.
        expected: &'static str,
        /// The value found.
        found: String,
    },
    /// A kernel in the metadata has no descriptor.
    #[error("kernel `{kernel}` has no kernel descriptor; expected a symbol `{symbol}` {expected}")]
    MissingDescriptor {
        /// The kernel's name in the metadata.
        kernel: String,
        /// The descriptor's symbol.
        symbol: String,
        /// The requirement that the symbol does not meet.
        expected: &'static str,
    },
    /// A descriptor's entry lies outside the code.
    #[error(
        "kernel descriptor at address {descriptor:#x} has its entry at {entry:#x}; expected an \
         address in an executable segment"
    )]
    EntryOutsideCode {
        /// The descriptor's ELF virtual address.
        descriptor: u64,
        /// The entry's ELF virtual address.
        entry: u64,
    },
    /// A relocation refers to an undefined symbol.
    #[error("undefined symbol `{name}`, needed by the relocation at address {place:#x}")]
    UndefinedSymbol {
        /// The symbol.
        name: String,
        /// ELF virtual address of the relocated field.
        place: u64,
    },
    /// A relocation cannot be applied at load time.
    #[error("relocation at address {place:#x} has {found}; expected {expected}")]
    Relocation {
        /// ELF virtual address of the relocated field.
        place: u64,
        /// The invalid property.
        found: String,
        /// The valid values of the property.
        expected: &'static str,
    },
    /// The DWARF line information is invalid.
    #[error("section {section} at byte {offset:#x}: {reason}; expected DWARF 2 to 5")]
    LineTable {
        /// The section.
        section: &'static str,
        /// Offset of the unit in the section, in bytes.
        offset: u64,
        /// The DWARF reader's error.
        reason: gimli::Error,
    },
    /// Compressed data is invalid.
    #[error("compressed data at byte {offset:#x}: {reason}; expected {expected}")]
    Compression {
        /// Offset of the compressed data, in bytes from the start of the file.
        offset: u64,
        /// The decoder's error.
        reason: String,
        /// The expected data.
        expected: String,
    },
    /// The file has no code object that matches the requested target.
    #[error("no code object for {wanted}; the file has {}", list(.present))]
    NoMatchingTarget {
        /// The requested target.
        wanted: String,
        /// Entry ids of the code objects in the file.
        present: Vec<String>,
    },
    /// The file is an offload bundle without code for GPUs of AMD.
    #[error("no code for AMD GPUs; the offload bundle has {}", if present.is_empty() { "only host code".to_owned() } else { list(present) })]
    NoAmdCode {
        /// Entry ids of the device code in the file.
        present: Vec<String>,
    },
    /// The request is ambiguous: several code objects match.
    #[error("several code objects match; expected exactly one of {}", list(.present))]
    SeveralCodeObjects {
        /// Entry ids of the matching code objects.
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
