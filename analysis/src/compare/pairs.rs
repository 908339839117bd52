//! Pairs of injections of the same fault in two campaigns.

use super::change::{PairCounts, StratumPairs, correlation};
use super::scope::{ComparedOutcome, ComparedScope, ScopeKind};
use crate::{Outcome, Row, Severity};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Number of result classes: the outcomes, then critical SDC.
const CLASSES: usize = Outcome::ALL.len() + 1;

/// Result class of critical SDC.
const CRITICAL: usize = Outcome::ALL.len();

/// The result class of a row.
fn class(row: &Row) -> usize {
    match row.severity {
        Some(Severity::Critical) => CRITICAL,
        _ => row.outcome as usize,
    }
}

/// Returns `true` if rows of a result class count for an outcome.
fn counts_for(outcome: ComparedOutcome, class: usize) -> bool {
    match outcome {
        ComparedOutcome::CriticalSdc => class == CRITICAL,
        ComparedOutcome::Outcome(Outcome::Sdc) => {
            class == CRITICAL || class == Outcome::Sdc as usize
        }
        ComparedOutcome::Outcome(outcome) => class == outcome as usize,
    }
}

/// The digest of a row of the first campaign, to be paired with a row of the second.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowDigest {
    /// Hash of the fault site and the instruction's properties.
    fault: u64,
    /// Hash of the source line, which may differ between versions of a program.
    line: u64,
    class: usize,
}

impl RowDigest {
    pub fn new(row: &Row) -> RowDigest {
        let fault = hash(&(&row.site, &row.kernel, &row.opcode, &row.group, &row.stratum));
        RowDigest { fault, line: hash(&row.line), class: class(row) }
    }

    /// Returns `true` if a row of the other campaign injects the same fault.
    pub fn is_same_fault(&self, row: &Row) -> bool {
        self.fault == RowDigest::new(row).fault
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Pairs of injections of the same fault, counted by scope and stratum.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    scopes: BTreeMap<ComparedScope, BTreeMap<String, StratumCounts>>,
}

/// Pairs drawn from one stratum.
#[derive(Debug, Default)]
struct StratumCounts {
    /// Sum of the pairs' sampling weights.
    weight: f64,
    /// Counts by result class in the first and in the second campaign.
    counts: [[u64; CLASSES]; CLASSES],
}

impl StratumCounts {
    fn pair_counts(&self, outcome: ComparedOutcome) -> PairCounts {
        let mut pairs = PairCounts::default();
        for (a, counts) in self.counts.iter().enumerate() {
            for (b, count) in counts.iter().enumerate() {
                *match (counts_for(outcome, a), counts_for(outcome, b)) {
                    (true, true) => &mut pairs.both,
                    (true, false) => &mut pairs.only_a,
                    (false, true) => &mut pairs.only_b,
                    (false, false) => &mut pairs.neither,
                } += count;
            }
        }
        pairs
    }
}

impl Pairs {
    /// Adds the pair of a row of the first campaign and a row of the second.
    pub fn add(&mut self, first: &RowDigest, second: &Row) {
        // A pair whose line moved belongs to neither line.
        let is_same_line = first.line == RowDigest::new(second).line;
        let scopes = ComparedScope::containing(second)
            .filter(|scope| is_same_line || scope.kind != ScopeKind::Line);
        for scope in scopes.chain([ComparedScope::all()]) {
            let stratum = second.stratum.clone().unwrap_or_default();
            let pairs = self.scopes.entry(scope).or_default().entry(stratum).or_default();
            pairs.weight += second.weight;
            pairs.counts[first.class][class(second)] += 1;
        }
    }

    fn strata(&self, scope: &ComparedScope) -> impl Iterator<Item = &StratumCounts> {
        self.scopes.get(scope).into_iter().flat_map(BTreeMap::values)
    }

    /// Number of pairs in a scope.
    pub fn count(&self, scope: &ComparedScope) -> u64 {
        self.strata(scope).flat_map(|stratum| stratum.counts.iter().flatten()).sum()
    }

    /// Counts of the pairs of a scope for an outcome, over all strata.
    pub fn counts(&self, scope: &ComparedScope, outcome: ComparedOutcome) -> PairCounts {
        let mut sum = PairCounts::default();
        for counts in self.strata(scope).map(|stratum| stratum.pair_counts(outcome)) {
            sum.both += counts.both;
            sum.only_a += counts.only_a;
            sum.only_b += counts.only_b;
            sum.neither += counts.neither;
        }
        sum
    }

    /// Correlation of the two campaigns' rates of an outcome in a scope.
    pub fn correlation(&self, scope: &ComparedScope, outcome: ComparedOutcome) -> f64 {
        correlation(self.strata(scope).map(|stratum| StratumPairs {
            weight: stratum.weight,
            counts: stratum.pair_counts(outcome),
        }))
    }
}
