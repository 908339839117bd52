//! Two campaigns beside each other: by how much their rates differ, and what it costs.

mod change;
#[cfg(test)]
mod coverage;
mod export;
mod page;
mod pairs;
mod scope;
mod text;

use crate::report::read_table;
use crate::{
    About, Known, Outcome, ResultsError, Row, SampleDesign, ScopeSummary, Severity, Share, Tallies,
};
pub use change::{Change, Fourfold};
use pairs::{Injected, Pairs};
pub use scope::{By, ComparedScope};
use std::collections::BTreeMap;
use std::io::{Read, Seek};

/// Two campaigns beside each other.
#[derive(Debug)]
pub struct Comparison {
    /// The first.
    pub(crate) a: About,
    /// The second.
    pub(crate) b: About,
    /// Injections of each that are compared, and that there are.
    pub(crate) counted: [Counted; 2],
    /// Whether injections are compared pair by pair, as both campaigns inject the same faults.
    pub(crate) is_paired: bool,
    /// Why no test is made; nothing where one is.
    pub(crate) untested: Option<&'static str>,
    /// What else differs between the campaigns, and what of them is not as it should be.
    pub(crate) warnings: Vec<String>,
    /// What both have, first all injections.
    pub(crate) scopes: Vec<ComparedRates>,
}

/// Injections of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Those that are compared.
    pub compared: u64,
    /// All.
    pub total: u64,
}

/// How the rates of some injections differ.
#[derive(Clone, Debug)]
pub struct ComparedRates {
    /// Which injections.
    pub scope: ComparedScope,
    /// How many there are in the first campaign, and in the second.
    pub totals: [u64; 2],
    /// The outcomes in the order of [`Outcome::ALL`].
    pub outcomes: [ComparedRate; Outcome::ALL.len()],
    /// SDC that is critical, where both campaigns have somebody who judges.
    pub critical: Option<ComparedRate>,
}

/// What injections can come to, as it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An outcome.
    Outcome(Outcome),
    /// SDC that is critical.
    CriticalSdc,
}

impl Event {
    /// The name in tables for programs.
    pub fn name(self) -> &'static str {
        match self {
            Event::Outcome(outcome) => outcome.name(),
            Event::CriticalSdc => "sdc_critical",
        }
    }

    /// The outcome that it is, or is a part of.
    pub fn outcome(self) -> Outcome {
        match self {
            Event::Outcome(outcome) => outcome,
            Event::CriticalSdc => Outcome::Sdc,
        }
    }
}

/// How a rate differs.
#[derive(Clone, Copy, Debug)]
pub struct ComparedRate {
    /// In the first campaign.
    pub a: Share,
    /// In the second.
    pub b: Share,
    /// The second less the first.
    pub change: Change,
    /// The pairs, where injections are compared pair by pair.
    pub pairs: Option<Fourfold>,
    /// The probability of such a difference, or of a less likely one, where there is none in truth;
    /// nothing where the test is not valid.
    pub p: Option<f64>,
}

impl ComparedRates {
    /// How the rates of all that is compared differ.
    pub fn rates(&self) -> impl Iterator<Item = (Event, &ComparedRate)> {
        let outcomes = Outcome::ALL.into_iter().map(Event::Outcome).zip(&self.outcomes);
        outcomes.chain(self.critical.iter().map(|rate| (Event::CriticalSdc, rate)))
    }

    /// How the rate of one outcome differs.
    pub fn rate(&self, outcome: Outcome) -> &ComparedRate {
        &self.outcomes[outcome as usize]
    }
}

/// Campaigns that cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A table that cannot be read.
    #[error("{folder}: {reason}")]
    Table {
        /// The folder.
        folder: String,
        /// Why not.
        reason: ResultsError,
    },
    /// A campaign without results.
    #[error("{folder}: the table of results has no rows; there is nothing to compare")]
    Empty {
        /// The folder.
        folder: String,
    },
}

impl Comparison {
    /// Compares the second of two campaigns with the first; each is what is known of it, and its table.
    ///
    /// Injections are compared pair by pair where row after row both campaigns inject the same fault,
    /// as far as both go.
    ///
    /// # Errors
    /// [`CompareError`].
    pub fn new(
        (a, mut table_a): (About, impl Read + Seek),
        (b, mut table_b): (About, impl Read + Seek),
    ) -> Result<Comparison, CompareError> {
        let mut first = Vec::new();
        let mut cut = [false; 2];
        cut[0] = read(&a, &mut table_a, |row| first.push(Injected::of(&row)))?;
        let (mut count, mut is_paired) = (0_usize, true);
        cut[1] = read(&b, &mut table_b, |row| {
            is_paired &= first.get(count).is_none_or(|own| own.is_of(&row));
            count += 1;
        })?;
        let totals = [first.len() as u64, count as u64];
        for (about, total) in [(&a, totals[0]), (&b, totals[1])] {
            if total == 0 {
                return Err(CompareError::Empty { folder: about.folder.clone() });
            }
        }
        let compared = totals.map(|total| if is_paired { totals[0].min(totals[1]) } else { total });

        // Both intervals are of one confidence.
        let designs = [&a, &b]
            .map(|about| SampleDesign { confidence: a.design.confidence, ..about.design.clone() });
        let mut counters = designs.each_ref().map(Counter::new);
        let mut pairs = Pairs::default();
        read(&a, &mut table_a, |row| counters[0].add(&row, compared[0]))?;
        let mut next = first.iter().take(if is_paired { first.len() } else { 0 });
        read(&b, &mut table_b, |row| {
            counters[1].add(&row, compared[1]);
            if let Some(own) = next.next() {
                pairs.add(own, &row);
            }
        })?;
        let counted = [0, 1].map(|own| Counted { compared: compared[own], total: totals[own] });
        let untested = untested(&counters);
        let [rates_a, rates_b] = counters.map(Counter::rates);
        let both = rates_a.iter().filter_map(|(scope, own)| Some((own, rates_b.get(scope)?)));
        let scopes = both.map(|(a, b)| compared_rates(a, b, &pairs, untested.is_none())).collect();
        let warnings = warnings([(&a, cut[0]), (&b, cut[1])]);
        Ok(Comparison { a, b, counted, is_paired, untested, warnings, scopes })
    }

    /// How all injections differ.
    pub fn all(&self) -> Option<&ComparedRates> {
        self.scopes.first()
    }

    /// How injections differ that have something in common.
    pub fn by(&self, by: By) -> impl Iterator<Item = &ComparedRates> {
        self.scopes.iter().filter(move |own| own.scope.by == by)
    }

    /// What else differs between the campaigns, and what of them is not as it should be.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// How many times as many wave instructions the second program executes; nothing where they were not
    /// counted.
    pub fn cost(&self) -> Option<f64> {
        let (a, b) = self.a.instructions.zip(self.b.instructions)?;
        (a > 0).then(|| b as f64 / a as f64)
    }
}

fn read(
    about: &About,
    table: &mut (impl Read + Seek),
    take: impl FnMut(Row),
) -> Result<bool, CompareError> {
    let folder = || about.folder.clone();
    read_table(table, take).map_err(|reason| CompareError::Table { folder: folder(), reason })
}

/// Counts the rows of a campaign.
struct Counter {
    design: SampleDesign,
    tallies: Tallies<ComparedScope>,
    count: u64,
    is_even: bool,
}

impl Counter {
    fn new(design: &SampleDesign) -> Counter {
        let tallies = Tallies::of_keys(design.clone(), ComparedScope::all());
        Counter { design: design.clone(), tallies, count: 0, is_even: true }
    }

    /// Counts a row if it is one of the first so many.
    fn add(&mut self, row: &Row, compared: u64) {
        if self.count < compared {
            self.is_even &= row.weight == 1.0;
            self.tallies.add_to(ComparedScope::of(row), row);
            self.count += 1;
        }
    }

    fn rates(self) -> BTreeMap<ComparedScope, ScopeSummary<ComparedScope>> {
        let known = |scope: &ComparedScope| {
            let known = scope.summarised().and_then(|own| self.design.known_of(&own));
            known.unwrap_or_default()
        };
        self.tallies.summaries(known).map(|own: ScopeSummary<_>| (own.scope.clone(), own)).collect()
    }
}

/// Why tests of how the rows were drawn are not valid; nothing where they are.
fn untested(counters: &[Counter; 2]) -> Option<&'static str> {
    let any = |is: &dyn Fn(&Counter) -> bool| counters.iter().any(is);
    let known = |own: &Counter| own.design.known.values().any(|known: &Known| known.rate() > 0.0);
    if any(&|own| !own.is_even) {
        Some("rows stand for differently many places")
    } else if any(&known) {
        Some("what is known to be masked was not sampled")
    } else if any(&|own| own.design.is_finite) {
        Some("no place was drawn twice")
    } else if any(&|own| own.design.deviations.is_some()) {
        Some("a campaign looked at its rates to decide when to end")
    } else {
        None
    }
}

fn compared_rates(
    a: &ScopeSummary<ComparedScope>,
    b: &ScopeSummary<ComparedScope>,
    pairs: &Pairs,
    is_tested: bool,
) -> ComparedRates {
    let totals = [a.total, b.total];
    // A scope can have rows without a partner, as of lines that have moved.
    let is_paired = totals == [pairs.count(&a.scope); 2];
    let compared = |event: Event, own: Share, other: Share| {
        let paired = is_paired.then(|| pairs.of(&a.scope, event));
        let change = Change::between(&own, &other, paired.map_or(0.0, |(_, own)| own));
        let p = is_tested.then(|| match paired {
            Some((fourfold, _)) => fourfold.mcnemar(),
            None => change::fisher([own.count, a.total], [other.count, b.total]),
        });
        ComparedRate { a: own, b: other, change, pairs: paired.map(|(own, _)| own), p }
    };
    let of_outcome =
        |outcome| compared(Event::Outcome(outcome), a.share(outcome), b.share(outcome));
    let critical = a.severity(Severity::Critical).zip(b.severity(Severity::Critical));
    ComparedRates {
        scope: a.scope.clone(),
        totals,
        outcomes: Outcome::ALL.map(of_outcome),
        critical: critical.map(|(own, other)| compared(Event::CriticalSdc, own, other)),
    }
}

/// Facts that decide what a rate means.
const MEANING: [&str; 3] = ["Target", "Fault", "Struck"];

/// What a reader has to know before comparing.
fn warnings(campaigns: [(&About, bool); 2]) -> Vec<String> {
    let [(a, _), (b, _)] = campaigns;
    let mut warnings = Vec::new();
    for (about, is_cut) in campaigns {
        if let Some(unfinished) = &about.unfinished {
            warnings.push(format!("{}: {unfinished}", about.folder));
        }
        if is_cut {
            warnings.push(format!("{}: the last line of the table was cut off", about.folder));
        }
    }
    for name in MEANING {
        let [own, other] = [a, b].map(|about| about.fact(name).unwrap_or("not said"));
        if own != other {
            let what = name.to_lowercase();
            warnings.push(format!("they differ in `{what}`: {own}, and {other}"));
        }
    }
    let compared = |about: &About| match &about.compared {
        None => "not recorded".to_owned(),
        Some(all) => {
            let texts: Vec<_> =
                all.iter().map(|own| format!("{} {}", own.name, own.comparison)).collect();
            texts.join("; ")
        }
    };
    if a.compared != b.compared {
        let (own, other) = (compared(a), compared(b));
        warnings.push(format!("outputs were compared differently: {own}, and {other}"));
    }
    if a.design.confidence != b.design.confidence {
        let (own, other) = (a.design.confidence, b.design.confidence);
        warnings.push(format!("intervals are of {own}, the second campaign's were of {other}"));
    }
    warnings
}
