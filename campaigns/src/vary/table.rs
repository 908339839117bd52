//! The combined tables of all variants. They contain the rows of each variant in turn, with additional
//! first columns for the variant and its dimensions.

use super::folder::VariantList;
use crate::results::folder::{FolderError, RESULTS, SUMMARY};
use crate::results::lock::FolderLock;
use csv::ByteRecord;
use flipwave_host::input::BoundedLines;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// The combined table of the summaries.
const VARIANTS: &str = "variants.csv";

/// Writes `results.csv` and `variants.csv` of a folder with complete variants. Each file is written
/// atomically, and its content does not depend on how the variants were run.
///
/// # Errors
/// [`FolderError`].
pub(crate) fn write_tables(lock: &FolderLock, list: &VariantList) -> Result<(), FolderError> {
    write(lock, list, RESULTS, RESULTS)?;
    write(lock, list, SUMMARY, VARIANTS)
}

/// Removes the combined tables of an earlier run.
///
/// # Errors
/// [`FolderError`].
pub(crate) fn remove_tables(lock: &FolderLock) -> Result<(), FolderError> {
    for name in [RESULTS, VARIANTS] {
        let path = lock.folder()?.join(name);
        let removed = flipwave_host::output::remove(&path);
        removed.map_err(|reason| FolderError::Access { path, reason })?;
    }
    Ok(())
}

/// Combines the tables `from` of the variants to the table `to`.
fn write(lock: &FolderLock, list: &VariantList, from: &str, to: &str) -> Result<(), FolderError> {
    let folder = lock.folder()?;
    let path = folder.join(to);
    let failed = |reason| FolderError::Access { path: path.clone(), reason };
    let unfinished = flipwave_host::output::unfinished(folder).map_err(failed)?;
    let mut table = csv::Writer::from_writer(BufWriter::with_capacity(1 << 20, unfinished));
    let mut header: Option<ByteRecord> = None;
    for variant in &list.variants {
        let source = folder.join(&variant.name).join(from);
        let unread = |reason| FolderError::Unread { path: source.clone(), reason };
        let mut rows = open(&source).map_err(unread)?;
        let columns = rows.byte_headers().map_err(|error| unread(error.into()))?;
        match &header {
            None => {
                let before =
                    ["variant"].into_iter().chain(list.dimensions.iter().map(String::as_str));
                let all = before.map(str::as_bytes).chain(columns.iter());
                table.write_record(all).map_err(|error| failed(error.into()))?;
                header = Some(columns.clone());
            }
            Some(header) if header == columns => {}
            Some(_) => {
                return Err(unread(io::Error::other(
                    "its columns differ from those of other variants; run this variant again",
                )));
            }
        }
        let before = [&variant.name].into_iter().chain(&variant.values);
        let before = before.map(|cell| flipwave_host::output::escape_formula(cell).into_bytes());
        let before: ByteRecord = before.collect();
        let mut row = ByteRecord::new();
        while rows.read_byte_record(&mut row).map_err(|error| unread(error.into()))? {
            let all = before.iter().chain(row.iter());
            table.write_record(all).map_err(|error| failed(error.into()))?;
        }
    }
    let buffered = table.into_inner().map_err(|error| failed(error.into_error()))?;
    let unfinished = buffered.into_inner().map_err(|error| failed(error.into_error()))?;
    lock.folder()?;
    flipwave_host::output::finish(unfinished, &path).map_err(failed)
}

fn open(path: &Path) -> io::Result<csv::Reader<BoundedLines<File>>> {
    let table = flipwave_host::input::open_lines(path)?;
    Ok(csv::ReaderBuilder::new().buffer_capacity(1 << 20).from_reader(table))
}
