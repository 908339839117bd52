//! Comparison of two campaigns: changes of their rates, and the cost in instructions.

mod change;
#[cfg(test)]
mod coverage;
mod export;
mod page;
mod pairs;
mod programs;
mod scope;
mod text;

use crate::report::read_table;
use crate::{
    CampaignInfo, ComparedOutput, Outcome, PrunedSites, ResultsError, Row, SampleDesign,
    ScopeSummary, Severity, Share, Tallies,
};
use change::Sample;
pub use change::{Change, PairCounts};
use pairs::{Pairs, RowDigest};
pub use programs::{ComparedMeans, ComparedProgram, ProgramsComparison, RateComponents};
pub use scope::{ComparedOutcome, ComparedScope, ScopeKind};
use std::collections::BTreeMap;
use std::io::{Read, Seek};

/// The comparison of a second campaign with a first one.
#[derive(Debug)]
pub struct Comparison {
    /// First campaign.
    pub(crate) a: CampaignInfo,
    /// Second campaign.
    pub(crate) b: CampaignInfo,
    /// Numbers of injections of both campaigns.
    pub(crate) injections: [InjectionCounts; 2],
    /// `true` if injections are compared pair by pair, since both campaigns inject the same faults.
    pub(crate) is_paired: bool,
    /// Reason for which no test is valid; `None` if tests are valid.
    pub(crate) no_test_reason: Option<&'static str>,
    /// Other differences between the campaigns, and defects of their results.
    pub(crate) warnings: Vec<String>,
    /// Scopes that both campaigns contain, first that of all injections.
    pub(crate) scopes: Vec<ComparedRates>,
}

/// Numbers of injections of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InjectionCounts {
    /// Injections that are compared.
    pub compared: u64,
    /// All injections.
    pub total: u64,
}

/// The compared rates of one scope.
#[derive(Clone, Debug)]
pub struct ComparedRates {
    /// The scope.
    pub scope: ComparedScope,
    /// Numbers of injections in the first and in the second campaign.
    pub totals: [u64; 2],
    /// Rates of the outcomes in the order of [`Outcome::ALL`].
    pub outcomes: [ComparedRate; Outcome::ALL.len()],
    /// Rates of critical SDC, if both campaigns have a judge.
    pub critical: Option<ComparedRate>,
}

/// The rates of one outcome in both campaigns.
#[derive(Clone, Copy, Debug)]
pub struct ComparedRate {
    /// Rate in the first campaign.
    pub a: Share,
    /// Rate in the second campaign.
    pub b: Share,
    /// Second rate minus the first.
    pub change: Change,
    /// Counts of pairs, if injections are compared pair by pair.
    pub pairs: Option<PairCounts>,
    /// p-value of the change; `None` if no test is valid.
    pub p: Option<f64>,
}

impl ComparedRates {
    /// All compared outcomes with their rates.
    pub fn rates(&self) -> impl Iterator<Item = (ComparedOutcome, &ComparedRate)> {
        let outcomes = Outcome::ALL.into_iter().map(ComparedOutcome::Outcome).zip(&self.outcomes);
        outcomes.chain(self.critical.iter().map(|rate| (ComparedOutcome::CriticalSdc, rate)))
    }

    /// Rates of an outcome.
    pub fn rate(&self, outcome: Outcome) -> &ComparedRate {
        &self.outcomes[outcome as usize]
    }
}

/// Errors returned when comparing campaigns.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The results of a campaign are invalid.
    #[error("{folder}: {reason}")]
    Results {
        /// Results folder.
        folder: String,
        /// Reason.
        reason: ResultsError,
    },
    /// The results of a campaign have no rows.
    #[error("{folder}: the table of results has no rows")]
    Empty {
        /// Results folder.
        folder: String,
    },
}

impl Comparison {
    /// Compares campaign `b` with campaign `a`; the tables are their `results.csv`.
    ///
    /// If both campaigns inject the same faults, row by row, the rows of the shorter table are compared
    /// pair by pair.
    ///
    /// # Errors
    /// [`CompareError`] for invalid or empty results.
    pub fn new(
        a: CampaignInfo,
        mut table_a: impl Read + Seek,
        b: CampaignInfo,
        mut table_b: impl Read + Seek,
    ) -> Result<Comparison, CompareError> {
        let mut digests = Vec::new();
        let is_cut_a = read(&a, &mut table_a, |row| digests.push(RowDigest::new(&row)))?;
        let (mut count, mut is_paired) = (0_usize, true);
        let is_cut_b = read(&b, &mut table_b, |row| {
            is_paired &= digests.get(count).is_none_or(|digest| digest.is_same_fault(&row));
            count += 1;
        })?;
        let totals = [digests.len() as u64, count as u64];
        for (info, total) in [&a, &b].into_iter().zip(totals) {
            if total == 0 {
                return Err(CompareError::Empty { folder: info.folder.clone() });
            }
        }
        let pair_count = totals[0].min(totals[1]);
        let injections = totals.map(|total| InjectionCounts {
            compared: if is_paired { pair_count } else { total },
            total,
        });

        // Both intervals have the confidence of the first campaign.
        let mut counters = [&a, &b].map(|info| {
            let confidence = a.design.confidence;
            Counter::new(SampleDesign { confidence, ..info.design.clone() })
        });
        let mut pairs = Pairs::default();
        read(&a, &mut table_a, |row| counters[0].add(&row, injections[0].compared))?;
        let mut digests = digests.iter().take(if is_paired { digests.len() } else { 0 });
        read(&b, &mut table_b, |row| {
            counters[1].add(&row, injections[1].compared);
            if let Some(digest) = digests.next() {
                pairs.add(digest, &row);
            }
        })?;
        let no_test_reason = no_test_reason(&counters);
        let [rates_a, rates_b] = counters.map(Counter::rates);
        let common = rates_a.iter().filter_map(|(scope, rates)| Some((rates, rates_b.get(scope)?)));
        let mut scopes: Vec<ComparedRates> =
            common.map(|(a, b)| compared_rates(a, b, &pairs)).collect();
        if no_test_reason.is_none() {
            scopes.iter_mut().for_each(ComparedRates::test);
        }
        let warnings =
            warnings(Side { info: &a, is_cut: is_cut_a }, Side { info: &b, is_cut: is_cut_b });
        Ok(Comparison { a, b, injections, is_paired, no_test_reason, warnings, scopes })
    }

    /// Rates of all injections.
    pub fn overall(&self) -> Option<&ComparedRates> {
        self.scopes.first()
    }

    /// Rates of all scopes of a kind.
    pub fn of_kind(&self, kind: ScopeKind) -> impl Iterator<Item = &ComparedRates> {
        self.scopes.iter().filter(move |compared| compared.scope.kind == kind)
    }

    /// Other differences between the campaigns, and defects of their results.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Ratio of the golden runs' wave instructions, second campaign to first; `None` if they were not
    /// counted.
    pub fn instruction_ratio(&self) -> Option<f64> {
        let (a, b) = self.a.instructions.zip(self.b.instructions)?;
        (a > 0).then(|| b as f64 / a as f64)
    }
}

/// Passes all rows of a campaign to `take`. Returns `true` if the last line was cut off.
fn read(
    info: &CampaignInfo,
    table: &mut (impl Read + Seek),
    take: impl FnMut(Row),
) -> Result<bool, CompareError> {
    read_table(table, take)
        .map_err(|reason| CompareError::Results { folder: info.folder.clone(), reason })
}

/// Counts the rows of one campaign.
struct Counter {
    design: SampleDesign,
    tallies: Tallies<ComparedScope>,
    count: u64,
    /// `true` if all rows so far have the weight 1.
    is_unweighted: bool,
}

impl Counter {
    fn new(design: SampleDesign) -> Counter {
        let tallies = Tallies::with_keys(design.clone(), ComparedScope::all());
        Counter { design, tallies, count: 0, is_unweighted: true }
    }

    /// Counts a row unless `limit` rows have been counted.
    fn add(&mut self, row: &Row, limit: u64) {
        if self.count < limit {
            self.is_unweighted &= row.weight == 1.0;
            self.tallies.add_to(ComparedScope::containing(row), row);
            self.count += 1;
        }
    }

    fn rates(self) -> BTreeMap<ComparedScope, ScopeSummary<ComparedScope>> {
        let pruned = |scope: &ComparedScope| {
            let pruned = scope.summary_scope().and_then(|scope| self.design.pruned_in(&scope));
            pruned.unwrap_or_default()
        };
        self.tallies.summaries(pruned).map(|rates| (rates.scope.clone(), rates)).collect()
    }
}

/// The reason for which the sample designs permit no test; `None` if they do.
fn no_test_reason(counters: &[Counter; 2]) -> Option<&'static str> {
    let has_pruned = |design: &SampleDesign| {
        design.pruned.values().any(|sites: &PrunedSites| sites.rate() > 0.0)
    };
    if counters.iter().any(|counter| !counter.is_unweighted) {
        Some("rows have different weights")
    } else if counters.iter().any(|counter| has_pruned(&counter.design)) {
        Some("sites known to be masked were not sampled")
    } else if counters.iter().any(|counter| counter.design.is_finite) {
        Some("sites were drawn without replacement")
    } else if counters.iter().any(|counter| counter.design.z_score.is_some()) {
        Some("a campaign stopped depending on its rates")
    } else {
        None
    }
}

impl ComparedRates {
    /// Sets the p-values of all rates.
    fn test(&mut self) {
        let [total_a, total_b] = self.totals;
        for rate in self.outcomes.iter_mut().chain(&mut self.critical) {
            rate.p = Some(match rate.pairs {
                Some(pairs) => pairs.mcnemar(),
                None => change::fisher(
                    Sample { hits: rate.a.count, total: total_a },
                    Sample { hits: rate.b.count, total: total_b },
                ),
            });
        }
    }
}

/// Compares the rates of a scope, without p-values.
fn compared_rates(
    a: &ScopeSummary<ComparedScope>,
    b: &ScopeSummary<ComparedScope>,
    pairs: &Pairs,
) -> ComparedRates {
    let scope = &a.scope;
    let totals = [a.total, b.total];
    // Rows of a scope can lack a partner, for instance if a line moved.
    let is_paired = totals == [pairs.count(scope); 2];
    let compare = |outcome: ComparedOutcome, share_a: Share, share_b: Share| {
        let (pairs, correlation) = if is_paired {
            (Some(pairs.counts(scope, outcome)), pairs.correlation(scope, outcome))
        } else {
            (None, 0.0)
        };
        let change = Change::between(&share_a, &share_b, correlation);
        ComparedRate { a: share_a, b: share_b, change, pairs, p: None }
    };
    let critical = a.severity(Severity::Critical).zip(b.severity(Severity::Critical));
    ComparedRates {
        scope: scope.clone(),
        totals,
        outcomes: Outcome::ALL.map(|outcome| {
            compare(ComparedOutcome::Outcome(outcome), a.share(outcome), b.share(outcome))
        }),
        critical: critical.map(|(a, b)| compare(ComparedOutcome::CriticalSdc, a, b)),
    }
}

/// Facts that determine the meaning of a rate.
const MEANING: [&str; 3] = ["Target", "Fault", "Struck"];

/// One of the compared campaigns.
struct Side<'a> {
    info: &'a CampaignInfo,
    /// `true` if the last line of the results was cut off.
    is_cut: bool,
}

/// Returns the compared outputs without error checks of the program, which a protected version has in
/// addition; `None` if they are not recorded.
fn compared_results(info: &CampaignInfo) -> Option<Vec<&ComparedOutput>> {
    let outputs = info.compared.as_ref()?;
    Some(outputs.iter().filter(|output| !output.is_detector).collect())
}

/// Describes the comparison of outputs.
fn comparison_text(outputs: Option<Vec<&ComparedOutput>>) -> String {
    let Some(outputs) = outputs else { return "not recorded".to_owned() };
    let texts = outputs.iter().map(|output| format!("{} {}", output.name, output.comparison));
    texts.collect::<Vec<_>>().join("; ")
}

/// Differences and defects that a reader must know before comparing.
fn warnings(a: Side<'_>, b: Side<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for Side { info, is_cut } in [&a, &b] {
        if let Some(unfinished) = &info.unfinished {
            warnings.push(format!("{}: {unfinished}", info.folder));
        }
        if *is_cut {
            warnings.push(format!("{}: the last line of the table was cut off", info.folder));
        }
    }
    let (a, b) = (a.info, b.info);
    for name in MEANING {
        let [a, b] = [a, b].map(|info| info.fact(name).unwrap_or("not recorded"));
        if a != b {
            let name = name.to_lowercase();
            warnings.push(format!("the campaigns differ in `{name}`: {a} and {b}"));
        }
    }
    let [compared_a, compared_b] = [a, b].map(compared_results);
    if compared_a != compared_b {
        let (a, b) = (comparison_text(compared_a), comparison_text(compared_b));
        warnings.push(format!("outputs were compared differently: {a} and {b}"));
    }
    let (a, b) = (a.design.confidence, b.design.confidence);
    if a != b {
        warnings.push(format!("intervals have confidence {a}; the second campaign used {b}"));
    }
    warnings
}
