//! Writing the files of a results folder.

use crate::folder::{FolderError, RATES, RESULTS, SUMMARY};
use flipwave_analysis::{ResultsError, Row, Summary, rates_svg};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// `results.csv`, written row by row: every row given is on disk before the next, and no part of
/// one that cannot be written.
pub(crate) struct ResultsFile {
    path: PathBuf,
    file: File,
    /// Its bytes.
    length: u64,
}

impl ResultsFile {
    /// Makes the file, with its header.
    pub(crate) fn create(folder: &Path) -> Result<ResultsFile, FolderError> {
        let path = folder.join(RESULTS);
        let file = flipwave_output::create(&path).map_err(|reason| failed(&path, reason))?;
        let mut results = ResultsFile { path, file, length: 0 };
        // With the header written here, a campaign that is stopped before its first row leaves
        // a table too.
        results.append_line(|csv| csv.write_record(Row::COLUMNS))?;
        Ok(results)
    }

    /// Opens the file that an earlier run has left, to go on behind its rows.
    pub(crate) fn append(folder: &Path) -> Result<ResultsFile, FolderError> {
        let path = folder.join(RESULTS);
        let open = || {
            let file = File::options().append(true).open(&path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) = open().map_err(|reason| failed(&path, reason))?;
        Ok(ResultsFile { path, file, length })
    }

    /// Appends a row.
    pub(crate) fn write(&mut self, row: &Row) -> Result<(), FolderError> {
        self.append_line(|csv| csv.serialize(row))
    }

    fn append_line(
        &mut self,
        line: impl FnOnce(&mut csv::Writer<Vec<u8>>) -> csv::Result<()>,
    ) -> Result<(), FolderError> {
        let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        line(&mut csv).map_err(|error| failed(&self.path, error.into()))?;
        let bytes = csv.into_inner().map_err(|error| failed(&self.path, error.into_error()))?;
        if let Err(reason) = self.file.write_all(&bytes) {
            // What there was room for. Where it cannot be taken away, it is left out by `--resume`.
            let _ = self.file.set_len(self.length);
            return Err(failed(&self.path, reason));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Writes `summary.csv` and `rates.svg`.
pub(crate) fn write_summary(
    folder: &Path,
    name: &str,
    summary: &Summary,
) -> Result<(), FolderError> {
    let table = folder.join(SUMMARY);
    let mut text = Vec::new();
    summary.write_csv(&mut text).map_err(|error| {
        let reason = match error {
            ResultsError::Csv(error) => error.into(),
            other => std::io::Error::other(other),
        };
        failed(&table, reason)
    })?;
    flipwave_output::replace(&table, &text).map_err(|reason| failed(&table, reason))?;
    let plot = folder.join(RATES);
    let svg = rates_svg(summary, name);
    flipwave_output::replace(&plot, svg.as_bytes()).map_err(|reason| failed(&plot, reason))
}

fn failed(path: &Path, reason: std::io::Error) -> FolderError {
    FolderError::Access { path: path.to_owned(), reason }
}
