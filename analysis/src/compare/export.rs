//! The CSV file of a comparison.

use super::{ComparedRate, Comparison};
use crate::{ResultsError, Share};
use flipwave_host::output::FormulaEscaper;
use serde::Serialize;
use std::io::Write;

/// A line of `compare.csv`.
#[derive(Default, Serialize)]
struct CompareRecord<'a> {
    a: &'a str,
    b: &'a str,
    scope: &'a str,
    value: &'a str,
    outcome: &'a str,
    total_a: u64,
    count_a: u64,
    rate_a: String,
    low_a: String,
    high_a: String,
    total_b: u64,
    count_b: u64,
    rate_b: String,
    low_b: String,
    high_b: String,
    difference: String,
    low: String,
    high: String,
    confidence: f64,
    both: Option<u64>,
    only_a: Option<u64>,
    only_b: Option<u64>,
    neither: Option<u64>,
    test: &'a str,
    p: String,
    instructions_a: Option<u64>,
    instructions_b: Option<u64>,
}

impl Comparison {
    /// Writes `compare.csv`, with one line for each scope and outcome. Numbers are rounded, so that the
    /// file does not depend on the host.
    ///
    /// # Errors
    /// [`ResultsError::Csv`] if writing fails.
    pub fn write_csv(&self, output: impl Write) -> Result<(), ResultsError> {
        write_csv(std::iter::once(self), output)
    }

    fn write_lines(&self, writer: &mut csv::Writer<impl Write>) -> Result<(), ResultsError> {
        for compared in &self.scopes {
            for (outcome, rate) in compared.rates() {
                let ComparedRate { a, b, change, pairs, p } = *rate;
                let [rate_a, low_a, high_a] = rate_and_limits(&a);
                let [rate_b, low_b, high_b] = rate_and_limits(&b);
                writer.serialize(CompareRecord {
                    a: &self.a.folder,
                    b: &self.b.folder,
                    scope: compared.scope.kind.name(),
                    value: &compared.scope.value,
                    outcome: outcome.name(),
                    total_a: compared.totals[0],
                    count_a: a.count,
                    rate_a,
                    low_a,
                    high_a,
                    total_b: compared.totals[1],
                    count_b: b.count,
                    rate_b,
                    low_b,
                    high_b,
                    difference: decimals(change.rate),
                    low: decimals(change.low),
                    high: decimals(change.high),
                    confidence: self.a.design.confidence.probability(),
                    both: pairs.map(|pairs| pairs.both),
                    only_a: pairs.map(|pairs| pairs.only_a),
                    only_b: pairs.map(|pairs| pairs.only_b),
                    neither: pairs.map(|pairs| pairs.neither),
                    test: match (p, pairs) {
                        (None, _) => "",
                        (Some(_), Some(_)) => "mcnemar",
                        (Some(_), None) => "fisher",
                    },
                    p: p.map(|p| format!("{p:.3e}")).unwrap_or_default(),
                    instructions_a: self.a.instructions,
                    instructions_b: self.b.instructions,
                })?;
            }
        }
        Ok(())
    }
}

/// Writes the lines of several comparisons as one table.
pub(super) fn write_csv<'a>(
    comparisons: impl Iterator<Item = &'a Comparison>,
    output: impl Write,
) -> Result<(), ResultsError> {
    let mut writer = csv::Writer::from_writer(FormulaEscaper::new(output));
    for comparison in comparisons {
        comparison.write_lines(&mut writer)?;
    }
    writer.flush().map_err(csv::Error::from)?;
    Ok(())
}

fn rate_and_limits(share: &Share) -> [String; 3] {
    [share.rate, share.interval.low, share.interval.high].map(decimals)
}

fn decimals(number: f64) -> String {
    format!("{number:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::columns;

    #[test]
    fn comparisons_have_fixed_columns() {
        assert_eq!(
            columns(&CompareRecord::default()),
            "a,b,scope,value,outcome,total_a,count_a,rate_a,low_a,high_a,total_b,count_b,\
             rate_b,low_b,high_b,difference,low,high,confidence,both,only_a,only_b,neither,\
             test,p,instructions_a,instructions_b"
        );
    }
}
