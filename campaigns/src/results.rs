//! Writing the files of a results folder.

use crate::folder::{FolderError, RATES, RESULTS, SUMMARY};
use flipwave_analysis::{ResultsError, Row, Summary, rates_svg};
use std::fs::File;
use std::path::{Path, PathBuf};

/// `results.csv`, written row by row: every row given is on disk before the next.
pub(crate) struct ResultsFile {
    path: PathBuf,
    csv: csv::Writer<File>,
}

impl ResultsFile {
    /// Makes the file, with its header.
    pub(crate) fn create(folder: &Path) -> Result<ResultsFile, FolderError> {
        let path = folder.join(RESULTS);
        let file = File::create(&path).map_err(|reason| failed(&path, reason))?;
        // With the header written here, a campaign that is stopped before its first row leaves
        // a table too.
        let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(file);
        csv.write_record(Row::COLUMNS).map_err(|error| failed(&path, error.into()))?;
        csv.flush().map_err(|reason| failed(&path, reason))?;
        Ok(ResultsFile { path, csv })
    }

    /// Opens the file that an earlier run has left, to go on behind its rows.
    pub(crate) fn append(folder: &Path) -> Result<ResultsFile, FolderError> {
        let path = folder.join(RESULTS);
        let file = File::options().append(true).open(&path);
        let file = file.map_err(|reason| failed(&path, reason))?;
        let csv = csv::WriterBuilder::new().has_headers(false).from_writer(file);
        Ok(ResultsFile { path, csv })
    }

    /// Appends a row.
    pub(crate) fn write(&mut self, row: &Row) -> Result<(), FolderError> {
        self.csv.serialize(row).map_err(|error| failed(&self.path, error.into()))?;
        self.csv.flush().map_err(|reason| failed(&self.path, reason))
    }
}

/// Writes `summary.csv` and `rates.svg`.
pub(crate) fn write_summary(
    folder: &Path,
    name: &str,
    summary: &Summary,
) -> Result<(), FolderError> {
    let table = folder.join(SUMMARY);
    let file = File::create(&table).map_err(|reason| failed(&table, reason))?;
    summary.write_csv(file).map_err(|error| {
        let reason = match error {
            ResultsError::Csv(error) => error.into(),
            other => std::io::Error::other(other),
        };
        failed(&table, reason)
    })?;
    let plot = folder.join(RATES);
    std::fs::write(&plot, rates_svg(summary, name)).map_err(|reason| failed(&plot, reason))
}

fn failed(path: &Path, reason: std::io::Error) -> FolderError {
    FolderError::Access { path: path.to_owned(), reason }
}
