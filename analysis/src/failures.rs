//! Failure rates in FIT and mean times between failures, from outcome probabilities and raw fault rates.
//!
//! One FIT is one failure in 10^9 device hours.

mod table;

pub use table::{DeviceFailures, FailureLine, FailureScope};

use crate::{Confidence, Interval, Outcome, RowFilter, Share};
use std::collections::BTreeMap;

/// Device hours in which one FIT is one failure.
const FIT_HOURS: f64 = 1e9;

/// Neutrons above 10 MeV per cm^2 and hour at sea level in New York City: JEDEC JESD89A (2006), annex A.
pub const NEW_YORK_FLUX: f64 = 13.0;

/// Raw fault rate of a structure of a device, before masking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawRate {
    /// Faults in 10^9 hours.
    pub fit: f64,
    /// Relative standard deviation of `fit`.
    pub uncertainty: f64,
}

impl RawRate {
    /// The raw rate of `bits` bits with a rate of `fit_per_bit` each.
    pub fn from_fit_per_bit(fit_per_bit: f64, bits: f64, uncertainty: f64) -> RawRate {
        RawRate { fit: fit_per_bit * bits, uncertainty }
    }

    /// The raw rate of `bits` bits with a cross-section of `square_centimetres` each, in a flux in
    /// particles per cm^2 and hour: the product of the three (JEDEC JESD89A).
    pub fn from_cross_section(
        square_centimetres: f64,
        flux: f64,
        bits: f64,
        uncertainty: f64,
    ) -> RawRate {
        RawRate::from_fit_per_bit(square_centimetres * flux * FIT_HOURS, bits, uncertainty)
    }

    /// The raw rate with the interval of a log-normal error, whose logarithm has the variance ln(1 + u^2)
    /// for the relative standard deviation u: E. L. Crow and K. Shimizu, "Lognormal Distributions" (1988),
    /// chapter 1.
    pub fn estimate(&self, confidence: Confidence) -> Estimate {
        let deviation = self.uncertainty.powi(2).ln_1p().sqrt();
        let factor = (confidence.z_score() * deviation).exp();
        Estimate { value: self.fit, low: self.fit / factor, high: self.fit * factor }
    }
}

/// A structure of a device, such as its vector registers, with the outcomes of faults in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// Name of the structure.
    pub name: String,
    /// Raw rate of faults in the structure.
    pub raw: RawRate,
    /// The injections that represent faults in the structure.
    pub rows: RowFilter,
    /// Number of these injections.
    pub injections: u64,
    /// Shares of their outcomes, in the order of [`Outcome::ALL`].
    pub shares: [Share; Outcome::ALL.len()],
}

/// The outcomes that count as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// One outcome.
    Only(Outcome),
    /// SDC or DUE.
    Any,
}

impl FailureKind {
    /// Name in result tables.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Only(outcome) => outcome.name(),
            FailureKind::Any => "failure",
        }
    }
}

impl Structure {
    /// Probability that a fault in the structure is a failure of a kind. SDC and DUE exclude each other and
    /// are thus negatively correlated, so that the interval of their sum, which treats them as independent,
    /// is not too narrow.
    pub fn probability(&self, kind: FailureKind) -> Estimate {
        let estimate = |outcome: Outcome| {
            let Share { rate, interval: Interval { low, high }, .. } =
                self.shares[outcome as usize];
            Estimate { value: rate, low, high }
        };
        match kind {
            FailureKind::Only(outcome) => estimate(outcome),
            FailureKind::Any => {
                let sum = Estimate::sum([estimate(Outcome::Sdc), estimate(Outcome::Due)]);
                Estimate { high: sum.high.min(1.0), ..sum }
            }
        }
    }
}

/// An estimate of a non-negative quantity, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Estimated value.
    pub value: f64,
    /// Lower limit of the interval.
    pub low: f64,
    /// Upper limit of the interval.
    pub high: f64,
}

impl Estimate {
    /// The sum of independent estimates. The distances of the limits from the sum are combined like standard
    /// deviations (MOVER): G. Y. Zou and A. Donner, "Construction of Confidence Limits about Effect
    /// Measures: A General Approach", Statistics in Medicine 27 (2008), 1693-1702.
    fn sum(terms: impl IntoIterator<Item = Estimate>) -> Estimate {
        let (mut value, mut below, mut above) = (0.0, 0.0_f64, 0.0_f64);
        for term in terms {
            value += term.value;
            below = below.hypot(term.value - term.low);
            above = above.hypot(term.high - term.value);
        }
        Estimate { value, low: (value - below).max(0.0), high: value + above }
    }

    /// The sum of estimates with unknown dependence: the distances of the limits are added.
    fn dependent_sum(terms: impl IntoIterator<Item = Estimate>) -> Estimate {
        let (mut value, mut low, mut high) = (0.0, 0.0, 0.0);
        for term in terms {
            value += term.value;
            low += term.low;
            high += term.high;
        }
        Estimate { value, low, high }
    }

    /// The product with an independent positive estimate, computed as a ratio with its reciprocal (MOVER-R):
    /// R. G. Newcombe, "MOVER-R Confidence Intervals for Ratios and Products of Two Independently
    /// Estimated Quantities", Statistical Methods in Medical Research 25 (2016), 1774-1778. The method takes
    /// no logarithms, so that `self` may be 0.
    fn times(self, positive: Estimate) -> Estimate {
        let Estimate { value, low, high } = self;
        // Limits of the reciprocal of `positive`, relative to its value: at most 1, and at least 1.
        let [below_one, above_one] =
            [positive.high, positive.low].map(|limit| positive.value / limit);
        let root = |limit: f64, factor: f64| {
            let square = value * value - limit * (2.0 * value - limit) * factor * (2.0 - factor);
            square.max(0.0).sqrt()
        };
        // The lower limit with a rationalised numerator: the denominator of the published form can be 0.
        let lower = if value > 0.0 {
            low * (2.0 * value - low) / (value + root(low, above_one))
        } else {
            0.0
        };
        let upper = (value + root(high, below_one)) / (below_one * (2.0 - below_one));
        Estimate { value, low: lower, high: upper }.scaled(positive.value)
    }

    /// Multiplies the estimate by an exact factor.
    fn scaled(self, factor: f64) -> Estimate {
        let Estimate { value, low, high } = self;
        Estimate { value: value * factor, low: low * factor, high: high * factor }
    }

    /// Converts a failure rate in FIT to the mean time between failures in hours; infinite for a rate of 0.
    pub fn hours(self) -> Estimate {
        let [value, low, high] = [self.value, self.high, self.low].map(|fit| FIT_HOURS / fit);
        Estimate { value, low, high }
    }
}

/// The rate of failures of a kind due to faults in `structures`, in FIT.
///
/// The rate of a structure is its raw rate times the probability that a fault is a failure, its
/// vulnerability factor: S. S. Mukherjee, C. Weaver, J. Emer, S. K. Reinhardt and T. Austin, "A Systematic
/// Methodology to Compute the Architectural Vulnerability Factors for a High-Performance Microprocessor",
/// MICRO-36 (2003), section 2. The rates of structures are added.
///
/// Raw rates are treated as independent. Structures with equal row filters share one probability. Filters of
/// the same scope (two register classes) select disjoint rows, whose probabilities are independent. Filters
/// of different scopes (a class and a kernel) can select the same rows, so the dependence of their
/// probabilities is unknown.
fn failure_rate<'a>(
    structures: impl IntoIterator<Item = &'a Structure>,
    kind: FailureKind,
    confidence: Confidence,
) -> Estimate {
    let mut by_filter: BTreeMap<&RowFilter, Vec<&Structure>> = BTreeMap::new();
    for structure in structures {
        by_filter.entry(&structure.rows).or_default().push(structure);
    }
    let mut by_scope: BTreeMap<&str, Vec<Estimate>> = BTreeMap::new();
    for (filter, structures) in by_filter {
        let raw =
            Estimate::sum(structures.iter().map(|structure| structure.raw.estimate(confidence)));
        let products = by_scope.entry(filter.scope()).or_default();
        products.extend(structures.first().map(|structure| structure.probability(kind).times(raw)));
    }
    Estimate::dependent_sum(by_scope.into_values().map(Estimate::sum))
}

/// The kind of vulnerability factor that a campaign's failure probability is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VulnerabilityFactor {
    /// Architectural vulnerability factor (AVF): faults are uniform over bits and time, like particle
    /// strikes.
    Architectural,
    /// Vulnerability of executed instructions: faults are uniform over instruction executions.
    PerInstruction,
}

impl VulnerabilityFactor {
    /// Classifies a campaign by its fault as recorded in `run.json`, such as `transient flip_one_bit in lds
    /// of one lane`.
    pub fn of_fault(fault: &str) -> VulnerabilityFactor {
        let target = fault.rsplit_once(" in ").and_then(|(_, target)| target.split(' ').next());
        match target {
            Some("register" | "lds" | "global_memory" | "scratch") => {
                VulnerabilityFactor::Architectural
            }
            _ => VulnerabilityFactor::PerInstruction,
        }
    }

    /// Explanation for readers.
    pub fn note(self) -> &'static str {
        match self {
            VulnerabilityFactor::Architectural => {
                "architectural vulnerability factor (AVF) of the storage that the program allocates: \
                 faults are uniform over allocated bits and over time, measured in executed instructions. \
                 Unallocated bits are excluded; exclude them from `bits`, too"
            }
            VulnerabilityFactor::PerInstruction => {
                "vulnerability of executed instructions, like a program vulnerability factor (PVF), not \
                 an AVF: the time that a value stays unused is not considered. Multiplied by a rate per \
                 bit it overestimates failures; a campaign with `target: register` (or lds, \
                 global_memory, scratch) gives an AVF"
            }
        }
    }
}

#[cfg(test)]
mod tests;
