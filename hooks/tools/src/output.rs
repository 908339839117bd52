//! Outputs of tools: their declarations, and the numbers that hooks left in memory.

use super::cell::Cell;
use super::host::{Malformed, Reader};
use super::{ToolError, ToolFile};
use flipwave_hooks::hook::{Parameter, TypeKind};

/// The kind of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// `FLIPWAVE_TABLE`.
    Table,
    /// `FLIPWAVE_HISTOGRAM`.
    Histogram,
    /// `FLIPWAVE_MAP`.
    Map,
    /// `FLIPWAVE_STREAM`.
    Stream,
    /// `FLIPWAVE_ROWS`.
    Rows,
    /// `FLIPWAVE_DETECTOR`.
    Detector,
}

/// The type of a member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberType {
    /// An unsigned integer of this number of bytes.
    Unsigned(u8),
    /// A signed integer of this number of bytes.
    Signed(u8),
    /// A floating-point number of 4 or 8 bytes.
    Float(u8),
    /// `const char *`.
    Text,
    /// `flipwave_site`: the key columns of a site.
    Site,
    /// `flipwave_lane_number`.
    Lane,
}

impl MemberType {
    fn bytes(self) -> usize {
        match self {
            MemberType::Unsigned(bytes) | MemberType::Signed(bytes) | MemberType::Float(bytes) => {
                bytes.into()
            }
            MemberType::Text => 8,
            MemberType::Site => 4,
            MemberType::Lane => 1,
        }
    }
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name, which is that of its column.
    pub name: String,
    /// The offset in the structure, in bytes.
    pub offset: usize,
    /// The type.
    pub kind: MemberType,
}

/// The largest number of texts in a structure (`struct flipwave_output` of `flipwave_tool.h`).
const MAX_TEXTS: usize = 32;

/// A declared output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The name of the variable.
    pub name: String,
    /// The kind.
    pub kind: OutputKind,
    /// The size of the structure in bytes.
    pub size: usize,
    /// The names of the key columns.
    pub keys: Vec<String>,
    /// The members of the structure.
    pub members: Vec<Member>,
    /// The structure, as written in the declaration.
    pub structure: String,
}

impl Output {
    /// Reads a declaration from the host side's description, without members.
    pub fn read(reader: &mut Reader<'_>) -> Result<Output, Malformed> {
        let (name, structure) = (reader.text()?, reader.text()?);
        let kind = match reader.word()? {
            0 => OutputKind::Table,
            1 => OutputKind::Histogram,
            2 => OutputKind::Map,
            3 => OutputKind::Stream,
            4 => OutputKind::Rows,
            5 => OutputKind::Detector,
            _ => return Err(Malformed),
        };
        let size = reader.word()? as usize;
        let keys = (0..reader.word()?).map(|_| reader.text()).collect::<Result<_, _>>()?;
        Ok(Output { name, kind, size, keys, members: Vec::new(), structure })
    }

    /// Sets the members from the definition of the structure, as `structure_of` returns it.
    ///
    /// # Errors
    /// [`ToolError::Tool`] if a member has a type that has no column.
    pub fn set_members<'a>(
        &mut self,
        file: &ToolFile,
        structure_of: impl Fn(&str) -> Option<&'a [Parameter]>,
    ) -> Result<(), ToolError> {
        let Output { name, structure, .. } = &*self;
        let failed = |message: String| {
            let line = file.line_of_declaration(name);
            ToolError::Tool { place: file.at_line(line), message: format!("`{name}`: {message}") }
        };
        let tag = structure.strip_prefix("struct ").map(str::trim).unwrap_or_default();
        let defined = structure_of(tag).ok_or_else(|| {
            failed(format!(
                "`{structure}` is not a structure with a tag; define `struct NAME {{ ... }};`"
            ))
        })?;
        let mut offset = 0;
        let mut members = Vec::new();
        for member in defined {
            let kind =
                member_type(member).filter(|kind| self.kind.permits(*kind)).ok_or_else(|| {
                    failed(format!(
                        "member `{member}` of `{structure}` cannot be a column here; {}",
                        self.kind.permitted()
                    ))
                })?;
            offset = usize::next_multiple_of(offset, kind.bytes());
            members.push(Member { name: member.name.clone(), offset, kind });
            offset += kind.bytes();
        }
        let has_site = members.iter().any(|member| member.kind == MemberType::Site);
        if self.kind == OutputKind::Stream && !self.keys.is_empty() && !has_site {
            return Err(failed(format!(
                "the columns {} are those of a site, but `{structure}` has no member of the type \
                 flipwave_site; add one, or declare the stream without columns",
                self.keys.join(", ")
            )));
        }
        if members.iter().filter(|member| member.kind == MemberType::Text).count() > MAX_TEXTS {
            return Err(failed(format!("`{structure}` has more than {MAX_TEXTS} texts")));
        }
        let alignment = members.iter().map(|member| member.kind.bytes()).max().unwrap_or(1);
        if offset.next_multiple_of(alignment) != self.size || members.is_empty() {
            return Err(failed(format!(
                "`{structure}` has an unusual layout or no members; expected members without attributes"
            )));
        }
        self.members = members;
        Ok(())
    }

    /// The names of the columns.
    pub fn columns(&self) -> Vec<String> {
        let mut columns = Vec::new();
        let has_site = self.members.iter().any(|member| member.kind == MemberType::Site);
        if !has_site {
            columns.extend(self.keys.iter().cloned());
        }
        for member in &self.members {
            match member.kind {
                MemberType::Site => columns.extend(self.keys.iter().cloned()),
                _ => columns.push(member.name.clone()),
            }
        }
        columns
    }
}

impl OutputKind {
    fn permits(self, kind: MemberType) -> bool {
        match self {
            OutputKind::Table | OutputKind::Histogram | OutputKind::Map | OutputKind::Detector => {
                kind == MemberType::Unsigned(8)
            }
            OutputKind::Stream => kind != MemberType::Text,
            OutputKind::Rows => kind != MemberType::Site,
        }
    }

    fn permitted(self) -> &'static str {
        match self {
            OutputKind::Table | OutputKind::Histogram | OutputKind::Map | OutputKind::Detector => {
                "expected uint64_t, because the numbers of rows are added"
            }
            OutputKind::Stream => {
                "expected integers, floating-point numbers, flipwave_lane_number or flipwave_site"
            }
            OutputKind::Rows => {
                "expected integers, floating-point numbers, flipwave_lane_number or const char *"
            }
        }
    }
}

fn member_type(member: &Parameter) -> Option<MemberType> {
    match member.ctype.text.as_str() {
        "flipwave_site" => return Some(MemberType::Site),
        "flipwave_lane_number" => return Some(MemberType::Lane),
        _ => {}
    }
    let resolved = member.ctype.resolved.as_str();
    match resolved {
        "float" => return Some(MemberType::Float(4)),
        "double" => return Some(MemberType::Float(8)),
        "const char *" | "char *" => return Some(MemberType::Text),
        _ => {}
    }
    match member.ctype.kind() {
        TypeKind::Integer(bytes) => {
            let is_unsigned = resolved.contains("unsigned") || resolved.ends_with("ool");
            Some(if is_unsigned { MemberType::Unsigned(bytes) } else { MemberType::Signed(bytes) })
        }
        TypeKind::Pointer | TypeKind::Other => None,
    }
}

impl Member {
    /// The cell for a member of the structure in `bytes`. Sites and texts are left empty.
    pub fn cell(&self, bytes: &[u8]) -> Cell {
        let value = self.value(bytes);
        match self.kind {
            MemberType::Unsigned(_) => Cell::Unsigned(value),
            MemberType::Signed(bytes) => {
                let unused = 64 - 8 * u32::from(bytes);
                Cell::Signed((value << unused) as i64 >> unused)
            }
            MemberType::Float(4) => Cell::Float(f32::from_bits(value as u32).into()),
            MemberType::Float(_) => Cell::Float(f64::from_bits(value)),
            MemberType::Lane if value == 255 => Cell::Empty,
            MemberType::Lane => Cell::Unsigned(value),
            MemberType::Text | MemberType::Site => Cell::Empty,
        }
    }

    /// The bits of a member of the structure in `bytes`; 0 beyond their end.
    pub fn value(&self, bytes: &[u8]) -> u64 {
        let bytes = bytes.get(self.offset..self.offset + self.kind.bytes()).unwrap_or_default();
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_hooks::hook::CType;

    fn member(text: &str, resolved: &str, name: &str) -> Parameter {
        let ctype = CType { text: text.into(), resolved: resolved.into() };
        Parameter { name: name.into(), ctype }
    }

    fn stream(size: usize) -> Output {
        Output {
            name: "records".into(),
            kind: OutputKind::Stream,
            size,
            keys: vec!["function".into(), "pc".into()],
            members: Vec::new(),
            structure: "struct record".into(),
        }
    }

    fn file() -> ToolFile {
        let (include, parameters) = (Vec::new(), Vec::new());
        let text = "\nFLIPWAVE_STREAM(records, struct record)\n".into();
        ToolFile { name: "a.c".into(), text, include, parameters }
    }

    #[test]
    fn members_are_laid_out_as_in_c() {
        let mut output = stream(24);
        let members = [
            member("flipwave_lane_number", "unsigned char", "lane"),
            member("flipwave_site", "unsigned int", "site"),
            member("int8_t", "signed char", "sign"),
            member("double", "double", "value"),
        ];
        let structure = |tag: &str| (tag == "record").then_some(&members[..]);
        output.set_members(&file(), structure).expect("a layout");
        let offsets: Vec<usize> = output.members.iter().map(|member| member.offset).collect();
        assert_eq!(offsets, [0, 4, 8, 16]);
        assert_eq!(output.columns(), ["lane", "function", "pc", "sign", "value"]);
        let mut bytes = [0; 24];
        (bytes[0], bytes[8]) = (255, 255);
        bytes[16..].copy_from_slice(&1.5f64.to_le_bytes());
        let cells: Vec<Cell> = output.members.iter().map(|member| member.cell(&bytes)).collect();
        assert_eq!(cells, [Cell::Empty, Cell::Empty, Cell::Signed(-1), Cell::Float(1.5)]);
    }

    #[test]
    fn types_without_columns_are_refused_with_their_line() {
        let mut output = stream(8);
        let members = [member("void *", "void *", "pointer")];
        let error = output.set_members(&file(), |_| Some(&members)).expect_err("no column");
        assert!(
            error.to_string().starts_with("a.c:2: `records`: member `void * pointer`"),
            "{error}"
        );
        let error = output.set_members(&file(), |_| None).expect_err("no structure");
        assert!(error.to_string().contains("not a structure with a tag"), "{error}");
    }

    #[test]
    fn sizes_that_differ_from_those_of_c_are_refused() {
        let members = [member("uint64_t", "unsigned long", "count")];
        let stream = |size| Output { keys: Vec::new(), ..stream(size) };
        assert!(stream(8).set_members(&file(), |_| Some(&members)).is_ok());
        assert!(stream(12).set_members(&file(), |_| Some(&members)).is_err());
    }

    #[test]
    fn streams_with_columns_need_a_site() {
        let members = [member("uint64_t", "unsigned long", "count")];
        let error = stream(8).set_members(&file(), |_| Some(&members)).expect_err("no site");
        assert!(error.to_string().contains("no member of the type flipwave_site"), "{error}");
    }
}
