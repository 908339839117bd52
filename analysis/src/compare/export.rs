//! A comparison as a table for programs.

use super::{ComparedRate, Comparison};
use crate::{ResultsError, Share};
use flipwave_host::output::FormulaEscaper;
use serde::Serialize;
use std::io::Write;

/// A line of `compare.csv`.
#[derive(Default, Serialize)]
struct Line<'a> {
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
    /// Writes `compare.csv`: for each thing that both campaigns have a line for each outcome. Numbers
    /// have few enough digits that the file does not depend on the host.
    ///
    /// # Errors
    /// [`ResultsError::Csv`] if writing fails.
    pub fn write_csv(&self, output: impl Write) -> Result<(), ResultsError> {
        let mut writer = csv::Writer::from_writer(FormulaEscaper::new(output));
        for own in &self.scopes {
            for (event, rate) in own.rates() {
                let ComparedRate { a, b, change, pairs, p } = *rate;
                let [rate_a, low_a, high_a] = numbers(&a);
                let [rate_b, low_b, high_b] = numbers(&b);
                writer.serialize(Line {
                    a: &self.a.folder,
                    b: &self.b.folder,
                    scope: own.scope.by.name(),
                    value: &own.scope.value,
                    outcome: event.name(),
                    total_a: own.totals[0],
                    count_a: a.count,
                    rate_a,
                    low_a,
                    high_a,
                    total_b: own.totals[1],
                    count_b: b.count,
                    rate_b,
                    low_b,
                    high_b,
                    difference: decimals(change.rate),
                    low: decimals(change.low),
                    high: decimals(change.high),
                    confidence: self.a.design.confidence.probability(),
                    both: pairs.map(|own| own.both),
                    only_a: pairs.map(|own| own.only_a),
                    only_b: pairs.map(|own| own.only_b),
                    neither: pairs.map(|own| own.neither),
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
        writer.flush().map_err(csv::Error::from)?;
        Ok(())
    }
}

fn numbers(share: &Share) -> [String; 3] {
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
            columns(&Line::default()),
            "a,b,scope,value,outcome,total_a,count_a,rate_a,low_a,high_a,total_b,count_b,\
             rate_b,low_b,high_b,difference,low,high,confidence,both,only_a,only_b,neither,\
             test,p,instructions_a,instructions_b"
        );
    }
}
