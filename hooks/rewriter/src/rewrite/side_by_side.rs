//! Code objects with both the original and the rewritten kernels.

use super::Rewritten;
use crate::flow::{Disassembly, Function};
use flipwave_codeobj::{
    CodeObject, DESCRIPTOR_SIZE, DataSymbol, Descriptor, Editor, FieldError, MovedCode, Relocation,
    WriteError,
};
use flipwave_isa::Pc;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A code object with the original kernels at their addresses and the rewritten kernels. Both access the
/// same variables, which would be duplicated by a second code object.
#[derive(Clone, Debug)]
pub struct SideBySide {
    /// The code object.
    pub object: CodeObject,
    /// Descriptor symbols of the rewritten kernels, by kernel name.
    pub rewritten: BTreeMap<Arc<str>, String>,
}

/// Errors returned when adding rewritten kernels to the original code object. The rewritten code object can
/// still replace the original one.
#[derive(Debug, thiserror::Error)]
pub enum SideBySideError {
    /// Original code was patched to enter trampolines.
    #[error("original code that cannot be moved is patched")]
    Stays,
    /// Data contain an address of code, which can refer to only one version.
    #[error("data at {address:#x} contain an address of code")]
    AddressInData {
        /// ELF virtual address of the data.
        address: u64,
    },
    /// A function may be called through a pointer, from both versions.
    #[error("function `{function}` may be called through a pointer from both versions")]
    Pointer {
        /// The function.
        function: String,
    },
    /// A descriptor cannot be encoded.
    #[error("kernel `{kernel}`: {reason}")]
    Descriptor {
        /// The kernel.
        kernel: String,
        /// The reason.
        reason: FieldError,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Rewritten {
    /// Adds the rewritten kernels to `original`, the code object that was rewritten; `program` is its
    /// code. The rewritten code has the bytes and the addresses that the checker has proved.
    ///
    /// # Errors
    /// [`SideBySideError`].
    pub fn beside(
        &self,
        original: &CodeObject,
        program: &Disassembly,
    ) -> Result<SideBySide, SideBySideError> {
        self.check(original, program)?;
        let mut editor = Editor::new(original);
        for (address, data) in self.data.iter().filter(|(_, data)| !data.is_empty()) {
            let added =
                editor.add_data(data.bytes.clone(), data.zeros, data.alignment, Vec::new())?;
            check_address("variables of hooks", *address, Pc(added))?;
        }
        editor.add_text(self.layout.address, self.layout.bytes.clone(), MovedCode::default())?;
        let start = editor.free_address();
        let mut bytes = Vec::new();
        let mut symbols = Vec::new();
        let mut rewritten = BTreeMap::new();
        for kernel in self.object.kernels() {
            let offset = bytes.len() as u64;
            let name = kernel.symbol.strip_suffix(".kd").unwrap_or(&kernel.symbol);
            let symbol = format!("{name}.flipwave.kd");
            bytes.extend(self.descriptor(&kernel.name, &kernel.descriptor, start + offset)?);
            let (size, name) = (DESCRIPTOR_SIZE as u64, symbol.clone());
            symbols.push(DataSymbol { name, offset, size });
            rewritten.insert(Arc::clone(&kernel.name), symbol);
        }
        let added = editor.add_data(bytes, 0, DESCRIPTOR_SIZE as u64, symbols)?;
        check_address("descriptors", Pc(start), Pc(added))?;
        Ok(SideBySide { object: editor.finish()?.object, rewritten })
    }

    fn check(&self, original: &CodeObject, program: &Disassembly) -> Result<(), SideBySideError> {
        if self.layout.keeps_old_text() {
            return Err(SideBySideError::Stays);
        }
        let is_code = |address: u64| {
            let mut text = original.text();
            text.any(|section| {
                address >= section.address && address - section.address < section.size
            })
        };
        let refers_to_code = |relocation: &&Relocation| {
            let symbol = relocation.symbol.as_ref().map_or(0, |symbol| symbol.address);
            is_code(symbol.wrapping_add_signed(relocation.addend))
        };
        if let Some(relocation) = original.relocations().iter().find(refers_to_code) {
            return Err(SideBySideError::AddressInData { address: relocation.place });
        }
        let calls_pointer =
            |function: &Function| function.calls.iter().any(|call| call.callee.is_none());
        let taken = program.functions.iter().find(|function| function.address_taken);
        match taken.filter(|_| program.functions.iter().any(calls_pointer)) {
            Some(function) => Err(SideBySideError::Pointer { function: function.name.to_string() }),
            None => Ok(()),
        }
    }

    /// Encodes a descriptor of the rewritten code for another address.
    fn descriptor(
        &self,
        kernel: &str,
        descriptor: &Descriptor,
        address: u64,
    ) -> Result<[u8; DESCRIPTOR_SIZE], SideBySideError> {
        let bytes = self.object.bytes_at(Pc(descriptor.address), DESCRIPTOR_SIZE);
        let bytes = bytes.and_then(|bytes| bytes.first_chunk()).copied();
        let new = Descriptor { address, ..descriptor.clone() };
        let encoded =
            new.encode(&bytes.unwrap_or([0; DESCRIPTOR_SIZE]), self.object.target().generation());
        encoded.map_err(|reason| SideBySideError::Descriptor { kernel: kernel.to_owned(), reason })
    }
}

/// Checks that data have the address that the rewritten code refers to.
fn check_address(what: &'static str, expected: Pc, address: Pc) -> Result<(), WriteError> {
    if address == expected {
        return Ok(());
    }
    Err(WriteError::Place { what, address: address.0, expected: format!("{expected}") })
}
