//! Counts and rates of a campaign's outcomes, as a whole and part by part.

use crate::interval::wilson_of;
use crate::{Confidence, Interval, Outcome, ResultsError, Row, wilson};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Those that were drawn from a stratum of the population.
    Stratum(String),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::All => f.write_str("all"),
            Scope::Group(name) => write!(f, "group:{name}"),
            Scope::Kernel(name) => write!(f, "kernel:{name}"),
            Scope::Stratum(name) => write!(f, "stratum:{name}"),
        }
    }
}

/// What the injections of a campaign came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// That of the intervals.
    pub confidence: Confidence,
    /// First all injections, then each group, then each kernel, then each stratum, by name.
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
    /// The Wilson interval of the rate. Of injections from several strata it is that of as many
    /// equal ones as say as much: the fewer of what the weights leave of them (L. Kish, "Survey
    /// Sampling" (1965), section 8.2), and of those whose rate would vary as much as the weighted
    /// sum of the strata's rates does (W. G. Cochran, "Sampling Techniques" (1977), theorem 5.3).
    pub interval: Interval,
}

impl Share {
    /// The share of what was counted in each stratum: what counts, and all.
    fn new(parts: &[(Weight, Weight)], confidence: Confidence) -> Share {
        let [own, all] = parts
            .iter()
            .fold([Weight::default(); 2], |[own, all], part| [own.with(part.0), all.with(part.1)]);
        let (count, total) = (own.count, all.count);
        if all.is_even() {
            let rate = if total == 0 { 0.0 } else { count as f64 / total as f64 };
            return Share { count, rate, interval: wilson(count, total, confidence) };
        }
        // Summed in another order, all of them can come to more than all.
        let rate = if count == total { 1.0 } else { (own.sum / all.sum).min(1.0) };
        let variance: f64 = parts
            .iter()
            .filter(|(_, part)| part.count > 0)
            .map(|(own, part)| {
                let (share, rate) = (part.sum / all.sum, (own.sum / part.sum).min(1.0));
                share * share * rate * (1.0 - rate) / part.count as f64
            })
            .sum();
        let weighted = all.sum * all.sum / all.squares;
        let stratified = rate * (1.0 - rate) / variance;
        // Where no stratum varies, the first has no end or is no number.
        let trials = if stratified < weighted { stratified } else { weighted };
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

    fn with(self, other: Weight) -> Weight {
        Weight {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
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

/// What the injections of a campaign came to, counted one after another. It takes memory for the
/// summary, and for nothing of the injections.
#[derive(Clone, Debug)]
pub struct Tallies {
    confidence: Confidence,
    scopes: BTreeMap<Scope, Tally>,
}

impl Tallies {
    /// Nothing counted yet; intervals will have this confidence.
    pub fn new(confidence: Confidence) -> Tallies {
        Tallies { confidence, scopes: BTreeMap::from([(Scope::All, Tally::default())]) }
    }

    /// Counts a row.
    pub fn add(&mut self, row: &Row) {
        let kernel = row.kernel.clone().map(Scope::Kernel);
        let stratum = row.stratum.clone().map(Scope::Stratum);
        let scopes = [Some(Scope::All), Some(Scope::Group(row.group.clone())), kernel, stratum];
        for scope in scopes.into_iter().flatten() {
            self.scopes.entry(scope).or_default().add(row);
        }
    }

    /// The rates so far.
    pub fn summary(&self) -> Summary {
        let Tallies { confidence, scopes } = self;
        let scopes = scopes.iter().map(|(scope, tally)| tally.summarise(scope, *confidence));
        Summary { confidence: *confidence, scopes: scopes.collect() }
    }
}

/// Counts of one scope, by stratum.
#[derive(Clone, Debug, Default)]
struct Tally {
    strata: BTreeMap<String, Part>,
}

/// Counts of one scope in one stratum.
#[derive(Clone, Debug, Default)]
struct Part {
    all: Weight,
    outcomes: [Weight; Outcome::ALL.len()],
    causes: BTreeMap<(Outcome, String), Weight>,
}

impl Tally {
    fn add(&mut self, row: &Row) {
        let part = self.strata.entry(row.stratum.clone().unwrap_or_default()).or_default();
        part.all.add(row.weight);
        part.outcomes[row.outcome as usize].add(row.weight);
        if let Some(cause) = &row.cause {
            part.causes.entry((row.outcome, cause.clone())).or_default().add(row.weight);
        }
    }

    fn summarise(&self, scope: &Scope, confidence: Confidence) -> ScopeSummary {
        let parts = || self.strata.values();
        let share = |count: &dyn Fn(&Part) -> Weight| {
            let counted: Vec<_> = parts().map(|part| (count(part), part.all)).collect();
            Share::new(&counted, confidence)
        };
        let causes: BTreeSet<_> = parts().flat_map(|part| part.causes.keys()).collect();
        let of_cause = |cause: &(Outcome, String)| {
            let share = share(&|part| part.causes.get(cause).copied().unwrap_or_default());
            (cause.0, cause.1.clone(), share)
        };
        ScopeSummary {
            scope: scope.clone(),
            total: parts().map(|part| part.all.count).sum(),
            outcomes: Outcome::ALL.map(|outcome| share(&|part| part.outcomes[outcome as usize])),
            causes: causes.into_iter().map(of_cause).collect(),
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

    /// The scopes that are worth showing: all but strata that are groups or kernels.
    pub(crate) fn shown_scopes(&self) -> impl Iterator<Item = &ScopeSummary> {
        let is_repeated = |scope: &Scope| {
            match scope {
            Scope::Stratum(name) => self.scopes.iter().any(|other| {
                matches!(&other.scope, Scope::Group(own) | Scope::Kernel(own) if own == name)
            }),
            _ => false,
        }
        };
        self.scopes.iter().filter(move |own| !is_repeated(&own.scope))
    }

    /// Summarises the rows of a campaign.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>, confidence: Confidence) -> Summary {
        let mut tallies = Tallies::new(confidence);
        rows.into_iter().for_each(|row| tallies.add(row));
        tallies.summary()
    }

    /// Writes `summary.csv`: per scope one line for each outcome, then one for each cause.
    /// Rates have six decimals, so that the file does not depend on the host.
    ///
    /// # Errors
    /// [`ResultsError::Csv`] if writing fails.
    pub fn write_csv(&self, output: impl Write) -> Result<(), ResultsError> {
        let mut writer = csv::Writer::from_writer(output);
        for scope in &self.scopes {
            for outcome in Outcome::ALL {
                let share = scope.share(outcome);
                writer.serialize(Line::new(scope, outcome, "", share, self.confidence))?;
            }
            for (outcome, cause, share) in &scope.causes {
                writer.serialize(Line::new(scope, *outcome, cause, *share, self.confidence))?;
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
    confidence: f64,
}

impl<'a> Line<'a> {
    fn new(
        scope: &ScopeSummary,
        outcome: Outcome,
        cause: &'a str,
        share: Share,
        confidence: Confidence,
    ) -> Line<'a> {
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
            confidence: confidence.probability(),
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
        let summary = Summary::of(&rows(), Confidence::P95);
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
        Summary::of(&rows()[..10], Confidence::P95).write_csv(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().take(6).collect();
        assert_eq!(
            lines,
            [
                "scope,outcome,cause,count,total,rate,low,high,confidence",
                "all,masked,,6,10,0.600000,0.312674,0.831820,0.95",
                "all,sdc,,3,10,0.300000,0.107791,0.603222,0.95",
                "all,due,,1,10,0.100000,0.017876,0.404150,0.95",
                "all,detected,,0,10,0.000000,0.000000,0.277533,0.95",
                "all,due,watchdog,1,10,0.100000,0.017876,0.404150,0.95",
            ]
        );
    }

    #[test]
    fn no_rows_make_an_empty_summary() {
        let summary = Summary::of(&[], Confidence::P95);
        assert_eq!(summary.scopes.len(), 1);
        assert_eq!(summary.scopes[0].total, 0);
        assert_eq!(
            summary.scopes[0].share(Outcome::Sdc).interval,
            Interval { low: 0.0, high: 1.0 }
        );
    }

    fn drawn(stratum: &str, weight: f64, hits: usize, count: usize) -> Vec<Row> {
        let row = |number| {
            let outcome = if number < hits { Outcome::Sdc } else { Outcome::Masked };
            Row { weight, stratum: Some(stratum.to_owned()), ..row("valu", outcome, None) }
        };
        (0..count).map(row).collect()
    }

    /// Two strata, one of nine tenths of the population, with as many injections each.
    #[test]
    fn weights_make_up_for_strata_of_different_size() {
        let rows = [drawn("large", 1.8, 0, 50), drawn("small", 0.2, 50, 50)].concat();
        let summary = Summary::of(&rows, Confidence::P95);
        let share = summary.scopes[0].share(Outcome::Sdc);
        assert_eq!(share.count, 50);
        assert!((share.rate - 0.1).abs() < 1e-12);
        // 100^2 / (50 * 1.8^2 + 50 * 0.2^2) trials.
        let expected = wilson_of(0.1, 10_000.0 / 164.0, Confidence::P95);
        assert!((share.interval.low - expected.low).abs() < 1e-12);
        assert!((share.interval.high - expected.high).abs() < 1e-12);
        let equal: Vec<Row> = rows.iter().map(|row| Row { weight: 0.3, ..row.clone() }).collect();
        assert_eq!(
            Summary::of(&equal, Confidence::P95).scopes[0].share(Outcome::Sdc).interval,
            wilson(50, 100, Confidence::P95)
        );
    }

    /// Half of the population with 10 injections, half with 1,000, and all that varies in the first:
    /// the weights alone leave 39.6 injections, and the rate varies as that of 30 does,
    /// 0.25 * 0.75 / (0.5^2 * 0.5 * 0.5 / 10).
    #[test]
    fn an_overall_rate_is_as_uncertain_as_the_strata_that_make_it() {
        let rows = [drawn("few", 50.5, 5, 10), drawn("many", 0.505, 0, 1000)].concat();
        let share = Summary::of(&rows, Confidence::P95).scopes[0].share(Outcome::Sdc);
        assert!((share.rate - 0.25).abs() < 1e-12, "{share:?}");
        let expected = wilson_of(0.25, 30.0, Confidence::P95);
        assert!((share.interval.low - expected.low).abs() < 1e-9, "{share:?}, {expected:?}");
        assert!((share.interval.high - expected.high).abs() < 1e-9, "{share:?}, {expected:?}");
    }

    #[test]
    fn every_stratum_has_its_rates() {
        let rows = [drawn("v_add_f32", 1.8, 10, 50), drawn("valu", 0.2, 50, 50)].concat();
        let summary = Summary::of(&rows, Confidence::P99);
        let scope = |name: &str| {
            let found = summary.scopes.iter().find(|own| own.scope.to_string() == name);
            found.unwrap_or_else(|| panic!("no {name}")).share(Outcome::Sdc)
        };
        let share = scope("stratum:v_add_f32");
        assert_eq!((share.count, share.rate), (10, 0.2));
        assert_eq!(share.interval, wilson(10, 50, Confidence::P99));
        assert_eq!(scope("stratum:valu").count, 50);
        // What is a group is shown as one, and is in the file all the same.
        let shown: Vec<String> = summary.shown_scopes().map(|own| own.scope.to_string()).collect();
        assert_eq!(shown, ["all", "group:valu", "kernel:matmul", "stratum:v_add_f32"]);
    }
}
