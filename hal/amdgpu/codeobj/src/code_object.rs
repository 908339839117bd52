//! A code object and what can be asked of it.

use crate::bytes::{Content, FileBytes, Names};
use crate::elf::{self, Elf};
use crate::metadata::{self, Metadata};
use crate::symbol::{Functions, Symbols, Table};
use crate::{CodeObjectError, Kernel, Relocation, Section, Segment, Symbol, kernel, relocation};
use flipwave_isa::{Pc, Target};
use object::elf::{SHT_DYNSYM, SHT_SYMTAB};
use std::sync::Arc;

/// An AMDGPU code object: a linked ELF file of code object version 3 to 6. Clones share it.
#[derive(Clone, Debug)]
pub struct CodeObject(Arc<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    file: Content,
    version: u8,
    target: Target,
    segments: Vec<Segment>,
    sections: Vec<Section>,
    symbols: Symbols,
    functions: Functions,
    relocations: Vec<Relocation>,
    metadata: Option<Metadata>,
    kernels: Vec<Kernel>,
}

impl CodeObject {
    /// Reads a code object. Whatever the bytes are, the answer is a code object or an error.
    pub fn parse(bytes: &[u8]) -> Result<CodeObject, CodeObjectError> {
        CodeObject::of(bytes.to_vec())
    }

    /// The same of bytes that it keeps: nothing is copied. They must stay as they are.
    ///
    /// # Errors
    /// As [`CodeObject::parse`].
    pub fn of(
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<CodeObject, CodeObjectError> {
        CodeObject::of_content(Content::new(bytes))
    }

    /// Where in memory a code object ends, an ELF virtual address, by its headers alone; nothing if they
    /// cannot be read.
    pub fn end_in_memory(bytes: &[u8]) -> Option<u64> {
        elf::end_in_memory(bytes)
    }

    pub(crate) fn of_content(file: Content) -> Result<CodeObject, CodeObjectError> {
        let elf = Elf::parse(&file)?;
        let mut names = Names::new();
        let dynamic = Table::read(&elf, SHT_DYNSYM, &mut names)?;
        let symbols = Symbols::new(Table::read(&elf, SHT_SYMTAB, &mut names)?, dynamic);
        let sections = elf.sections(&mut names)?;
        let (version, target, segments) = (elf.version()?, elf.target()?, elf.segments()?);
        let relocations = relocation::read(&elf, symbols.of_loader())?;
        let (metadata, described) = metadata::read(&elf.notes()?)?.unzip();
        let mut object = CodeObject(Arc::new(Parts {
            version,
            target,
            segments,
            functions: Functions::new(&symbols, &sections),
            relocations,
            metadata,
            sections,
            symbols,
            kernels: Vec::new(),
            file: file.clone(),
        }));
        let kernels = kernel::read(&object, described.unwrap_or_default())?;
        Arc::make_mut(&mut object.0).kernels = kernels;
        Ok(object)
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.0.file
    }

    /// The code object version, 3 to 6.
    pub fn version(&self) -> u8 {
        self.0.version
    }

    /// The processor and feature settings that the code was compiled for.
    pub fn target(&self) -> &Target {
        &self.0.target
    }

    /// The kernels: those of the metadata note in its order, then descriptors that the note
    /// does not mention.
    pub fn kernels(&self) -> &[Kernel] {
        &self.0.kernels
    }

    /// The kernel with a name, with or without the `.kd` of its descriptor's symbol.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.0.kernels.iter().find(|kernel| &*kernel.name == name || &*kernel.symbol == name)
    }

    /// The metadata note, if there is one.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.0.metadata.as_ref()
    }

    /// The loadable segments: by ascending address, without overlap, spanning at most 4 GiB.
    pub fn segments(&self) -> &[Segment] {
        &self.0.segments
    }

    /// The sections, in the file's order.
    pub fn sections(&self) -> &[Section] {
        &self.0.sections
    }

    /// The section with a name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.0.sections.iter().find(|section| &*section.name == name)
    }

    /// The sections that hold instructions.
    pub fn text(&self) -> impl Iterator<Item = &Section> {
        self.0.sections.iter().filter(|section| section.executable)
    }

    /// The named symbols, undefined ones included. They are made when they are first asked for.
    pub fn symbols(&self) -> &[Symbol] {
        self.0.symbols.all()
    }

    /// Contents of its note segments.
    pub(crate) fn notes(&self) -> Result<Vec<FileBytes>, CodeObjectError> {
        Elf::parse(&self.0.file)?.notes()
    }

    pub(crate) fn symbol_table(&self) -> &Symbols {
        &self.0.symbols
    }

    /// Those of the symbols that name functions of the code object, in their order.
    pub fn functions(&self) -> &[Symbol] {
        &self.0.functions.symbols
    }

    /// Relocations to apply when the code object is loaded.
    pub fn relocations(&self) -> &[Relocation] {
        &self.0.relocations
    }

    /// The function that an address belongs to.
    pub fn function_at(&self, pc: Pc) -> Option<&Symbol> {
        self.0.functions.at(pc).map(|(symbol, _)| symbol)
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
        let above = self.0.segments.partition_point(|segment| segment.address <= pc.0);
        self.0.segments.get(above.checked_sub(1)?).filter(|segment| pc.0 < segment.end())
    }

    /// End of the function or, without a symbol for it, of the segment's code at an address;
    /// nothing where there is no code.
    pub(crate) fn code_end(&self, pc: Pc) -> Option<u64> {
        let segment = self.segment_at(pc).filter(|segment| segment.executable)?;
        let limit = segment.address.saturating_add(segment.bytes().len() as u64);
        let end = match self.0.functions.at(pc) {
            Some((_, extent)) => extent.end.min(limit),
            None => self.0.functions.next(pc).map_or(limit, |next| next.min(limit)),
        };
        (pc.0 < end).then_some(end)
    }
}
