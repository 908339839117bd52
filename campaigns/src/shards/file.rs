//! Files of rows. The first line identifies the campaign; the last line contains the number of rows
//! and a checksum, which reveals incomplete and damaged files. Files with the same rows have the
//! same bytes.

use super::error::ShardError;
use super::layout::SharedFolder;
use crate::digest::hexadecimal;
use crate::results::folder::FolderError;
use crate::results::line;
use flipwave_analysis::Row;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The first line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: u32,
    space: String,
    seed: u64,
    /// Index of the first row.
    first: u64,
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tail {
    rows: u64,
    /// Bytes of all lines before.
    bytes: u64,
    /// SHA-256 of all lines before.
    sha256: String,
}

/// The version of files of rows, in their first line.
const FORMAT: u32 = 1;

/// Largest length of a last line in bytes: 64 digits and two numbers.
const MAX_TAIL: u64 = 256;

/// Largest length of a line in bytes. Rows have some hundreds.
const MAX_LINE: u64 = 16 << 20;

/// Identity of the campaign that rows belong to.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowsKey<'a> {
    pub space: &'a str,
    pub seed: u64,
}

/// Writes rows to a file on this machine, and publishes it in the shared folder when it is
/// complete.
pub(super) struct ShardWriter {
    file: BufWriter<NamedTempFile>,
    digest: Sha256,
    bytes: u64,
    rows: Range<u64>,
}

impl ShardWriter {
    /// Creates a file in the folder `scratch` for rows from index `first` on.
    pub fn create(
        scratch: &Path,
        key: RowsKey<'_>,
        first: u64,
    ) -> Result<ShardWriter, FolderError> {
        let failed = |reason| FolderError::Access { path: scratch.to_owned(), reason };
        let file = tempfile::Builder::new().prefix("flipwave-shard-").tempfile_in(scratch);
        let mut writer = ShardWriter {
            file: BufWriter::new(file.map_err(failed)?),
            digest: Sha256::new(),
            bytes: 0,
            rows: first..first,
        };
        let head = Head { format: FORMAT, space: key.space.to_owned(), seed: key.seed, first };
        let mut line = serde_json::to_vec(&head).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        writer.add(&line).map_err(failed)?;
        Ok(writer)
    }

    /// Adds the next row.
    pub fn write(&mut self, row: &Row) -> Result<(), FolderError> {
        let result = line(|csv| csv.serialize(row)).and_then(|line| self.add(&line));
        result.map_err(|reason| self.failed(reason))?;
        self.rows.end += 1;
        Ok(())
    }

    fn add(&mut self, line: &[u8]) -> io::Result<()> {
        self.digest.update(line);
        self.bytes += line.len() as u64;
        self.file.write_all(line)
    }

    /// Completes the file and publishes it in `folder`, unless it has no rows. Returns its length
    /// in bytes.
    pub fn publish(mut self, folder: &SharedFolder) -> Result<u64, FolderError> {
        if self.rows.is_empty() {
            return Ok(0);
        }
        let rows = self.rows.end - self.rows.start;
        let sha256 = hexadecimal(&self.digest.finalize_reset());
        let tail = Tail { rows, bytes: self.bytes, sha256 };
        let finish = |writer: &mut BufWriter<NamedTempFile>| -> io::Result<()> {
            writeln!(writer, "{}", serde_json::to_string(&tail)?)?;
            writer.flush()?;
            writer.get_mut().rewind()
        };
        finish(&mut self.file).map_err(|reason| self.failed(reason))?;
        let path = folder.rows(&self.rows);
        let local = self.file.get_mut().as_file_mut();
        flipwave_host::output::publish(&path, local)
            .map_err(|reason| FolderError::Access { path, reason })
    }

    fn failed(&self, reason: io::Error) -> FolderError {
        FolderError::Access { path: self.file.get_ref().path().to_owned(), reason }
    }
}

/// Reads the rows of a file as bytes.
pub(super) struct ShardReader {
    path: PathBuf,
    input: BufReader<File>,
    digest: Sha256,
    bytes: u64,
    /// Indices of the rows that have not been read.
    left: Range<u64>,
    first: u64,
    line: Vec<u8>,
}

impl ShardReader {
    /// Opens the file of the rows in `range`.
    ///
    /// # Errors
    /// [`ShardError::Damaged`] if the first line is invalid, [`ShardError::OtherRows`] if the rows
    /// belong to another campaign.
    pub fn open(
        folder: &SharedFolder,
        key: RowsKey<'_>,
        range: &Range<u64>,
    ) -> Result<ShardReader, ShardError> {
        let path = folder.rows(range);
        let file = flipwave_host::input::open(&path);
        let file = file.map_err(|reason| FolderError::Unread { path: path.clone(), reason })?;
        let input = BufReader::with_capacity(1 << 16, file);
        let (digest, line) = (Sha256::new(), Vec::new());
        let (first, left) = (range.start, range.clone());
        let mut reader = ShardReader { path, input, digest, bytes: 0, left, first, line };
        reader.next_line()?;
        let head = serde_json::from_slice::<Head>(&reader.line);
        let head = head.map_err(|error| reader.damaged(error.to_string()))?;
        if head.first != range.start {
            return Err(reader.damaged(format!("the first row is {}", head.first)));
        }
        if (head.format, head.space.as_str(), head.seed) != (FORMAT, key.space, key.seed) {
            return Err(ShardError::OtherRows { path: reader.path });
        }
        Ok(reader)
    }

    /// Reads the next row. Checks the checksum after the last one and returns `None`.
    ///
    /// # Errors
    /// [`ShardError::Damaged`].
    pub fn next(&mut self) -> Result<Option<&[u8]>, ShardError> {
        if self.left.is_empty() {
            self.check_end()?;
            return Ok(None);
        }
        self.next_line()?;
        let index = self.left.start.to_string();
        if !self.line.starts_with(index.as_bytes()) || self.line.get(index.len()) != Some(&b',') {
            return Err(self.damaged(format!("row {index} is not at its position")));
        }
        self.left.start += 1;
        Ok(Some(&self.line))
    }

    /// Reads the remaining rows and checks the checksum.
    ///
    /// # Errors
    /// [`ShardError::Damaged`].
    pub fn check(mut self) -> Result<(), ShardError> {
        while self.next()?.is_some() {}
        Ok(())
    }

    fn next_line(&mut self) -> Result<(), ShardError> {
        self.line.clear();
        let read = self.input.by_ref().take(MAX_LINE).read_until(b'\n', &mut self.line);
        read.map_err(|reason| FolderError::Unread { path: self.path.clone(), reason })?;
        if self.line.last() != Some(&b'\n') {
            return Err(self.damaged("the last line is incomplete".to_owned()));
        }
        self.digest.update(&self.line);
        self.bytes += self.line.len() as u64;
        Ok(())
    }

    fn check_end(&mut self) -> Result<(), ShardError> {
        let (bytes, digest) = (self.bytes, self.digest.clone());
        self.next_line()?;
        let tail = serde_json::from_slice::<Tail>(&self.line);
        let tail = tail.map_err(|error| self.damaged(error.to_string()))?;
        let rows = self.left.end - self.first;
        let matches = tail.rows == rows
            && tail.bytes == bytes
            && tail.sha256 == hexadecimal(&digest.finalize());
        if matches && self.input.fill_buf().is_ok_and(|rest| rest.is_empty()) {
            Ok(())
        } else {
            Err(self.damaged("wrong checksum".to_owned()))
        }
    }

    fn damaged(&self, what: String) -> ShardError {
        ShardError::Damaged { path: self.path.clone(), what }
    }
}

/// Lists the ranges of files with a valid last line, without reading rows.
pub(super) fn complete_ranges(folder: &SharedFolder) -> Result<Vec<Range<u64>>, FolderError> {
    let mut ranges = folder.shards()?;
    ranges.retain(|range| has_tail(&folder.rows(range), range.end - range.start));
    Ok(ranges)
}

fn has_tail(path: &Path, rows: u64) -> bool {
    let read = || -> io::Result<Option<(u64, Tail)>> {
        let mut file = flipwave_host::input::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL)))?;
        let mut end = Vec::new();
        file.take(MAX_TAIL).read_to_end(&mut end)?;
        let Some(text) = end.strip_suffix(b"\n") else { return Ok(None) };
        let start = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let bytes = length - (end.len() - start) as u64;
        Ok(serde_json::from_slice(&text[start..]).ok().map(|tail| (bytes, tail)))
    };
    let found = read().ok().flatten();
    found.is_some_and(|(bytes, tail)| tail.rows == rows && tail.bytes == bytes)
}

/// Reads all files with rows of `part` and returns the ranges of the undamaged ones.
///
/// # Errors
/// [`ShardError::OtherRows`] for rows of another campaign, [`ShardError::Folder`].
pub(super) fn undamaged_ranges(
    folder: &SharedFolder,
    key: RowsKey<'_>,
    part: &Range<u64>,
) -> Result<Vec<Range<u64>>, ShardError> {
    let mut undamaged = Vec::new();
    for range in folder.shards()? {
        if range.start >= part.end || range.end <= part.start {
            continue;
        }
        match ShardReader::open(folder, key, &range).and_then(ShardReader::check) {
            Ok(()) => undamaged.push(range),
            // Damaged files are replaced.
            Err(ShardError::Damaged { .. }) => {}
            // The file server listed the file, but it has been removed or is not visible yet.
            Err(ShardError::Folder(FolderError::Unread { reason, .. })) if is_absent(&reason) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(undamaged)
}

/// Returns `true` if the error means that the file does not exist on its server.
pub(super) fn is_absent(reason: &io::Error) -> bool {
    matches!(reason.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shards::rows::RowParser;

    const ROW: &str = "5,site,add,0,,\"3,1,0\",2,17,0x1a9c,v_add_f32,valu,,0,v0,0x00000001,\
                       0x00000000,0x00000001,1,,1.0,sdc,,critical,1,0.25,3.4e38,single,0,1,,-3,\n";

    const SHA256: &str = "73fe3ce9e041ed031535ca8583142a43f9ac3a007053a05003c8f8de5c37596b";

    #[test]
    fn serialized_rows_are_fixed() {
        let directory = tempfile::tempdir().expect("a folder");
        let folder = SharedFolder::new(directory.path());
        folder.create().expect("a folder");
        let key = RowsKey { space: "space digest", seed: 7 };
        let mut writer = ShardWriter::create(directory.path(), key, 5).expect("a file");
        writer.write(&RowParser::new().parse(ROW.as_bytes()).expect("a row")).expect("written");
        writer.publish(&folder).expect("published");
        let range = 5..6;
        let text = std::fs::read_to_string(folder.rows(&range)).expect("the file");
        assert_eq!(
            text,
            format!(
                "{{\"format\":1,\"space\":\"space digest\",\"seed\":7,\"first\":5}}\n{ROW}\
                 {{\"rows\":1,\"bytes\":194,\"sha256\":\"{SHA256}\"}}\n"
            )
        );
        ShardReader::open(&folder, key, &range).and_then(ShardReader::check).expect("valid");
    }
}
