//! Source lines of addresses in the program of a tool's host side.

use gimli::{DebugAbbrev, DebugLine, DebugLineStr, DebugStr, Dwarf, EndianSlice, LittleEndian};
use object::{Object, ObjectSection};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The line table of a program; empty if it cannot be read.
pub struct LineOf<'a> {
    dwarf: Option<Dwarf<Slice<'a>>>,
}

impl<'a> LineOf<'a> {
    /// Reads the line table of an ELF program.
    pub fn new(program: &'a [u8]) -> LineOf<'a> {
        let section = |elf: &object::File<'a>, name| {
            let data = elf.section_by_name(name).and_then(|section| section.data().ok());
            EndianSlice::new(data.unwrap_or_default(), LittleEndian)
        };
        let dwarf = object::File::parse(program).ok().map(|elf| Dwarf {
            debug_abbrev: DebugAbbrev::from(section(&elf, ".debug_abbrev")),
            debug_info: section(&elf, ".debug_info").into(),
            debug_line: DebugLine::from(section(&elf, ".debug_line")),
            debug_line_str: DebugLineStr::from(section(&elf, ".debug_line_str")),
            debug_str: DebugStr::from(section(&elf, ".debug_str")),
            ..Dwarf::default()
        });
        LineOf { dwarf }
    }

    /// The line of the file `name` that an address belongs to. Code without a line belongs to the line before.
    pub fn find(&self, name: &str, address: u64) -> Option<u32> {
        let dwarf = self.dwarf.as_ref()?;
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let unit = dwarf.unit(header).ok()?;
            let mut rows = unit.line_program.clone()?.rows();
            // The start and the line of the previous row.
            let mut previous: Option<(u64, Option<u32>)> = None;
            while let Ok(Some((header, row))) = rows.next_row() {
                if let Some((start, Some(line))) = previous
                    && (start..row.address()).contains(&address)
                {
                    return Some(line);
                }
                let file = row.file(header).map(|file| file.path_name());
                let text = file.and_then(|path| dwarf.attr_string(&unit, path).ok());
                let path = text.map(|text| text.to_string_lossy().into_owned());
                // The table may hold the name relative to its directory.
                let is_wanted =
                    path.is_some_and(|path| path == name || name.ends_with(&format!("/{path}")));
                let line = row.line().map(|line| line.get() as u32).filter(|_| is_wanted);
                let line = line.or(previous.and_then(|(_, line)| line).filter(|_| is_wanted));
                previous = (!row.end_sequence()).then_some((row.address(), line));
            }
        }
        None
    }
}
