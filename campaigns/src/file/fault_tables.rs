//! CSV tables of measured faults that a campaign file refers to.

use csv::StringRecord;
use flipwave_arch::Architecture;
use flipwave_injector::{MaskDistribution, MeasuredPair, MeasuredValues, Results};
use std::path::Path;

/// Error about an invalid `count` column.
const COUNT: &str = "expected the number of observations, 0 or more";

/// Reads a table of masks: the columns `mask`, hexadecimal with 0x in front, and `count`.
pub(crate) fn read_masks(path: &Path) -> Result<MaskDistribution, String> {
    let (header, rows) = read(path)?;
    if header != vec!["mask", "count"] {
        return Err(at(path, 1, "expected the columns `mask,count`"));
    }
    let masks = rows.iter().map(|(line, row)| {
        let digits = row.get(0).and_then(digits);
        let mask = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let mask = mask.ok_or_else(|| at(path, *line, "expected a 32-bit mask like 0x00000003"))?;
        let count = row.get(1).and_then(|text| text.parse().ok());
        Ok((mask, count.ok_or_else(|| at(path, *line, COUNT))?))
    });
    let masks = masks.collect::<Result<Vec<_>, String>>()?;
    MaskDistribution::new(&name(path), masks)
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a table of correct and wrong results: the columns `golden` and `faulty`, and optionally `opcode`
/// and `count`, in any order.
pub(crate) fn read_values(
    path: &Path,
    architecture: &dyn Architecture,
) -> Result<MeasuredValues, String> {
    let (header, rows) = read(path)?;
    let column = |wanted: &str| header.iter().position(|name| name == wanted);
    let known = ["opcode", "golden", "faulty", "count"].map(column);
    let [opcode, Some(golden), Some(faulty), count] = known else {
        return Err(at(path, 1, "expected the columns `opcode,golden,faulty,count`"));
    };
    if known.iter().flatten().count() != header.len() {
        let message = "expected the columns `opcode,golden,faulty,count`, each once, and no others";
        return Err(at(path, 1, message));
    }
    let pairs = rows.iter().map(|(line, row)| {
        let text = |column: usize| row.get(column).unwrap_or_default();
        let opcode = opcode.map(text).filter(|name| !name.is_empty()).map(str::to_owned);
        let results = results(text(golden), text(faulty)).ok_or_else(|| {
            let message = "expected two words of at most 64 bits like 0x3f800000, or two numbers \
                           like 1.5";
            at(path, *line, message)
        })?;
        let count = count.map_or(Some(1), |column| text(column).parse().ok());
        let count = count.ok_or_else(|| at(path, *line, COUNT))?;
        Ok(MeasuredPair { opcode, results, count })
    });
    let pairs = pairs.collect::<Result<Vec<_>, String>>()?;
    MeasuredValues::new(&name(path), pairs, architecture)
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Parses two results of the same kind. Words with more than eight digits occupy two registers.
fn results(golden: &str, faulty: &str) -> Option<Results> {
    let [Some(golden_digits), Some(faulty_digits)] = [golden, faulty].map(digits) else {
        return Some(Results::Numbers([golden.parse().ok()?, faulty.parse().ok()?]));
    };
    let is_double = golden_digits.len() > 8 || faulty_digits.len() > 8;
    let word = |digits| u32::from_str_radix(digits, 16).ok();
    let double = |digits| u64::from_str_radix(digits, 16).ok();
    Some(if is_double {
        Results::DoubleWords([double(golden_digits)?, double(faulty_digits)?])
    } else {
        Results::Words([word(golden_digits)?, word(faulty_digits)?])
    })
}

/// Returns the digits of a hexadecimal word that begins with 0x.
fn digits(text: &str) -> Option<&str> {
    let digits = text.strip_prefix("0x")?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(digits)
}

/// Reads the column names of a table, and its rows with line numbers.
fn read(path: &Path) -> Result<(StringRecord, Vec<(u64, StringRecord)>), String> {
    let text = flipwave_host::input::read(path, flipwave_host::input::RECORD);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    let mut table = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_slice());
    let failed = |error: csv::Error| format!("{}: {error}", path.display());
    let header = table.headers().map_err(failed)?.clone();
    let rows = table.records().map(|row| {
        let row = row.map_err(failed)?;
        Ok((row.position().map_or(0, csv::Position::line), row))
    });
    let rows = rows.collect::<Result<Vec<_>, String>>()?;
    Ok((header, rows))
}

fn at(path: &Path, line: u64, message: &str) -> String {
    format!("{}:{line}: {message}", path.display())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn architecture() -> flipwave_sim::Amdgpu {
        flipwave_sim::Amdgpu::new("gfx90a".parse().expect("a target"))
    }

    fn read_text(text: &str) -> Result<MeasuredValues, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rtl.csv");
        std::fs::write(&path, text).expect("written");
        read_values(&path, &architecture())
    }

    #[test]
    fn all_forms_of_results_and_columns_are_read() {
        let pair = |opcode: Option<&str>, results, count| MeasuredPair {
            opcode: opcode.map(str::to_owned),
            results,
            count,
        };
        let expected =
            |pairs| MeasuredValues::new("rtl.csv", pairs, &architecture()).expect("values");
        let numbers = Results::Numbers([1.5, -2e3]);
        assert_eq!(
            read_text("golden,faulty\n1.5, -2e3\n"),
            Ok(expected(vec![pair(None, numbers, 1)]))
        );
        let text = "count,faulty,opcode,golden\n7,0x3,v_xor_b32,0x1\n2,0x0000000000000001,,0x0\n";
        let words = pair(Some("v_xor_b32"), Results::Words([1, 3]), 7);
        let double = pair(None, Results::DoubleWords([0, 1]), 2);
        assert_eq!(read_text(text), Ok(expected(vec![words, double])));
    }

    #[test]
    fn invalid_tables_are_rejected_with_their_position() {
        for (text, expected) in [
            ("golden\n1\n", ":1: expected the columns"),
            ("golden,faulty,cuont\n1,2,3\n", ":1: expected the columns"),
            ("golden,faulty,golden\n1,2,3\n", ":1: expected the columns"),
            ("golden,faulty\n1,2\n0x1,2.0\n", ":3: expected two words"),
            ("golden,faulty\n0x1,0x+2\n", ":2: expected two words"),
            ("golden,faulty\n0x0,0x10000000000000000\n", ":2: expected two words"),
            ("golden,faulty,count\n1,2,-1\n", ":2: expected the number of observations"),
            ("golden,faulty\n1\n", "rtl.csv: CSV error"),
            ("golden,faulty\n1,1\n", "has equal values"),
            ("golden,faulty\n", "count above 0"),
        ] {
            let error = read_text(text).expect_err(text);
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
