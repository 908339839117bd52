//! Injections of the same fault in two campaigns.

use super::Event;
use super::change::{Fourfold, correlation};
use super::scope::ComparedScope;
use crate::{Outcome, Row, Severity};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The outcomes, and critical SDC after them.
const STATES: usize = Outcome::ALL.len() + 1;

/// The number of critical SDC among the states.
const CRITICAL: usize = Outcome::ALL.len();

/// What a row came to: the number of its state.
fn state(row: &Row) -> usize {
    match row.severity {
        Some(Severity::Critical) => CRITICAL,
        _ => row.outcome as usize,
    }
}

/// Whether a state is what is compared.
fn is_event(event: Event, state: usize) -> bool {
    match event {
        Event::CriticalSdc => state == CRITICAL,
        Event::Outcome(Outcome::Sdc) => state == CRITICAL || state == Outcome::Sdc as usize,
        Event::Outcome(outcome) => state == outcome as usize,
    }
}

/// What has to be known of a row of the first campaign when that of the second comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Injected {
    /// A digest of the site and of what was struck.
    fault: u64,
    /// A digest of the source line, which a comment can move.
    line: u64,
    state: usize,
}

impl Injected {
    pub fn of(row: &Row) -> Injected {
        let fault = digest(&(&row.site, &row.kernel, &row.opcode, &row.group, &row.stratum));
        Injected { fault, line: digest(&row.line), state: state(row) }
    }

    /// Whether the row of another campaign injects the same fault.
    pub fn is_of(&self, row: &Row) -> bool {
        self.fault == Injected::of(row).fault
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Pairs of injections of the same fault, counted by what they struck.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    scopes: BTreeMap<ComparedScope, BTreeMap<String, Stratum>>,
}

/// Pairs that were drawn from a stratum.
#[derive(Debug, Default)]
struct Stratum {
    /// What they stand for.
    weight: f64,
    /// By what they came to in the first campaign, and in the second.
    counts: [[u64; STATES]; STATES],
}

impl Stratum {
    fn fourfold(&self, event: Event) -> Fourfold {
        let mut pairs = Fourfold::default();
        for (a, counts) in self.counts.iter().enumerate() {
            for (b, count) in counts.iter().enumerate() {
                *match (is_event(event, a), is_event(event, b)) {
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
    /// One more: what is known of the first campaign's row, and the second's.
    pub fn add(&mut self, first: &Injected, row: &Row) {
        let is_same_line = first.line == Injected::of(row).line;
        let own = ComparedScope::of(row).filter(|scope| is_same_line || !scope.is_line());
        for scope in own.chain([ComparedScope::all()]) {
            let stratum = row.stratum.clone().unwrap_or_default();
            let pairs = self.scopes.entry(scope).or_default().entry(stratum).or_default();
            pairs.weight += row.weight;
            pairs.counts[first.state][state(row)] += 1;
        }
    }

    /// How many there are in a scope.
    pub fn count(&self, scope: &ComparedScope) -> u64 {
        let strata = self.scopes.get(scope).into_iter().flat_map(BTreeMap::values);
        strata.flat_map(|own| own.counts.iter().flatten()).sum()
    }

    /// The pairs of a scope by whether they came to something, and the correlation of its rates.
    pub fn of(&self, scope: &ComparedScope, event: Event) -> (Fourfold, f64) {
        let strata = || self.scopes.get(scope).into_iter().flat_map(BTreeMap::values);
        let mut all = Fourfold::default();
        for own in strata().map(|own| own.fourfold(event)) {
            all.both += own.both;
            all.only_a += own.only_a;
            all.only_b += own.only_b;
            all.neither += own.neither;
        }
        (all, correlation(strata().map(|own| (&own.weight, own.fourfold(event)))))
    }
}
