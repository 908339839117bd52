//! Files of rows. The first line says of what the rows are, the last how many there are and a checksum
//! of all before: a file that is torn or damaged shows it, and two files of the same rows are the same.

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

/// Bytes of a last line at most: 64 digits and two numbers.
const LONGEST_TAIL: u64 = 256;

/// Bytes of a line at most. Sites and measures of a row have hundreds.
const LONGEST_LINE: u64 = 16 << 20;

/// Of which campaign rows are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Of<'a> {
    pub space: &'a str,
    pub seed: u64,
}

/// Writes rows to a file of this machine, which becomes one of the shared folder when it is finished.
pub(super) struct ShardWriter {
    file: BufWriter<NamedTempFile>,
    digest: Sha256,
    bytes: u64,
    rows: Range<u64>,
}

impl ShardWriter {
    /// A file in the folder `scratch`, of rows from index `first` on.
    pub fn create(scratch: &Path, of: Of<'_>, first: u64) -> Result<ShardWriter, FolderError> {
        let failed = |reason| FolderError::Access { path: scratch.to_owned(), reason };
        let file = tempfile::Builder::new().prefix("flipwave-shard-").tempfile_in(scratch);
        let mut writer = ShardWriter {
            file: BufWriter::new(file.map_err(failed)?),
            digest: Sha256::new(),
            bytes: 0,
            rows: first..first,
        };
        let head = Head { format: FORMAT, space: of.space.to_owned(), seed: of.seed, first };
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

    /// Finishes the file and puts it where the others are, unless it has no row. How many bytes it has.
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

/// Reads the rows of a file, as they are written.
pub(super) struct ShardReader {
    path: PathBuf,
    input: BufReader<File>,
    digest: Sha256,
    bytes: u64,
    /// Index of the next row, and the end.
    left: Range<u64>,
    first: u64,
    line: Vec<u8>,
}

impl ShardReader {
    /// Opens the file of these rows.
    ///
    /// # Errors
    /// [`ShardError::Damaged`] if it does not begin as it must, [`ShardError::OtherRows`] if its rows
    /// are of something else.
    pub fn open(
        folder: &SharedFolder,
        of: Of<'_>,
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
            return Err(reader.damaged(format!("it begins with row {}", head.first)));
        }
        if (head.format, head.space.as_str(), head.seed) != (FORMAT, of.space, of.seed) {
            return Err(ShardError::OtherRows { path: reader.path });
        }
        Ok(reader)
    }

    /// The next row; nothing after the last, when the checksum has been found right.
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
            return Err(self.damaged(format!("row {index} is not where it should be")));
        }
        self.left.start += 1;
        Ok(Some(&self.line))
    }

    /// Reads all that is left, and checks it.
    ///
    /// # Errors
    /// [`ShardError::Damaged`].
    pub fn check(mut self) -> Result<(), ShardError> {
        while self.next()?.is_some() {}
        Ok(())
    }

    fn next_line(&mut self) -> Result<(), ShardError> {
        self.line.clear();
        let read = self.input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.line);
        read.map_err(|reason| FolderError::Unread { path: self.path.clone(), reason })?;
        if self.line.last() != Some(&b'\n') {
            return Err(self.damaged("it ends in the middle".to_owned()));
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
        let is_right = tail.rows == rows
            && tail.bytes == bytes
            && tail.sha256 == hexadecimal(&digest.finalize());
        match is_right && self.input.fill_buf().is_ok_and(|rest| rest.is_empty()) {
            true => Ok(()),
            false => Err(self.damaged("its checksum is wrong".to_owned())),
        }
    }

    fn damaged(&self, what: String) -> ShardError {
        ShardError::Damaged { path: self.path.clone(), what }
    }
}

/// The ranges of files whose last lines are as they must be: what a look at a folder shows that reads
/// no rows.
pub(super) fn finished(folder: &SharedFolder) -> Result<Vec<Range<u64>>, FolderError> {
    let mut ranges = folder.shards()?;
    ranges.retain(|range| has_tail(&folder.rows(range), range.end - range.start));
    Ok(ranges)
}

fn has_tail(path: &Path, rows: u64) -> bool {
    let read = || -> io::Result<Option<(u64, Tail)>> {
        let mut file = flipwave_host::input::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LONGEST_TAIL)))?;
        let mut end = Vec::new();
        file.take(LONGEST_TAIL).read_to_end(&mut end)?;
        let Some(text) = end.strip_suffix(b"\n") else { return Ok(None) };
        let start = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let bytes = length - (end.len() - start) as u64;
        Ok(serde_json::from_slice(&text[start..]).ok().map(|tail| (bytes, tail)))
    };
    let found = read().ok().flatten();
    found.is_some_and(|(bytes, tail)| tail.rows == rows && tail.bytes == bytes)
}

/// The ranges of files that hold what they should, of those with rows of `part`: all of them are read.
///
/// # Errors
/// [`ShardError::OtherRows`] where rows are of another campaign, [`ShardError::Folder`].
pub(super) fn checked(
    folder: &SharedFolder,
    of: Of<'_>,
    part: &Range<u64>,
) -> Result<Vec<Range<u64>>, ShardError> {
    let mut good = Vec::new();
    for range in folder.shards()? {
        if range.start >= part.end || range.end <= part.start {
            continue;
        }
        match ShardReader::open(folder, of, &range).and_then(ShardReader::check) {
            Ok(()) => good.push(range),
            // Written anew.
            Err(ShardError::Damaged { .. }) => {}
            // Listed by a server that has it no more, or not yet.
            Err(ShardError::Folder(FolderError::Unread { reason, .. })) if is_absent(&reason) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(good)
}

/// Whether a file that was listed is not there, as far as its server knows.
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
    fn files_of_rows_have_a_fixed_text() {
        let own = tempfile::tempdir().expect("a folder");
        let folder = SharedFolder::new(own.path());
        folder.make().expect("a folder");
        let of = Of { space: "space digest", seed: 7 };
        let mut writer = ShardWriter::create(own.path(), of, 5).expect("a file");
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
        ShardReader::open(&folder, of, &range).and_then(ShardReader::check).expect("right");
    }
}
