//! Counts and rates of a campaign's outcomes, as a whole and part by part.

use crate::estimate::{Found, estimate};
use crate::{
    Confidence, Interval, IntervalMethod, Known, Outcome, ResultsError, Row, SampleDesign, Severity,
};
use flipwave_host::output::FormulaEscaper;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write;

/// Which injections a part of a summary is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Scope {
    /// All of them.
    All,
    /// Those that struck an instruction of a primary group.
    Group(String),
    /// Those that struck a kernel.
    Kernel(String),
    /// Those that struck a dispatch with a label.
    Label(String),
    /// Those that struck an operation.
    Opcode(String),
    /// Those that were drawn from a stratum of the population.
    Stratum(String),
}

impl Scope {
    /// The scope of a name as it is printed; nothing of other texts.
    fn named(name: &str) -> Option<Scope> {
        if name == "all" {
            return Some(Scope::All);
        }
        let (kind, name) = name.split_once(':')?;
        let name = name.to_owned();
        Some(match kind {
            "group" => Scope::Group(name),
            "kernel" => Scope::Kernel(name),
            "label" => Scope::Label(name),
            "opcode" => Scope::Opcode(name),
            "stratum" => Scope::Stratum(name),
            _ => return None,
        })
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> String {
        scope.to_string()
    }
}

impl TryFrom<String> for Scope {
    type Error = String;

    fn try_from(name: String) -> Result<Scope, String> {
        Scope::named(&name).ok_or_else(|| format!("`{name}` is no scope, such as kernel:NAME"))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::All => f.write_str("all"),
            Scope::Group(name) => write!(f, "group:{name}"),
            Scope::Kernel(name) => write!(f, "kernel:{name}"),
            Scope::Label(name) => write!(f, "label:{name}"),
            Scope::Opcode(name) => write!(f, "opcode:{name}"),
            Scope::Stratum(name) => write!(f, "stratum:{name}"),
        }
    }
}

/// What the injections of a campaign came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// That of the intervals.
    pub confidence: Confidence,
    /// How the intervals are computed.
    pub method: IntervalMethod,
    /// First all injections, then each group, each kernel, each label, each operation where that is
    /// wanted, and each stratum, by name.
    pub scopes: Vec<ScopeSummary>,
}

/// What the injections of one scope came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeSummary<K = Scope> {
    /// Which injections.
    pub scope: K,
    /// How many.
    pub total: u64,
    /// How much of the population the scope is, relative to the other scopes of the campaign.
    pub weight: f64,
    /// The outcomes in the order of [`Outcome::ALL`], those that did not occur included.
    pub outcomes: [Share; Outcome::ALL.len()],
    /// The causes that occurred, by outcome and name; of SDC how bad it is, where somebody judges, those
    /// that did not occur included.
    pub causes: Vec<(Outcome, String, Share)>,
}

/// A part of the injections of a scope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// How many injections.
    pub count: u64,
    /// Their part of the scope's population, 0 to 1: what was not sampled, since it is known to be
    /// masked, counts.
    pub rate: f64,
    /// The interval of the rate.
    pub interval: Interval,
}

impl Share {
    /// What is known of a rate of which `sure` is known, and nothing was found of the rest.
    fn nothing_found(sure: f64, rest: f64) -> Share {
        let Interval { low, high } = Interval::EVERYTHING;
        let interval = Interval { low: sure + rest * low, high: (sure + rest * high).min(1.0) };
        Share { count: 0, rate: sure, interval }
    }
}

impl<K> ScopeSummary<K> {
    /// The share of one outcome.
    pub fn share(&self, outcome: Outcome) -> Share {
        self.outcomes[outcome as usize]
    }

    /// The share of SDC that is so bad; nothing where nobody judges.
    pub fn severity(&self, severity: Severity) -> Option<Share> {
        let is_it = |(outcome, name, _): &&(Outcome, String, Share)| {
            *outcome == Outcome::Sdc && name == severity.name()
        };
        self.causes.iter().find(is_it).map(|(_, _, share)| *share)
    }

    /// The lines of a table: each outcome, with no cause, and then each cause.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Outcome, &str, Share)> {
        let outcomes = Outcome::ALL.into_iter().map(|own| (own, "", self.share(own)));
        outcomes.chain(self.causes.iter().map(|(own, cause, share)| (*own, cause.as_str(), *share)))
    }
}

/// What the injections of a campaign came to, counted one after another. It takes memory for the
/// summary, and for nothing of the injections.
#[derive(Clone, Debug)]
pub struct Tallies<K = Scope> {
    design: SampleDesign,
    /// The scope of all injections.
    everything: K,
    scopes: BTreeMap<K, Tally>,
    /// What the injections of each stratum weigh.
    weights: BTreeMap<String, f64>,
}

impl Tallies {
    /// Nothing counted yet.
    pub fn new(design: SampleDesign) -> Tallies {
        // What is known of a scope is known without an injection.
        let known: Vec<Scope> = design.known.keys().filter_map(|name| Scope::named(name)).collect();
        let mut tallies = Tallies::of_keys(design, Scope::All);
        tallies.scopes.extend(known.into_iter().map(|scope| (scope, Tally::default())));
        tallies
    }

    /// Counts a row.
    pub fn add(&mut self, row: &Row) {
        let kernel = row.kernel.clone().map(Scope::Kernel);
        let label = row.label.clone().map(Scope::Label);
        let stratum = row.stratum.clone().map(Scope::Stratum);
        let opcode = self.design.by_opcode.then(|| Scope::Opcode(row.opcode.clone()));
        let group = Scope::Group(row.group.clone());
        self.add_to([Some(group), kernel, label, opcode, stratum].into_iter().flatten(), row);
    }

    /// The rates so far.
    pub fn summary(&self) -> Summary {
        let known = |scope: &Scope| self.design.known_of(scope).unwrap_or_default();
        let SampleDesign { method, .. } = self.design;
        let scopes = self.summaries(known).collect();
        Summary { confidence: self.design.confidence, method, scopes }
    }
}

impl<K: Ord + Clone> Tallies<K> {
    /// Nothing counted yet, for scopes that the caller chooses; `everything` is that of all injections.
    pub(crate) fn of_keys(design: SampleDesign, everything: K) -> Tallies<K> {
        let scopes = BTreeMap::from([(everything.clone(), Tally::default())]);
        Tallies { design, everything, scopes, weights: BTreeMap::new() }
    }

    /// Counts a row in some scopes, and in that of all injections.
    pub(crate) fn add_to(&mut self, scopes: impl IntoIterator<Item = K>, row: &Row) {
        for scope in scopes.into_iter().chain([self.everything.clone()]) {
            self.scopes.entry(scope).or_default().add(row);
        }
        *self.weights.entry(stratum_of(row)).or_default() += row.weight;
    }

    /// How many scopes there are.
    pub(crate) fn scopes(&self) -> usize {
        self.scopes.len()
    }

    /// The same counts in fewer scopes: `wider` says into which each goes.
    pub(crate) fn widen(&mut self, wider: impl Fn(K) -> K) {
        for (scope, tally) in std::mem::take(&mut self.scopes) {
            self.scopes.entry(wider(scope)).or_default().join(tally);
        }
    }

    /// The rates so far, in the order of the scopes; `known` says what is known of one without
    /// injections.
    pub(crate) fn summaries(
        &self,
        known: impl Fn(&K) -> Known,
    ) -> impl Iterator<Item = ScopeSummary<K>> {
        self.scopes.iter().map(move |(scope, tally)| self.summarise(scope, tally, known(scope)))
    }

    /// How many rows were counted.
    pub fn count(&self) -> u64 {
        self.all().count()
    }

    fn all(&self) -> &Tally {
        &self.scopes[&self.everything]
    }

    /// The standard deviation of what comes of an injection into each stratum, as far as it is one of
    /// these outcomes. Of few injections without an outcome it is not known that it never comes: each
    /// counts as if there were one more with it and one without (E. B. Wilson, JASA 22 (1927)).
    pub fn deviations(&self, outcomes: &[Outcome]) -> BTreeMap<String, f64> {
        let deviation = |part: &Part| {
            let variance = |outcome: &Outcome| {
                let hits = part.outcomes[*outcome as usize] as f64 + 1.0;
                let rate = hits / (part.count as f64 + 2.0);
                rate * (1.0 - rate)
            };
            outcomes.iter().map(variance).sum::<f64>().sqrt()
        };
        let strata = self.all().strata.iter();
        strata.map(|(stratum, part)| (stratum.clone(), deviation(part))).collect()
    }

    fn summarise(&self, scope: &K, tally: &Tally, known: Known) -> ScopeSummary<K> {
        let share = |sure: f64, count: &dyn Fn(&Part) -> u64| {
            self.share((tally, *scope == self.everything), (sure, known.rate()), count)
        };
        let outcome = |own: Outcome| {
            let sure = if own == Outcome::Masked { known.rate() } else { 0.0 };
            share(sure, &|part| part.outcomes[own as usize])
        };
        let seen = tally.strata.values().flat_map(|part| part.causes.keys().cloned());
        let is_judged = self.design.is_judged || self.all().is_judged();
        let judged = is_judged.then_some(severities()).into_iter().flatten();
        let causes: BTreeSet<_> = seen
            .chain(judged)
            .chain(known_causes(known).into_iter().map(|(cause, _)| cause))
            .collect();
        let of_cause = |cause: (Outcome, String)| {
            let all = known_causes(known);
            let share = match all.iter().find(|(own, _)| *own == cause) {
                // None of those that are sampled has it.
                Some((_, rate)) => {
                    Share { count: 0, rate: *rate, interval: Interval { low: *rate, high: *rate } }
                }
                None => share(0.0, &|part| part.causes.get(&cause).copied().unwrap_or(0)),
            };
            (cause.0, cause.1, share)
        };
        ScopeSummary {
            scope: scope.clone(),
            total: tally.count(),
            weight: self.size(tally) / (1.0 - known.rate()).max(f64::MIN_POSITIVE),
            outcomes: Outcome::ALL.map(outcome),
            causes: causes.into_iter().map(of_cause).collect(),
        }
    }

    /// The share of what `count` counts. Of the scope's population `sure` is known to belong to it, and
    /// `known` was not sampled.
    fn share(
        &self,
        (tally, is_all): (&Tally, bool),
        (sure, known): (f64, f64),
        count: &dyn Fn(&Part) -> u64,
    ) -> Share {
        let found: Vec<Found> = tally
            .strata
            .iter()
            .map(|(stratum, part)| Found {
                hits: count(part),
                part: part.count,
                stratum: self.all().strata[stratum].count,
                weight: self.weight(stratum),
                places: self.design.places_of(stratum).filter(|_| self.design.is_finite),
            })
            .collect();
        let rest = 1.0 - known;
        // Which strata other scopes have is not known.
        let is_unseen = |(stratum, places): &(&String, &u64)| {
            **places > 0 && is_all && !tally.strata.contains_key(*stratum)
        };
        let unseen = self.design.places.iter().filter(is_unseen);
        let unseen: Vec<f64> = unseen.map(|(_, places)| *places as f64).collect();
        match estimate(&found, &unseen, self.design.method, self.design.nominal()) {
            Some((rate, Interval { low, high })) => Share {
                count: found.iter().map(|own| own.hits).sum(),
                rate: sure + rest * rate,
                interval: Interval { low: sure + rest * low, high: (sure + rest * high).min(1.0) },
            },
            None => Share::nothing_found(sure, rest),
        }
    }

    /// How much of the population was sampled in a scope, relative to other scopes.
    fn size(&self, tally: &Tally) -> f64 {
        let all = &self.all().strata;
        let parts = tally.strata.iter();
        let size = |(stratum, part): (&String, &Part)| {
            self.weight(stratum) * part.count as f64 / all[stratum].count as f64
        };
        parts.map(size).sum()
    }

    /// How much of the population a stratum is, relative to the others: by its places where they are
    /// known, else by what its injections stand for.
    fn weight(&self, stratum: &str) -> f64 {
        let places = self.design.places_of(stratum).map(|places| places as f64);
        places.unwrap_or_else(|| self.weights.get(stratum).copied().unwrap_or(0.0))
    }
}

/// The causes of which it is known how often they come.
fn known_causes(known: Known) -> Vec<((Outcome, String), f64)> {
    let all = [("dead", known.dead), ("overwritten", known.overwritten)];
    let some = all.into_iter().filter(|(_, places)| *places > 0);
    some.map(|(cause, places)| ((Outcome::Masked, cause.to_owned()), known.of(places))).collect()
}

/// How bad SDC can be, in the place of causes.
fn severities() -> [(Outcome, String); Severity::ALL.len()] {
    Severity::ALL.map(|own| (Outcome::Sdc, own.name().to_owned()))
}

/// The stratum that a row was drawn from, by its name.
fn stratum_of(row: &Row) -> String {
    row.stratum.clone().unwrap_or_default()
}

/// Counts of one scope, by stratum.
#[derive(Clone, Debug, Default)]
struct Tally {
    strata: BTreeMap<String, Part>,
}

/// Counts of one scope in one stratum.
#[derive(Clone, Debug, Default)]
struct Part {
    count: u64,
    outcomes: [u64; Outcome::ALL.len()],
    causes: BTreeMap<(Outcome, String), u64>,
}

impl Tally {
    fn add(&mut self, row: &Row) {
        let part = self.strata.entry(stratum_of(row)).or_default();
        part.count += 1;
        part.outcomes[row.outcome as usize] += 1;
        // How bad SDC is stands in the place of a cause, which it has none of.
        let severity = row.severity.map(|own| own.name().to_owned());
        if let Some(cause) = row.cause.clone().or(severity) {
            *part.causes.entry((row.outcome, cause)).or_default() += 1;
        }
    }

    /// Whether somebody has said how bad SDC is.
    fn is_judged(&self) -> bool {
        let is_judged = |part: &Part| severities().iter().any(|own| part.causes.contains_key(own));
        self.strata.values().any(is_judged)
    }

    fn join(&mut self, other: Tally) {
        for (stratum, part) in other.strata {
            let own = self.strata.entry(stratum).or_default();
            own.count += part.count;
            for (own, other) in own.outcomes.iter_mut().zip(part.outcomes) {
                *own += other;
            }
            for (cause, count) in part.causes {
                *own.causes.entry(cause).or_default() += count;
            }
        }
    }

    fn count(&self) -> u64 {
        self.strata.values().map(|part| part.count).sum()
    }
}

impl Summary {
    /// The same with other names of kernels, for people.
    pub fn with_kernel_names(&self, name: impl Fn(&str) -> String) -> Summary {
        let mut summary = self.clone();
        for own in &mut summary.scopes {
            if let Scope::Kernel(kernel) = &mut own.scope {
                *kernel = name(kernel);
            }
        }
        summary
    }

    /// The outcomes that are worth showing: all but `detected` where nothing was, since most
    /// programs have no check of their own.
    pub(crate) fn shown(&self) -> impl Iterator<Item = Outcome> {
        let all = self.scopes.first();
        let detected = all.is_some_and(|all| all.share(Outcome::Detected).count > 0);
        Outcome::ALL.into_iter().filter(move |own| detected || *own != Outcome::Detected)
    }

    /// The scopes that are worth showing: all but strata that are groups, kernels or operations, and
    /// those of which nothing is known.
    pub(crate) fn shown_scopes(&self) -> impl Iterator<Item = &ScopeSummary> {
        let is_repeated = |scope: &Scope| match scope {
            Scope::Stratum(name) => self.scopes.iter().any(|other| {
                matches!(
                    &other.scope,
                    Scope::Group(own)
                    | Scope::Kernel(own)
                    | Scope::Label(own)
                    | Scope::Opcode(own) if own == name
                )
            }),
            _ => false,
        };
        let is_known = |own: &ScopeSummary| {
            own.total > 0 || own.scope == Scope::All || own.share(Outcome::Masked).rate >= 1.0
        };
        self.scopes.iter().filter(move |own| is_known(own) && !is_repeated(&own.scope))
    }

    /// Summarises the rows of a campaign that were drawn in the simplest way.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>, confidence: Confidence) -> Summary {
        let mut tallies = Tallies::new(SampleDesign::simple(confidence));
        rows.into_iter().for_each(|row| tallies.add(row));
        tallies.summary()
    }

    /// Writes `summary.csv`: per scope one line for each outcome, then one for each cause.
    /// Rates have six decimals, so that the file does not depend on the host.
    ///
    /// # Errors
    /// [`ResultsError::Csv`] if writing fails.
    pub fn write_csv(&self, output: impl Write) -> Result<(), ResultsError> {
        let mut writer = csv::Writer::from_writer(FormulaEscaper::new(output));
        for scope in &self.scopes {
            for (outcome, cause, share) in scope.lines() {
                writer.serialize(Line::new(scope, outcome, cause, share, self.confidence))?;
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
    use crate::wilson;

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
        let scopes = ["all", "group:valu", "group:vmem", "kernel:matmul", "label:layer0.mlp"];
        let expected = scopes.into_iter().zip([13, 10, 3, 13, 13]);
        let expected = expected.map(|(scope, total)| (scope.to_owned(), total));
        assert_eq!(totals, expected.collect::<Vec<_>>());
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
        // What each stratum's limits are off, 0.1 of the small one's and 0.9 of the large one's.
        let all = wilson(50, 50, Confidence::P95);
        let none = wilson(0, 50, Confidence::P95);
        assert!((share.interval.low - (0.1 - 0.1 * (1.0 - all.low))).abs() < 1e-12);
        assert!((share.interval.high - (0.1 + 0.9 * none.high)).abs() < 1e-12);
    }

    /// Half of the population with 10 injections, half with 1,000, and all that varies in the first.
    #[test]
    fn an_overall_rate_is_as_uncertain_as_the_strata_that_make_it() {
        let rows = [drawn("few", 50.5, 5, 10), drawn("many", 0.505, 0, 1000)].concat();
        let share = Summary::of(&rows, Confidence::P95).scopes[0].share(Outcome::Sdc);
        assert!((share.rate - 0.25).abs() < 1e-12, "{share:?}");
        let few = wilson(5, 10, Confidence::P95);
        assert!((share.interval.low - 0.5 * few.low).abs() < 1e-9, "{share:?}, {few:?}");
        assert!(share.interval.high > 0.5 * few.high, "{share:?}, {few:?}");
        assert!(share.interval.high < 0.5 * few.high + 0.001, "{share:?}, {few:?}");
    }

    /// Rows of one stratum from two stages, in which it had different parts of all: each injection says
    /// as much as any other.
    #[test]
    fn stages_of_a_stratum_are_counted_together() {
        let rows = [
            drawn("a", 1.0, 5, 50),
            drawn("b", 1.0, 0, 50),
            drawn("a", 0.5 * 90.0 / 80.0, 40, 80),
            drawn("b", 4.5, 0, 10),
        ];
        let share = Summary::of(&rows.concat(), Confidence::P95).scopes[0].share(Outcome::Sdc);
        assert!((share.rate - 0.5 * 45.0 / 130.0).abs() < 1e-12, "{share:?}");
    }

    #[test]
    fn what_is_known_to_be_masked_counts_without_injections() {
        let known = |places, overwritten, dead| Known { places, overwritten, dead };
        let design = SampleDesign {
            known: BTreeMap::from([
                ("all".to_owned(), known(1000, 300, 100)),
                ("group:valu".to_owned(), known(500, 300, 100)),
                ("group:smem".to_owned(), known(50, 50, 0)),
            ]),
            ..SampleDesign::simple(Confidence::P95)
        };
        let mut tallies = Tallies::new(design);
        rows().iter().for_each(|row| tallies.add(row));
        let summary = tallies.summary();
        let scope = |name: &str| {
            let found = summary.scopes.iter().find(|own| own.scope.to_string() == name);
            found.unwrap_or_else(|| panic!("no {name}"))
        };
        let (all, plain) = (scope("all"), Summary::of(&rows(), Confidence::P95));
        let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-12, "{one} {other}");
        for outcome in Outcome::ALL {
            let (own, of_rest) = (all.share(outcome), plain.scopes[0].share(outcome));
            let sure = if outcome == Outcome::Masked { 0.4 } else { 0.0 };
            assert_eq!(own.count, of_rest.count);
            close(own.rate, sure + 0.6 * of_rest.rate);
            close(own.interval.low, sure + 0.6 * of_rest.interval.low);
            close(own.interval.high, sure + 0.6 * of_rest.interval.high);
        }
        let rates: f64 = Outcome::ALL.into_iter().map(|own| all.share(own).rate).sum();
        close(rates, 1.0);
        let cause = |name: &str| {
            let found = all.causes.iter().find(|(.., own, _)| own == name);
            found.unwrap_or_else(|| panic!("no {name}")).2.rate
        };
        close(cause("overwritten"), 0.3);
        close(cause("dead"), 0.1);
        close(scope("group:valu").share(Outcome::Masked).rate, 0.8 + 0.2 * 0.6);
        // Nothing of it was sampled, and nothing had to be.
        let smem = scope("group:smem").share(Outcome::Masked);
        assert_eq!((smem.count, smem.rate, smem.interval.low), (0, 1.0, 1.0));
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
        let expected =
            ["all", "group:valu", "kernel:matmul", "label:layer0.mlp", "stratum:v_add_f32"];
        assert_eq!(shown, expected);
    }
}
