//! The tables of all variants: those of each, one after another, with columns before that say which
//! variant and what its dimensions are. They are written row by row.

use super::folder::VariantList;
use crate::results::folder::{FolderError, RESULTS, SUMMARY};
use crate::results::lock::FolderLock;
use csv::ByteRecord;
use flipwave_host::input::BoundedLines;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// The table of the summaries of all variants.
const VARIANTS: &str = "variants.csv";

/// Writes `results.csv` and `variants.csv` of a folder whose variants are all done: each whole or not at
/// all, the same however the variants were run.
///
/// # Errors
/// [`FolderError`].
pub(crate) fn write_tables(lock: &FolderLock, list: &VariantList) -> Result<(), FolderError> {
    write(lock, list, RESULTS, RESULTS)?;
    write(lock, list, SUMMARY, VARIANTS)
}

/// Removes the tables of an earlier run, which are not those of what is begun.
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

/// Writes the table `to` from the tables `from` of the variants.
fn write(lock: &FolderLock, list: &VariantList, from: &str, to: &str) -> Result<(), FolderError> {
    let folder = lock.folder()?;
    let path = folder.join(to);
    let failed = |reason| FolderError::Access { path: path.clone(), reason };
    let unfinished = flipwave_host::output::unfinished(folder).map_err(failed)?;
    let mut table = csv::Writer::from_writer(BufWriter::with_capacity(1 << 20, unfinished));
    let mut header: Option<ByteRecord> = None;
    for own in &list.variants {
        let source = folder.join(&own.name).join(from);
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
                    "it has other columns than those of the other variants; run this variant again",
                )));
            }
        }
        let before = [&own.name].into_iter().chain(&own.values);
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
