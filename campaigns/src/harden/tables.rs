//! Output files of a hardening: the effect of each budget, and the instructions it duplicates.

use super::hardenings::Hardenings;
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::results::folder::FolderError;
use crate::results::lock::FolderLock;
use flipwave_analysis::{HardenedPoint, Outcome, curve_svg};
use flipwave_host::output::FormulaEscaper;
use std::path::{Path, PathBuf};

const CURVE: &str = "curve.csv";
const PLOT: &str = "curve.svg";
const INSTRUCTIONS: &str = "instructions.csv";

/// Writes the tables and the plot, and returns their paths.
///
/// # Errors
/// [`FolderError`].
pub(super) fn write(
    lock: &FolderLock,
    campaign: &Campaign,
    hardenings: &Hardenings,
) -> Result<Vec<PathBuf>, CampaignError> {
    let folder = lock.folder().map_err(FolderError::from)?.to_owned();
    let failed = |name: &str, error: csv::Error| FolderError::Access {
        path: folder.join(name),
        reason: error.into(),
    };
    let curve = curve(&hardenings.points).map_err(|error| failed(CURVE, error))?;
    let mut instructions = csv::Writer::from_writer(FormulaEscaper::new(Vec::new()));
    for instruction in &hardenings.ranking {
        instructions.serialize(instruction).map_err(|error| failed(INSTRUCTIONS, error))?;
    }
    let instructions = instructions
        .into_inner()
        .map(FormulaEscaper::into_inner)
        .map_err(|error| failed(INSTRUCTIONS, error.into_error().into()))?;
    let plot = curve_svg(&hardenings.points, &campaign.name).into_bytes();
    let mut files = Vec::new();
    for (name, bytes) in [(CURVE, curve), (PLOT, plot), (INSTRUCTIONS, instructions)] {
        let file = folder.join(name);
        put(lock, &file, &bytes)?;
        files.push(file);
    }
    Ok(files)
}

/// Formats the table with one line per budget.
fn curve(points: &[HardenedPoint]) -> csv::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(FormulaEscaper::new(Vec::new()));
    let outcomes = Outcome::ALL.map(Outcome::name);
    let columns = ["budget", "cost", "duplicated", "executed"].into_iter().chain(outcomes);
    table.write_record(columns.chain(["coverage", "low", "high", "needless"]))?;
    for point in points {
        let mut cells = vec![
            point.budget.to_string(),
            point.cost.to_string(),
            point.duplicated.to_string(),
            point.executed.to_string(),
        ];
        cells.extend(point.rates.iter().map(f64::to_string));
        let last = [point.coverage, point.interval.low, point.interval.high, point.false_positives];
        cells.extend(last.iter().map(f64::to_string));
        table.write_record(cells)?;
    }
    table.into_inner().map(FormulaEscaper::into_inner).map_err(|error| error.into_error().into())
}

/// Writes a file in a locked folder atomically.
pub fn put(lock: &FolderLock, file: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    lock.folder()?;
    let failed = |reason| FolderError::Access { path: file.to_owned(), reason };
    flipwave_host::output::replace(file, bytes).map_err(failed)
}
