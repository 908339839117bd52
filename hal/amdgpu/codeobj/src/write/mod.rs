//! Changed code objects: new code, new data, other descriptors and metadata, in an ELF file that
//! a loader accepts.
//!
//! What is not changed keeps its address. New code and data go after everything; so do the note
//! and the tables of dynamic symbols, which may have grown. Offsets in the file are all new.

mod bundle;
mod code;
mod debug;
mod error;
mod layout;
mod loaded;
mod moved;
mod note;
mod reduced;
mod symbols;

pub use bundle::replace_code_objects;
pub use error::WriteError;
pub use moved::MovedCode;
pub use note::MetadataChange;

use crate::{CodeObject, Descriptor};
use flipwave_isa::Pc;
use layout::NewSegment;
use moved::CodeMap;
use object::build::elf::{Builder, SectionData, SectionId};
use object::elf;
use std::collections::BTreeMap;
use std::ops::Range;

/// Page size that segments are aligned to, in bytes.
const PAGE: u64 = 4096;

/// A symbol of new data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// Its name.
    pub name: String,
    /// Where it lies, in bytes from the start of the new data.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// A changed code object.
#[derive(Clone, Debug)]
pub struct Written {
    /// The code object.
    pub object: CodeObject,
    /// Why its debug information is gone, if it could not follow the code that moved.
    pub debug_lost: Option<String>,
}

/// Changes to a code object. Nothing is done before [`Editor::finish`].
#[derive(Clone, Debug)]
pub struct Editor<'a> {
    object: &'a CodeObject,
    /// After everything that has an address.
    end: u64,
    added: Vec<Added>,
    patches: Vec<(u64, Vec<u8>)>,
    moved: CodeMap,
    descriptors: BTreeMap<usize, Descriptor>,
    metadata: BTreeMap<usize, MetadataChange>,
}

/// A new segment.
#[derive(Clone, Debug)]
struct Added {
    what: What,
    address: u64,
    bytes: Vec<u8>,
    zero_size: u64,
    symbols: Vec<DataSymbol>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Data,
    /// In place of the old `.text`.
    MovedText,
    /// Besides the old `.text`.
    FurtherText,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Data => "new data",
            What::MovedText | What::FurtherText => "new code",
        }
    }
}

impl<'a> Editor<'a> {
    /// No changes yet.
    pub fn new(object: &'a CodeObject) -> Editor<'a> {
        Editor {
            object,
            end: object.segments().last().map_or(0, |segment| segment.end()),
            added: Vec::new(),
            patches: Vec::new(),
            moved: CodeMap::default(),
            descriptors: BTreeMap::new(),
            metadata: BTreeMap::new(),
        }
    }

    /// The first page after everything there is so far: where new code may go. An ELF virtual
    /// address.
    pub fn free_address(&self) -> u64 {
        self.end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
    }

    /// Adds memory that the code may read and write: `bytes`, and `zero_size` bytes of zeros
    /// after them. The symbols are visible to a runtime. Gives the ELF virtual address of the
    /// first byte.
    ///
    /// # Errors
    /// [`WriteError::Place`] if the alignment is no power of two, if a symbol lies outside, or if
    /// there is no room.
    pub fn add_data(
        &mut self,
        bytes: Vec<u8>,
        zero_size: u64,
        alignment: u64,
        symbols: Vec<DataSymbol>,
    ) -> Result<u64, WriteError> {
        let place = |expected: String| WriteError::Place {
            what: What::Data.name(),
            address: self.free_address(),
            expected,
        };
        if !alignment.is_power_of_two() {
            return Err(place(format!("a power of two as alignment, not {alignment}")));
        }
        let size = (bytes.len() as u64).saturating_add(zero_size);
        let inside = |symbol: &DataSymbol| {
            symbol.offset.checked_add(symbol.size).is_some_and(|end| end <= size)
        };
        if let Some(symbol) = symbols.iter().find(|symbol| !inside(symbol)) {
            let name = &symbol.name;
            return Err(place(format!("symbol `{name}` inside the {size:#x} bytes of data")));
        }
        let address = self
            .end
            .checked_next_multiple_of(alignment.max(PAGE))
            .ok_or_else(|| place("room in the address space".to_owned()))?;
        self.add(Added { what: What::Data, address, bytes, zero_size, symbols })?;
        Ok(address)
    }

    /// Replaces the section `.text`, the only one with code, by `bytes` at `address`.
    ///
    /// Symbols, descriptors, relocations and DWARF follow `moved`, which has all instructions;
    /// places in the code and data that depend on distances are the caller's care.
    ///
    /// # Errors
    /// [`WriteError::Place`] if the address is not the start of a page after everything else, or
    /// a run is outside; [`WriteError::Unsupported`] if code has been put somewhere already, or
    /// there are several sections with code.
    pub fn move_text(
        &mut self,
        address: u64,
        bytes: Vec<u8>,
        moved: MovedCode,
    ) -> Result<(), WriteError> {
        let sections = self.object.text().count();
        if sections != 1 {
            let what = format!("{sections} sections with code");
            return Err(WriteError::unsupported(what, "one, to move it"));
        }
        self.add_code(What::MovedText, address, bytes, moved)
    }

    /// Adds code; the old code stays where it is. What refers to instructions in `moved` follows.
    ///
    /// # Errors
    /// [`WriteError::Place`] if the address is not the start of a page after everything else, or
    /// a run is outside; [`WriteError::Unsupported`] if code has been put somewhere already.
    pub fn add_text(
        &mut self,
        address: u64,
        bytes: Vec<u8>,
        moved: MovedCode,
    ) -> Result<(), WriteError> {
        self.add_code(What::FurtherText, address, bytes, moved)
    }

    /// Writes over contents of the file that are loaded at an address: code or data that stays.
    ///
    /// # Errors
    /// [`WriteError::Place`] if one section does not hold all of them.
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
                expected: format!("{length:#x} bytes of a section that is loaded"),
            });
        }
        self.patches.push((address, bytes));
        Ok(())
    }

    /// Gives a kernel another descriptor. An entry in code that moves is followed.
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

    /// Changes what the metadata note says of a kernel. A kernel that the note does not mention
    /// stays without.
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

    /// The changed code object.
    ///
    /// # Errors
    /// [`WriteError`]; the code object edited is untouched.
    pub fn finish(self) -> Result<Written, WriteError> {
        let mut builder = Builder::read64(self.object.bytes())?;
        layout::check(&builder, self.object)?;
        for (address, bytes) in &self.patches {
            code::patch(&mut builder, *address, bytes)?;
        }
        self.rewrite_notes(&mut builder)?;
        let segments = self
            .added
            .iter()
            .map(|added| add_sections(&mut builder, added))
            .collect::<Result<Vec<_>, _>>()?;
        let mut debug_lost = None;
        if self.has_code() {
            code::follow(&mut builder, &self.moved, self.object)?;
            debug_lost = debug::follow(&mut builder, self.object, &self.moved);
        }
        self.write_descriptors(&mut builder)?;
        symbols::size_hash_tables(&mut builder);
        layout::place(&mut builder, segments, self.free_address())?;
        let mut bytes = Vec::new();
        builder.write(&mut bytes)?;
        Ok(Written { object: CodeObject::of(bytes)?, debug_lost })
    }

    fn add_code(
        &mut self,
        what: What,
        address: u64,
        bytes: Vec<u8>,
        moved: MovedCode,
    ) -> Result<(), WriteError> {
        if self.has_code() {
            return Err(WriteError::unsupported("new code twice", "all new code at once"));
        }
        let place = |address, expected| WriteError::Place { what: what.name(), address, expected };
        if address < self.end || !address.is_multiple_of(PAGE) {
            let expected = format!("the start of a page, {:#x} or later", self.free_address());
            return Err(place(address, expected));
        }
        let text = address..address.saturating_add(bytes.len() as u64);
        let is_inside = |new: &Range<u64>| text.start <= new.start && new.end <= text.end;
        if let Some((run, _)) = moved.runs.iter().find(|(run, _)| !is_inside(run)) {
            let expected = format!("a run inside {:#x} to {:#x}", text.start, text.end);
            return Err(place(run.start, expected));
        }
        self.add(Added { what, address, bytes, zero_size: 0, symbols: Vec::new() })?;
        self.moved = CodeMap::new(moved, what == What::FurtherText);
        Ok(())
    }

    fn has_code(&self) -> bool {
        self.added.iter().any(|added| added.what != What::Data)
    }

    fn add(&mut self, added: Added) -> Result<(), WriteError> {
        let size = (added.bytes.len() as u64).checked_add(added.zero_size);
        self.end = size.and_then(|size| added.address.checked_add(size)).ok_or_else(|| {
            WriteError::Place {
                what: added.what.name(),
                address: added.address,
                expected: "an end inside the address space".to_owned(),
            }
        })?;
        self.added.push(added);
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
        let is_gone = self.has_code() && !self.moved.keeps_old();
        let old = self.object.text().next().filter(|_| is_gone);
        for (index, kernel) in self.object.kernels().iter().enumerate() {
            let mut descriptor = self.descriptors.get(&index).unwrap_or(&kernel.descriptor).clone();
            let entry = descriptor.entry.0;
            let gone = old.is_some_and(|old| {
                entry.checked_sub(old.address).is_some_and(|offset| offset < old.size)
            });
            match self.moved.start(entry) {
                Some(moved) => descriptor.entry = Pc(moved),
                None if gone => {
                    return Err(WriteError::NotMoved {
                        what: format!("the entry of kernel `{}`", kernel.name),
                        address: entry,
                    });
                }
                None => {}
            }
            let address = kernel.descriptor.address;
            let original = code::bytes_at(builder, address).ok_or_else(|| {
                let what = format!("the descriptor of kernel `{}`", kernel.name);
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

/// Makes the sections of a new segment, with their symbols.
fn add_sections(builder: &mut Builder<'_>, added: &Added) -> Result<NewSegment, WriteError> {
    match added.what {
        What::MovedText => code::replace_text(builder, added)?,
        What::FurtherText => {
            let flags = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
            add_section(builder, ".text.flipwave", flags, added);
        }
        What::Data => {
            let flags = elf::SHF_ALLOC | elf::SHF_WRITE;
            let mut sections = vec![add_section(builder, ".data.flipwave", flags, added)];
            if added.zero_size > 0 {
                let bss = builder.sections.add();
                bss.name = b".bss.flipwave"[..].into();
                bss.sh_type = elf::SHT_NOBITS;
                bss.sh_flags = flags;
                bss.sh_addr = added.address + added.bytes.len() as u64;
                bss.sh_addralign = 1;
                bss.data = SectionData::UninitializedData(added.zero_size);
                sections.push(bss.id());
            }
            symbols::add(builder, added, &sections);
        }
    }
    Ok(NewSegment {
        address: added.address,
        is_code: added.what != What::Data,
        is_writable: added.what == What::Data,
        file_size: added.bytes.len() as u64,
        zero_size: added.zero_size,
    })
}

fn add_section(
    builder: &mut Builder<'_>,
    name: &'static str,
    flags: elf::SectionFlags,
    added: &Added,
) -> SectionId {
    let section = builder.sections.add();
    section.name = name.as_bytes().into();
    section.sh_type = elf::SHT_PROGBITS;
    section.sh_flags = flags;
    section.sh_addr = added.address;
    section.sh_addralign = PAGE;
    section.data = SectionData::Data(added.bytes.clone().into());
    section.id()
}
