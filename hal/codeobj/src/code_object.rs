//! A code object and what can be asked of it.

use crate::bytes::Names;
use crate::elf::Elf;
use crate::metadata::{self, Metadata};
use crate::symbol::{self, Functions};
use crate::{CodeObjectError, Kernel, Relocation, Section, Segment, Symbol, kernel, relocation};
use flipwave_isa::{Pc, Target};
use object::elf;
use std::sync::Arc;

/// An AMDGPU code object: a linked ELF file of code object version 3 to 6.
#[derive(Clone, Debug)]
pub struct CodeObject {
    file: Arc<[u8]>,
    version: u8,
    target: Target,
    segments: Vec<Segment>,
    sections: Vec<Section>,
    symbols: Vec<Symbol>,
    functions: Functions,
    relocations: Vec<Relocation>,
    metadata: Option<Metadata>,
    kernels: Vec<Kernel>,
}

impl CodeObject {
    /// Reads a code object. Whatever the bytes are, the answer is a code object or an error.
    pub fn parse(bytes: &[u8]) -> Result<CodeObject, CodeObjectError> {
        let file = Arc::from(bytes);
        let elf = Elf::parse(&file)?;
        let mut names = Names::new();
        let dynamic = symbol::read(&elf, elf::SHT_DYNSYM, &mut names)?;
        let symbols = symbol::merge(symbol::read(&elf, elf::SHT_SYMTAB, &mut names)?, &dynamic);
        let sections = elf.sections(&mut names)?;
        let mut object = CodeObject {
            version: elf.version()?,
            target: elf.target()?,
            segments: elf.segments()?,
            functions: Functions::new(&symbols, &sections),
            relocations: relocation::read(&elf, &dynamic)?,
            metadata: metadata::read(&elf.notes()?)?,
            sections,
            symbols,
            kernels: Vec::new(),
            file: Arc::clone(&file),
        };
        object.kernels = kernel::read(&object)?;
        Ok(object)
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.file
    }

    /// The code object version, 3 to 6.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// The processor and feature settings that the code was compiled for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The kernels: those of the metadata note in its order, then descriptors that the note
    /// does not mention.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The kernel with a name, with or without the `.kd` of its descriptor's symbol.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| &*kernel.name == name || &*kernel.symbol == name)
    }

    /// The metadata note, if there is one.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// The loadable segments: by ascending address, without overlap, spanning at most 4 GiB.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The sections, in the file's order.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The section with a name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| &*section.name == name)
    }

    /// The sections that hold instructions.
    pub fn text(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|section| section.executable)
    }

    /// The named symbols, undefined ones included.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Relocations to apply when the code object is loaded.
    pub fn relocations(&self) -> &[Relocation] {
        &self.relocations
    }

    /// The function that an address belongs to.
    pub fn function_at(&self, pc: Pc) -> Option<&Symbol> {
        self.functions.at(pc).and_then(|(index, _)| self.symbols.get(index))
    }

    /// `length` bytes of the file that are loaded at an address; nothing where one segment does
    /// not give them all.
    pub fn bytes_at(&self, pc: Pc, length: usize) -> Option<&[u8]> {
        let segment = self.segment_at(pc)?;
        let start = usize::try_from(pc.0 - segment.address).ok()?;
        segment.bytes().get(start..start.checked_add(length)?)
    }

    /// The segment that holds an address.
    pub fn segment_at(&self, pc: Pc) -> Option<&Segment> {
        let above = self.segments.partition_point(|segment| segment.address <= pc.0);
        self.segments.get(above.checked_sub(1)?).filter(|segment| pc.0 < segment.end())
    }

    /// End of the function or, without a symbol for it, of the segment's code at an address;
    /// nothing where there is no code.
    pub(crate) fn code_end(&self, pc: Pc) -> Option<u64> {
        let segment = self.segment_at(pc).filter(|segment| segment.executable)?;
        let limit = segment.address.saturating_add(segment.bytes().len() as u64);
        let end = match self.functions.at(pc) {
            Some((_, extent)) => extent.end.min(limit),
            None => self.functions.next(pc).map_or(limit, |next| next.min(limit)),
        };
        (pc.0 < end).then_some(end)
    }
}
