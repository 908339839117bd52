//! Cells of CSV that spreadsheets take as they are.

use std::io::{self, Write};

/// First characters of what spreadsheets take for formulas. A cell with the mark in front of it must be
/// told from one that has gained it.
const FORMULAS: &[u8] = b"=+-@\t\r'";

/// The mark in front of text that is no formula.
const MARK: u8 = b'\'';

/// Text of a cell whose mark, which [`Cells`] has put before it, is taken away.
pub fn unmarked(cell: &str) -> &str {
    match cell.as_bytes() {
        [MARK, first, ..] if FORMULAS.contains(first) => &cell[1..],
        _ => cell,
    }
}

/// Text of a cell with the mark that [`Cells`] puts before it, for tables that are put together from
/// others'.
pub fn marked(cell: &str) -> String {
    if is_formula(cell.as_bytes()) { format!("'{cell}") } else { cell.to_owned() }
}

/// Takes CSV and puts a mark, `'`, in front of each cell that a spreadsheet would run: names of kernels,
/// labels and files may be anybody's. Numbers stay as they are.
#[derive(Debug)]
pub struct Cells<W: Write> {
    inner: W,
    cell: Vec<u8>,
    is_quoted: bool,
}

impl<W: Write> Cells<W> {
    /// Passes CSV on to `inner`.
    pub fn new(inner: W) -> Cells<W> {
        Cells { inner, cell: Vec::new(), is_quoted: false }
    }

    /// Where the CSV went.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Write for Cells<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut passed = Vec::with_capacity(bytes.len() + 8);
        for byte in bytes {
            self.is_quoted ^= *byte == b'"';
            if !self.is_quoted && b",\n".contains(byte) {
                add_cell(&self.cell, &mut passed);
                passed.push(*byte);
                self.cell.clear();
            } else {
                self.cell.push(*byte);
            }
        }
        self.inner.write_all(&passed)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Adds a cell as it is in a file, with quotes if it has some.
fn add_cell(cell: &[u8], passed: &mut Vec<u8>) {
    let (quote, text) = match cell.strip_prefix(b"\"") {
        Some(text) => (&cell[..1], text),
        None => (&cell[..0], cell),
    };
    passed.extend_from_slice(quote);
    if is_formula(text) {
        passed.push(MARK);
    }
    passed.extend_from_slice(text);
}

fn is_formula(text: &[u8]) -> bool {
    let begins = text.first().is_some_and(|first| FORMULAS.contains(first));
    // A sign alone is text, and one before digits is a number.
    begins && text.len() > 1 && !str::from_utf8(text).is_ok_and(|text| text.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(text: &str, step: usize) -> String {
        let mut cells = Cells::new(Vec::new());
        for part in text.as_bytes().chunks(step) {
            cells.write_all(part).expect("written");
        }
        String::from_utf8(cells.into_inner()).expect("text")
    }

    #[test]
    fn cells_that_a_spreadsheet_would_run_are_marked_and_numbers_are_not() {
        for (given, expected) in [
            ("a,=1+1,b\n", "a,'=1+1,b\n"),
            ("@SUM(A1),+cmd,-x\n", "'@SUM(A1),'+cmd,'-x\n"),
            ("-1,+2.5,-3e-7,-inf,-0.000000,-\n", "-1,+2.5,-3e-7,-inf,-0.000000,-\n"),
            ("\"=a,b\",\"=c\"\"d\"\n", "\"'=a,b\",\"'=c\"\"d\"\n"),
            ("\"x,=y\",z\n=\n", "\"x,=y\",z\n=\n"),
            ("'=a,'b,it's\n", "''=a,''b,it's\n"),
            ("\"a\n=b\",c\n", "\"a\n=b\",c\n"),
        ] {
            for step in [1, 2, 100] {
                assert_eq!(passed(given, step), expected);
            }
        }
    }

    #[test]
    fn marks_are_taken_away_again() {
        for text in ["=1+1", "'=1", "'", "''", "'a", "a'b", "-1", "-", "+x", ""] {
            let cell = passed(&format!("{text}\n"), 100);
            assert_eq!(unmarked(cell.trim_end_matches('\n')), text);
        }
    }
}
