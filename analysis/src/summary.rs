//! Counts and rates of a campaign's outcomes, as a whole and part by part.

use crate::interval::wilson_of;
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
    /// The outcomes in the order of [`Outcome::ALL`], those that did not occur included.
    pub outcomes: [Share; Outcome::ALL.len()],
    /// The causes that occurred, by outcome and name.
    pub causes: Vec<(Outcome, String, Share)>,
}

/// A part of the injections of a scope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// How many injections.
    pub count: u64,
    /// Their part of the scope's total, 0 to 1, each with its weight.
    pub rate: f64,
    /// The 95 % Wilson interval of the rate; of injections with different weights that of as many
    /// equal ones as say as much (L. Kish, "Survey Sampling" (1965), section 8.2).
    pub interval: Interval,
}

impl Share {
    fn new(own: Weight, all: Weight) -> Share {
        let confidence = Confidence::P95;
        let (count, total) = (own.count, all.count);
        if all.is_even() {
            let rate = if total == 0 { 0.0 } else { count as f64 / total as f64 };
            return Share { count, rate, interval: wilson(count, total, confidence) };
        }
        // Summed in another order, all of them can come to more than all.
        let rate = if count == total { 1.0 } else { (own.sum / all.sum).min(1.0) };
        let trials = all.sum * all.sum / all.squares;
        Share { count, rate, interval: wilson_of(rate, trials, confidence) }
    }
}

/// Injections and what they weigh.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    count: u64,
    sum: f64,
    squares: f64,
}

impl Weight {
    fn add(&mut self, weight: f64) {
        self.count += 1;
        self.sum += weight;
        self.squares += weight * weight;
    }

    /// Whether all weigh the same, as far as that can be seen.
    fn is_even(self) -> bool {
        let variance = self.squares * self.count as f64 - self.sum * self.sum;
        variance <= 1e-9 * self.sum * self.sum
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
    all: Weight,
    outcomes: [Weight; Outcome::ALL.len()],
    causes: BTreeMap<(Outcome, String), Weight>,
}

impl Tally {
    fn add(&mut self, row: &Row) {
        self.all.add(row.weight);
        self.outcomes[row.outcome as usize].add(row.weight);
        if let Some(cause) = &row.cause {
            self.causes.entry((row.outcome, cause.clone())).or_default().add(row.weight);
        }
    }

    fn summarise(self, scope: Scope) -> ScopeSummary {
        let share = |own| Share::new(own, self.all);
        let causes = self.causes.into_iter();
        ScopeSummary {
            scope,
            total: self.all.count,
            outcomes: self.outcomes.map(share),
            causes: causes.map(|((outcome, cause), own)| (outcome, cause, share(own))).collect(),
        }
    }
}

impl Summary {
    /// The outcomes that are worth showing: all but `detected` where nothing was, since most
    /// programs have no check of their own.
    pub(crate) fn shown(&self) -> impl Iterator<Item = Outcome> {
        let all = self.scopes.first();
        let detected = all.is_some_and(|all| all.share(Outcome::Detected).count > 0);
        Outcome::ALL.into_iter().filter(move |own| detected || *own != Outcome::Detected)
    }

    /// Summarises the rows of a campaign.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Summary {
        let mut tallies = BTreeMap::from([(Scope::All, Tally::default())]);
        for row in rows {
            let kernel = row.kernel.clone().map(Scope::Kernel);
            let scopes = [Some(Scope::All), Some(Scope::Group(row.group.clone())), kernel];
            for scope in scopes.into_iter().flatten() {
                tallies.entry(scope).or_default().add(row);
            }
        }
        let tallies = tallies.into_iter();
        Summary { scopes: tallies.map(|(scope, tally)| tally.summarise(scope)).collect() }
    }

    /// Writes `summary.csv`: per scope one line for each outcome, then one for each cause. Rates have six decimals, so that the file does not depend on the host.
    ///
    /// # Errors
    /// [`ResultsError::Csv`] if writing fails.
    pub fn write_csv(&self, output: impl Write) -> Result<(), ResultsError> {
        let mut writer = csv::Writer::from_writer(output);
        for scope in &self.scopes {
            for outcome in Outcome::ALL {
                writer.serialize(Line::new(scope, outcome, "", scope.share(outcome)))?;
            }
            for (outcome, cause, share) in &scope.causes {
                writer.serialize(Line::new(scope, *outcome, cause, *share))?;
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
            let due = scope.causes.iter().filter(|(outcome, ..)| *outcome == Outcome::Due);
            let causes: u64 = due.map(|(.., share)| share.count).sum();
            assert_eq!(causes, scope.share(Outcome::Due).count);
        }
        assert_eq!(summary.scopes[1].outcomes.map(|share| share.count), [6, 3, 1, 0]);
    }

    #[test]
    fn the_csv_has_one_line_per_outcome_and_cause() {
        let mut bytes = Vec::new();
        Summary::of(&rows()[..10]).write_csv(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().take(6).collect();
        assert_eq!(
            lines,
            [
                "scope,outcome,cause,count,total,rate,low,high",
                "all,masked,,6,10,0.600000,0.312674,0.831820",
                "all,sdc,,3,10,0.300000,0.107791,0.603222",
                "all,due,,1,10,0.100000,0.017876,0.404150",
                "all,detected,,0,10,0.000000,0.000000,0.277533",
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

    /// Two strata, one of nine tenths of the population, with as many injections each.
    #[test]
    fn weights_make_up_for_strata_of_different_size() {
        let weighed = |outcome, weight| Row { weight, ..row("valu", outcome, None) };
        let mut rows = vec![weighed(Outcome::Masked, 1.8); 50];
        rows.extend(vec![weighed(Outcome::Sdc, 0.2); 50]);
        let summary = Summary::of(&rows);
        let share = summary.scopes[0].share(Outcome::Sdc);
        assert_eq!(share.count, 50);
        assert!((share.rate - 0.1).abs() < 1e-12);
        // 100^2 / (50 * 1.8^2 + 50 * 0.2^2) trials.
        let expected = wilson_of(0.1, 10_000.0 / 164.0, Confidence::P95);
        assert!((share.interval.low - expected.low).abs() < 1e-12);
        assert!((share.interval.high - expected.high).abs() < 1e-12);
        let equal: Vec<Row> = rows.iter().map(|row| Row { weight: 0.3, ..row.clone() }).collect();
        assert_eq!(
            Summary::of(&equal).scopes[0].share(Outcome::Sdc).interval,
            wilson(50, 100, Confidence::P95)
        );
    }
}
