//! A table of results, read within bounds, whatever is in it.

use crate::{ResultsError, Row, rows, whole_lines};
use std::collections::BTreeSet;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Bytes of a row: more than the names of any program come to.
const LONGEST: usize = 1 << 16;
/// The greatest weight whose square can be summed over any number of rows.
const GREATEST_WEIGHT: f64 = 1e15;

/// Strata and causes: of each scope all of the one are counted by all of the other.
const MOST_STRATA: usize = 4096;
const MOST_CAUSES: usize = 256;

/// Gives the rows of a table to `take`, one after another. Whether its last line was cut off, as a run
/// that was killed leaves it; that is no row.
///
/// # Errors
/// [`ResultsError`] of the first thing that is not as a campaign writes it.
pub(crate) fn read(
    mut table: impl Read + Seek,
    mut take: impl FnMut(Row),
) -> Result<bool, ResultsError> {
    let mut opened = || -> io::Result<(u64, bool)> {
        let whole = whole_lines(&mut table)?;
        let end = table.seek(SeekFrom::End(0))?;
        table.rewind()?;
        Ok((whole, whole < end))
    };
    let (whole, is_cut) = opened().map_err(csv::Error::from)?;
    let lines =
        Bounded { inner: BufReader::new(table.take(whole)), line: 1, length: 0, quoted: false };
    let mut strata = BTreeSet::new();
    let mut causes = BTreeSet::new();
    for (row, line) in rows(lines)?.zip(2..) {
        let row = row?;
        if !(row.weight > 0.0 && row.weight <= GREATEST_WEIGHT) {
            return Err(ResultsError::Weight { line, weight: row.weight });
        }
        for (column, value, values, most) in [
            ("stratum", &row.stratum, &mut strata, MOST_STRATA),
            ("cause", &row.cause, &mut causes, MOST_CAUSES),
        ] {
            if let Some(value) = value.as_deref().filter(|value| !values.contains(*value)) {
                values.insert(value.to_owned());
                if values.len() > most {
                    return Err(ResultsError::TooMany { line, column, most });
                }
            }
        }
        take(row);
    }
    Ok(is_cut)
}

/// What a reader gives, until a row is too long.
struct Bounded<R> {
    inner: R,
    /// The line in which the row begins, from 1.
    line: u64,
    /// Bytes of the row so far.
    length: usize,
    /// Whether they are within quotation marks, where a line's end is none of the row.
    quoted: bool,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        for byte in &buffer[..count] {
            self.length += 1;
            match byte {
                b'"' => self.quoted = !self.quoted,
                b'\n' if !self.quoted => {
                    self.length = 0;
                    self.line += 1;
                }
                _ => {}
            }
            if self.length > LONGEST {
                let line = self.line;
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "line {line} is longer than {LONGEST} bytes, which no row of results is"
                    ),
                ));
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

    fn with_header(rest: &str) -> String {
        format!("{}\n{rest}", Row::COLUMNS.join(","))
    }

    #[test]
    fn whole_rows_are_read_and_a_line_that_was_cut_off_is_none() {
        assert_eq!(read_text(&with_header("")), Ok((0, false)));
        assert_eq!(read_text(&with_header(&format!("{ROW}\n{ROW}\n"))), Ok((2, false)));
        assert_eq!(read_text(&with_header(&format!("{ROW}\n0,si"))), Ok((1, true)));
    }

    #[test]
    fn what_no_campaign_writes_is_an_error_that_says_where() {
        let row = |from: &str, to: &str| format!("{ROW}\n{}\n", ROW.replacen(from, to, 1));
        let long = "x".repeat(LONGEST);
        for (rows, expected) in [
            (row(",1.0,", ",NaN,"), "line 3: the weight is NaN"),
            (row(",1.0,", ",-1,"), "line 3: the weight is -1.0"),
            (row(",1.0,", ",1e300,"), "line 3: the weight is 1e300"),
            (row("0,site", "99999999999999999999,site"), "line: 3"),
            (row("masked", "hang"), "line: 3"),
            (row(",site,", ","), "line: 3"),
            (row("site", &long), "line 3 is longer"),
            (row("site", &format!("\"{}", "x\n".repeat(LONGEST))), "line 3 is longer"),
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
            ("index,site\n", "not the results of a campaign"),
            (&("x".repeat(1 << 20) + "\n"), "line 1 is longer"),
        ] {
            let error = read_text(table).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }
}
