//! The code object and its queries.

use crate::bytes::{Content, FileBytes, Names};
use crate::elf::{self, Elf};
use crate::metadata::{self, Metadata};
use crate::symbol::{Functions, Symbols, Table};
use crate::{CodeObjectError, Kernel, Relocation, Section, Segment, Symbol, kernel, relocation};
use flipwave_isa::{Pc, Target};
use object::elf::{SHT_DYNSYM, SHT_SYMTAB};
use std::ops::Range;
use std::sync::Arc;

/// An AMDGPU code object: a linked ELF file of code object version 3 to 6. Clones share the parsed
/// contents.
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
    /// Parses a copy of `bytes`.
    ///
    /// # Errors
    /// [`CodeObjectError`] if the bytes are not a valid code object.
    pub fn parse(bytes: &[u8]) -> Result<CodeObject, CodeObjectError> {
        CodeObject::from_bytes(bytes.to_vec())
    }

    /// Parses `bytes` without copying them. The bytes must not change while the code object exists.
    ///
    /// # Errors
    /// [`CodeObjectError`] if the bytes are not a valid code object.
    pub fn from_bytes(
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<CodeObject, CodeObjectError> {
        CodeObject::from_content(Content::new(bytes))
    }

    /// Returns the ELF virtual address after the last loadable segment, or `None` if the headers are
    /// invalid. Reads only the headers.
    pub fn end_in_memory(bytes: &[u8]) -> Option<u64> {
        elf::end_in_memory(bytes)
    }

    pub(crate) fn from_content(file: Content) -> Result<CodeObject, CodeObjectError> {
        let elf = Elf::parse(&file)?;
        let mut names = Names::new();
        let dynamic = Table::read(&elf, SHT_DYNSYM, &mut names)?;
        let symbols = Symbols::new(Table::read(&elf, SHT_SYMTAB, &mut names)?, dynamic);
        let sections = elf.sections(&mut names)?;
        let (version, target, segments) = (elf.version()?, elf.target()?, elf.segments()?);
        let relocations = relocation::read(&elf, symbols.dynamic())?;
        let (metadata, kernel_metadata) = metadata::read(&elf.notes()?)?.unzip();
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
        let kernels = kernel::read(&object, kernel_metadata.unwrap_or_default())?;
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

    /// The kernels: those in the metadata note, in its order, then those that have only a
    /// descriptor.
    pub fn kernels(&self) -> &[Kernel] {
        &self.0.kernels
    }

    /// Finds a kernel by name, with or without the suffix `.kd` of its descriptor's symbol.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.0.kernels.iter().find(|kernel| &*kernel.name == name || &*kernel.symbol == name)
    }

    /// The metadata note, if there is one.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.0.metadata.as_ref()
    }

    /// The loadable segments by ascending address. They do not overlap and span at most 4 GiB.
    pub fn segments(&self) -> &[Segment] {
        &self.0.segments
    }

    /// The sections in file order.
    pub fn sections(&self) -> &[Section] {
        &self.0.sections
    }

    /// Finds a section by name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.0.sections.iter().find(|section| &*section.name == name)
    }

    /// The sections that contain instructions.
    pub fn text(&self) -> impl Iterator<Item = &Section> {
        self.0.sections.iter().filter(|section| section.executable)
    }

    /// The named symbols, including undefined ones. Computed on first use.
    pub fn symbols(&self) -> &[Symbol] {
        self.0.symbols.all()
    }

    /// Contents of the note segments.
    pub(crate) fn notes(&self) -> Result<Vec<FileBytes>, CodeObjectError> {
        Elf::parse(&self.0.file)?.notes()
    }

    pub(crate) fn symbol_table(&self) -> &Symbols {
        &self.0.symbols
    }

    /// Symbols of functions that the code object defines, in the order of [`CodeObject::symbols`].
    pub fn functions(&self) -> &[Symbol] {
        &self.0.functions.symbols
    }

    /// Relocations that the loader applies.
    pub fn relocations(&self) -> &[Relocation] {
        &self.0.relocations
    }

    /// The function that contains an address.
    pub fn function_at(&self, pc: Pc) -> Option<&Symbol> {
        self.0.functions.at(pc).map(|(symbol, _)| symbol)
    }

    /// The symbol and the addresses of the function that contains an address. A function whose symbol
    /// has no size extends to the next one.
    pub fn function_extent(&self, pc: Pc) -> Option<(&Symbol, Range<Pc>)> {
        let (symbol, Range { start, end }) = self.0.functions.at(pc)?;
        Some((symbol, Pc(start)..Pc(end)))
    }

    /// Returns the `length` bytes of file contents loaded at an address, or `None` if no single
    /// segment contains them all.
    pub fn bytes_at(&self, pc: Pc, length: usize) -> Option<&[u8]> {
        let segment = self.segment_at(pc)?;
        let start = usize::try_from(pc.0 - segment.address).ok()?;
        segment.bytes().get(start..start.checked_add(length)?)
    }

    /// The segment that contains an address.
    pub fn segment_at(&self, pc: Pc) -> Option<&Segment> {
        let above = self.0.segments.partition_point(|segment| segment.address <= pc.0);
        self.0.segments.get(above.checked_sub(1)?).filter(|segment| pc.0 < segment.end())
    }

    /// End address of the code at `pc`: the end of its function or, without a function symbol, the
    /// next function or the end of the segment. `None` if there is no code at `pc`.
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
