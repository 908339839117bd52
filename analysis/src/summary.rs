//! Outcome counts and rates of a campaign, overall and by scope.

use crate::{
    Confidence, ErrorShape, Interval, IntervalMethod, Outcome, ResultsError, Row, Scope, Severity,
};
use flipwave_host::output::FormulaEscaper;
use serde::Serialize;
use std::io::Write;

/// Outcome rates of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Confidence of the intervals.
    pub confidence: Confidence,
    /// Method that computed the intervals.
    pub method: IntervalMethod,
    /// All injections, then each group, each kernel, each label, each opcode if requested, and each
    /// stratum, ordered by name.
    pub scopes: Vec<ScopeSummary>,
}

/// Outcome rates of one scope, which `K` identifies.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeSummary<K = Scope> {
    /// The scope.
    pub scope: K,
    /// Number of injections.
    pub total: u64,
    /// Size of the scope in the fault space, relative to the other scopes of the campaign.
    pub weight: f64,
    /// Shares of all outcomes in the order of [`Outcome::ALL`], including those that did not occur.
    pub outcomes: [Share; Outcome::ALL.len()],
    /// Shares of the causes that occurred, ordered by outcome and cause. The causes of SDC are its
    /// severities: all of them, if the campaign has a judge.
    pub causes: Vec<CauseShare>,
}

/// Cause of an outcome in a summary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Cause in the row of a masked, DUE or detected run.
    Named(String),
    /// Severity of SDC.
    Severity(Severity),
    /// Spatial pattern of SDC.
    Shape(ErrorShape),
}

impl Cause {
    /// The cause that a row counts for: its cause, or the severity of SDC.
    pub(crate) fn of_row(row: &Row) -> Option<Cause> {
        let severity = row.severity.map(Cause::Severity);
        row.cause.clone().map(Cause::Named).or(severity)
    }

    /// Name in result tables.
    pub fn name(&self) -> &str {
        match self {
            Cause::Named(name) => name,
            Cause::Severity(severity) => severity.name(),
            Cause::Shape(shape) => shape.name(),
        }
    }
}

/// Share of an outcome with a cause.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseShare {
    /// The outcome.
    pub outcome: Outcome,
    /// The cause.
    pub cause: Cause,
    /// Share among all injections of the scope.
    pub share: Share,
}

/// A share of the injections of a scope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Number of injections.
    pub count: u64,
    /// Estimated fraction of the scope's fault sites, from 0 to 1. Pruned sites count as masked.
    pub rate: f64,
    /// Interval of the rate.
    pub interval: Interval,
}

impl<K> ScopeSummary<K> {
    /// Share of an outcome.
    pub fn share(&self, outcome: Outcome) -> Share {
        self.outcomes[outcome as usize]
    }

    /// Share of SDC with a severity; `None` if the campaign has no judge.
    pub fn severity(&self, severity: Severity) -> Option<Share> {
        let has_severity = |cause: &&CauseShare| {
            cause.outcome == Outcome::Sdc && cause.cause == Cause::Severity(severity)
        };
        self.causes.iter().find(has_severity).map(|cause| cause.share)
    }

    /// Lines of a table: each outcome with an empty cause, then each cause.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Outcome, &str, Share)> {
        let outcomes = Outcome::ALL.into_iter().map(|outcome| (outcome, "", self.share(outcome)));
        outcomes
            .chain(self.causes.iter().map(|cause| (cause.outcome, cause.cause.name(), cause.share)))
    }
}

impl Summary {
    /// Returns the summary with kernel names replaced by readable ones.
    pub fn with_kernel_names(&self, readable_name: impl Fn(&str) -> String) -> Summary {
        let mut summary = self.clone();
        for summarised in &mut summary.scopes {
            if let Scope::Kernel(kernel) = &mut summarised.scope {
                *kernel = readable_name(kernel);
            }
        }
        summary
    }

    /// Outcomes to show: all, but `detected` only if it occurred, since most programs do not check
    /// themselves.
    pub(crate) fn shown_outcomes(&self) -> impl Iterator<Item = Outcome> {
        let all = self.scopes.first();
        let has_detected = all.is_some_and(|all| all.share(Outcome::Detected).count > 0);
        Outcome::ALL
            .into_iter()
            .filter(move |outcome| has_detected || *outcome != Outcome::Detected)
    }

    /// Scopes to show: all, except scopes without known rates and strata that are also a group, kernel,
    /// label or opcode.
    pub(crate) fn shown_scopes(&self) -> impl Iterator<Item = &ScopeSummary> {
        let is_repeated = |scope: &Scope| match scope {
            Scope::Stratum(stratum) => self.scopes.iter().any(|summarised| {
                !matches!(summarised.scope, Scope::Stratum(_))
                    && summarised.scope.name() == Some(stratum)
            }),
            _ => false,
        };
        let has_rates = |summarised: &ScopeSummary| {
            summarised.total > 0
                || summarised.scope == Scope::All
                || summarised.share(Outcome::Masked).rate >= 1.0
        };
        self.scopes
            .iter()
            .filter(move |summarised| has_rates(summarised) && !is_repeated(&summarised.scope))
    }

    /// Writes `summary.csv`: for each scope one line per outcome, then one per cause.
    /// Rates have six decimals, so that the file does not depend on the host.
    ///
    /// # Errors
    /// [`ResultsError::Csv`] if writing fails.
    pub fn write_csv(&self, output: impl Write) -> Result<(), ResultsError> {
        let mut writer = csv::Writer::from_writer(FormulaEscaper::new(output));
        let decimal = |rate: f64| format!("{rate:.6}");
        for summarised in &self.scopes {
            for (outcome, cause, share) in summarised.lines() {
                writer.serialize(SummaryRecord {
                    scope: summarised.scope.to_string(),
                    outcome,
                    cause,
                    count: share.count,
                    total: summarised.total,
                    rate: decimal(share.rate),
                    low: decimal(share.interval.low),
                    high: decimal(share.interval.high),
                    confidence: self.confidence.probability(),
                })?;
            }
        }
        writer.flush().map_err(csv::Error::from)?;
        Ok(())
    }
}

/// A line of `summary.csv`.
#[derive(Serialize)]
struct SummaryRecord<'a> {
    scope: String,
    outcome: Outcome,
    cause: &'a str,
    count: u64,
    total: u64,
    rate: String,
    low: String,
    high: String,
    confidence: f64,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Row;
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
        let summary = Summary::from_rows(&rows(), Confidence::P95);
        let totals: Vec<(String, u64)> =
            summary.scopes.iter().map(|scope| (scope.scope.to_string(), scope.total)).collect();
        let scopes = ["all", "group:valu", "group:vmem", "kernel:matmul", "label:layer0.mlp"];
        let expected = scopes.into_iter().zip([13, 10, 3, 13, 13]);
        let expected = expected.map(|(scope, total)| (scope.to_owned(), total));
        assert_eq!(totals, expected.collect::<Vec<_>>());
        for scope in &summary.scopes {
            assert_eq!(scope.outcomes.iter().map(|share| share.count).sum::<u64>(), scope.total);
            let due = scope.causes.iter().filter(|cause| cause.outcome == Outcome::Due);
            let causes: u64 = due.map(|cause| cause.share.count).sum();
            assert_eq!(causes, scope.share(Outcome::Due).count);
        }
        assert_eq!(summary.scopes[1].outcomes.map(|share| share.count), [6, 3, 1, 0]);
    }

    #[test]
    fn csv_has_one_line_per_outcome_and_cause() {
        let mut bytes = Vec::new();
        Summary::from_rows(&rows()[..10], Confidence::P95).write_csv(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().take(8).collect();
        assert_eq!(
            lines,
            [
                "scope,outcome,cause,count,total,rate,low,high,confidence",
                "all,masked,,6,10,0.600000,0.312674,0.831820,0.95",
                "all,sdc,,3,10,0.300000,0.107791,0.603222,0.95",
                "all,due,,1,10,0.100000,0.017876,0.404150,0.95",
                "all,detected,,0,10,0.000000,0.000000,0.277533,0.95",
                "all,sdc,critical,3,10,0.300000,0.107791,0.603222,0.95",
                "all,sdc,tolerable,0,10,0.000000,0.000000,0.277533,0.95",
                "all,due,watchdog,1,10,0.100000,0.017876,0.404150,0.95",
            ]
        );
    }

    #[test]
    fn summary_without_rows_is_empty() {
        let summary = Summary::from_rows(&[], Confidence::P95);
        assert_eq!(summary.scopes.len(), 1);
        assert_eq!(summary.scopes[0].total, 0);
        assert_eq!(
            summary.scopes[0].share(Outcome::Sdc).interval,
            Interval { low: 0.0, high: 1.0 }
        );
    }
}
