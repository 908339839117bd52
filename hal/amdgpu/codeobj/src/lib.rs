//! AMDGPU code objects: kernels, descriptors, metadata, symbols, line tables.
//!
//! [`CodeObject::parse`] reads a linked code object of version 3 to 6; [`open`] also extracts code
//! objects from offload bundles and HIP programs. Neither panics on malformed input.

mod argument;
mod bundle;
mod bytes;
mod code_object;
mod compression;
mod descriptor;
mod elf;
mod embedded;
mod error;
mod format;
mod image;
mod initial;
mod inlined;
mod kernel;
mod lines;
mod mapped;
mod metadata;
mod relocation;
mod symbol;
mod write;

pub use argument::{Argument, ArgumentKind};
pub use bundle::{BundleEntry, entries, open, open_all, open_linked};
pub use bytes::FileBytes;
pub use code_object::CodeObject;
pub use descriptor::{
    CodeProperties, DESCRIPTOR_SIZE, Denormals, Descriptor, Exceptions, FieldError, FloatMode,
    KernargPreload, Rounding, Rsrc1, Rsrc2, Rsrc3,
};
pub use elf::{Section, Segment};
pub use error::CodeObjectError;
pub use flipwave_arch::SourceLine;
pub use image::Image;
pub use initial::{InitialSgprs, InitialValue};
pub use inlined::{FunctionFrame, InlinedFunctions};
pub use kernel::Kernel;
pub use lines::LineTable;
pub use mapped::MappedFile;
pub use metadata::{KernelMetadata, Metadata};
pub use relocation::{Relocation, RelocationKind};
pub use symbol::{Definition, Symbol, SymbolKind};
pub use write::{
    DataSymbol, Editor, MetadataChange, MovedCode, WriteError, Written, replace_code_objects,
};
