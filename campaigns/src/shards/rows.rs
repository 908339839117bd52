//! The rows of a campaign, out of the files of its shards.

use super::error::ShardError;
use super::file::{Of, ShardReader, finished};
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

/// The shards of one seed.
pub(super) struct Shards {
    pub plan: ShardPlan,
    /// Where they are; of several folders the first.
    pub folder: SharedFolder,
    /// Files of rows, by where they begin.
    pub files: Vec<(SharedFolder, Range<u64>)>,
}

impl Shards {
    /// Those of a folder.
    ///
    /// # Errors
    /// [`ShardError::Folder`].
    pub fn of(folder: &SharedFolder, plan: ShardPlan) -> Result<Shards, ShardError> {
        let files = finished(folder)?.into_iter().map(|range| (folder.clone(), range));
        let mut shards = Shards { plan, folder: folder.clone(), files: files.collect() };
        shards.sort();
        Ok(shards)
    }

    /// Puts files in their order.
    pub fn sort(&mut self) {
        self.files.sort_by_key(|(_, range)| (range.start, range.end));
    }

    /// What of these injections no file has.
    pub fn missing(&self, part: Range<u64>) -> Vec<Range<u64>> {
        gaps(part, self.files.iter().map(|(_, range)| range.clone()))
    }

    /// How many rows there are from the first on, without one that is missing.
    pub fn prefix(&self) -> u64 {
        let count = self.plan.count;
        self.missing(0..count).first().map_or(count, |gap| gap.start)
    }

    /// The monitor of the campaign after its first `end` injections, or up to the look that shows enough.
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

/// Reads rows from lines; one for all lines, as it takes longer to make than to use.
pub(super) struct RowParser {
    reader: csv::Reader<Line>,
    record: StringRecord,
}

/// A line, as far as it has not been read.
#[derive(Default)]
struct Line(VecDeque<u8>);

impl Read for Line {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl RowParser {
    pub fn new() -> RowParser {
        let reader = csv::ReaderBuilder::new().has_headers(false).from_reader(Line::default());
        RowParser { reader, record: StringRecord::new() }
    }

    /// The row of a line, with its end.
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

/// The rows of a campaign, one after another. Where several files have a row, it must be the same in
/// all of them.
pub(super) struct Rows<'a> {
    shards: &'a Shards,
    /// Files that have not been come to.
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

    /// Checks the files that were begun: what is beyond the last row that is wanted counts in their
    /// checksums, too.
    pub fn check_rest(&mut self) -> Result<(), ShardError> {
        self.open.drain(..).try_for_each(|(_, reader)| reader.check())
    }

    /// The next row, and a file that has it.
    pub fn next(&mut self) -> Result<Option<(PathBuf, &[u8])>, ShardError> {
        let plan = &self.shards.plan;
        if self.next >= plan.count {
            self.check_rest()?;
            return Ok(None);
        }
        let of = Of { space: &plan.space, seed: plan.facts.campaign.seed };
        while let Some((folder, range)) = self.waiting.as_slice().first()
            && range.start <= self.next
        {
            self.waiting.next();
            self.open.push((folder.rows(range), ShardReader::open(folder, of, range)?));
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
                    let (one, other) = (first.clone(), path.clone());
                    return Err(ShardError::Contradiction { index: self.next, one, other });
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
    fn one_parser_reads_row_after_row() {
        let text = |index: u64| {
            format!(
                "{index},\"dispatch=0 lane=1\",,,,\"3,1,0\",,,,v_add_f32,valu,,,v0,0x00000001,0x00000000,\
                 0x00000001,1,,1.0,masked,logical,,,,,,,,,,\n"
            )
        };
        let mut parser = RowParser::new();
        for index in 0..5 {
            let row = parser.parse(text(index).as_bytes()).expect("a row");
            assert_eq!((row.index, row.site.as_str()), (index, "dispatch=0 lane=1"));
        }
        assert!(parser.parse(b"5,x,y\n").is_err());
    }
}
