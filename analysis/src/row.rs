//! Rows of `results.csv`: one per injection.

use crate::{ErrorShape, Outcome, Severity, hexadecimal};
use flipwave_host::output::unescape_formula;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Read;
use std::str::FromStr;

/// One injection with its outcome: a line of `results.csv`. The fields are the columns, in
/// this order; a column that does not apply is empty. Rows do not depend on time or host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Index of the injection in the plan, from 0.
    pub injection: u64,
    /// Fault site as one line of text, for replay.
    pub site: String,
    /// Kernel of the fault; empty for a fault in all kernels.
    pub kernel: Option<String>,
    /// Index of the dispatch in the workload, from 0; empty for a fault in all dispatches.
    pub dispatch: Option<u32>,
    /// Label of the dispatch in the campaign file; empty without a label.
    pub label: Option<String>,
    /// Position of the workgroup in the grid; empty for several workgroups.
    pub workgroup: Option<Workgroup>,
    /// Index of the wave in its workgroup; empty for all waves.
    pub wave: Option<u32>,
    /// Lane of the fault; empty for scalar state and for several lanes.
    pub lane: Option<u8>,
    /// ELF virtual address of the instruction at which the fault was injected; empty for several
    /// instructions.
    #[serde(with = "hexadecimal::address")]
    pub pc: Option<u64>,
    /// Canonical opcode of the instruction.
    pub opcode: String,
    /// Primary instruction group of the instruction.
    pub group: String,
    /// Source line of the instruction as `file:line`; empty without debug information.
    pub line: Option<String>,
    /// Number of earlier executions of the instruction by the wave; that of the first execution for
    /// several.
    pub occurrence: Option<u64>,
    /// Register or memory that the fault changed, in the notation of fault sites.
    pub location: String,
    /// Changed bits: `before` exclusive-or `after`.
    #[serde(with = "hexadecimal::word")]
    pub flip_mask: u64,
    /// Value before the fault; that of the first word for several.
    #[serde(with = "hexadecimal::word")]
    pub before: u64,
    /// Value after the fault, of the same word as `before`.
    #[serde(with = "hexadecimal::word")]
    pub after: u64,
    /// Number of words changed; a word that is changed repeatedly counts each time.
    pub words: u64,
    /// Stratum that the site was drawn from; empty for unstratified sampling.
    pub stratum: Option<String>,
    /// Sampling weight: fault sites that the row represents, relative to the other rows; 1 on average.
    pub weight: f64,
    /// Outcome of the injection.
    pub outcome: Outcome,
    /// Cause of the outcome: how a fault was masked, what stopped a DUE run, or the buffer that
    /// detected the fault; empty for SDC.
    pub cause: Option<String>,
    /// Severity of SDC; empty without a judge.
    pub severity: Option<Severity>,
    /// Output elements outside their tolerance; empty if the run did not complete.
    pub elements_wrong: Option<u64>,
    /// Largest absolute difference of an output element; empty if the run did not complete.
    pub max_abs_error: Option<f64>,
    /// Largest relative difference of an output element; empty if the run did not complete.
    pub max_rel_error: Option<f64>,
    /// Spatial pattern of the wrong elements; empty without a wrong element in an output with
    /// dimensions.
    pub error_pattern: Option<ErrorShape>,
    /// Output elements that are NaN but not in the golden run; empty if the run did not complete.
    pub nan_elements: Option<u64>,
    /// Output elements that are infinite but not in the golden run; empty if the run did not complete.
    pub inf_elements: Option<u64>,
    /// Measures that the judge based `severity` on, such as `cosine=0.98 top1=0`; empty without any.
    pub measures: Option<String>,
    /// Wave instructions executed in addition to those of the golden run, negative for fewer; empty
    /// if the run did not complete.
    pub instructions: Option<i64>,
    /// `true` if the number of instructions changed by more than the threshold; empty unless the
    /// outputs are correct.
    pub timing_changed: Option<bool>,
}

impl Row {
    /// The header of `results.csv`.
    pub const COLUMNS: [&str; 32] = [
        "injection",
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
        "location",
        "flip_mask",
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
        "error_pattern",
        "nan_elements",
        "inf_elements",
        "measures",
        "instructions",
        "timing_changed",
    ];
}

/// Position of a workgroup in the grid. Its text form is `x,y,z`.
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
        position
            .map(Workgroup)
            .ok_or_else(|| format!("invalid workgroup position `{text}`; expected x,y,z"))
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

/// Errors returned when reading or writing results.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The header is not that of `results.csv`.
    #[error("not the results of a campaign: found header `{found}`, expected `{}`",
        Row::COLUMNS.join(","))]
    Header {
        /// First line of the file.
        found: String,
    },
    /// The header is that of another version of Flipwave.
    #[error(
        "results of another version of Flipwave: missing columns {}; read them with the version \
         named in run.json or run the campaign again",
        quoted_list(missing)
    )]
    Version {
        /// Missing columns.
        missing: Vec<&'static str>,
    },
    /// A row's weight is out of range.
    #[error("line {line}: invalid weight {weight:?}: expected a number above 0 and up to 1e15")]
    Weight {
        /// Line of the row, from 1.
        line: u64,
        /// The weight.
        weight: f64,
    },
    /// A column has more distinct values than a campaign can produce.
    #[error("line {line}: column `{column}` has more than {max} distinct values")]
    TooManyValues {
        /// Line of the first excess value, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// Largest number of distinct values.
        max: usize,
    },
    /// Reading or writing failed, or a row is malformed.
    #[error(transparent)]
    Csv(#[from] csv::Error),
}

fn quoted_list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Reads all rows of `results.csv`.
///
/// # Errors
/// [`ResultsError`] for another table and for the first malformed row.
pub fn read_rows(input: impl Read) -> Result<Vec<Row>, ResultsError> {
    rows(input)?.collect()
}

/// Iterates over the rows of `results.csv`.
///
/// # Errors
/// [`ResultsError`] for another table, and for each malformed row.
pub fn rows<R: Read>(
    input: R,
) -> Result<impl Iterator<Item = Result<Row, ResultsError>>, ResultsError> {
    let mut reader = csv::Reader::from_reader(input);
    let header = reader.headers()?;
    if header != Row::COLUMNS[..] {
        let (known, missing): (Vec<&str>, Vec<&str>) =
            Row::COLUMNS.iter().partition(|name| header.iter().any(|column| column == **name));
        // Every version had a subset of the columns in the same order, with the outcome among them.
        if header.iter().eq(known.iter().copied()) && known.contains(&"outcome") {
            return Err(ResultsError::Version { missing });
        }
        let found = header.iter().collect::<Vec<_>>().join(",");
        return Err(ResultsError::Header { found });
    }
    Ok(reader.into_deserialize().map(|row| row.map(without_marks).map_err(ResultsError::from)))
}

/// Removes the mark in front of names, which prevents spreadsheets from evaluating them as formulas.
fn without_marks(mut row: Row) -> Row {
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
            injection: 7,
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
            location: "v4".to_owned(),
            flip_mask: 0x400,
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
            error_pattern: Some(ErrorShape::Single),
            nan_elements: Some(0),
            inf_elements: Some(1),
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

    /// The header of a table of serialised rows.
    pub(crate) fn columns(row: &impl Serialize) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.serialize(row).expect("a row");
        let text = String::from_utf8(writer.into_inner().expect("a table")).expect("text");
        text.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn persisted_names_are_fixed() {
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
        let due = Row {
            lane: None,
            elements_wrong: None,
            max_abs_error: None,
            max_rel_error: None,
            error_pattern: None,
            nan_elements: None,
            inf_elements: None,
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
        let infinite =
            Row { max_rel_error: Some(f64::INFINITY), ..row("valu", Outcome::Sdc, None) };
        let rows = vec![row("valu", Outcome::Masked, None), due, permanent, infinite];
        assert_eq!(read_rows(written(&rows).as_bytes()).unwrap(), rows);

        let nan = Row { max_abs_error: Some(f64::NAN), ..row("valu", Outcome::Sdc, None) };
        let read = read_rows(written(&[nan]).as_bytes()).unwrap();
        assert!(read[0].max_abs_error.unwrap().is_nan());
    }

    #[test]
    fn other_tables_are_rejected() {
        let error = read_rows("injection,site\n1,x\n".as_bytes()).unwrap_err();
        assert!(matches!(error, ResultsError::Header { .. }), "{error}");

        let older = "injection,site,kernel,outcome,instructions\n";
        let error = read_rows(older.as_bytes()).unwrap_err().to_string();
        assert!(
            error.contains("another version") && error.contains("`nan_elements`, `inf_elements`"),
            "{error}"
        );

        let good = written(&[row("valu", Outcome::Sdc, None)]);
        for (from, to) in [(",sdc,", ",hang,"), ("0x3f800400", "1065354240"), ("\"3,1,0\"", "3")] {
            let bad = good.replacen(from, to, 1);
            let error = read_rows(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("line: 2"), "{error}");
        }
    }
}
