//! Writes the files of a results folder.

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

/// Interval at which a run checks that it still holds the lock of the folder.
const LOCK_PERIOD: Duration = Duration::from_secs(1);

/// Writer of `results.csv`. Each row is on disk before the next one is written; a row that cannot
/// be written is removed completely.
pub(crate) struct ResultsFile<'a> {
    path: PathBuf,
    file: File,
    /// Length of the file in bytes.
    length: u64,
    lock: &'a FolderLock,
    /// Time of the next check of the lock.
    next_check: Instant,
}

impl<'a> ResultsFile<'a> {
    /// Creates the file and writes its header.
    pub(crate) fn create(lock: &'a FolderLock) -> Result<ResultsFile<'a>, FolderError> {
        let path = lock.folder()?.join(RESULTS);
        let file = flipwave_host::output::create(&path).map_err(|reason| failed(&path, reason))?;
        let mut results = ResultsFile { path, file, length: 0, lock, next_check: Instant::now() };
        // Writing the header here leaves a table even if the campaign ends before its first row.
        results.append_line(|csv| csv.write_record(Row::COLUMNS))?;
        Ok(results)
    }

    /// Opens the file of an earlier run, to append rows.
    pub(crate) fn append(lock: &'a FolderLock) -> Result<ResultsFile<'a>, FolderError> {
        let path = lock.folder()?.join(RESULTS);
        let open = || {
            let file = flipwave_host::output::append(&path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) = open().map_err(|reason| failed(&path, reason))?;
        Ok(ResultsFile { path, file, length, lock, next_check: Instant::now() })
    }

    /// Appends a row.
    pub(crate) fn write(&mut self, row: &Row) -> Result<(), FolderError> {
        if Instant::now() >= self.next_check {
            self.lock.folder()?;
            self.next_check = Instant::now() + LOCK_PERIOD;
        }
        self.append_line(|csv| csv.serialize(row))
    }

    fn append_line(
        &mut self,
        line: impl FnOnce(&mut csv::Writer<FormulaEscaper<Vec<u8>>>) -> csv::Result<()>,
    ) -> Result<(), FolderError> {
        let bytes = self::line(line).map_err(|reason| failed(&self.path, reason))?;
        if let Err(reason) = self.file.write_all(&bytes) {
            // Removes the incomplete row. If that fails, `--resume` removes it.
            let _ = self.file.set_len(self.length);
            return Err(failed(&self.path, reason));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Converts `results.csv` to `results.parquet`, if `format` requests it. The file is written as a
/// whole or not at all.
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

/// Formats a line of a table.
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
            error => std::io::Error::other(error),
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
