//! Limit on the length of lines.

use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};

/// Largest length of a line in bytes. Rows have hundreds.
const MAX_LINE: u64 = 16 << 20;

/// A reader that fails at a line of more than 16 MiB, so that a parser can hold each line in
/// memory.
#[derive(Debug)]
pub struct BoundedLines<R> {
    inner: R,
    /// Number of bytes since the last end of a line.
    length: u64,
}

impl<R> BoundedLines<R> {
    /// Creates a reader for the lines of `inner`.
    pub fn new(inner: R) -> BoundedLines<R> {
        BoundedLines { inner, length: 0 }
    }
}

impl<R: Read> Read for BoundedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.inner.read(buffer)?;
        self.length = match buffer[..count].iter().rposition(|byte| *byte == b'\n') {
            Some(end) => (count - end - 1) as u64,
            None => self.length + count as u64,
        };
        if self.length > MAX_LINE {
            let what = format!("a line is longer than {} MiB", MAX_LINE >> 20);
            return Err(Error::new(ErrorKind::InvalidData, what));
        }
        Ok(count)
    }
}

impl<R: Seek> Seek for BoundedLines<R> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.length = 0;
        self.inner.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_lines_are_refused_and_long_tables_are_not() {
        let mut zeros = BoundedLines::new(std::io::repeat(0));
        let error = std::io::copy(&mut zeros, &mut std::io::sink()).expect_err("no end");
        assert!(error.to_string().contains("a line is longer than 16 MiB"), "{error}");
        let line = [&[b'1'; 1000][..], b"\n"].concat();
        let table = line.repeat(2 * MAX_LINE as usize / 1000);
        let read = std::io::copy(&mut BoundedLines::new(&*table), &mut std::io::sink());
        assert_eq!(read.expect("a table"), table.len() as u64);
    }
}
