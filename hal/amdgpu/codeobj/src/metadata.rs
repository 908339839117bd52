//! The metadata note, which describes a code object to the runtime (AMDGPUUsage, "Code Object
//! Metadata").

use crate::argument::{Argument, ArgumentKind};
use crate::bytes::{self, FileBytes};
use crate::{CodeObjectError, Descriptor};
use rmpv::{Value, ValueRef};
use std::fmt;

/// `NT_AMDGPU_METADATA`.
const NOTE_TYPE: u32 = 32;

/// The note's name field, with its terminator.
const NOTE_NAME: &[u8] = b"AMDGPU\0";

/// Maximum nesting depth of the note's MessagePack document. A list inside an argument is at depth
/// 7, and the reader counts some levels twice.
const MAX_DEPTH: usize = 24;

/// Metadata of the whole code object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Metadata version, major and minor.
    pub version: Option<(u32, u32)>,
    /// The target, such as `amdgcn-amd-amdhsa--gfx90a:xnack-` (code object version 4 and later).
    pub target: Option<String>,
    /// Encoded format strings of `printf` calls.
    pub printf: Vec<String>,
}

/// Metadata of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelMetadata {
    /// The kernel's name.
    pub name: String,
    /// Name of the descriptor's symbol.
    pub symbol: String,
    /// Source language.
    pub language: Option<String>,
    /// Version of the source language, major and minor.
    pub language_version: Option<(u32, u32)>,
    /// Arguments in the order of the note, including hidden ones.
    pub arguments: Vec<Argument>,
    /// Required workgroup size, in work-items along x, y and z.
    pub reqd_workgroup_size: Option<[u32; 3]>,
    /// Expected workgroup size, in work-items along x, y and z.
    pub workgroup_size_hint: Option<[u32; 3]>,
    /// Size of the kernarg segment, in bytes.
    pub kernarg_segment_size: u32,
    /// Alignment of the kernarg segment, in bytes.
    pub kernarg_segment_align: u32,
    /// Static LDS of a workgroup, in bytes.
    pub group_segment_fixed_size: u32,
    /// Static scratch of a lane, in bytes.
    pub private_segment_fixed_size: u32,
    /// Lanes of a wave: 32 or 64.
    pub wavefront_size: u32,
    /// Maximum number of work-items of a workgroup.
    pub max_flat_workgroup_size: Option<u32>,
    /// Scalar registers used.
    pub sgpr_count: Option<u32>,
    /// Vector registers used, including AccVGPRs on gfx90a and gfx940.
    pub vgpr_count: Option<u32>,
    /// Accumulation vector registers used.
    pub agpr_count: Option<u32>,
    /// Scalar registers spilled.
    pub sgpr_spill_count: Option<u32>,
    /// Vector registers spilled.
    pub vgpr_spill_count: Option<u32>,
    /// The stack may grow beyond the descriptor's private segment size.
    pub uses_dynamic_stack: bool,
    /// All workgroups are complete.
    pub uniform_workgroup_size: bool,
    /// Workgroups run on a work-group processor (gfx10 and later).
    pub workgroup_processor_mode: Option<bool>,
    /// `normal`, `init` or `fini`.
    pub kind: Option<String>,
}

impl KernelMetadata {
    /// Derives metadata from a descriptor, for kernels that the note does not list.
    pub(crate) fn from_descriptor(name: &str, symbol: &str, descriptor: &Descriptor) -> Self {
        KernelMetadata {
            name: name.to_owned(),
            symbol: symbol.to_owned(),
            kernarg_segment_size: descriptor.kernarg_size,
            // AMDGPUUsage, "Kernel Dispatch": never less than 16.
            kernarg_segment_align: 16,
            group_segment_fixed_size: descriptor.group_segment_fixed_size,
            private_segment_fixed_size: descriptor.private_segment_fixed_size,
            wavefront_size: descriptor.wavefront_size(),
            uses_dynamic_stack: descriptor.properties.uses_dynamic_stack,
            ..KernelMetadata::default()
        }
    }
}

/// Finds and parses the metadata note in the note segments.
pub(crate) fn read(
    notes: &[FileBytes],
) -> Result<Option<(Metadata, Vec<KernelMetadata>)>, CodeObjectError> {
    for segment in notes {
        if let Some((offset, contents)) = find(segment, segment.offset())? {
            return parse(contents, offset).map(Some);
        }
    }
    Ok(None)
}

/// Returns the file offset and contents of the metadata note in a note segment. `start` is the
/// segment's offset in the file.
pub(crate) fn find(segment: &[u8], start: u64) -> Result<Option<(u64, &[u8])>, CodeObjectError> {
    // Errors have offsets in the file, not in the segment.
    let part = |what, offset, size| {
        bytes::slice(segment, what, offset, size).map_err(|error| match error {
            CodeObjectError::Malformed { what, offset, expected } => {
                CodeObjectError::Malformed { what, offset: offset.saturating_add(start), expected }
            }
            error => error,
        })
    };
    let mut offset = 0u64;
    while offset < segment.len() as u64 {
        let header = part("note header", offset, 12)?;
        let word = |at| bytes::array(header, at).map_or(0, u32::from_le_bytes);
        let (name_size, size, kind) = (u64::from(word(0)), u64::from(word(4)), word(8));
        let name = part("note name", offset + 12, name_size)?;
        let contents_at = offset + 12 + name_size.next_multiple_of(4);
        let contents = part("note contents", contents_at, size)?;
        if kind == NOTE_TYPE && name == NOTE_NAME {
            return Ok(Some((start + contents_at, contents)));
        }
        offset = contents_at + size.next_multiple_of(4);
    }
    Ok(None)
}

/// Decodes the note's MessagePack document.
pub(crate) fn decode(contents: &[u8], offset: u64) -> Result<Value, CodeObjectError> {
    let mut unread = contents;
    rmpv::decode::read_value_with_max_depth(&mut unread, MAX_DEPTH)
        .map_err(|error| malformed(contents.len() - unread.len(), offset, &error))
}

/// The error for a document that is invalid after `read` bytes.
fn malformed(read: usize, offset: u64, error: &dyn fmt::Display) -> CodeObjectError {
    CodeObjectError::Metadata {
        offset,
        place: format!("byte {read:#x} of its contents"),
        expected: "a MessagePack map",
        found: error.to_string(),
    }
}

/// A MessagePack document read value by value: as a tree, the note of a library would take many
/// times its size in memory.
struct Document<'a> {
    contents: &'a [u8],
    unread: &'a [u8],
    offset: u64,
}

impl<'a> Document<'a> {
    fn new(contents: &'a [u8], offset: u64) -> Document<'a> {
        Document { contents, unread: contents, offset }
    }

    fn value(&mut self) -> Result<ValueRef<'a>, CodeObjectError> {
        rmpv::decode::read_value_ref_with_max_depth(&mut self.unread, MAX_DEPTH).map_err(|error| {
            malformed(self.contents.len() - self.unread.len(), self.offset, &error)
        })
    }

    /// Reads the header of a map or array and returns its number of elements. Returns `None`, and
    /// reads nothing, if the next value is something else. `fixed` is the first byte of the format
    /// with a 4-bit length, `long` those of the formats with 16-bit and 32-bit lengths.
    fn enter(&mut self, fixed: u8, long: [u8; 2]) -> Option<u32> {
        let (length, unread) = match *self.unread {
            [first, ref unread @ ..] if first & 0xf0 == fixed => ((first & 0xf).into(), unread),
            [first, a, b, ref unread @ ..] if first == long[0] => {
                (u16::from_be_bytes([a, b]).into(), unread)
            }
            [first, a, b, c, d, ref unread @ ..] if first == long[1] => {
                (u32::from_be_bytes([a, b, c, d]), unread)
            }
            _ => return None,
        };
        self.unread = unread;
        Some(length)
    }

    fn enter_map(&mut self) -> Option<u32> {
        self.enter(0x80, [0xde, 0xdf])
    }

    fn enter_array(&mut self) -> Option<u32> {
        self.enter(0x90, [0xdc, 0xdd])
    }

    /// The bytes read since `start`, an earlier value of `unread`.
    fn read_since(&self, start: &'a [u8]) -> &'a [u8] {
        start.get(..start.len() - self.unread.len()).unwrap_or_default()
    }
}

fn parse(contents: &[u8], offset: u64) -> Result<(Metadata, Vec<KernelMetadata>), CodeObjectError> {
    let mut document = Document::new(contents, offset);
    let (mut metadata, mut kernels) = (Metadata::default(), Vec::new());
    let Some(entries) = document.enter_map() else {
        return Err(Node::new(&document.value()?, "", offset).type_error("a map"));
    };
    for _ in 0..entries {
        let key = document.value()?;
        // A key that is not a string is unknown.
        let key = string(&key).unwrap_or_default();
        let length = match key {
            "amdhsa.kernels" => document.enter_array(),
            _ => None,
        };
        if let Some(length) = length {
            for index in 0..length {
                let value = document.value()?;
                let node = Node::new(&value, key, offset);
                kernels.push(node.in_kernel(index as usize).kernel()?);
            }
            continue;
        }
        let value = document.value()?;
        let node = Node::new(&value, key, offset);
        match key {
            "amdhsa.version" => metadata.version = Some(node.version()?),
            "amdhsa.target" => metadata.target = Some(node.string()?),
            "amdhsa.printf" => {
                metadata.printf =
                    node.array()?.map(|format| format.string()).collect::<Result<_, _>>()?;
            }
            "amdhsa.kernels" => return Err(node.type_error("a list")),
            _ => {}
        }
    }
    Ok((metadata, kernels))
}

/// Returns the contents of a note section whose metadata has only the kernels with these descriptor
/// symbols; empty if there is no metadata.
pub(crate) fn extract_kernels(
    notes: &[FileBytes],
    symbols: &[&str],
) -> Result<Vec<u8>, CodeObjectError> {
    for segment in notes {
        let Some((offset, contents)) = find(segment, segment.offset())? else { continue };
        let mut document = Document::new(contents, offset);
        let count = document.enter_map().unwrap_or_default();
        // A map with a 32-bit length.
        let mut extracted = [&[0xdf][..], &count.to_be_bytes()].concat();
        for _ in 0..count {
            let entry = document.unread;
            let is_kernels = string(&document.value()?) == Some("amdhsa.kernels");
            let length = if is_kernels { document.enter_array() } else { None };
            let Some(length) = length else {
                document.value()?;
                extracted.extend(document.read_since(entry));
                continue;
            };
            let mut kernels: Vec<&[u8]> = Vec::new();
            for _ in 0..length {
                let start = document.unread;
                let kernel = document.value()?;
                let node = Node::new(&kernel, "", offset);
                let mut symbol = node.map()?.filter(|(key, _)| *key == ".symbol");
                let symbol = symbol.next().and_then(|(_, value)| string(value.value));
                if symbol.is_some_and(|symbol| symbols.contains(&symbol)) {
                    kernels.push(document.read_since(start));
                }
            }
            // A string with a 5-bit length, then an array with a 32-bit length.
            let key = b"amdhsa.kernels";
            extracted.push(0xa0 | key.len() as u8);
            extracted.extend(key);
            extracted.push(0xdd);
            extracted.extend((kernels.len() as u32).to_be_bytes());
            extracted.extend(kernels.concat());
        }
        let mut note = Vec::new();
        for word in [NOTE_NAME.len() as u32, extracted.len() as u32, NOTE_TYPE] {
            note.extend(word.to_le_bytes());
        }
        for field in [NOTE_NAME, &extracted] {
            note.extend(field);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        return Ok(note);
    }
    Ok(Vec::new())
}

/// The text of a UTF-8 string value.
fn string<'a>(value: &ValueRef<'a>) -> Option<&'a str> {
    match value {
        ValueRef::String(text) => text.into_str(),
        _ => None,
    }
}

/// Path of a value in the document, for errors.
#[derive(Clone, Copy, Default)]
struct KeyPath<'a> {
    kernel: Option<usize>,
    argument: Option<usize>,
    key: &'a str,
}

impl fmt::Display for KeyPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kernel) = self.kernel {
            write!(f, "amdhsa.kernels[{kernel}]")?;
        }
        if let Some(argument) = self.argument {
            write!(f, ".args[{argument}]")?;
        }
        match (self.kernel, self.key) {
            (None, "") => f.write_str("root"),
            (_, key) => f.write_str(key),
        }
    }
}

/// A value of the document with its path.
#[derive(Clone, Copy)]
struct Node<'a> {
    value: &'a ValueRef<'a>,
    place: KeyPath<'a>,
    offset: u64,
}

impl<'a> Node<'a> {
    fn new(value: &'a ValueRef<'a>, key: &'a str, offset: u64) -> Node<'a> {
        Node { value, place: KeyPath { key, ..KeyPath::default() }, offset }
    }

    fn kernel(self) -> Result<KernelMetadata, CodeObjectError> {
        let mut kernel = KernelMetadata::default();
        for (key, node) in self.map()? {
            match key {
                ".name" => kernel.name = node.string()?,
                ".symbol" => kernel.symbol = node.string()?,
                ".language" => kernel.language = Some(node.string()?),
                ".language_version" => kernel.language_version = Some(node.version()?),
                ".args" => {
                    for (index, argument) in node.array()?.enumerate() {
                        kernel.arguments.push(argument.in_argument(index).argument()?);
                    }
                }
                ".reqd_workgroup_size" => kernel.reqd_workgroup_size = Some(node.numbers()?),
                ".workgroup_size_hint" => kernel.workgroup_size_hint = Some(node.numbers()?),
                ".kernarg_segment_size" => kernel.kernarg_segment_size = node.number()?,
                ".kernarg_segment_align" => kernel.kernarg_segment_align = node.number()?,
                ".group_segment_fixed_size" => kernel.group_segment_fixed_size = node.number()?,
                ".private_segment_fixed_size" => {
                    kernel.private_segment_fixed_size = node.number()?;
                }
                ".wavefront_size" => kernel.wavefront_size = node.number()?,
                ".max_flat_workgroup_size" => {
                    kernel.max_flat_workgroup_size = Some(node.number()?);
                }
                ".sgpr_count" => kernel.sgpr_count = Some(node.number()?),
                ".vgpr_count" => kernel.vgpr_count = Some(node.number()?),
                ".agpr_count" => kernel.agpr_count = Some(node.number()?),
                ".sgpr_spill_count" => kernel.sgpr_spill_count = Some(node.number()?),
                ".vgpr_spill_count" => kernel.vgpr_spill_count = Some(node.number()?),
                ".uses_dynamic_stack" => kernel.uses_dynamic_stack = node.boolean()?,
                ".uniform_work_group_size" => kernel.uniform_workgroup_size = node.boolean()?,
                ".workgroup_processor_mode" => {
                    kernel.workgroup_processor_mode = Some(node.boolean()?);
                }
                ".kind" => kernel.kind = Some(node.string()?),
                _ => {}
            }
        }
        if kernel.symbol.is_empty() {
            return Err(self.type_error("a `.symbol`"));
        }
        Ok(kernel)
    }

    fn argument(self) -> Result<Argument, CodeObjectError> {
        let (mut offset, mut size, mut kind) = (None, None, None);
        let mut argument = Argument {
            name: None,
            type_name: None,
            offset: 0,
            size: 0,
            kind: ArgumentKind::HiddenNone,
            address_space: None,
            access: None,
            actual_access: None,
            pointee_align: None,
            is_const: false,
            is_restrict: false,
            is_volatile: false,
            is_pipe: false,
        };
        for (key, node) in self.map()? {
            match key {
                ".name" => argument.name = Some(node.string()?),
                ".type_name" => argument.type_name = Some(node.string()?),
                ".offset" => offset = Some(node.number()?),
                ".size" => size = Some(node.number()?),
                ".value_kind" => kind = Some(ArgumentKind::from_name(&node.string()?)),
                ".address_space" => argument.address_space = Some(node.string()?),
                ".access" => argument.access = Some(node.string()?),
                ".actual_access" => argument.actual_access = Some(node.string()?),
                ".pointee_align" => argument.pointee_align = Some(node.number()?),
                ".is_const" => argument.is_const = node.boolean()?,
                ".is_restrict" => argument.is_restrict = node.boolean()?,
                ".is_volatile" => argument.is_volatile = node.boolean()?,
                ".is_pipe" => argument.is_pipe = node.boolean()?,
                _ => {}
            }
        }
        argument.offset = offset.ok_or_else(|| self.type_error("an `.offset`"))?;
        argument.size = size.ok_or_else(|| self.type_error("a `.size`"))?;
        argument.kind = kind.ok_or_else(|| self.type_error("a `.value_kind`"))?;
        if argument.offset.checked_add(argument.size).is_none() {
            return Err(self.type_error("an offset and a size that end below 4 GiB"));
        }
        Ok(argument)
    }

    fn in_kernel(mut self, index: usize) -> Node<'a> {
        self.place = KeyPath { kernel: Some(index), argument: None, key: "" };
        self
    }

    fn in_argument(mut self, index: usize) -> Node<'a> {
        self.place = KeyPath { argument: Some(index), key: "", ..self.place };
        self
    }

    fn map(self) -> Result<impl Iterator<Item = (&'a str, Node<'a>)>, CodeObjectError> {
        let ValueRef::Map(entries) = self.value else { return Err(self.type_error("a map")) };
        // A key that is not a string is unknown.
        Ok(entries.iter().filter_map(move |(key, value)| {
            let key = string(key)?;
            Some((key, Node { value, place: KeyPath { key, ..self.place }, ..self }))
        }))
    }

    fn array(self) -> Result<impl Iterator<Item = Node<'a>>, CodeObjectError> {
        let ValueRef::Array(values) = self.value else { return Err(self.type_error("a list")) };
        Ok(values.iter().map(move |value| Node { value, ..self }))
    }

    fn string(self) -> Result<String, CodeObjectError> {
        string(self.value).map(str::to_owned).ok_or_else(|| self.type_error("a UTF-8 string"))
    }

    fn number(self) -> Result<u32, CodeObjectError> {
        self.value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .ok_or_else(|| self.type_error("a number of 0 to 2^32 - 1"))
    }

    /// A boolean. The assembler emits 0 and 1 as integers.
    fn boolean(self) -> Result<bool, CodeObjectError> {
        match (self.value, self.value.as_u64()) {
            (ValueRef::Boolean(value), _) => Ok(*value),
            (_, Some(number @ 0..=1)) => Ok(number == 1),
            _ => Err(self.type_error("a boolean")),
        }
    }

    fn numbers<const N: usize>(self) -> Result<[u32; N], CodeObjectError> {
        let wrong_count = || self.type_error(if N == 2 { "two numbers" } else { "three numbers" });
        let mut numbers = [0; N];
        let mut nodes = self.array()?;
        for number in &mut numbers {
            *number = nodes.next().ok_or_else(wrong_count)?.number()?;
        }
        if nodes.next().is_some() { Err(wrong_count()) } else { Ok(numbers) }
    }

    fn version(self) -> Result<(u32, u32), CodeObjectError> {
        self.numbers().map(|[major, minor]| (major, minor))
    }

    /// The error for a value other than `expected`.
    fn type_error(self, expected: &'static str) -> CodeObjectError {
        let found = match self.value {
            ValueRef::Nil => "nil".to_owned(),
            ValueRef::Boolean(value) => value.to_string(),
            ValueRef::Integer(value) => value.to_string(),
            ValueRef::F32(value) => value.to_string(),
            ValueRef::F64(value) => value.to_string(),
            ValueRef::String(value) => format!("a string of {} bytes", value.as_bytes().len()),
            ValueRef::Binary(value) => format!("{} bytes", value.len()),
            ValueRef::Array(values) => format!("a list of {}", values.len()),
            ValueRef::Map(values) => format!("a map of {}", values.len()),
            ValueRef::Ext(kind, _) => format!("extension {kind}"),
        };
        let place = self.place.to_string();
        CodeObjectError::Metadata { offset: self.offset, place, expected, found }
    }
}
