//! Lines without a memory hazard.

use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};

/// Bytes of a line at most. Sites and measures of a row have hundreds.
const LONGEST: u64 = 16 << 20;

/// A reader that fails in a line that does not end. What parses its lines may therefore hold each of
/// them in memory.
#[derive(Debug)]
pub struct BoundedLines<R> {
    inner: R,
    /// Bytes since the last line end.
    length: u64,
}

impl<R> BoundedLines<R> {
    /// Reads the lines of `inner`.
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
        if self.length > LONGEST {
            let what = format!("it has a line of more than {} MiB", LONGEST >> 20);
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
    fn a_line_without_an_end_is_refused_and_long_tables_are_not() {
        let mut zeros = BoundedLines::new(std::io::repeat(0));
        let error = std::io::copy(&mut zeros, &mut std::io::sink()).expect_err("no end");
        assert!(error.to_string().contains("a line of more than 16 MiB"), "{error}");
        let line = [&[b'1'; 1000][..], b"\n"].concat();
        let table = line.repeat(2 * LONGEST as usize / 1000);
        let read = std::io::copy(&mut BoundedLines::new(&*table), &mut std::io::sink());
        assert_eq!(read.expect("a table"), table.len() as u64);
    }
}
