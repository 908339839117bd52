//! Kernels: the metadata and the descriptor of each, joined by the descriptor's symbol.

use crate::metadata::KernelMetadata;
use crate::symbol::{DESCRIPTOR_SUFFIX, Definition};
use crate::{Argument, CodeObject, CodeObjectError, DESCRIPTOR_SIZE, Descriptor, SymbolKind};
use flipwave_isa::Pc;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name in the source.
    pub name: Arc<str>,
    /// Name of the descriptor's symbol: the kernel's symbol with `.kd` after it.
    pub symbol: Arc<str>,
    /// The descriptor.
    pub descriptor: Descriptor,
    /// Size of the code from the entry on, in bytes: that of the function's symbol; without one,
    /// up to the next function or the end of the section.
    pub code_size: u64,
    /// What the note says of it. Without a note: what the descriptor says.
    pub metadata: KernelMetadata,
}

impl Kernel {
    /// Arguments in the order of the note, hidden ones included.
    pub fn arguments(&self) -> &[Argument] {
        &self.metadata.arguments
    }

    /// Where the code lies, an ELF virtual address.
    pub fn entry(&self) -> Pc {
        self.descriptor.entry
    }

    /// Where waves begin, an ELF virtual address: see [`Descriptor::start`].
    pub fn start(&self) -> Pc {
        self.descriptor.start()
    }
}

/// Kernels of the metadata in its order, then descriptors that the metadata does not mention.
pub(crate) fn read(
    object: &CodeObject,
    described: Vec<KernelMetadata>,
) -> Result<Vec<Kernel>, CodeObjectError> {
    let named = described.iter().map(|metadata| (metadata.symbol.clone(), None));
    let mut named: FxHashMap<String, Option<u64>> = named.collect();
    let symbols = object.symbol_table();
    for symbol in symbols.iter().filter(|symbol| symbol.definition() == Definition::Address) {
        if let Some(address) = named.get_mut(symbol.name()) {
            *address = Some(symbol.address());
        }
    }
    let mut kernels = Vec::with_capacity(described.len());
    for metadata in described {
        let missing = |expected| CodeObjectError::MissingDescriptor {
            kernel: metadata.name.clone(),
            symbol: metadata.symbol.clone(),
            expected,
        };
        let address = named
            .get(&metadata.symbol)
            .copied()
            .flatten()
            .ok_or_else(|| missing("that the code object defines"))?;
        let descriptor = descriptor(object, address)
            .ok_or_else(|| missing("at 64 bytes of a loadable segment"))?;
        kernels.push(kernel(object, descriptor, metadata)?);
    }
    for symbol in symbols.iter() {
        let is_new = symbol.kind() == SymbolKind::KernelDescriptor
            && symbol.definition() == Definition::Address
            && !named.contains_key(symbol.name());
        if !is_new {
            continue;
        }
        let (symbol, address) = (symbol.name(), symbol.address());
        named.insert(symbol.to_owned(), Some(address));
        let name = symbol.strip_suffix(DESCRIPTOR_SUFFIX).unwrap_or(symbol);
        let descriptor =
            descriptor(object, address).ok_or_else(|| CodeObjectError::MissingDescriptor {
                kernel: name.to_owned(),
                symbol: symbol.to_owned(),
                expected: "at 64 bytes of a loadable segment",
            })?;
        let metadata = KernelMetadata::from_descriptor(name, symbol, &descriptor);
        kernels.push(kernel(object, descriptor, metadata)?);
    }
    Ok(kernels)
}

fn descriptor(object: &CodeObject, address: u64) -> Option<Descriptor> {
    let bytes = object.bytes_at(Pc(address), DESCRIPTOR_SIZE)?.first_chunk()?;
    Some(Descriptor::decode(bytes, address, object.target().generation()))
}

fn kernel(
    object: &CodeObject,
    descriptor: Descriptor,
    metadata: KernelMetadata,
) -> Result<Kernel, CodeObjectError> {
    let entry = descriptor.entry;
    let code_end = object.code_end(entry).ok_or(CodeObjectError::EntryOutsideCode {
        descriptor: descriptor.address,
        entry: entry.0,
    })?;
    Ok(Kernel {
        name: Arc::from(metadata.name.as_str()),
        symbol: Arc::from(metadata.symbol.as_str()),
        descriptor,
        code_size: code_end - entry.0,
        metadata,
    })
}
