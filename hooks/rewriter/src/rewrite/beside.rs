//! Rewritten kernels beside the original ones, in one code object.

use super::Rewritten;
use crate::flow::Disassembly;
use flipwave_codeobj::{
    CodeObject, DESCRIPTOR_SIZE, DataSymbol, Descriptor, Editor, FieldError, MovedCode, WriteError,
};
use flipwave_isa::Pc;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A code object that has its kernels twice: as they were and where they were, and rewritten. Both
/// read and write the same variables, which a code object loaded beside another would have twice.
#[derive(Clone, Debug)]
pub struct SideBySide {
    /// The code object.
    pub object: CodeObject,
    /// The symbol of the descriptor of each rewritten kernel, by the kernel's name.
    pub rewritten: BTreeMap<Arc<str>, String>,
}

/// Why rewritten kernels cannot stand beside the original ones. Code that has been rewritten can
/// still take the place of the original for good.
#[derive(Debug, thiserror::Error)]
pub enum NotBeside {
    /// Original code was changed to lead to what was inserted.
    #[error("code that cannot be moved is changed where it stands")]
    Stays,
    /// Data hold addresses of code, which can be those of one version only.
    #[error("data at {place:#x} hold an address of code")]
    AddressInData {
        /// An ELF virtual address.
        place: u64,
    },
    /// One version might call a function of the other by a pointer.
    #[error("function `{function}` may be called by a pointer from either version")]
    Pointer {
        /// The function.
        function: String,
    },
    /// A descriptor.
    #[error("kernel `{kernel}`: {reason}")]
    Descriptor {
        /// The kernel.
        kernel: String,
        /// Why it cannot be written.
        reason: FieldError,
    },
    /// The file.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Rewritten {
    /// Puts the rewritten kernels beside those of `original`, which was rewritten and which
    /// `program` was read from. All of the rewritten code has the bytes and the place that the
    /// checker has seen.
    ///
    /// # Errors
    /// [`NotBeside`].
    pub fn beside(
        &self,
        original: &CodeObject,
        program: &Disassembly,
    ) -> Result<SideBySide, NotBeside> {
        self.check(original, program)?;
        let mut editor = Editor::new(original);
        for (address, data) in self.data.iter().filter(|(_, data)| !data.is_empty()) {
            let place =
                editor.add_data(data.bytes.clone(), data.zeros, data.alignment, Vec::new())?;
            moved("variables of hooks", *address, Pc(place))?;
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
        let place = editor.add_data(bytes, 0, DESCRIPTOR_SIZE as u64, symbols)?;
        moved("descriptors", Pc(start), Pc(place))?;
        Ok(SideBySide { object: editor.finish()?.object, rewritten })
    }

    fn check(&self, original: &CodeObject, program: &Disassembly) -> Result<(), NotBeside> {
        if self.layout.keeps_old_text() {
            return Err(NotBeside::Stays);
        }
        let is_code = |address: u64| {
            let mut text = original.text();
            text.any(|own| address >= own.address && address - own.address < own.size)
        };
        let address = |own: &&flipwave_codeobj::Relocation| {
            let symbol = own.symbol.as_ref().map_or(0, |symbol| symbol.address);
            is_code(symbol.wrapping_add_signed(own.addend))
        };
        if let Some(own) = original.relocations().iter().find(address) {
            return Err(NotBeside::AddressInData { place: own.place });
        }
        let by_pointer =
            |own: &crate::flow::Function| own.calls.iter().any(|call| call.callee.is_none());
        let taken = program.functions.iter().find(|own| own.address_taken);
        match taken.filter(|_| program.functions.iter().any(by_pointer)) {
            Some(own) => Err(NotBeside::Pointer { function: own.name.to_string() }),
            None => Ok(()),
        }
    }

    /// A descriptor of the rewritten code at another address.
    fn descriptor(
        &self,
        kernel: &str,
        descriptor: &Descriptor,
        address: u64,
    ) -> Result<[u8; DESCRIPTOR_SIZE], NotBeside> {
        let bytes = self.object.bytes_at(Pc(descriptor.address), DESCRIPTOR_SIZE);
        let bytes = bytes.and_then(|bytes| bytes.first_chunk()).copied();
        let new = Descriptor { address, ..descriptor.clone() };
        let encoded =
            new.encode(&bytes.unwrap_or([0; DESCRIPTOR_SIZE]), self.object.target().generation());
        encoded.map_err(|reason| NotBeside::Descriptor { kernel: kernel.to_owned(), reason })
    }
}

/// What was rewritten refers to its data by their place.
fn moved(what: &'static str, expected: Pc, place: Pc) -> Result<(), WriteError> {
    if place == expected {
        return Ok(());
    }
    Err(WriteError::Place { what, address: place.0, expected: format!("{expected}") })
}
