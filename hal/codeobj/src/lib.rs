//! AMDGPU code objects: kernels, descriptors, metadata, symbols, line tables.
//!
//! [`CodeObject::parse`] reads a linked code object of version 3 to 6.
//! No input makes it panic.

mod argument;
mod bytes;
mod code_object;
mod descriptor;
mod elf;
mod error;
mod image;
mod kernel;
mod metadata;
mod relocation;
mod symbol;

pub use argument::{Argument, ArgumentKind};
pub use code_object::CodeObject;
pub use descriptor::{
    CodeProperties, DESCRIPTOR_SIZE, Denormals, Descriptor, Exceptions, FloatMode, KernargPreload,
    Rounding, Rsrc1, Rsrc2, Rsrc3,
};
pub use elf::{Section, Segment};
pub use error::CodeObjectError;
pub use image::Image;
pub use kernel::Kernel;
pub use metadata::{KernelMetadata, Metadata};
pub use relocation::{Relocation, RelocationKind};
pub use symbol::{Definition, Symbol, SymbolKind};
