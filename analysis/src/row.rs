//! The results of a campaign: one row per injection.

use crate::{ErrorShape, Outcome, Severity, hexadecimal};
use flipwave_host::output::unescape_formula;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Read;
use std::str::FromStr;

/// One injection and what it came to: a line of `results.csv`. The fields are the columns, in
/// this order; what does not apply is an empty column. Nothing in a row depends on time or
/// host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Index of the injection in the plan, from 0.
    pub index: u64,
    /// The fault site in its one-line form, to replay it.
    pub site: String,
    /// The kernel struck; empty where it is all of them.
    pub kernel: Option<String>,
    /// Index of the dispatch in the workload, from 0; empty where it is all of them.
    pub dispatch: Option<u32>,
    /// What the dispatch is a part of, in the campaign's words; empty where it has none.
    pub label: Option<String>,
    /// Position of the workgroup in the grid; empty where it is several.
    pub workgroup: Option<Workgroup>,
    /// Index of the wave in its workgroup; empty where it is all of them.
    pub wave: Option<u32>,
    /// The lane struck; empty for what lanes share, and where it is several.
    pub lane: Option<u8>,
    /// ELF virtual address of the instruction at which the fault struck; empty where it is several.
    #[serde(with = "hexadecimal::address")]
    pub pc: Option<u64>,
    /// Canonical name of its operation.
    pub opcode: String,
    /// Its primary instruction group.
    pub group: String,
    /// Its source line, `file:line`, where the code says it.
    pub line: Option<String>,
    /// Which execution of the instruction by the wave, from 0; the first, where it is several.
    pub occurrence: Option<u64>,
    /// What was struck: a register, or what sites call it.
    pub place: String,
    /// The bits that changed: before exclusive-or after.
    #[serde(with = "hexadecimal::word")]
    pub mask: u64,
    /// The value before the fault, where several places were struck that of the first.
    #[serde(with = "hexadecimal::word")]
    pub before: u64,
    /// The value after the fault, of the same place.
    #[serde(with = "hexadecimal::word")]
    pub after: u64,
    /// How many places were struck, each as often as it was.
    pub words: u64,
    /// The stratum it was drawn from; empty where there is one.
    pub stratum: Option<String>,
    /// How many places of the population it stands for, relative to the other rows: 1 on average.
    pub weight: f64,
    /// What the fault came to.
    pub outcome: Outcome,
    /// Why it did: of a masked fault what became of the value, of a due what stopped the run, of a
    /// detected one the buffer that shows it; empty for SDC.
    pub cause: Option<String>,
    /// Of SDC, how bad it is; empty where nobody judges.
    pub severity: Option<Severity>,
    /// Output elements outside their tolerance; empty if the run did not complete.
    pub elements_wrong: Option<u64>,
    /// Largest absolute difference of an output element; empty if the run did not complete.
    pub max_abs_error: Option<f64>,
    /// Largest relative difference of an output element; empty if the run did not complete.
    pub max_rel_error: Option<f64>,
    /// Where the wrong elements lie; empty where none does that is of an output with dimensions.
    pub shape: Option<ErrorShape>,
    /// Output elements that are NaN where the fault-free run's are not; empty if the run did not
    /// complete.
    pub nan: Option<u64>,
    /// Output elements that are infinite where the fault-free run's are not; empty if the run did not
    /// complete.
    pub inf: Option<u64>,
    /// What was measured for that judgement, `cosine=0.98 top1=0`; empty where nothing was.
    pub measures: Option<String>,
    /// Wave instructions executed more than in the fault-free run, negative for less; empty if the
    /// run did not complete.
    pub instructions: Option<i64>,
    /// Whether their number changed by more than the threshold; empty unless the outputs are right.
    pub timing_changed: Option<bool>,
}

impl Row {
    /// The header of `results.csv`.
    pub const COLUMNS: [&str; 32] = [
        "index",
        "site",
        "kernel",
        "dispatch",
        "label",
        "workgroup",
        "wave",
        "lane",
        "pc",
        "opcode",
        "group",
        "line",
        "occurrence",
        "place",
        "mask",
        "before",
        "after",
        "words",
        "stratum",
        "weight",
        "outcome",
        "cause",
        "severity",
        "elements_wrong",
        "max_abs_error",
        "max_rel_error",
        "shape",
        "nan",
        "inf",
        "measures",
        "instructions",
        "timing_changed",
    ];
}

/// Position of a workgroup in the grid; as text `3,1,0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Workgroup(pub [u32; 3]);

impl fmt::Display for Workgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "{x},{y},{z}")
    }
}

impl FromStr for Workgroup {
    type Err = String;

    fn from_str(text: &str) -> Result<Workgroup, String> {
        let numbers: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
        let position = numbers.ok().and_then(|numbers| numbers.try_into().ok());
        position.map(Workgroup).ok_or_else(|| format!("`{text}` is not a position x,y,z"))
    }
}

impl From<Workgroup> for String {
    fn from(workgroup: Workgroup) -> String {
        workgroup.to_string()
    }
}

impl TryFrom<String> for Workgroup {
    type Error = String;

    fn try_from(text: String) -> Result<Workgroup, String> {
        text.parse()
    }
}

/// Results that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// Another table than a campaign's results.
    #[error("not the results of a campaign: the header is `{found}`, expected `{}`",
        Row::COLUMNS.join(","))]
    Header {
        /// The first line.
        found: String,
    },
    /// A table of another version, which had other columns.
    #[error(
        "the results are of another version of Flipwave: they have no column {}; read them with the \
         version that run.json names, or run the campaign anew",
        listed(missing)
    )]
    Version {
        /// The columns that are missing.
        missing: Vec<&'static str>,
    },
    /// A row whose weight is none.
    #[error(
        "line {line}: the weight is {weight:?}, expected a number above 0 and up to 1e15; \
         `flipwave run` writes none like that"
    )]
    Weight {
        /// Its line, from 1.
        line: u64,
        /// What is there.
        weight: f64,
    },
    /// More different values than a campaign can have.
    #[error(
        "line {line}: the column `{column}` has more than {most} different values so far; no campaign \
         has as many"
    )]
    TooMany {
        /// The line with one more, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// A row that cannot be read, with its line, or a failure to read or write.
    #[error(transparent)]
    Csv(#[from] csv::Error),
}

/// Names in a sentence.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Reads `results.csv`.
///
/// # Errors
/// [`ResultsError`] on the first thing that is not as a campaign writes it.
pub fn read_rows(input: impl Read) -> Result<Vec<Row>, ResultsError> {
    rows(input)?.collect()
}

/// Reads `results.csv` row by row.
///
/// # Errors
/// [`ResultsError`] of another table, and for each row that is not as a campaign writes it.
pub fn rows<R: Read>(
    input: R,
) -> Result<impl Iterator<Item = Result<Row, ResultsError>>, ResultsError> {
    let mut reader = csv::Reader::from_reader(input);
    let header = reader.headers()?;
    if header != Row::COLUMNS[..] {
        let (known, missing): (Vec<&str>, Vec<&str>) =
            Row::COLUMNS.iter().partition(|name| header.iter().any(|own| own == **name));
        // What all versions have had: it is a table of results.
        if header.iter().eq(known.iter().copied()) && known.contains(&"outcome") {
            return Err(ResultsError::Version { missing });
        }
        let found = header.iter().collect::<Vec<_>>().join(",");
        return Err(ResultsError::Header { found });
    }
    Ok(reader.into_deserialize().map(|row| row.map(with_names).map_err(ResultsError::from)))
}

/// A row with its names as they are, without the mark that keeps spreadsheets from running them.
fn with_names(mut row: Row) -> Row {
    for name in [&mut row.kernel, &mut row.label, &mut row.line, &mut row.measures] {
        *name = name.take().map(|name| unescape_formula(&name).to_owned());
    }
    row
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::IntervalMethod;

    pub(crate) fn row(group: &str, outcome: Outcome, cause: Option<&str>) -> Row {
        Row {
            index: 7,
            site: "dispatch=0 workgroup=3,1,0 wave=2 pc=0x1a9c occurrence=5 lane=17 register=v4 \
                   flip=0x00000400"
                .to_owned(),
            kernel: Some("matmul".to_owned()),
            dispatch: Some(0),
            label: Some("layer0.mlp".to_owned()),
            workgroup: Some(Workgroup([3, 1, 0])),
            wave: Some(2),
            lane: Some(17),
            pc: Some(0x1a9c),
            opcode: "v_fma_f32".to_owned(),
            group: group.to_owned(),
            line: Some("matmul.cl:12".to_owned()),
            occurrence: Some(5),
            place: "v4".to_owned(),
            mask: 0x400,
            before: 0x3f80_0400,
            after: 0x3f80_0000,
            words: 1,
            stratum: None,
            weight: 1.0,
            outcome,
            cause: cause.map(str::to_owned),
            severity: (outcome == Outcome::Sdc).then_some(Severity::Critical),
            elements_wrong: Some(1),
            max_abs_error: Some(0.25),
            max_rel_error: Some(3.4e38),
            shape: Some(ErrorShape::Single),
            nan: Some(0),
            inf: Some(1),
            measures: Some("cosine=0.5 top1=0".to_owned()),
            instructions: Some(-3),
            timing_changed: None,
        }
    }

    fn written(rows: &[Row]) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in rows {
            writer.serialize(row).unwrap();
        }
        String::from_utf8(writer.into_inner().unwrap()).unwrap()
    }

    /// The columns of a table of such rows, as they are written.
    pub(crate) fn columns(row: &impl Serialize) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.serialize(row).expect("a row");
        let text = String::from_utf8(writer.into_inner().expect("a table")).expect("text");
        text.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn words_in_tables_and_records_are_fixed() {
        assert_eq!(columns(&Outcome::ALL), "masked,sdc,due,detected");
        assert_eq!(columns(&Severity::ALL), "critical,tolerable");
        assert_eq!(
            columns(&ErrorShape::ALL),
            "single,row,column,pillar,block,cubic,random,several"
        );
        let methods = [IntervalMethod::Wilson, IntervalMethod::ClopperPearson];
        assert_eq!(columns(&methods), "wilson,clopper_pearson");
    }

    #[test]
    fn rows_have_exactly_the_documented_columns() {
        let text = written(&[row("valu", Outcome::Sdc, None)]);
        let mut lines = text.lines();
        assert_eq!(lines.next().unwrap(), Row::COLUMNS.join(","));
        assert_eq!(
            lines.next().unwrap(),
            "7,\"dispatch=0 workgroup=3,1,0 wave=2 pc=0x1a9c occurrence=5 lane=17 register=v4 \
             flip=0x00000400\",matmul,0,layer0.mlp,\"3,1,0\",2,17,0x1a9c,v_fma_f32,valu,matmul.cl:12,5,v4,\
             0x00000400,0x3f800400,0x3f800000,1,,1.0,sdc,,critical,1,0.25,3.4e38,single,0,1,cosine=0.5 top1=0,-3,"
        );
    }

    #[test]
    fn rows_round_trip() {
        let stopped = Row {
            lane: None,
            elements_wrong: None,
            max_abs_error: None,
            max_rel_error: None,
            shape: None,
            nan: None,
            inf: None,
            measures: None,
            ..row("salu", Outcome::Due, Some("watchdog"))
        };
        let permanent = Row {
            kernel: None,
            dispatch: None,
            label: None,
            workgroup: None,
            wave: None,
            pc: None,
            line: None,
            occurrence: None,
            before: 1 << 40,
            stratum: Some("v_fma_f32".to_owned()),
            timing_changed: Some(true),
            ..row("valu", Outcome::Masked, Some("logical"))
        };
        let endless = Row { max_rel_error: Some(f64::INFINITY), ..row("valu", Outcome::Sdc, None) };
        let rows = vec![row("valu", Outcome::Masked, None), stopped, permanent, endless];
        assert_eq!(read_rows(written(&rows).as_bytes()).unwrap(), rows);

        let undefined = Row { max_abs_error: Some(f64::NAN), ..row("valu", Outcome::Sdc, None) };
        let read = read_rows(written(&[undefined]).as_bytes()).unwrap();
        assert!(read[0].max_abs_error.unwrap().is_nan());
    }

    #[test]
    fn other_tables_are_refused() {
        let error = read_rows("index,site\n1,x\n".as_bytes()).unwrap_err();
        assert!(matches!(error, ResultsError::Header { .. }), "{error}");

        let older = "index,site,kernel,outcome,instructions\n";
        let error = read_rows(older.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("another version") && error.contains("`nan`, `inf`"), "{error}");

        let good = written(&[row("valu", Outcome::Sdc, None)]);
        for (from, to) in [(",sdc,", ",hang,"), ("0x3f800400", "1065354240"), ("\"3,1,0\"", "3")] {
            let bad = good.replacen(from, to, 1);
            let error = read_rows(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("line: 2"), "{error}");
        }
    }
}
