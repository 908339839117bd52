//! Editing of code objects: moves code, adds code and data, and changes descriptors and metadata.
//! The result is an ELF file that loaders accept.
//!
//! Unchanged contents keep their addresses. New code and data are placed after all existing
//! addresses, as are the metadata note and the dynamic symbol tables, which may have grown. All file
//! offsets are assigned again.

mod bundle;
mod code;
mod debug;
mod error;
mod extract;
mod from_memory;
mod layout;
mod moved;
mod note;
mod symbols;

pub use bundle::replace_code_objects;
pub use error::WriteError;
pub use moved::MovedCode;
pub use note::MetadataChange;

use crate::{CodeObject, Descriptor};
use flipwave_isa::Pc;
use layout::NewSegment;
use moved::{CodeMap, OldCode};
use object::build::elf::{Builder, SectionData, SectionId};
use object::elf;
use std::collections::BTreeMap;
use std::ops::Range;

/// Page size that segments are aligned to, in bytes.
const PAGE: u64 = 4096;

/// A symbol of new data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// The name.
    pub name: String,
    /// Offset from the start of the new data, in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

/// The result of editing a code object.
#[derive(Clone, Debug)]
pub struct Written {
    /// The changed code object.
    pub object: CodeObject,
    /// Reason why the debug information could not be updated for moved code and was removed.
    pub debug_lost: Option<String>,
}

/// A builder of changes to a code object, applied by [`Editor::finish`].
#[derive(Clone, Debug)]
pub struct Editor<'a> {
    object: &'a CodeObject,
    /// First address after all segments, old and new.
    end: u64,
    new_segments: Vec<NewContents>,
    patches: Vec<(u64, Vec<u8>)>,
    moved: CodeMap,
    descriptors: BTreeMap<usize, Descriptor>,
    metadata: BTreeMap<usize, MetadataChange>,
}

/// The contents of a new segment.
#[derive(Clone, Debug)]
struct NewContents {
    kind: NewKind,
    address: u64,
    bytes: Vec<u8>,
    zero_size: u64,
    symbols: Vec<DataSymbol>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewKind {
    Data,
    /// Code that replaces the old `.text`.
    MovedText,
    /// Code in addition to the old `.text`.
    AddedText,
}

impl NewKind {
    fn name(self) -> &'static str {
        match self {
            NewKind::Data => "new data",
            NewKind::MovedText | NewKind::AddedText => "new code",
        }
    }
}

impl<'a> Editor<'a> {
    /// Creates an editor without changes.
    pub fn new(object: &'a CodeObject) -> Editor<'a> {
        Editor {
            object,
            end: object.segments().last().map_or(0, |segment| segment.end()),
            new_segments: Vec::new(),
            patches: Vec::new(),
            moved: CodeMap::default(),
            descriptors: BTreeMap::new(),
            metadata: BTreeMap::new(),
        }
    }

    /// ELF virtual address of the first page after all segments, old and new: the lowest address for
    /// new code.
    pub fn free_address(&self) -> u64 {
        self.end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
    }

    /// Adds readable and writable memory: `bytes` followed by `zero_size` zero bytes. The symbols are
    /// visible to the runtime. Returns the ELF virtual address of the first byte.
    ///
    /// # Errors
    /// [`WriteError::Place`] if the alignment is not a power of two, a symbol lies outside the data,
    /// or the address space is exhausted.
    pub fn add_data(
        &mut self,
        bytes: Vec<u8>,
        zero_size: u64,
        alignment: u64,
        symbols: Vec<DataSymbol>,
    ) -> Result<u64, WriteError> {
        let misplaced = |expected: String| WriteError::Place {
            what: NewKind::Data.name(),
            address: self.free_address(),
            expected,
        };
        if !alignment.is_power_of_two() {
            return Err(misplaced(format!("a power of two as alignment, not {alignment}")));
        }
        let size = (bytes.len() as u64).saturating_add(zero_size);
        let inside = |symbol: &DataSymbol| {
            symbol.offset.checked_add(symbol.size).is_some_and(|end| end <= size)
        };
        if let Some(symbol) = symbols.iter().find(|symbol| !inside(symbol)) {
            let name = &symbol.name;
            return Err(misplaced(format!("symbol `{name}` inside the {size:#x} bytes of data")));
        }
        let address = self
            .end
            .checked_next_multiple_of(alignment.max(PAGE))
            .ok_or_else(|| misplaced("room in the address space".to_owned()))?;
        self.add(NewContents { kind: NewKind::Data, address, bytes, zero_size, symbols })?;
        Ok(address)
    }

    /// Replaces the only code section, `.text`, with `bytes` at `address`.
    ///
    /// Symbols, descriptors, relocations and DWARF are updated according to `moved`, which lists all
    /// instructions. The caller updates PC-relative offsets in code and data.
    ///
    /// # Errors
    /// [`WriteError::Place`] if the address is not page-aligned, not after all segments, or if a run
    /// lies outside the new code; [`WriteError::Unsupported`] if code was moved or added before, or if
    /// the code object does not have exactly one code section.
    pub fn move_text(
        &mut self,
        address: u64,
        bytes: Vec<u8>,
        moved: MovedCode,
    ) -> Result<(), WriteError> {
        let sections = self.object.text().count();
        if sections != 1 {
            let what = format!("{sections} code sections");
            return Err(WriteError::unsupported(what, "exactly one, to move it"));
        }
        self.add_code(NewKind::MovedText, address, bytes, moved)
    }

    /// Adds code and keeps the old code. References to instructions in `moved` are updated.
    ///
    /// # Errors
    /// [`WriteError::Place`] if the address is not page-aligned, not after all segments, or if a run
    /// lies outside the new code; [`WriteError::Unsupported`] if code was moved or added before.
    pub fn add_text(
        &mut self,
        address: u64,
        bytes: Vec<u8>,
        moved: MovedCode,
    ) -> Result<(), WriteError> {
        self.add_code(NewKind::AddedText, address, bytes, moved)
    }

    /// Overwrites loaded code or data at an address.
    ///
    /// # Errors
    /// [`WriteError::Place`] if no single section contains the whole range.
    pub fn patch(&mut self, address: u64, bytes: Vec<u8>) -> Result<(), WriteError> {
        let length = bytes.len() as u64;
        let holds = |section: &&crate::Section| {
            let size = section.bytes().len() as u64;
            let start = address.checked_sub(section.address).filter(|_| section.allocated);
            start.and_then(|start| size.checked_sub(start)).is_some_and(|room| length <= room)
        };
        if self.object.sections().iter().find(holds).is_none() {
            return Err(WriteError::Place {
                what: "a patch",
                address,
                expected: format!("{length:#x} bytes of a loaded section"),
            });
        }
        self.patches.push((address, bytes));
        Ok(())
    }

    /// Replaces a kernel's descriptor. If the entry's code moves, the entry is updated.
    ///
    /// # Errors
    /// [`WriteError::UnknownKernel`].
    pub fn set_descriptor(
        &mut self,
        kernel: usize,
        descriptor: Descriptor,
    ) -> Result<(), WriteError> {
        self.check_kernel(kernel)?;
        self.descriptors.insert(kernel, descriptor);
        Ok(())
    }

    /// Changes a kernel's entry in the metadata note. Has no effect on a kernel without an entry.
    ///
    /// # Errors
    /// [`WriteError::UnknownKernel`].
    pub fn set_metadata(
        &mut self,
        kernel: usize,
        change: MetadataChange,
    ) -> Result<(), WriteError> {
        self.check_kernel(kernel)?;
        self.metadata.insert(kernel, change);
        Ok(())
    }

    /// Applies the changes and returns the changed code object.
    ///
    /// # Errors
    /// [`WriteError`] if a change cannot be applied or the file has unsupported structures.
    pub fn finish(self) -> Result<Written, WriteError> {
        let mut builder = Builder::read64(self.object.bytes())?;
        layout::check(&builder, self.object)?;
        for (address, bytes) in &self.patches {
            code::patch(&mut builder, *address, bytes)?;
        }
        self.rewrite_notes(&mut builder)?;
        let segments = self
            .new_segments
            .iter()
            .map(|contents| add_sections(&mut builder, contents))
            .collect::<Result<Vec<_>, _>>()?;
        let mut debug_lost = None;
        if self.has_new_code() {
            code::update_references(&mut builder, &self.moved, self.object)?;
            debug_lost = debug::update(&mut builder, self.object, &self.moved);
        }
        self.write_descriptors(&mut builder)?;
        symbols::size_hash_tables(&mut builder);
        layout::place(&mut builder, segments, self.free_address())?;
        let mut bytes = Vec::new();
        builder.write(&mut bytes)?;
        Ok(Written { object: CodeObject::from_bytes(bytes)?, debug_lost })
    }

    fn add_code(
        &mut self,
        kind: NewKind,
        address: u64,
        bytes: Vec<u8>,
        moved: MovedCode,
    ) -> Result<(), WriteError> {
        if self.has_new_code() {
            return Err(WriteError::unsupported(
                "code is moved or added twice",
                "all code at once",
            ));
        }
        let misplaced =
            |address, expected| WriteError::Place { what: kind.name(), address, expected };
        if address < self.end || !address.is_multiple_of(PAGE) {
            let expected = format!("the start of a page, {:#x} or later", self.free_address());
            return Err(misplaced(address, expected));
        }
        let text = address..address.saturating_add(bytes.len() as u64);
        let is_inside = |new: &Range<u64>| text.start <= new.start && new.end <= text.end;
        if let Some((run, _)) = moved.runs.iter().find(|(run, _)| !is_inside(run)) {
            let expected = format!("a run inside {:#x} to {:#x}", text.start, text.end);
            return Err(misplaced(run.start, expected));
        }
        self.add(NewContents { kind, address, bytes, zero_size: 0, symbols: Vec::new() })?;
        let old_code = if kind == NewKind::AddedText { OldCode::Kept } else { OldCode::Replaced };
        self.moved = CodeMap::new(moved, old_code);
        Ok(())
    }

    fn has_new_code(&self) -> bool {
        self.new_segments.iter().any(|contents| contents.kind != NewKind::Data)
    }

    fn add(&mut self, contents: NewContents) -> Result<(), WriteError> {
        let size = (contents.bytes.len() as u64).checked_add(contents.zero_size);
        self.end = size.and_then(|size| contents.address.checked_add(size)).ok_or_else(|| {
            WriteError::Place {
                what: contents.kind.name(),
                address: contents.address,
                expected: "an end inside the address space".to_owned(),
            }
        })?;
        self.new_segments.push(contents);
        Ok(())
    }

    fn check_kernel(&self, kernel: usize) -> Result<(), WriteError> {
        let count = self.object.kernels().len();
        if kernel < count { Ok(()) } else { Err(WriteError::UnknownKernel { kernel, count }) }
    }

    fn rewrite_notes(&self, builder: &mut Builder<'_>) -> Result<(), WriteError> {
        if self.metadata.is_empty() {
            return Ok(());
        }
        for section in &mut builder.sections {
            let SectionData::Note(note) = &mut section.data else { continue };
            if !section.sh_flags.contains(elf::SHF_ALLOC) {
                continue;
            }
            if let Some(changed) = note::rewrite(note, section.sh_offset, &self.metadata)? {
                *note = changed.into();
                break;
            }
        }
        Ok(())
    }

    fn write_descriptors(&self, builder: &mut Builder<'_>) -> Result<(), WriteError> {
        let generation = self.object.target().generation();
        let is_replaced = self.has_new_code() && !self.moved.keeps_old_code();
        let replaced_text = self.object.text().next().filter(|_| is_replaced);
        for (index, kernel) in self.object.kernels().iter().enumerate() {
            let mut descriptor = self.descriptors.get(&index).unwrap_or(&kernel.descriptor).clone();
            let entry = descriptor.entry.0;
            let in_replaced_text = replaced_text.is_some_and(|text| {
                entry.checked_sub(text.address).is_some_and(|offset| offset < text.size)
            });
            match self.moved.new_address(entry) {
                Some(moved) => descriptor.entry = Pc(moved),
                None if in_replaced_text => {
                    return Err(WriteError::NotMoved {
                        what: format!("the entry of kernel `{}`", kernel.name),
                        address: entry,
                    });
                }
                None => {}
            }
            let address = kernel.descriptor.address;
            let original = code::bytes_at(builder, address).ok_or_else(|| {
                let what = format!("the descriptor of kernel `{}` is in no section", kernel.name);
                WriteError::unsupported(what, "64 bytes of a section")
            })?;
            let bytes = descriptor.encode(&original, generation).map_err(|reason| {
                WriteError::Descriptor { kernel: kernel.name.to_string(), reason }
            })?;
            code::patch(builder, address, &bytes)?;
        }
        Ok(())
    }
}

/// Adds the sections and symbols of a new segment.
fn add_sections<'a>(
    builder: &mut Builder<'a>,
    contents: &'a NewContents,
) -> Result<NewSegment, WriteError> {
    match contents.kind {
        NewKind::MovedText => code::replace_text(builder, contents)?,
        NewKind::AddedText => {
            let flags = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
            add_section(builder, ".text.flipwave", flags, contents);
        }
        NewKind::Data => {
            let flags = elf::SHF_ALLOC | elf::SHF_WRITE;
            let mut sections = vec![add_section(builder, ".data.flipwave", flags, contents)];
            if contents.zero_size > 0 {
                let bss = builder.sections.add();
                bss.name = b".bss.flipwave"[..].into();
                bss.sh_type = elf::SHT_NOBITS;
                bss.sh_flags = flags;
                bss.sh_addr = contents.address + contents.bytes.len() as u64;
                bss.sh_addralign = 1;
                bss.data = SectionData::UninitializedData(contents.zero_size);
                sections.push(bss.id());
            }
            symbols::add(builder, contents, &sections);
        }
    }
    let access = if contents.kind == NewKind::Data { elf::PF_W } else { elf::PF_X };
    Ok(NewSegment {
        address: contents.address,
        flags: elf::PF_R | access,
        file_size: contents.bytes.len() as u64,
        zero_size: contents.zero_size,
    })
}

fn add_section<'a>(
    builder: &mut Builder<'a>,
    name: &'static str,
    flags: elf::SectionFlags,
    contents: &'a NewContents,
) -> SectionId {
    let section = builder.sections.add();
    section.name = name.as_bytes().into();
    section.sh_type = elf::SHT_PROGBITS;
    section.sh_flags = flags;
    section.sh_addr = contents.address;
    section.sh_addralign = PAGE;
    section.data = SectionData::Data(contents.bytes.as_slice().into());
    section.id()
}
