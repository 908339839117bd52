//! Counts and rates of a campaign's outcomes, as a whole and part by part.

use crate::{Confidence, Interval, Outcome, ResultsError, Row, wilson};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

/// Which injections a part of a summary is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All of them.
    All,
    /// Those that struck an instruction of a primary group.
    Group(String),
    /// Those that struck a kernel.
    Kernel(String),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::All => f.write_str("all"),
            Scope::Group(name) => write!(f, "group:{name}"),
            Scope::Kernel(name) => write!(f, "kernel:{name}"),
        }
    }
}

/// What the injections of a campaign came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// First all injections, then each group, then each kernel, by name.
    pub scopes: Vec<ScopeSummary>,
}

/// What the injections of one scope came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeSummary {
    /// Which injections.
    pub scope: Scope,
    /// How many.
    pub total: u64,
    /// Masked, SDC and DUE, in this order, those that did not occur included.
    pub outcomes: [Share; 3],
    /// The causes of DUE that occurred, by name.
    pub causes: Vec<(String, Share)>,
}

/// A part of the injections of a scope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// How many injections.
    pub count: u64,
    /// Their part of the scope's total, 0 to 1.
    pub rate: f64,
    /// The 95 % Wilson interval of the rate.
    pub interval: Interval,
}

impl Share {
    fn new(count: u64, total: u64) -> Share {
        Share {
            count,
            rate: if total == 0 { 0.0 } else { count as f64 / total as f64 },
            interval: wilson(count, total, Confidence::P95),
        }
    }
}

impl ScopeSummary {
    /// The share of one outcome.
    pub fn share(&self, outcome: Outcome) -> Share {
        self.outcomes[outcome as usize]
    }
}

/// Counts of one scope while rows are read.
#[derive(Default)]
struct Tally {
    outcomes: [u64; 3],
    causes: BTreeMap<String, u64>,
}

impl Tally {
    fn add(&mut self, row: &Row) {
        self.outcomes[row.outcome as usize] += 1;
        if let (Outcome::Due, Some(cause)) = (row.outcome, &row.cause) {
            *self.causes.entry(cause.clone()).or_default() += 1;
        }
    }

    fn summarise(self, scope: Scope) -> ScopeSummary {
        let total = self.outcomes.iter().sum();
        let causes = self.causes.into_iter();
        ScopeSummary {
            scope,
            total,
            outcomes: self.outcomes.map(|count| Share::new(count, total)),
            causes: causes.map(|(cause, count)| (cause, Share::new(count, total))).collect(),
        }
    }
}

impl Summary {
    /// Summarises the rows of a campaign.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Summary {
        let mut tallies = BTreeMap::from([(Scope::All, Tally::default())]);
        for row in rows {
            for scope in
                [Scope::All, Scope::Group(row.group.clone()), Scope::Kernel(row.kernel.clone())]
            {
                tallies.entry(scope).or_default().add(row);
            }
        }
        let tallies = tallies.into_iter();
        Summary { scopes: tallies.map(|(scope, tally)| tally.summarise(scope)).collect() }
    }

    /// Writes `summary.csv`: per scope one line for each outcome, then one for each cause of
    /// DUE. Rates have six decimals, so that the file does not depend on the host.
    ///
    /// # Errors
    /// [`ResultsError::Csv`] if writing fails.
    pub fn write_csv(&self, output: impl Write) -> Result<(), ResultsError> {
        let mut writer = csv::Writer::from_writer(output);
        for scope in &self.scopes {
            for outcome in Outcome::ALL {
                writer.serialize(Line::new(scope, outcome, "", scope.share(outcome)))?;
            }
            for (cause, share) in &scope.causes {
                writer.serialize(Line::new(scope, Outcome::Due, cause, *share))?;
            }
        }
        writer.flush().map_err(csv::Error::from)?;
        Ok(())
    }
}

/// A line of `summary.csv`.
#[derive(Serialize)]
struct Line<'a> {
    scope: String,
    outcome: Outcome,
    cause: &'a str,
    count: u64,
    total: u64,
    rate: String,
    low: String,
    high: String,
}

impl<'a> Line<'a> {
    fn new(scope: &ScopeSummary, outcome: Outcome, cause: &'a str, share: Share) -> Line<'a> {
        let decimal = |rate: f64| format!("{rate:.6}");
        Line {
            scope: scope.scope.to_string(),
            outcome,
            cause,
            count: share.count,
            total: scope.total,
            rate: decimal(share.rate),
            low: decimal(share.interval.low),
            high: decimal(share.interval.high),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::row::tests::row;

    pub(crate) fn rows() -> Vec<Row> {
        let mut rows = vec![row("valu", Outcome::Masked, None); 6];
        rows.extend(vec![row("valu", Outcome::Sdc, None); 3]);
        rows.push(row("valu", Outcome::Due, Some("watchdog")));
        rows.push(row("vmem", Outcome::Due, Some("memory_violation")));
        rows.push(row("vmem", Outcome::Due, Some("memory_violation")));
        rows.push(row("vmem", Outcome::Sdc, None));
        rows
    }

    #[test]
    fn every_injection_is_counted_once_per_scope() {
        let summary = Summary::of(&rows());
        let totals: Vec<(String, u64)> =
            summary.scopes.iter().map(|scope| (scope.scope.to_string(), scope.total)).collect();
        let expected = [("all", 13), ("group:valu", 10), ("group:vmem", 3), ("kernel:matmul", 13)];
        assert_eq!(totals, expected.map(|(scope, total)| (scope.to_owned(), total)));
        for scope in &summary.scopes {
            assert_eq!(scope.outcomes.iter().map(|share| share.count).sum::<u64>(), scope.total);
            let causes: u64 = scope.causes.iter().map(|(_, share)| share.count).sum();
            assert_eq!(causes, scope.share(Outcome::Due).count);
        }
        assert_eq!(summary.scopes[1].outcomes.map(|share| share.count), [6, 3, 1]);
    }

    #[test]
    fn the_csv_has_one_line_per_outcome_and_cause() {
        let mut bytes = Vec::new();
        Summary::of(&rows()[..10]).write_csv(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().take(5).collect();
        assert_eq!(
            lines,
            [
                "scope,outcome,cause,count,total,rate,low,high",
                "all,masked,,6,10,0.600000,0.312674,0.831820",
                "all,sdc,,3,10,0.300000,0.107791,0.603222",
                "all,due,,1,10,0.100000,0.017876,0.404150",
                "all,due,watchdog,1,10,0.100000,0.017876,0.404150",
            ]
        );
    }

    #[test]
    fn no_rows_make_an_empty_summary() {
        let summary = Summary::of(&[]);
        assert_eq!(summary.scopes.len(), 1);
        assert_eq!(summary.scopes[0].total, 0);
        assert_eq!(
            summary.scopes[0].share(Outcome::Sdc).interval,
            Interval { low: 0.0, high: 1.0 }
        );
    }
}
