//! Outcome counts by scope and stratum, and the rates estimated from them.

use crate::estimate::{StratumSample, estimate};
use crate::{
    Cause, CauseShare, Confidence, Interval, Outcome, PrunedSites, Row, SampleDesign, Scope,
    ScopeSummary, Severity, Share, Summary,
};
use std::collections::{BTreeMap, BTreeSet};

/// Outcome counts of a campaign by scope, which `K` identifies. Memory use depends on the number of scopes,
/// strata and causes, not on the number of rows.
#[derive(Clone, Debug)]
pub struct Tallies<K = Scope> {
    design: SampleDesign,
    /// The scope of all injections.
    everything: K,
    scopes: BTreeMap<K, Tally>,
    /// Sum of the weights of the injections of each stratum.
    weights: BTreeMap<String, f64>,
}

impl Summary {
    /// Summarises the rows of a campaign with the [simple](SampleDesign::simple) sample design.
    pub fn from_rows<'a>(
        rows: impl IntoIterator<Item = &'a Row>,
        confidence: Confidence,
    ) -> Summary {
        let mut tallies = Tallies::new(SampleDesign::simple(confidence));
        rows.into_iter().for_each(|row| tallies.add(row));
        tallies.summary()
    }
}

impl Tallies {
    /// Creates tallies without rows.
    pub fn new(design: SampleDesign) -> Tallies {
        // Pruned scopes have known rates without an injection.
        let pruned: Vec<Scope> =
            design.pruned.keys().filter_map(|name| Scope::parse(name)).collect();
        let mut tallies = Tallies::with_keys(design, Scope::All);
        tallies.scopes.extend(pruned.into_iter().map(|scope| (scope, Tally::default())));
        tallies
    }

    /// Counts a row in its group, kernel, label, opcode and stratum.
    pub fn add(&mut self, row: &Row) {
        let kernel = row.kernel.clone().map(Scope::Kernel);
        let label = row.label.clone().map(Scope::Label);
        let stratum = row.stratum.clone().map(Scope::Stratum);
        let opcode = self.design.by_opcode.then(|| Scope::Opcode(row.opcode.clone()));
        let group = Scope::Group(row.group.clone());
        self.add_to([Some(group), kernel, label, opcode, stratum].into_iter().flatten(), row);
    }

    /// Rates of the rows counted so far.
    pub fn summary(&self) -> Summary {
        let pruned = |scope: &Scope| self.design.pruned_in(scope).unwrap_or_default();
        Summary {
            confidence: self.design.confidence,
            method: self.design.method,
            scopes: self.summaries(pruned).collect(),
        }
    }
}

impl<K: Ord + Clone> Tallies<K> {
    /// Creates tallies without rows for scopes chosen by the caller. `everything` is the scope of all
    /// injections.
    pub(crate) fn with_keys(design: SampleDesign, everything: K) -> Tallies<K> {
        let scopes = BTreeMap::from([(everything.clone(), Tally::default())]);
        Tallies { design, everything, scopes, weights: BTreeMap::new() }
    }

    /// Counts a row in `scopes` and in the scope of all injections.
    pub(crate) fn add_to(&mut self, scopes: impl IntoIterator<Item = K>, row: &Row) {
        self.add_with_cause(scopes, row, Cause::of_row(row).as_ref());
    }

    /// Counts a row with `cause` instead of its own cause.
    pub(crate) fn add_with_cause(
        &mut self,
        scopes: impl IntoIterator<Item = K>,
        row: &Row,
        cause: Option<&Cause>,
    ) {
        for scope in scopes.into_iter().chain([self.everything.clone()]) {
            self.scopes.entry(scope).or_default().add(row, cause);
        }
        *self.weights.entry(stratum_of(row)).or_default() += row.weight;
    }

    /// Number of scopes.
    pub(crate) fn scope_count(&self) -> usize {
        self.scopes.len()
    }

    /// Merges scopes: `merged` maps each scope to the one that takes its counts.
    pub(crate) fn merge_scopes(&mut self, merged: impl Fn(K) -> K) {
        for (scope, tally) in std::mem::take(&mut self.scopes) {
            self.scopes.entry(merged(scope)).or_default().merge(tally);
        }
    }

    /// Rates of the rows counted so far, in the order of the scopes. `pruned` returns the pruned sites of a
    /// scope.
    pub(crate) fn summaries(
        &self,
        pruned: impl Fn(&K) -> PrunedSites,
    ) -> impl Iterator<Item = ScopeSummary<K>> {
        self.scopes.iter().map(move |(scope, tally)| self.summarise(scope, tally, pruned(scope)))
    }

    /// Number of rows counted.
    pub fn count(&self) -> u64 {
        self.all().count()
    }

    fn all(&self) -> &Tally {
        &self.scopes[&self.everything]
    }

    /// For each stratum, the standard deviation of an injection's membership in `outcomes`. A few
    /// injections without an outcome do not show that it never occurs, so each stratum counts one more hit
    /// and one more miss of each outcome (E. B. Wilson, JASA 22 (1927)).
    pub fn standard_deviations(&self, outcomes: &[Outcome]) -> BTreeMap<String, f64> {
        let deviation = |counts: &StratumCounts| {
            let variance = |outcome: &Outcome| {
                let hits = counts.outcomes[*outcome as usize] as f64 + 1.0;
                let rate = hits / (counts.total as f64 + 2.0);
                rate * (1.0 - rate)
            };
            outcomes.iter().map(variance).sum::<f64>().sqrt()
        };
        let strata = self.all().strata.iter();
        strata.map(|(stratum, counts)| (stratum.clone(), deviation(counts))).collect()
    }

    fn summarise(&self, scope: &K, tally: &Tally, pruned: PrunedSites) -> ScopeSummary<K> {
        let unseen =
            if *scope == self.everything { self.unseen_weights(tally) } else { Vec::new() };
        let share = |pruned_hits: f64, hits: &dyn Fn(&StratumCounts) -> u64| {
            let samples = self.stratum_samples(tally, hits);
            self.share(&samples, &unseen, Pruned { hits: pruned_hits, total: pruned.rate() })
        };
        let outcome_share = |outcome: Outcome| {
            let pruned_hits = if outcome == Outcome::Masked { pruned.rate() } else { 0.0 };
            share(pruned_hits, &|counts| counts.outcomes[outcome as usize])
        };
        let pruned_causes = pruned_causes(pruned);
        let seen = tally.strata.values().flat_map(|counts| counts.causes.keys().cloned());
        let is_judged = self.design.is_judged || self.all().is_judged();
        let severities = is_judged.then_some(severity_causes()).into_iter().flatten();
        let causes: BTreeSet<(Outcome, Cause)> =
            seen.chain(severities).chain(pruned_causes.keys().cloned()).collect();
        let cause_share = |key: (Outcome, Cause)| {
            let share = match pruned_causes.get(&key) {
                // No sampled site has the cause of a pruned one.
                Some(&rate) => {
                    Share { count: 0, rate, interval: Interval { low: rate, high: rate } }
                }
                None => share(0.0, &|counts| counts.causes.get(&key).copied().unwrap_or(0)),
            };
            let (outcome, cause) = key;
            CauseShare { outcome, cause, share }
        };
        ScopeSummary {
            scope: scope.clone(),
            total: tally.count(),
            weight: self.sampled_weight(tally) / (1.0 - pruned.rate()).max(f64::MIN_POSITIVE),
            outcomes: Outcome::ALL.map(outcome_share),
            causes: causes.into_iter().map(cause_share).collect(),
        }
    }

    /// The injections of a scope in each stratum, with the number that `hits` counts.
    fn stratum_samples(
        &self,
        tally: &Tally,
        hits: &dyn Fn(&StratumCounts) -> u64,
    ) -> Vec<StratumSample> {
        let sample = |(stratum, counts): (&String, &StratumCounts)| StratumSample {
            hits: hits(counts),
            domain_trials: counts.total,
            stratum_trials: self.all().strata[stratum].total,
            weight: self.stratum_weight(stratum),
            sites: self.stratum_sites(stratum).filter(|_| self.design.is_finite),
        };
        tally.strata.iter().map(sample).collect()
    }

    /// Sizes of the strata in which no injection of `tally`, that of all injections, was counted. Which
    /// strata other scopes contain is unknown.
    fn unseen_weights(&self, tally: &Tally) -> Vec<f64> {
        let is_unseen = |(stratum, sites): &(&String, &u64)| {
            **sites > 0 && !tally.strata.contains_key(*stratum)
        };
        let unseen = self.design.stratum_sites.iter().filter(is_unseen);
        unseen.map(|(_, sites)| *sites as f64).collect()
    }

    /// Estimates a share of a scope's fault sites, which are sampled or pruned.
    fn share(&self, samples: &[StratumSample], unseen: &[f64], pruned: Pruned) -> Share {
        let sampled = 1.0 - pruned.total;
        let of_scope = |rate: f64| pruned.hits + sampled * rate;
        let confidence = self.design.interval_confidence();
        match estimate(samples, unseen, self.design.method, confidence) {
            Some((rate, Interval { low, high })) => Share {
                count: samples.iter().map(|sample| sample.hits).sum(),
                rate: of_scope(rate),
                interval: Interval { low: of_scope(low), high: of_scope(high).min(1.0) },
            },
            None => Share {
                count: 0,
                rate: pruned.hits,
                interval: Interval {
                    low: of_scope(Interval::FULL.low),
                    high: of_scope(Interval::FULL.high).min(1.0),
                },
            },
        }
    }

    /// Size of the sampled part of a scope in the fault space, relative to other scopes.
    fn sampled_weight(&self, tally: &Tally) -> f64 {
        let all = &self.all().strata;
        let weight = |(stratum, counts): (&String, &StratumCounts)| {
            self.stratum_weight(stratum) * counts.total as f64 / all[stratum].total as f64
        };
        tally.strata.iter().map(weight).sum()
    }

    /// Size of a stratum in the fault space, relative to the other strata: its number of sites if known,
    /// otherwise the sum of the weights of its injections.
    fn stratum_weight(&self, stratum: &str) -> f64 {
        let sites = self.stratum_sites(stratum).map(|sites| sites as f64);
        sites.unwrap_or_else(|| self.weights.get(stratum).copied().unwrap_or(0.0))
    }

    fn stratum_sites(&self, stratum: &str) -> Option<u64> {
        self.design.stratum_sites.get(stratum).copied()
    }
}

/// Fractions of a scope's fault sites that are pruned.
struct Pruned {
    /// Pruned sites that belong to the estimated share.
    hits: f64,
    /// All pruned sites.
    total: f64,
}

/// Causes of pruned sites with their rates.
fn pruned_causes(pruned: PrunedSites) -> BTreeMap<(Outcome, Cause), f64> {
    let causes = [("dead", pruned.dead), ("overwritten", pruned.overwritten)];
    let causes = causes.into_iter().filter(|(_, sites)| *sites > 0);
    causes
        .map(|(cause, sites)| {
            ((Outcome::Masked, Cause::Named(cause.to_owned())), pruned.fraction(sites))
        })
        .collect()
}

/// Severities of SDC, which take the place of its causes.
fn severity_causes() -> [(Outcome, Cause); Severity::ALL.len()] {
    Severity::ALL.map(|severity| (Outcome::Sdc, Cause::Severity(severity)))
}

/// Name of the stratum that a row was drawn from; empty if there is only one.
fn stratum_of(row: &Row) -> String {
    row.stratum.clone().unwrap_or_default()
}

/// Outcome counts of one scope, by stratum.
#[derive(Clone, Debug, Default)]
struct Tally {
    strata: BTreeMap<String, StratumCounts>,
}

/// Outcome counts of one scope in one stratum.
#[derive(Clone, Debug, Default)]
struct StratumCounts {
    total: u64,
    outcomes: [u64; Outcome::ALL.len()],
    causes: BTreeMap<(Outcome, Cause), u64>,
}

impl Tally {
    fn add(&mut self, row: &Row, cause: Option<&Cause>) {
        let counts = self.strata.entry(stratum_of(row)).or_default();
        counts.total += 1;
        counts.outcomes[row.outcome as usize] += 1;
        if let Some(cause) = cause {
            *counts.causes.entry((row.outcome, cause.clone())).or_default() += 1;
        }
    }

    /// Returns `true` if any SDC has a severity.
    fn is_judged(&self) -> bool {
        let is_judged = |counts: &StratumCounts| {
            severity_causes().iter().any(|cause| counts.causes.contains_key(cause))
        };
        self.strata.values().any(is_judged)
    }

    fn merge(&mut self, merged: Tally) {
        for (stratum, added) in merged.strata {
            let counts = self.strata.entry(stratum).or_default();
            counts.total += added.total;
            for (count, added) in counts.outcomes.iter_mut().zip(added.outcomes) {
                *count += added;
            }
            for (cause, count) in added.causes {
                *counts.causes.entry(cause).or_default() += count;
            }
        }
    }

    fn count(&self) -> u64 {
        self.strata.values().map(|counts| counts.total).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;
    use crate::summary::tests::rows;
    use crate::wilson;

    fn drawn(stratum: &str, weight: f64, hits: usize, count: usize) -> Vec<Row> {
        let row = |number| {
            let outcome = if number < hits { Outcome::Sdc } else { Outcome::Masked };
            Row { weight, stratum: Some(stratum.to_owned()), ..row("valu", outcome, None) }
        };
        (0..count).map(row).collect()
    }

    /// Two strata with equally many injections, one of which is nine tenths of the fault space.
    #[test]
    fn weights_correct_for_strata_of_different_size() {
        let rows = [drawn("large", 1.8, 0, 50), drawn("small", 0.2, 50, 50)].concat();
        let summary = Summary::from_rows(&rows, Confidence::P95);
        let share = summary.scopes[0].share(Outcome::Sdc);
        assert_eq!(share.count, 50);
        assert!((share.rate - 0.1).abs() < 1e-12);
        // The distances of the strata's limits, 0.1 of the small one's and 0.9 of the large one's.
        let all = wilson(50, 50, Confidence::P95);
        let none = wilson(0, 50, Confidence::P95);
        assert!((share.interval.low - (0.1 - 0.1 * (1.0 - all.low))).abs() < 1e-12);
        assert!((share.interval.high - (0.1 + 0.9 * none.high)).abs() < 1e-12);
    }

    /// Half of the fault space has 10 injections with varying outcomes, half has 1,000 without hits.
    #[test]
    fn overall_rate_is_as_uncertain_as_its_strata() {
        let rows = [drawn("few", 50.5, 5, 10), drawn("many", 0.505, 0, 1000)].concat();
        let share = Summary::from_rows(&rows, Confidence::P95).scopes[0].share(Outcome::Sdc);
        assert!((share.rate - 0.25).abs() < 1e-12, "{share:?}");
        let few = wilson(5, 10, Confidence::P95);
        assert!((share.interval.low - 0.5 * few.low).abs() < 1e-9, "{share:?}, {few:?}");
        assert!(share.interval.high > 0.5 * few.high, "{share:?}, {few:?}");
        assert!(share.interval.high < 0.5 * few.high + 0.001, "{share:?}, {few:?}");
    }

    /// Two stages with different allocations to the strata: each injection of a stratum counts the same.
    #[test]
    fn stages_of_a_stratum_are_pooled() {
        let rows = [
            drawn("a", 1.0, 5, 50),
            drawn("b", 1.0, 0, 50),
            drawn("a", 0.5 * 90.0 / 80.0, 40, 80),
            drawn("b", 4.5, 0, 10),
        ];
        let share =
            Summary::from_rows(&rows.concat(), Confidence::P95).scopes[0].share(Outcome::Sdc);
        assert!((share.rate - 0.5 * 45.0 / 130.0).abs() < 1e-12, "{share:?}");
    }

    #[test]
    fn pruned_sites_count_as_masked_without_injections() {
        let pruned = |sites, overwritten, dead| PrunedSites { sites, overwritten, dead };
        let design = SampleDesign {
            pruned: BTreeMap::from([
                ("all".to_owned(), pruned(1000, 300, 100)),
                ("group:valu".to_owned(), pruned(500, 300, 100)),
                ("group:smem".to_owned(), pruned(50, 50, 0)),
            ]),
            ..SampleDesign::simple(Confidence::P95)
        };
        let mut tallies = Tallies::new(design);
        rows().iter().for_each(|row| tallies.add(row));
        let summary = tallies.summary();
        let scope = |name: &str| {
            let found =
                summary.scopes.iter().find(|summarised| summarised.scope.to_string() == name);
            found.unwrap_or_else(|| panic!("no {name}"))
        };
        let (all, sampled) = (scope("all"), Summary::from_rows(&rows(), Confidence::P95));
        let assert_close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        for outcome in Outcome::ALL {
            let (share, sampled) = (all.share(outcome), sampled.scopes[0].share(outcome));
            let pruned = if outcome == Outcome::Masked { 0.4 } else { 0.0 };
            assert_eq!(share.count, sampled.count);
            assert_close(share.rate, pruned + 0.6 * sampled.rate);
            assert_close(share.interval.low, pruned + 0.6 * sampled.interval.low);
            assert_close(share.interval.high, pruned + 0.6 * sampled.interval.high);
        }
        let rates: f64 = Outcome::ALL.into_iter().map(|outcome| all.share(outcome).rate).sum();
        assert_close(rates, 1.0);
        let cause_rate = |name: &str| {
            let found = all.causes.iter().find(|cause| cause.cause.name() == name);
            found.unwrap_or_else(|| panic!("no {name}")).share.rate
        };
        assert_close(cause_rate("overwritten"), 0.3);
        assert_close(cause_rate("dead"), 0.1);
        assert_close(scope("group:valu").share(Outcome::Masked).rate, 0.8 + 0.2 * 0.6);
        // All of its sites are pruned.
        let smem = scope("group:smem").share(Outcome::Masked);
        assert_eq!((smem.count, smem.rate, smem.interval.low), (0, 1.0, 1.0));
    }

    #[test]
    fn every_stratum_is_a_scope() {
        let rows = [drawn("v_add_f32", 1.8, 10, 50), drawn("valu", 0.2, 50, 50)].concat();
        let summary = Summary::from_rows(&rows, Confidence::P99);
        let scope = |name: &str| {
            let found =
                summary.scopes.iter().find(|summarised| summarised.scope.to_string() == name);
            found.unwrap_or_else(|| panic!("no {name}")).share(Outcome::Sdc)
        };
        let share = scope("stratum:v_add_f32");
        assert_eq!((share.count, share.rate), (10, 0.2));
        assert_eq!(share.interval, wilson(10, 50, Confidence::P99));
        assert_eq!(scope("stratum:valu").count, 50);
        // A stratum that is also a group is only shown as a group.
        let shown: Vec<String> =
            summary.shown_scopes().map(|summarised| summarised.scope.to_string()).collect();
        let expected =
            ["all", "group:valu", "kernel:matmul", "label:layer0.mlp", "stratum:v_add_f32"];
        assert_eq!(shown, expected);
    }
}
