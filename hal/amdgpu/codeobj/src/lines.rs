//! Source lines from the DWARF line tables.

use crate::bytes::slice;
use crate::compression::{Method, decompress};
use crate::{CodeObject, CodeObjectError, Section};
use flipwave_arch::{Pc, SourceLine, SourceLines};
use gimli::{
    AttributeValue, ColumnType, DebugAbbrev, DebugAbbrevOffset, DebugInfo, DebugLine,
    DebugLineOffset, DebugLineStr, DebugStr, EndianSlice, IncompleteLineProgram, LineProgramHeader,
    LittleEndian,
};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Limit on the total length of the file names of a line table, in bytes. Names are stored in string
/// tables, so a small hostile file can refer to a long name many times.
const NAMES_LIMIT: usize = 64 << 20;

/// Limit on the rows of a line table. A row takes at least one byte in the file, less in a compressed
/// section.
const ROWS_LIMIT: usize = 64 << 20;

/// The line table of a code object. Empty without DWARF.
#[derive(Clone, Debug, Default)]
pub struct LineTable {
    files: Vec<Arc<str>>,
    rows: Vec<Row>,
    /// Contiguous code ranges with their rows, sorted by address.
    sequences: Vec<Sequence>,
}

#[derive(Clone, Debug)]
struct Row {
    address: u64,
    file: usize,
    line: u32,
    column: u32,
}

#[derive(Clone, Debug)]
struct Sequence {
    code: Range<u64>,
    rows: Range<usize>,
}

impl LineTable {
    /// Returns `true` if the code object has no source lines.
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// The source line of the instruction at an address.
    pub fn lookup(&self, pc: Pc) -> Option<SourceLine> {
        let above = self.sequences.partition_point(|sequence| sequence.code.start <= pc.0);
        let sequence = self.sequences.get(above.checked_sub(1)?)?;
        if !sequence.code.contains(&pc.0) {
            return None;
        }
        let rows = self.rows.get(sequence.rows.clone())?;
        let above = rows.partition_point(|row| row.address <= pc.0);
        self.source_line(rows.get(above.checked_sub(1)?)?)
    }

    /// All code ranges with their source lines, by ascending address.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<Pc>, SourceLine)> {
        self.sequences.iter().flat_map(|sequence| {
            let rows = self.rows.get(sequence.rows.clone()).unwrap_or_default();
            let ends = rows.iter().skip(1).map(|row| row.address);
            rows.iter().zip(ends.chain([sequence.code.end])).filter_map(|(row, end)| {
                let line = self.source_line(row)?;
                (row.address < end).then_some((Pc(row.address)..Pc(end), line))
            })
        })
    }

    fn source_line(&self, row: &Row) -> Option<SourceLine> {
        let file = Arc::clone(self.files.get(row.file)?);
        Some(SourceLine { file, line: row.line, column: row.column })
    }
}

impl SourceLines for LineTable {
    fn lookup(&self, pc: Pc) -> Option<SourceLine> {
        LineTable::lookup(self, pc)
    }
}

impl CodeObject {
    /// Reads the line table: DWARF 2 to 5 in `.debug_line`.
    ///
    /// # Errors
    /// [`CodeObjectError`] if the debug sections are invalid or exceed the limits.
    pub fn lines(&self) -> Result<LineTable, CodeObjectError> {
        let section = |name| match self.section(name) {
            Some(section) => contents(section),
            None => Ok(Cow::Borrowed(&[][..])),
        };
        let debug_line = section(".debug_line")?;
        if debug_line.is_empty() {
            return Ok(LineTable::default());
        }
        let debug_str = section(".debug_str")?;
        let debug_line_str = section(".debug_line_str")?;
        let (debug_info, debug_abbrev) = (section(".debug_info")?, section(".debug_abbrev")?);
        let directories = directories(&debug_info, &debug_abbrev, &debug_str)?;
        let strings = Strings {
            debug_str: DebugStr::new(&debug_str, LittleEndian),
            debug_line_str: DebugLineStr::from(EndianSlice::new(&debug_line_str, LittleEndian)),
        };
        let mut reader = Reader {
            offset: 0,
            strings,
            table: LineTable::default(),
            known: HashMap::new(),
            names_left: NAMES_LIMIT,
            object: self,
        };
        let line_programs = DebugLine::new(&debug_line, LittleEndian);
        while reader.offset < debug_line.len() {
            let offset = reader.offset;
            let directory =
                directories.get(&offset).map(|name| EndianSlice::new(name, LittleEndian));
            let program = line_programs
                .program(DebugLineOffset(offset), 8, directory, None)
                .map_err(|reason| reader.line_error(reason))?;
            let header = program.header();
            let length = header.unit_length();
            // The length does not include the length field.
            let next = offset
                .checked_add(usize::from(header.format().initial_length_size()))
                .and_then(|start| start.checked_add(length))
                .ok_or_else(|| reader.line_error(gimli::Error::UnsupportedOffset))?;
            reader.program(program)?;
            reader.offset = next;
        }
        let mut table = reader.table;
        table.sequences.sort_by_key(|sequence| sequence.code.start);
        Ok(table)
    }
}

/// Builds the line table from the line programs.
struct Reader<'a> {
    /// Section offset of the current program, in bytes.
    offset: usize,
    strings: Strings<'a>,
    table: LineTable,
    /// Index into `LineTable::files` by file name.
    known: HashMap<Arc<str>, usize>,
    names_left: usize,
    object: &'a CodeObject,
}

impl<'a> Reader<'a> {
    fn program(
        &mut self,
        program: IncompleteLineProgram<Slice<'a>>,
    ) -> Result<(), CodeObjectError> {
        // Index into `LineTable::files` by the program's file index.
        let mut files: HashMap<u64, usize> = HashMap::new();
        let mut first = self.table.rows.len();
        let mut rows = program.rows();
        while let Some((header, row)) = rows.next_row().map_err(|reason| self.line_error(reason))? {
            if row.end_sequence() {
                match self.table.rows.get(first).map(|row| row.address) {
                    Some(start) if self.is_code(start) => {
                        let rows = first..self.table.rows.len();
                        self.table.sequences.push(Sequence { code: start..row.address(), rows });
                    }
                    // The linker keeps line programs of functions that it removed.
                    _ => self.table.rows.truncate(first),
                }
                first = self.table.rows.len();
                continue;
            }
            let file = match files.get(&row.file_index()) {
                Some(file) => *file,
                None => {
                    let file = self.file(header, row.file_index())?;
                    files.insert(row.file_index(), file);
                    file
                }
            };
            let column = match row.column() {
                ColumnType::LeftEdge => 0,
                ColumnType::Column(column) => number(column.get()),
            };
            let line = row.line().map_or(0, |line| number(line.get()));
            if self.table.rows.len() == ROWS_LIMIT {
                let (what, limit) = ("line table", ROWS_LIMIT as u64);
                return Err(CodeObjectError::TooLarge {
                    what,
                    unit: "rows",
                    size: limit + 1,
                    limit,
                });
            }
            self.table.rows.push(Row { address: row.address(), file, line, column });
        }
        // Rows without an end-of-sequence row cover no code.
        self.table.rows.truncate(first);
        Ok(())
    }

    fn is_code(&self, address: u64) -> bool {
        self.object.segment_at(Pc(address)).is_some_and(|segment| segment.executable)
    }

    /// Returns the index into `LineTable::files` of a file of a line program.
    fn file(
        &mut self,
        header: &LineProgramHeader<Slice<'a>>,
        index: u64,
    ) -> Result<usize, CodeObjectError> {
        let mut name = String::new();
        if let Some(file) = header.file(index) {
            // Each part may be relative to the one before.
            let base = header.directory(0);
            let directory = header.directory(file.directory_index());
            for part in base.into_iter().chain(directory).chain([file.path_name()]) {
                let part = self.strings.get(part).map_err(|reason| self.line_error(reason))?;
                self.names_left = self.names_left.checked_sub(part.len()).ok_or_else(|| {
                    CodeObjectError::TooLarge {
                        what: "file names in .debug_line",
                        unit: "bytes",
                        size: (NAMES_LIMIT - self.names_left + part.len()) as u64,
                        limit: NAMES_LIMIT as u64,
                    }
                })?;
                append_path(&mut name, &part.to_string_lossy());
            }
        }
        if let Some(known) = self.known.get(name.as_str()) {
            return Ok(*known);
        }
        let name: Arc<str> = Arc::from(name);
        self.table.files.push(Arc::clone(&name));
        self.known.insert(name, self.table.files.len() - 1);
        Ok(self.table.files.len() - 1)
    }

    fn line_error(&self, reason: gimli::Error) -> CodeObjectError {
        line_error(".debug_line", self.offset)(reason)
    }
}

/// The string tables that line programs refer to.
struct Strings<'a> {
    debug_str: DebugStr<Slice<'a>>,
    debug_line_str: DebugLineStr<Slice<'a>>,
}

impl<'a> Strings<'a> {
    fn get(&self, value: AttributeValue<Slice<'a>>) -> Result<Slice<'a>, gimli::Error> {
        match value {
            AttributeValue::String(string) => Ok(string),
            AttributeValue::DebugStrRef(offset) => self.debug_str.get_str(offset),
            AttributeValue::DebugLineStrRef(offset) => self.debug_line_str.get_str(offset),
            _ => Err(gimli::Error::ExpectedStringAttributeValue),
        }
    }
}

/// Appends a path component; an absolute path replaces the whole path.
fn append_path(path: &mut String, part: &str) {
    if part.starts_with('/') || path == part {
        path.clear();
    }
    if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}

/// Converts a line or column number; values above `u32::MAX` saturate.
fn number(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Contents of a section, decompressed if necessary.
pub(crate) fn contents(section: &Section) -> Result<Cow<'_, [u8]>, CodeObjectError> {
    if !section.compressed {
        return Ok(Cow::Borrowed(section.bytes()));
    }
    let offset = section.file_offset();
    // `Elf64_Chdr`: type, reserved, size, alignment.
    let malformed = |expected| CodeObjectError::malformed("compressed section", offset, expected);
    let header = slice(section.bytes(), "compressed section", 0, 24)
        .map_err(|_| malformed("a header of 24 bytes"))?;
    let kind = crate::bytes::array(header, 0).map_or(0, u32::from_le_bytes);
    let size = crate::bytes::array(header, 8).map_or(0, u64::from_le_bytes);
    let method = match kind {
        1 => Method::Zlib,
        2 => Method::Zstandard,
        _ => return Err(malformed("type 1 (zlib) or 2 (Zstandard)")),
    };
    let data = section.bytes().get(24..).unwrap_or_default();
    decompress(method, data, size, offset + 24).map(|(bytes, _)| Cow::Owned(bytes))
}

/// Compilation directories by the offset of their unit's line program. Up to DWARF 4 the line program
/// itself does not contain the directory.
fn directories<'a>(
    debug_info: &'a [u8],
    debug_abbrev: &'a [u8],
    debug_str: &'a [u8],
) -> Result<HashMap<usize, &'a [u8]>, CodeObjectError> {
    let mut directories = HashMap::new();
    let debug_str = DebugStr::new(debug_str, LittleEndian);
    let line_error = |offset| line_error(".debug_info", offset);
    let mut units = Vec::new();
    let mut headers = DebugInfo::new(debug_info, LittleEndian).units();
    let mut offset = 0;
    while let Some(unit) = headers.next().map_err(line_error(offset))? {
        offset += unit.length_including_self();
        if unit.version() < 5 {
            units.push(unit);
        }
    }
    // Abbreviation tables do not overlap. Ending each where the next begins prevents a hostile file
    // from having the same bytes parsed again for every unit.
    let starts: BTreeSet<usize> = units.iter().map(|unit| unit.debug_abbrev_offset().0).collect();
    for unit in units {
        let start = unit.debug_abbrev_offset().0;
        let end = starts.range(start + 1..).next().copied().unwrap_or(debug_abbrev.len());
        let table = debug_abbrev.get(start..end).unwrap_or_default();
        let at = line_error(unit.offset().0);
        let abbreviations = DebugAbbrev::new(table, LittleEndian)
            .abbreviations(DebugAbbrevOffset(0))
            .map_err(at)?;
        let root = unit.entry(&abbreviations, unit.root_offset()).map_err(at)?;
        let Some(AttributeValue::DebugLineRef(program)) = root.attr_value(gimli::DW_AT_stmt_list)
        else {
            continue;
        };
        let directory = match root.attr_value(gimli::DW_AT_comp_dir) {
            Some(AttributeValue::String(name)) => name,
            Some(AttributeValue::DebugStrRef(name)) => debug_str.get_str(name).map_err(at)?,
            _ => continue,
        };
        directories.insert(program.0, directory.slice());
    }
    Ok(directories)
}

fn line_error(
    section: &'static str,
    offset: usize,
) -> impl Fn(gimli::Error) -> CodeObjectError + Copy {
    move |reason| CodeObjectError::LineTable { section, offset: offset as u64, reason }
}
