//! Writing the files of a results folder.

pub mod about;
pub mod folder;
pub mod lock;
pub mod record;
pub mod row;

use crate::file::schema::ResultsFormat;
use crate::results::folder::{FolderError, PARQUET, RATES, RESULTS, SUMMARY};
use crate::results::lock::FolderLock;
use flipwave_analysis::{ParquetWriter, ResultsError, Row, Summary, rates_svg};
use flipwave_host::output::FormulaEscaper;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often is looked whether the folder is still this run's.
const LOCK_PERIOD: Duration = Duration::from_secs(1);

/// `results.csv`, written row by row: every row given is on disk before the next, and no part of
/// one that cannot be written.
pub(crate) struct ResultsFile<'a> {
    path: PathBuf,
    file: File,
    /// Its bytes.
    length: u64,
    lock: &'a FolderLock,
    /// When the lock is looked at again.
    next_look: Instant,
}

impl<'a> ResultsFile<'a> {
    /// Makes the file, with its header.
    pub(crate) fn create(lock: &'a FolderLock) -> Result<ResultsFile<'a>, FolderError> {
        let path = lock.folder()?.join(RESULTS);
        let file = flipwave_host::output::create(&path).map_err(|reason| failed(&path, reason))?;
        let mut results = ResultsFile { path, file, length: 0, lock, next_look: Instant::now() };
        // With the header written here, a campaign that is stopped before its first row leaves
        // a table too.
        results.append_line(|csv| csv.write_record(Row::COLUMNS))?;
        Ok(results)
    }

    /// Opens the file that an earlier run has left, to go on after its rows.
    pub(crate) fn append(lock: &'a FolderLock) -> Result<ResultsFile<'a>, FolderError> {
        let path = lock.folder()?.join(RESULTS);
        let open = || {
            let file = flipwave_host::output::append(&path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) = open().map_err(|reason| failed(&path, reason))?;
        Ok(ResultsFile { path, file, length, lock, next_look: Instant::now() })
    }

    /// Appends a row.
    pub(crate) fn write(&mut self, row: &Row) -> Result<(), FolderError> {
        if Instant::now() >= self.next_look {
            self.lock.folder()?;
            self.next_look = Instant::now() + LOCK_PERIOD;
        }
        self.append_line(|csv| csv.serialize(row))
    }

    fn append_line(
        &mut self,
        line: impl FnOnce(&mut csv::Writer<FormulaEscaper<Vec<u8>>>) -> csv::Result<()>,
    ) -> Result<(), FolderError> {
        let bytes = self::line(line).map_err(|reason| failed(&self.path, reason))?;
        if let Err(reason) = self.file.write_all(&bytes) {
            // What there was room for. Where it cannot be taken away, it is left out by `--resume`.
            let _ = self.file.set_len(self.length);
            return Err(failed(&self.path, reason));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Writes `results.parquet` from `results.csv`, row by row, where that is wanted, whole or not at all.
pub(crate) fn write_columns(lock: &FolderLock, format: ResultsFormat) -> Result<(), FolderError> {
    if format == ResultsFormat::Csv {
        return Ok(());
    }
    let folder = lock.folder()?;
    let (from, to) = (folder.join(RESULTS), folder.join(PARQUET));
    let write = || -> std::io::Result<()> {
        let unfinished = flipwave_host::output::unfinished(folder)?;
        let mut table = ParquetWriter::new(unfinished.as_file()).map_err(std::io::Error::other)?;
        let rows = flipwave_analysis::rows(flipwave_host::input::open_lines(&from)?);
        for row in rows.map_err(std::io::Error::other)? {
            let row = row.map_err(std::io::Error::other)?;
            table.write(&row).map_err(std::io::Error::other)?;
        }
        table.finish().map_err(std::io::Error::other)?;
        lock.folder().map_err(std::io::Error::other)?;
        flipwave_host::output::finish(unfinished, &to)
    };
    write().map_err(|reason| failed(&to, reason))
}

/// A line of a table as it is in the file.
pub(crate) fn line(
    write: impl FnOnce(&mut csv::Writer<FormulaEscaper<Vec<u8>>>) -> csv::Result<()>,
) -> std::io::Result<Vec<u8>> {
    let mut csv =
        csv::WriterBuilder::new().has_headers(false).from_writer(FormulaEscaper::new(Vec::new()));
    write(&mut csv)?;
    csv.into_inner().map(FormulaEscaper::into_inner).map_err(|error| error.into_error())
}

/// Writes `summary.csv` and `rates.svg`.
pub(crate) fn write_summary(
    lock: &FolderLock,
    name: &str,
    summary: &Summary,
) -> Result<(), FolderError> {
    let folder = lock.folder()?;
    let table = folder.join(SUMMARY);
    let mut text = Vec::new();
    summary.write_csv(&mut text).map_err(|error| {
        let reason = match error {
            ResultsError::Csv(error) => error.into(),
            other => std::io::Error::other(other),
        };
        failed(&table, reason)
    })?;
    flipwave_host::output::replace(&table, &text).map_err(|reason| failed(&table, reason))?;
    let plot = folder.join(RATES);
    let svg = rates_svg(summary, name);
    flipwave_host::output::replace(&plot, svg.as_bytes()).map_err(|reason| failed(&plot, reason))
}

fn failed(path: &Path, reason: std::io::Error) -> FolderError {
    FolderError::Access { path: path.to_owned(), reason }
}
