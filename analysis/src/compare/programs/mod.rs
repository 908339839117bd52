//! The comparison of two sets of campaigns with the same names, such as a benchmark suite on two GPUs.

mod components;
mod page;
mod text;

pub use components::RateComponents;

use super::{Change, ComparedRates, Comparison, ScopeKind};
use crate::agreement::{Correlation, RankedRate};
use crate::{Confidence, Outcome, ResultsError, Share, wilson};
use std::collections::BTreeMap;
use std::io::Write;

/// Outcomes that are compared across programs.
pub(crate) const COMPARED: [Outcome; 2] = [Outcome::Sdc, Outcome::Due];

/// A program, with its campaign of the second set compared with that of the first.
#[derive(Debug)]
pub struct ComparedProgram {
    /// Name of the program.
    pub name: String,
    /// The comparison.
    pub comparison: Comparison,
}

/// The comparison of two sets of campaigns.
#[derive(Debug)]
pub struct ProgramsComparison {
    /// The programs of both sets, by name.
    pub(crate) programs: Vec<ComparedProgram>,
    /// Comparisons of the outcomes, in the order of [`COMPARED`].
    pub(crate) outcomes: Vec<ComparedMeans>,
    /// Rates by group of instructions, over all programs; empty if rows have weights.
    pub(crate) groups: Vec<ComparedGroup>,
    /// Facts that a reader must know before comparing.
    pub(crate) warnings: Vec<String>,
}

/// The rates of an outcome over all programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedMeans {
    /// The outcome.
    pub outcome: Outcome,
    /// Mean of the programs' rates in both sets.
    pub means: [f64; 2],
    /// Why the means differ.
    pub components: RateComponents,
    /// Rank correlation of the programs; `None` for fewer than three programs or constant rates.
    pub correlation: Option<Correlation>,
}

/// The injections into a group of instructions, in all programs.
#[derive(Clone, Debug)]
pub(crate) struct ComparedGroup {
    /// Name of the group.
    pub name: String,
    /// Injections in both sets.
    pub totals: [u64; 2],
    /// Parts of all injections.
    pub parts: [f64; 2],
    /// Rates of the outcomes in both sets and their difference, in the order of [`COMPARED`].
    pub rates: Vec<GroupRate>,
}

/// The rates of an outcome in a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupRate {
    pub a: Share,
    pub b: Share,
    pub change: Change,
}

impl ProgramsComparison {
    /// Compares programs, of which there is at least one.
    pub fn new(programs: Vec<ComparedProgram>) -> ProgramsComparison {
        let overall: Vec<&ComparedRates> =
            programs.iter().filter_map(|program| program.comparison.overall()).collect();
        let outcomes = COMPARED.map(|outcome| {
            let rates = |side: fn(&super::ComparedRate) -> Share| -> Vec<f64> {
                overall.iter().map(|rates| side(rates.rate(outcome)).rate).collect()
            };
            let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len().max(1) as f64;
            let (a, b) = (rates(|rate| rate.a), rates(|rate| rate.b));
            let ranked = |rates: &[f64], side: usize| -> Vec<RankedRate> {
                let totals = overall.iter().map(|rates| rates.totals[side]);
                rates
                    .iter()
                    .zip(totals)
                    .map(|(rate, total)| RankedRate::measured(*rate, total))
                    .collect()
            };
            let components =
                programs.iter().map(|program| RateComponents::of(&program.comparison, outcome));
            ComparedMeans {
                outcome,
                means: [mean(&a), mean(&b)],
                components: RateComponents::mean(components),
                correlation: Correlation::new(&ranked(&a, 0), &ranked(&b, 1)),
            }
        });
        let is_weighted =
            programs.iter().any(|program| program.comparison.no_test_reason.is_some());
        let groups = if is_weighted { Vec::new() } else { groups(&programs) };
        let mut warnings: Vec<String> = Vec::new();
        for program in &programs {
            for warning in program.comparison.warnings() {
                if !warnings.contains(warning) {
                    warnings.push(warning.clone());
                }
            }
        }
        ProgramsComparison { programs, outcomes: outcomes.into(), groups, warnings }
    }

    /// Facts that a reader must know before comparing.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Comparisons of the outcomes.
    pub fn outcomes(&self) -> &[ComparedMeans] {
        &self.outcomes
    }

    /// Writes the tables of all programs, as [`Comparison::write_csv`] does for one.
    ///
    /// # Errors
    /// [`ResultsError::Csv`] if writing fails.
    pub fn write_csv(&self, output: impl Write) -> Result<(), ResultsError> {
        super::export::write_csv(self.programs.iter().map(|program| &program.comparison), output)
    }
}

/// Rates by group, over all programs, largest groups first.
fn groups(programs: &[ComparedProgram]) -> Vec<ComparedGroup> {
    /// Injections, and those with each outcome.
    #[derive(Default)]
    struct Counts {
        totals: [u64; 2],
        hits: [[u64; 2]; COMPARED.len()],
    }
    let mut all: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut sums = [0u64; 2];
    for program in programs {
        let totals = program.comparison.overall().map_or([0; 2], |overall| overall.totals);
        (0..2).for_each(|side| sums[side] += totals[side]);
        for group in program.comparison.of_kind(ScopeKind::Group) {
            let counts = all.entry(&group.scope.value).or_default();
            (0..2).for_each(|side| counts.totals[side] += group.totals[side]);
            for (outcome, hits) in COMPARED.into_iter().zip(&mut counts.hits) {
                let rate = group.rate(outcome);
                hits[0] += rate.a.count;
                hits[1] += rate.b.count;
            }
        }
    }
    let design = programs.first().map(|program| &program.comparison.a.design);
    let confidence = design.map_or(Confidence::P95, |design| design.confidence);
    let share = |count: u64, total: u64| {
        let rate = if total > 0 { count as f64 / total as f64 } else { 0.0 };
        Share { count, rate, interval: wilson(count, total, confidence) }
    };
    let mut groups: Vec<ComparedGroup> = all
        .into_iter()
        .map(|(name, Counts { totals, hits })| ComparedGroup {
            name: name.to_owned(),
            totals,
            parts: [0, 1].map(|side| totals[side] as f64 / sums[side].max(1) as f64),
            rates: hits
                .iter()
                .map(|hits| {
                    let [a, b] = [0, 1].map(|side| share(hits[side], totals[side]));
                    GroupRate { a, b, change: Change::between(&a, &b, 0.0) }
                })
                .collect(),
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.totals[0] + group.totals[1]));
    groups
}
