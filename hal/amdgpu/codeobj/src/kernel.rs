//! Kernels: metadata and descriptors, joined by the descriptor's symbol.

use crate::metadata::KernelMetadata;
use crate::symbol::{DESCRIPTOR_SUFFIX, Definition};
use crate::{Argument, CodeObject, CodeObjectError, DESCRIPTOR_SIZE, Descriptor, SymbolKind};
use flipwave_isa::Pc;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name in the source.
    pub name: Arc<str>,
    /// Name of the descriptor's symbol: the kernel's symbol followed by `.kd`.
    pub symbol: Arc<str>,
    /// The kernel descriptor.
    pub descriptor: Descriptor,
    /// Size of the code from the entry, in bytes: up to the end of the function symbol or, without
    /// one, up to the next function or the end of the segment.
    pub code_size: u64,
    /// The kernel's entry in the metadata note or, without one, values from the descriptor.
    pub metadata: KernelMetadata,
}

impl Kernel {
    /// Arguments in the order of the metadata note, including hidden ones.
    pub fn arguments(&self) -> &[Argument] {
        &self.metadata.arguments
    }

    /// ELF virtual address of the code.
    pub fn entry(&self) -> Pc {
        self.descriptor.entry
    }

    /// ELF virtual address at which waves start: see [`Descriptor::start`].
    pub fn start(&self) -> Pc {
        self.descriptor.start()
    }
}

/// Reads the kernels in the metadata, in its order, then those that have only a descriptor.
pub(crate) fn read(
    object: &CodeObject,
    kernel_metadata: Vec<KernelMetadata>,
) -> Result<Vec<Kernel>, CodeObjectError> {
    // Addresses of descriptors by symbol name.
    let descriptors = kernel_metadata.iter().map(|metadata| (metadata.symbol.clone(), None));
    let mut descriptors: FxHashMap<String, Option<u64>> = descriptors.collect();
    let symbols = object.symbol_table();
    for symbol in symbols.iter().filter(|symbol| symbol.definition() == Definition::Address) {
        if let Some(address) = descriptors.get_mut(symbol.name()) {
            *address = Some(symbol.address());
        }
    }
    let mut kernels = Vec::with_capacity(kernel_metadata.len());
    for metadata in kernel_metadata {
        let missing = |expected| CodeObjectError::MissingDescriptor {
            kernel: metadata.name.clone(),
            symbol: metadata.symbol.clone(),
            expected,
        };
        let address = descriptors
            .get(&metadata.symbol)
            .copied()
            .flatten()
            .ok_or_else(|| missing("defined in the code object"))?;
        let descriptor = descriptor(object, address)
            .ok_or_else(|| missing("for 64 bytes of a loadable segment"))?;
        kernels.push(kernel(object, descriptor, metadata)?);
    }
    for symbol in symbols.iter() {
        let is_new = symbol.kind() == SymbolKind::KernelDescriptor
            && symbol.definition() == Definition::Address
            && !descriptors.contains_key(symbol.name());
        if !is_new {
            continue;
        }
        let (symbol, address) = (symbol.name(), symbol.address());
        descriptors.insert(symbol.to_owned(), Some(address));
        let name = symbol.strip_suffix(DESCRIPTOR_SUFFIX).unwrap_or(symbol);
        let descriptor =
            descriptor(object, address).ok_or_else(|| CodeObjectError::MissingDescriptor {
                kernel: name.to_owned(),
                symbol: symbol.to_owned(),
                expected: "for 64 bytes of a loadable segment",
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
