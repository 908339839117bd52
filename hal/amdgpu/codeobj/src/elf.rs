//! The ELF container: header, sections, segments.

use crate::CodeObjectError;
use crate::bytes::{Content, FileBytes, Names};
use crate::format::describe;
use flipwave_isa::{Setting, Target};
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::FileHeader;
use std::sync::Arc;

/// `ELFOSABI_AMDGPU_HSA` (AMDGPUUsage, "ELF Header").
const OSABI_AMDGPU_HSA: u8 = 64;

/// The largest memory image of a code object, in bytes.
pub(crate) const IMAGE_LIMIT: u64 = 4 << 30;

/// The headers of a validated AMDGPU ELF file.
pub(crate) struct Elf<'a> {
    pub(crate) file: &'a Content,
    header: &'a FileHeader64<LE>,
    pub(crate) program_headers: &'a [ProgramHeader64<LE>],
    pub(crate) section_headers: &'a [SectionHeader64<LE>],
}

impl<'a> Elf<'a> {
    pub(crate) fn parse(file: &'a Content) -> Result<Elf<'a>, CodeObjectError> {
        let data: &[u8] = file;
        let not_code_object =
            |found: String, expected| CodeObjectError::NotCodeObject { found, expected };
        if !data.starts_with(&elf::ELFMAG) {
            return Err(not_code_object(
                describe(data),
                "an ELF file, which begins with [7f, 45, 4c, 46]",
            ));
        }
        let header = FileHeader64::<LE>::parse(data).map_err(|_| {
            not_code_object(
                format!("invalid ELF header of {} bytes", data.len().min(64)),
                "a 64-bit little-endian ELF file",
            )
        })?;
        if header.e_machine(LE) != elf::EM_AMDGPU {
            return Err(not_code_object(
                format!("the machine is {} (byte 0x12)", header.e_machine(LE).0),
                "224, EM_AMDGPU",
            ));
        }
        let os_abi = header.e_ident().os_abi.0;
        if os_abi != OSABI_AMDGPU_HSA {
            return Err(not_code_object(
                format!("the OS ABI is {os_abi} (byte 0x7)"),
                "64, AMDGPU_HSA",
            ));
        }
        if header.e_type(LE) == elf::ET_REL {
            return Err(CodeObjectError::NotLinked);
        }
        if header.e_type(LE) != elf::ET_DYN {
            return Err(not_code_object(
                format!("the ELF type is {} (byte 0x10)", header.e_type(LE).0),
                "3, a linked shared object",
            ));
        }
        let program_headers = header.program_headers(LE, data).map_err(|_| {
            let offset = header.e_phoff(LE);
            CodeObjectError::malformed("program header table", offset, "entries inside the file")
        })?;
        let section_headers = header.section_headers(LE, data).map_err(|_| {
            let offset = header.e_shoff(LE);
            CodeObjectError::malformed("section header table", offset, "entries inside the file")
        })?;
        Ok(Elf { file, header, program_headers, section_headers })
    }

    /// File offset of the program header table, in bytes.
    pub(crate) fn program_header_table(&self) -> usize {
        self.header.e_phoff(LE) as usize
    }

    /// Returns `true` if `bytes` are an ELF file for an AMD GPU.
    pub(crate) fn is_for_gpu(bytes: &[u8]) -> bool {
        let header = FileHeader64::<LE>::parse(bytes);
        header.is_ok_and(|header| header.e_machine(LE) == elf::EM_AMDGPU)
    }

    /// Returns `true` if `bytes` are a relocatable object for an AMD GPU.
    pub(crate) fn is_relocatable(bytes: &[u8]) -> bool {
        let header = FileHeader64::<LE>::parse(bytes);
        header.is_ok_and(|header| {
            header.e_machine(LE) == elf::EM_AMDGPU && header.e_type(LE) == elf::ET_REL
        })
    }

    /// The code object version, 3 to 6 (AMDGPUUsage, "ELF Header", `EI_ABIVERSION`).
    pub(crate) fn version(&self) -> Result<u8, CodeObjectError> {
        match self.header.e_ident().abi_version {
            abi_version @ 1..=4 => Ok(abi_version + 2),
            abi_version => Err(CodeObjectError::UnsupportedVersion { abi_version }),
        }
    }

    /// The target encoded in the header's flags (AMDGPUUsage, "EF_AMDGPU Values").
    pub(crate) fn target(&self) -> Result<Target, CodeObjectError> {
        let flags = self.header.e_flags(LE).0;
        let machine = flags as u8;
        let mut target = Target::from_elf_machine(machine)
            .ok_or(CodeObjectError::UnknownProcessor { machine })?;
        let setting = |field: u32| match field {
            2 => Setting::Off,
            3 => Setting::On,
            // 0 is "unsupported", 1 is "any": the code does not depend on the feature.
            _ => Setting::Any,
        };
        let (xnack, sramecc) = if self.version()? == 3 {
            // One bit each, also clear on processors that lack the feature.
            let bit = |position: u32, supported: bool| {
                if flags >> position & 1 == 1 {
                    Setting::On
                } else if supported {
                    Setting::Off
                } else {
                    Setting::Any
                }
            };
            (bit(8, target.supports_xnack()), bit(9, target.supports_sramecc()))
        } else {
            (setting(flags >> 8 & 3), setting(flags >> 10 & 3))
        };
        target.xnack = xnack;
        target.sramecc = sramecc;
        Ok(target)
    }

    /// The loadable segments by ascending address.
    pub(crate) fn segments(&self) -> Result<Vec<Segment>, CodeObjectError> {
        let mut segments: Vec<Segment> = Vec::new();
        for program_header in self.program_headers {
            if program_header.p_type.get(LE) != elf::PT_LOAD {
                continue;
            }
            let flags = program_header.p_flags.get(LE);
            let segment = Segment {
                address: program_header.p_vaddr.get(LE),
                memory_size: program_header.p_memsz.get(LE),
                readable: flags.contains(elf::PF_R),
                writable: flags.contains(elf::PF_W),
                executable: flags.contains(elf::PF_X),
                bytes: FileBytes::new(
                    self.file,
                    "loadable segment",
                    program_header.p_offset.get(LE),
                    program_header.p_filesz.get(LE),
                )?,
            };
            // The ELF specification requires ascending addresses.
            let lowest = segments.last().map_or(0, Segment::end);
            let fits = segment.bytes.len() as u64 <= segment.memory_size
                && segment.address >= lowest
                && segment.address.checked_add(segment.memory_size).is_some();
            if !fits {
                return Err(CodeObjectError::malformed(
                    "loadable segment",
                    segment.bytes.offset(),
                    format!(
                        "an address of at least {lowest:#x} and a memory size of at least the \
                         file size {:#x}; it has {:#x} and {:#x}",
                        segment.bytes.len(),
                        segment.address,
                        segment.memory_size
                    ),
                ));
            }
            segments.push(segment);
        }
        let first = segments.first().map_or(0, |segment| segment.address);
        let span = segments.last().map_or(0, Segment::end) - first;
        if span > IMAGE_LIMIT {
            let what = "memory image";
            return Err(CodeObjectError::TooLarge {
                what,
                unit: "bytes",
                size: span,
                limit: IMAGE_LIMIT,
            });
        }
        Ok(segments)
    }

    /// Contents of the note segments.
    pub(crate) fn notes(&self) -> Result<Vec<FileBytes>, CodeObjectError> {
        let mut notes = Vec::new();
        let mut total = 0u64;
        for program_header in self.program_headers {
            if program_header.p_type.get(LE) != elf::PT_NOTE {
                continue;
            }
            let offset = program_header.p_offset.get(LE);
            let note =
                FileBytes::new(self.file, "note segment", offset, program_header.p_filesz.get(LE))?;
            total += note.len() as u64;
            self.check_overlap(total, "note segment", offset)?;
            notes.push(note);
        }
        Ok(notes)
    }

    /// The sections, including the null section at index 0.
    pub(crate) fn sections(&self, names: &mut Names) -> Result<Vec<Section>, CodeObjectError> {
        let table = match self.header.section_strings_index(LE, &**self.file) {
            Ok(index) if index.0 != 0 => self.section_bytes(index.0 as u64)?,
            _ => FileBytes::empty(self.file),
        };
        let mut sections = Vec::with_capacity(self.section_headers.len());
        for (index, section_header) in self.section_headers.iter().enumerate() {
            let flags = section_header.sh_flags.get(LE);
            let name = match section_header.sh_name.get(LE) {
                0 => Arc::from(""),
                offset => {
                    let place = self.header.e_shoff(LE);
                    Arc::from(names.read(&table, offset, "section name", place)?)
                }
            };
            sections.push(Section {
                name,
                address: section_header.sh_addr.get(LE),
                size: section_header.sh_size.get(LE),
                allocated: flags.contains(elf::SHF_ALLOC),
                executable: flags.contains(elf::SHF_EXECINSTR),
                compressed: flags.contains(elf::SHF_COMPRESSED),
                bytes: self.section_bytes(index as u64)?,
            });
        }
        Ok(sections)
    }

    /// Contents of the section at `index`; empty for a section without file contents.
    pub(crate) fn section_bytes(&self, index: u64) -> Result<FileBytes, CodeObjectError> {
        let section_header = usize::try_from(index)
            .ok()
            .and_then(|index| self.section_headers.get(index))
            .ok_or_else(|| {
                let expected = format!("a section index below {}", self.section_headers.len());
                CodeObjectError::malformed(
                    "section header table",
                    self.header.e_shoff(LE),
                    format!("{expected}, found a reference to section {index}"),
                )
            })?;
        let kind = section_header.sh_type.get(LE);
        if matches!(kind, elf::SHT_NOBITS | elf::SHT_NULL) {
            return Ok(FileBytes::empty(self.file));
        }
        let (offset, size) = (section_header.sh_offset.get(LE), section_header.sh_size.get(LE));
        FileBytes::new(self.file, "section", offset, size)
    }

    /// Returns an error if the tables read so far, `total` bytes, exceed the file: then some
    /// overlap, and a small hostile file could cause unbounded work.
    pub(crate) fn check_overlap(
        &self,
        total: u64,
        what: &'static str,
        offset: u64,
    ) -> Result<(), CodeObjectError> {
        if total > self.file.len() as u64 {
            return Err(CodeObjectError::malformed(what, offset, "no overlap with other tables"));
        }
        Ok(())
    }
}

/// End address of the last loadable segment of a file.
pub(crate) fn end_in_memory(file: &[u8]) -> Option<u64> {
    let header = FileHeader64::<LE>::parse(file).ok()?;
    let segments = header.program_headers(LE, file).ok()?.iter();
    let loaded = segments.filter(|segment| segment.p_type.get(LE) == elf::PT_LOAD);
    loaded.map(|segment| segment.p_vaddr.get(LE).saturating_add(segment.p_memsz.get(LE))).max()
}

/// A loadable segment of a code object.
#[derive(Clone, Debug)]
pub struct Segment {
    /// ELF virtual address of the first byte.
    pub address: u64,
    /// Size in memory, in bytes. Bytes beyond the file contents are zero.
    pub memory_size: u64,
    /// Has read permission.
    pub readable: bool,
    /// Has write permission.
    pub writable: bool,
    /// Has execute permission.
    pub executable: bool,
    bytes: FileBytes,
}

impl Segment {
    /// File contents, starting at the segment's address; at most [`Segment::memory_size`] bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn contents(&self) -> &FileBytes {
        &self.bytes
    }

    /// Offset of the contents, in bytes from the start of the file.
    pub fn file_offset(&self) -> u64 {
        self.bytes.offset()
    }

    /// ELF virtual address after the last byte.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.memory_size)
    }
}

/// A section of the file.
#[derive(Clone, Debug)]
pub struct Section {
    /// The name, such as `.text`.
    pub name: Arc<str>,
    /// ELF virtual address; zero for a section that is not loaded.
    pub address: u64,
    /// Size in bytes; for a loaded section, the size in memory.
    pub size: u64,
    /// Is part of the memory image (`SHF_ALLOC`).
    pub allocated: bool,
    /// Contains instructions (`SHF_EXECINSTR`).
    pub executable: bool,
    pub(crate) compressed: bool,
    bytes: FileBytes,
}

impl Section {
    /// Contents in the file; empty for sections such as `.bss`.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Offset of the contents, in bytes from the start of the file.
    pub fn file_offset(&self) -> u64 {
        self.bytes.offset()
    }
}
