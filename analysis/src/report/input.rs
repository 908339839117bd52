//! A reader for tables of results with bounded memory use, also for malformed tables.

use crate::{ResultsError, Row, complete_lines_len, rows};
use std::collections::BTreeSet;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Most bytes of a row, more than the names of any program need.
const MAX_ROW: usize = 1 << 16;
/// Largest weight, small enough to sum the squares of any number of weights.
const MAX_WEIGHT: f64 = 1e15;

/// Most strata and causes. For each scope, every cause can be counted in every stratum.
const MAX_STRATA: usize = 4096;
const MAX_CAUSES: usize = 256;

/// Passes the rows of a table to `take`, in order. Returns `true` if the last line was cut off, as by a
/// killed run; that line is ignored.
///
/// # Errors
/// [`ResultsError`] for another table and for the first malformed row.
pub(crate) fn read(
    mut table: impl Read + Seek,
    mut take: impl FnMut(Row),
) -> Result<bool, ResultsError> {
    let mut measure = || -> io::Result<(u64, bool)> {
        let complete = complete_lines_len(&mut table)?;
        let end = table.seek(SeekFrom::End(0))?;
        table.rewind()?;
        Ok((complete, complete < end))
    };
    let (complete, is_cut) = measure().map_err(csv::Error::from)?;
    let inner = BufReader::new(table.take(complete));
    let bounded = RowLengthLimit { inner, line: 1, length: 0, is_quoted: false };
    let mut strata = BTreeSet::new();
    let mut causes = BTreeSet::new();
    for (row, line) in rows(bounded)?.zip(2..) {
        let row = row?;
        if !(row.weight > 0.0 && row.weight <= MAX_WEIGHT) {
            return Err(ResultsError::Weight { line, weight: row.weight });
        }
        for (column, value, values, max) in [
            ("stratum", &row.stratum, &mut strata, MAX_STRATA),
            ("cause", &row.cause, &mut causes, MAX_CAUSES),
        ] {
            if let Some(value) = value.as_deref().filter(|value| !values.contains(*value)) {
                values.insert(value.to_owned());
                if values.len() > max {
                    return Err(ResultsError::TooManyValues { line, column, max });
                }
            }
        }
        take(row);
    }
    Ok(is_cut)
}

/// A reader that fails at a row longer than [`MAX_ROW`].
struct RowLengthLimit<R> {
    inner: R,
    /// Number of the current row, from 1 for the header.
    line: u64,
    /// Bytes of the current row so far.
    length: usize,
    /// `true` within quotation marks, where a line feed does not end the row.
    is_quoted: bool,
}

impl<R: Read> Read for RowLengthLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        for byte in &buffer[..count] {
            self.length += 1;
            match byte {
                b'"' => self.is_quoted = !self.is_quoted,
                b'\n' if !self.is_quoted => {
                    self.length = 0;
                    self.line += 1;
                }
                _ => {}
            }
            if self.length > MAX_ROW {
                let message = format!("line {} is longer than {MAX_ROW} bytes", self.line);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const ROW: &str = "0,site,k,,,,,,0x10,v_add_f32,valu,,0,v0,0x00000001,0x00000000,0x00000001,1,,\
                       1.0,masked,logical,,0,0.0,0.0,,0,0,,0,false";

    fn read_text(text: &str) -> Result<(u64, bool), String> {
        let mut count = 0;
        let is_cut = read(Cursor::new(text), |_| count += 1).map_err(|error| error.to_string())?;
        Ok((count, is_cut))
    }

    fn with_header(rows: &str) -> String {
        format!("{}\n{rows}", Row::COLUMNS.join(","))
    }

    #[test]
    fn incomplete_last_line_is_ignored() {
        assert_eq!(read_text(&with_header("")), Ok((0, false)));
        assert_eq!(read_text(&with_header(&format!("{ROW}\n{ROW}\n"))), Ok((2, false)));
        assert_eq!(read_text(&with_header(&format!("{ROW}\n0,si"))), Ok((1, true)));
    }

    #[test]
    fn errors_name_the_malformed_line() {
        let row = |from: &str, to: &str| format!("{ROW}\n{}\n", ROW.replacen(from, to, 1));
        let long = "x".repeat(MAX_ROW);
        for (rows, expected) in [
            (row(",1.0,", ",NaN,"), "line 3: invalid weight NaN"),
            (row(",1.0,", ",-1,"), "line 3: invalid weight -1.0"),
            (row(",1.0,", ",1e300,"), "line 3: invalid weight 1e300"),
            (row("0,site", "99999999999999999999,site"), "line: 3"),
            (row("masked", "hang"), "line: 3"),
            (row(",site,", ","), "line: 3"),
            (row("site", &long), "line 3 is longer"),
            (row("site", &format!("\"{}", "x\n".repeat(MAX_ROW))), "line 3 is longer"),
        ] {
            let error = read_text(&with_header(&rows)).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
        for (from, to, expected) in [
            (",logical,", ",x#,", "`cause` has more than 256"),
            (",1,,1.0,", ",1,x#,1.0,", "`stratum` has more than 4096"),
        ] {
            let row = |number: u32| ROW.replacen(from, &to.replace('#', &number.to_string()), 1);
            let rows: String = (0..5000).map(|number| row(number) + "\n").collect();
            let error = read_text(&with_header(&rows)).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
        for (table, expected) in [
            ("", "not the results of a campaign"),
            ("injection,site\n", "not the results of a campaign"),
            (&("x".repeat(1 << 20) + "\n"), "line 1 is longer"),
        ] {
            let error = read_text(table).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }
}
