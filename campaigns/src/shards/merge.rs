//! Shards become the table that one worker would have written.

use super::error::ShardError;
use super::file::{Of, ShardReader, finished};
use super::layout::SharedFolder;
use super::part::gaps;
use super::plan::ShardPlan;
use super::status::missing_text;
use crate::error::CampaignError;
use crate::folder::{self, FolderError, RESULTS};
use crate::lock::FolderLock;
use crate::record::{Counts, Host, Record, Status, Timings};
use crate::results::{line, write_columns, write_summary};
use csv::StringRecord;
use flipwave_analysis::{Confidence, Row, Summary, Tallies};
use std::collections::VecDeque;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How shards are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeOptions {
    /// The folders with the shards. Of more than one, rows of the same seed are of one campaign, and
    /// those of other seeds come after them.
    pub folders: Vec<PathBuf>,
    /// Where the table goes.
    pub out: PathBuf,
    /// How long is waited for shards that are not there, or not yet seen from here.
    pub wait: Duration,
}

/// What a merge came to.
#[derive(Clone, Debug)]
pub struct Merged {
    /// How it went, as in `run.json`.
    pub record: Record,
    /// Rates, as in `summary.csv`.
    pub summary: Summary,
    /// Seconds that it took.
    pub seconds: f64,
}

/// How long is waited between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Merges shards into `results.csv`, with `summary.csv`, `rates.svg` and `run.json`: byte by byte what one
/// worker writes, but for `run.json`. The table is there whole or not at all.
///
/// # Errors
/// [`ShardError`], in particular [`ShardError::Missing`] of a campaign that is not done;
/// [`FolderError`].
pub fn merge(options: &MergeOptions) -> Result<Merged, CampaignError> {
    let clock = Instant::now();
    let campaigns = loop {
        match campaigns(&options.folders) {
            Err(ShardError::Missing { .. } | ShardError::NoPlan { .. })
                if clock.elapsed() < options.wait =>
            {
                std::thread::sleep(PAUSE);
            }
            found => break found?,
        }
    };
    let lock = FolderLock::take(&options.out, false).map_err(FolderError::from)?;
    folder::check_files(&options.out)?;
    let first = &campaigns[0].plan;
    if !options.folders.contains(&options.out) {
        folder::check(&options.out, &first.campaign.content, first.campaign.seed)?;
        folder::check_no_results(&options.out)?;
    }
    let confidence = Confidence::new(first.confidence)?;
    let mut tallies = Tallies::new(confidence);
    let mut done = Counts::default();
    write_table(&lock, &campaigns, |row| {
        tallies.add(row);
        done.add(row.outcome);
    })?;
    let summary = tallies.summary();
    write_summary(&lock, &first.campaign.name, &summary)?;
    write_columns(&lock, first.results)?;
    let seconds = clock.elapsed().as_secs_f64();
    let record = Record {
        status: Status::Complete,
        error: None,
        campaign: first.campaign.clone(),
        versions: first.versions.clone(),
        host: Host::this(),
        workers: 1,
        population: first.population.clone(),
        counted: first.counted.clone(),
        fidelity: first.fidelity.clone(),
        golden_wave_instructions: first.golden_wave_instructions.clone(),
        instruction_limits: first.instruction_limits.clone(),
        planned: campaigns.iter().map(|own| own.plan.count).sum(),
        confidence: first.confidence,
        done,
        timings: Timings::default(),
        injections_per_second: 0.0,
    };
    record.write(&lock)?;
    Ok(Merged { record, summary, seconds })
}

/// The shards of one seed.
struct Shards {
    plan: ShardPlan,
    /// Files of rows, by where they begin.
    files: Vec<(SharedFolder, Range<u64>)>,
}

/// The campaigns in some folders, one for each seed, if all of their rows are there.
fn campaigns(folders: &[PathBuf]) -> Result<Vec<Shards>, ShardError> {
    let mut campaigns: Vec<Shards> = Vec::new();
    for path in folders {
        let folder = SharedFolder::new(path);
        let plan = ShardPlan::latest(&folder)?;
        let plan = plan.ok_or_else(|| ShardError::NoPlan { path: path.clone() })?;
        if let Some(first) = campaigns.first()
            && let Some(difference) = first.plan.difference_of_space(&plan)
        {
            return Err(ShardError::Other { path: path.clone(), difference });
        }
        let files = finished(&folder)?.into_iter().map(|range| (folder.clone(), range));
        let seed = plan.campaign.seed;
        match campaigns.iter_mut().find(|own| own.plan.campaign.seed == seed) {
            Some(own) => {
                own.files.extend(files);
                if own.plan.count < plan.count {
                    own.plan = plan;
                }
            }
            None => campaigns.push(Shards { plan, files: files.collect() }),
        }
    }
    for own in &mut campaigns {
        own.files.sort_by_key(|(_, range)| (range.start, range.end));
        let ranges = own.files.iter().map(|(_, range)| range.clone());
        let missing = gaps(0..own.plan.count, ranges);
        if !missing.is_empty() {
            let path = folders[0].clone();
            let missing = missing_text(&missing);
            return Err(ShardError::Missing { path, missing });
        }
    }
    Ok(campaigns)
}

/// Writes `results.csv`, whole: `count` gets each row.
fn write_table(
    lock: &FolderLock,
    campaigns: &[Shards],
    mut count: impl FnMut(&Row),
) -> Result<(), CampaignError> {
    let folder = lock.folder().map_err(FolderError::from)?;
    let path = folder.join(RESULTS);
    let failed = |reason| FolderError::Access { path: path.clone(), reason };
    let unfinished = flipwave_output::unfinished(folder).map_err(failed)?;
    let mut table = BufWriter::with_capacity(1 << 20, unfinished);
    let header = line(|csv| csv.write_record(Row::COLUMNS)).map_err(failed)?;
    table.write_all(&header).map_err(failed)?;
    let mut offset = 0;
    for own in campaigns {
        let (mut rows, mut parser) = (Rows::new(own), RowParser::new());
        while let Some((file, bytes)) = rows.next()? {
            let row =
                parser.parse(bytes).map_err(|what| ShardError::Damaged { path: file, what })?;
            if offset == 0 {
                count(&row);
                table.write_all(bytes).map_err(failed)?;
            } else {
                // Rows of another seed come after those before, with numbers of their own.
                let row = Row { index: offset + row.index, ..row };
                count(&row);
                let bytes = line(|csv| csv.serialize(&row)).map_err(failed)?;
                table.write_all(&bytes).map_err(failed)?;
            }
        }
        offset += own.plan.count;
    }
    let unfinished = table.into_inner().map_err(|error| failed(error.into_error()))?;
    lock.folder().map_err(FolderError::from)?;
    flipwave_output::finish(unfinished, &path).map_err(failed)?;
    Ok(())
}

/// Reads rows from lines; one for all lines, as it takes longer to make than to use.
struct RowParser {
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
    fn new() -> RowParser {
        let reader = csv::ReaderBuilder::new().has_headers(false).from_reader(Line::default());
        RowParser { reader, record: StringRecord::new() }
    }

    /// The row of a line, with its end.
    fn parse(&mut self, line: &[u8]) -> Result<Row, String> {
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
struct Rows<'a> {
    shards: &'a Shards,
    /// Files that have not been come to.
    waiting: std::slice::Iter<'a, (SharedFolder, Range<u64>)>,
    open: Vec<(PathBuf, ShardReader)>,
    next: u64,
    row: Vec<u8>,
}

impl<'a> Rows<'a> {
    fn new(shards: &'a Shards) -> Rows<'a> {
        let waiting = shards.files.iter();
        Rows { shards, waiting, open: Vec::new(), next: 0, row: Vec::new() }
    }

    /// The next row, and a file that has it.
    fn next(&mut self) -> Result<Option<(PathBuf, &[u8])>, ShardError> {
        let plan = &self.shards.plan;
        if self.next >= plan.count {
            // What is beyond is of a plan that was not seen; the checksum is of that, too.
            self.open.drain(..).try_for_each(|(_, reader)| reader.check())?;
            return Ok(None);
        }
        let of = Of { space: &plan.space, seed: plan.campaign.seed };
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
                let path = self.shards.files[0].0.path().to_owned();
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
                "{index},\"dispatch=0 lane=1\",,,\"3,1,0\",,,,v_add_f32,valu,,,v0,0x00000001,0x00000000,\
                 0x00000001,1,,1.0,masked,logical,,,,,\n"
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
