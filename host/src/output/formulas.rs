//! Escaping of CSV cells that a spreadsheet would evaluate as formulas.

use std::io::{self, Write};

/// First characters of formulas. The mark is one of them, so that a cell that begins with the mark
/// is not taken for an escaped one.
const FORMULA_STARTS: &[u8] = b"=+-@\t\r'";

/// Mark at the beginning of a cell, which makes spreadsheets take it for text.
const MARK: u8 = b'\'';

/// The original text of a cell that [`FormulaEscaper`] may have escaped.
pub fn unescape_formula(cell: &str) -> &str {
    match cell.as_bytes() {
        [MARK, first, ..] if FORMULA_STARTS.contains(first) => &cell[1..],
        _ => cell,
    }
}

/// Escapes a cell as [`FormulaEscaper`] does, for tables that are combined from other tables.
pub fn escape_formula(cell: &str) -> String {
    if is_formula(cell.as_bytes()) { format!("'{cell}") } else { cell.to_owned() }
}

/// Writer of CSV that puts a mark, `'`, before each cell that a spreadsheet would evaluate. Names
/// of kernels, labels and files are untrusted. Numbers are unchanged.
#[derive(Debug)]
pub struct FormulaEscaper<W: Write> {
    inner: W,
    /// Beginning of the current cell.
    cell: Vec<u8>,
    /// `true` within quotes.
    is_quoted: bool,
}

impl<W: Write> FormulaEscaper<W> {
    /// Creates a writer that passes the escaped CSV on to `inner`.
    pub fn new(inner: W) -> FormulaEscaper<W> {
        FormulaEscaper { inner, cell: Vec::new(), is_quoted: false }
    }

    /// The inner writer.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Write for FormulaEscaper<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut passed = Vec::with_capacity(bytes.len() + 8);
        for byte in bytes {
            self.is_quoted ^= *byte == b'"';
            if !self.is_quoted && b",\n".contains(byte) {
                append_cell(&self.cell, &mut passed);
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

/// Appends an escaped cell. `cell` includes its quotes, if any.
fn append_cell(cell: &[u8], passed: &mut Vec<u8>) {
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
    let begins = text.first().is_some_and(|first| FORMULA_STARTS.contains(first));
    // A sign alone is text, and a sign before digits is a number.
    begins && text.len() > 1 && !str::from_utf8(text).is_ok_and(|text| text.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Escapes a text that is written in parts of `step` bytes.
    fn escaped(text: &str, step: usize) -> String {
        let mut escaper = FormulaEscaper::new(Vec::new());
        for part in text.as_bytes().chunks(step) {
            escaper.write_all(part).expect("written");
        }
        String::from_utf8(escaper.into_inner()).expect("text")
    }

    #[test]
    fn formulas_are_escaped_and_numbers_are_not() {
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
                assert_eq!(escaped(given, step), expected);
            }
        }
    }

    #[test]
    fn unescaping_inverts_escaping() {
        for text in ["=1+1", "'=1", "'", "''", "'a", "a'b", "-1", "-", "+x", ""] {
            let cell = escaped(&format!("{text}\n"), 100);
            assert_eq!(unescape_formula(cell.trim_end_matches('\n')), text);
        }
    }
}
