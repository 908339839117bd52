//! Reads the rows of a campaign from the files of its shards.

use super::error::ShardError;
use super::file::{RowsKey, ShardReader, complete_ranges};
use super::layout::SharedFolder;
use super::part::gaps;
use super::plan::ShardPlan;
use super::status::missing_text;
use csv::StringRecord;
use flipwave_analysis::{CampaignMonitor, Row};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::path::PathBuf;

/// The shards of a campaign with one seed.
pub(super) struct Shards {
    pub plan: ShardPlan,
    /// Folder of the shards; the first of several.
    pub folder: SharedFolder,
    /// Files of rows, ordered by their first row.
    pub files: Vec<(SharedFolder, Range<u64>)>,
}

impl Shards {
    /// Finds the shards in a folder.
    ///
    /// # Errors
    /// [`ShardError::Folder`].
    pub fn find(folder: &SharedFolder, plan: ShardPlan) -> Result<Shards, ShardError> {
        let files = complete_ranges(folder)?.into_iter().map(|range| (folder.clone(), range));
        let mut shards = Shards { plan, folder: folder.clone(), files: files.collect() };
        shards.sort();
        Ok(shards)
    }

    /// Sorts the files by their first row.
    pub fn sort(&mut self) {
        self.files.sort_by_key(|(_, range)| (range.start, range.end));
    }

    /// Injections of `part` that no file contains.
    pub fn missing(&self, part: Range<u64>) -> Vec<Range<u64>> {
        gaps(part, self.files.iter().map(|(_, range)| range.clone()))
    }

    /// Number of rows before the first missing one.
    pub fn contiguous_rows(&self) -> u64 {
        let count = self.plan.count;
        self.missing(0..count).first().map_or(count, |gap| gap.start)
    }

    /// The monitor of the campaign after its first `end` injections, or at the look that meets the
    /// goal.
    ///
    /// # Errors
    /// [`ShardError`], in particular [`ShardError::Missing`].
    pub fn monitor(&self, end: u64) -> Result<CampaignMonitor, ShardError> {
        let mut monitor = self.plan.monitor();
        let (mut rows, mut parser) = (Rows::new(self), RowParser::new());
        while monitor.count() < end && !monitor.is_goal_met() {
            let Some((file, bytes)) = rows.next()? else { break };
            let row =
                parser.parse(bytes).map_err(|what| ShardError::Damaged { path: file, what })?;
            monitor.add(&row);
        }
        rows.check_rest()?;
        Ok(monitor)
    }
}

/// Parser of rows. Reused for all lines, because creating one is slower than parsing a line.
pub(super) struct RowParser {
    reader: csv::Reader<Line>,
    record: StringRecord,
}

/// The unread part of a line.
#[derive(Default)]
struct Line(VecDeque<u8>);

impl Read for Line {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl RowParser {
    pub fn new() -> RowParser {
        let reader = csv::ReaderBuilder::new().has_headers(false).from_reader(Line::default());
        RowParser { reader, record: StringRecord::new() }
    }

    /// Parses a line, including its newline.
    pub fn parse(&mut self, line: &[u8]) -> Result<Row, String> {
        self.reader.get_mut().0.extend(line);
        let row = match self.reader.read_record(&mut self.record) {
            Ok(true) => self.record.deserialize(None),
            Ok(false) => return Err("an empty line".to_owned()),
            Err(error) => Err(error),
        };
        row.map_err(|error| error.to_string())
    }
}

/// Iterates over the rows of a campaign. A row that is in several files must be the same in all of
/// them.
pub(super) struct Rows<'a> {
    shards: &'a Shards,
    /// Files that have not been opened.
    waiting: std::slice::Iter<'a, (SharedFolder, Range<u64>)>,
    open: Vec<(PathBuf, ShardReader)>,
    next: u64,
    row: Vec<u8>,
}

impl<'a> Rows<'a> {
    pub fn new(shards: &'a Shards) -> Rows<'a> {
        let waiting = shards.files.iter();
        Rows { shards, waiting, open: Vec::new(), next: 0, row: Vec::new() }
    }

    /// Reads the rest of the open files and checks their checksums.
    pub fn check_rest(&mut self) -> Result<(), ShardError> {
        self.open.drain(..).try_for_each(|(_, reader)| reader.check())
    }

    /// Returns the next row and a file that contains it.
    pub fn next(&mut self) -> Result<Option<(PathBuf, &[u8])>, ShardError> {
        let plan = &self.shards.plan;
        if self.next >= plan.count {
            self.check_rest()?;
            return Ok(None);
        }
        let key = RowsKey { space: &plan.space, seed: plan.facts.campaign.seed };
        while let Some((folder, range)) = self.waiting.as_slice().first()
            && range.start <= self.next
        {
            self.waiting.next();
            self.open.push((folder.rows(range), ShardReader::open(folder, key, range)?));
        }
        self.row.clear();
        let mut found: Option<PathBuf> = None;
        let mut ended = Vec::new();
        for (number, (path, reader)) in self.open.iter_mut().enumerate() {
            match (reader.next()?, &found) {
                (None, _) => ended.push(number),
                (Some(row), None) => {
                    self.row.extend_from_slice(row);
                    found = Some(path.clone());
                }
                (Some(row), Some(_)) if row == self.row => {}
                (Some(_), Some(first)) => {
                    let (first, second) = (first.clone(), path.clone());
                    return Err(ShardError::Contradiction { index: self.next, first, second });
                }
            }
        }
        ended.into_iter().rev().for_each(|number| drop(self.open.remove(number)));
        match found {
            Some(path) => {
                self.next += 1;
                Ok(Some((path, &self.row)))
            }
            None => {
                let path = self.shards.folder.path().to_owned();
                let missing = missing_text(std::slice::from_ref(&(self.next..plan.count)));
                Err(ShardError::Missing { path, missing })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parser_is_reusable() {
        let text = |index: u64| {
            format!(
                "{index},\"dispatch=0 lane=1\",,,,\"3,1,0\",,,,v_add_f32,valu,,,v0,0x00000001,0x00000000,\
                 0x00000001,1,,1.0,masked,logical,,,,,,,,,,\n"
            )
        };
        let mut parser = RowParser::new();
        for index in 0..5 {
            let row = parser.parse(text(index).as_bytes()).expect("a row");
            assert_eq!((row.injection, row.site.as_str()), (index, "dispatch=0 lane=1"));
        }
        assert!(parser.parse(b"5,x,y\n").is_err());
    }
}
