//! From probabilities to failures: rates in FIT, and the mean time between failures.
//!
//! One FIT is a failure in 10^9 hours of a device.

mod table;

pub use table::{DeviceFailures, FailureLine, FailurePart};

use crate::{Confidence, Interval, Outcome, RowsOf, Share};
use std::collections::BTreeMap;

/// Hours of a device in which one FIT is one failure.
const FIT_HOURS: f64 = 1e9;

/// Neutrons above 10 MeV per cm^2 and hour at sea level in New York City: JEDEC JESD89A (2006), annex A.
pub const NEW_YORK_FLUX: f64 = 13.0;

/// How often faults happen in a structure of a device, whatever comes of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawRate {
    /// Faults in 10^9 hours.
    pub fit: f64,
    /// One standard deviation of it, relative to it.
    pub uncertainty: f64,
}

impl RawRate {
    /// By the rate of a bit in FIT, and how many bits there are.
    pub fn of_bits(fit_per_bit: f64, bits: f64, uncertainty: f64) -> RawRate {
        RawRate { fit: fit_per_bit * bits, uncertainty }
    }

    /// By the cross-section of a bit in cm^2, the flux in particles per cm^2 and hour, and how many bits
    /// there are: the rate is their product (JEDEC JESD89A).
    pub fn of_cross_section(
        square_centimetres: f64,
        flux: f64,
        bits: f64,
        uncertainty: f64,
    ) -> RawRate {
        RawRate::of_bits(square_centimetres * flux * FIT_HOURS, bits, uncertainty)
    }

    /// With the interval of a log-normal error, whose logarithm has the variance ln(1 + u^2) where u is
    /// the relative standard deviation: E. L. Crow and K. Shimizu, "Lognormal Distributions" (1988),
    /// chapter 1.
    pub fn estimate(&self, confidence: Confidence) -> Estimate {
        let deviation = self.uncertainty.powi(2).ln_1p().sqrt();
        let factor = (confidence.deviations() * deviation).exp();
        Estimate { value: self.fit, low: self.fit / factor, high: self.fit * factor }
    }
}

/// A part of a device in which faults happen, and what comes of a fault there.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// Its name.
    pub name: String,
    /// How often faults happen there.
    pub raw: RawRate,
    /// The injections that say what comes of them.
    pub rows: RowsOf,
    /// How many they are.
    pub injections: u64,
    /// The outcomes of those, in the order of [`Outcome::ALL`].
    pub shares: [Share; Outcome::ALL.len()],
}

/// What a fault comes to that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// One outcome.
    Only(Outcome),
    /// SDC or DUE: the program did not do what it was to do.
    Any,
}

impl FailureKind {
    /// Its name in tables for programs.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Only(outcome) => outcome.name(),
            FailureKind::Any => "failure",
        }
    }
}

impl Structure {
    /// How probable it is that a fault comes to this. A run ends in SDC or in DUE and never in both, so
    /// the two vary against each other, and the interval of both, which takes them as independent, is
    /// not too narrow.
    pub fn probability(&self, kind: FailureKind) -> Estimate {
        let of = |outcome: Outcome| {
            let Share { rate, interval: Interval { low, high }, .. } =
                self.shares[outcome as usize];
            Estimate { value: rate, low, high }
        };
        match kind {
            FailureKind::Only(outcome) => of(outcome),
            FailureKind::Any => {
                let sum = Estimate::sum([of(Outcome::Sdc), of(Outcome::Due)]);
                Estimate { high: sum.high.min(1.0), ..sum }
            }
        }
    }
}

/// A number that is 0 or more, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// The sum of independent numbers. Its limits are as far from it as theirs are from them, put together
    /// as variances are (MOVER): G. Y. Zou and A. Donner, "Construction of Confidence Limits about Effect
    /// Measures: A General Approach", Statistics in Medicine 27 (2008), 1693-1702.
    fn sum(all: impl IntoIterator<Item = Estimate>) -> Estimate {
        let (mut value, mut below, mut above) = (0.0, 0.0_f64, 0.0_f64);
        for own in all {
            value += own.value;
            below = below.hypot(own.value - own.low);
            above = above.hypot(own.high - own.value);
        }
        Estimate { value, low: (value - below).max(0.0), high: value + above }
    }

    /// The sum of numbers that may depend on each other in any way: limits are as far from it as all of
    /// theirs together.
    fn dependent_sum(all: impl IntoIterator<Item = Estimate>) -> Estimate {
        let (mut value, mut low, mut high) = (0.0, 0.0, 0.0);
        for own in all {
            value += own.value;
            low += own.low;
            high += own.high;
        }
        Estimate { value, low, high }
    }

    /// A number times an independent one above 0, `positive`, which is a ratio by its reciprocal (MOVER-R):
    /// R. G. Newcombe, "MOVER-R Confidence Intervals for Ratios and Products of Two Independently
    /// Estimated Quantities", Statistical Methods in Medical Research 25 (2016), 1774-1778. It needs no
    /// logarithm, so the number may be 0.
    fn times(self, positive: Estimate) -> Estimate {
        let Estimate { value, low, high } = self;
        // What the reciprocal's limits are of the reciprocal: 1 or less, and 1 or more.
        let [less, more] = [positive.high, positive.low].map(|limit| positive.value / limit);
        let root = |limit: f64, factor: f64| {
            let square = value * value - limit * (2.0 * value - limit) * factor * (2.0 - factor);
            square.max(0.0).sqrt()
        };
        // The lower root with its numerator made rational: what it was divided by can be 0.
        let lower = match value > 0.0 {
            true => low * (2.0 * value - low) / (value + root(low, more)),
            false => 0.0,
        };
        let upper = (value + root(high, less)) / (less * (2.0 - less));
        Estimate { value, low: lower, high: upper }.scaled(positive.value)
    }

    /// So many times the number.
    fn scaled(self, factor: f64) -> Estimate {
        let Estimate { value, low, high } = self;
        Estimate { value: value * factor, low: low * factor, high: high * factor }
    }

    /// Of a rate in FIT, the mean time between failures in hours; infinite where there are none.
    pub fn hours(self) -> Estimate {
        let [value, low, high] = [self.value, self.high, self.low].map(|fit| FIT_HOURS / fit);
        Estimate { value, low, high }
    }
}

/// How often the faults in some structures of a device come to this, in FIT.
///
/// Of each structure it is the rate of faults there times the probability that one comes to it, its
/// vulnerability factor: S. S. Mukherjee, C. Weaver, J. Emer, S. K. Reinhardt and T. Austin, "A Systematic
/// Methodology to Compute the Architectural Vulnerability Factors for a High-Performance Microprocessor",
/// MICRO-36 (2003), section 2; of all, their sum.
///
/// Raw rates are taken as independent. Structures with the probabilities of the same rows have them in
/// common, those of rows by the same thing (two classes, say) have other rows; rows by different
/// things can be the same ones, and what they say is added up as if all of it were.
fn failure_rate<'a>(
    structures: impl IntoIterator<Item = &'a Structure>,
    kind: FailureKind,
    confidence: Confidence,
) -> Estimate {
    let mut by_rows: BTreeMap<&RowsOf, Vec<&Structure>> = BTreeMap::new();
    for own in structures {
        by_rows.entry(&own.rows).or_default().push(own);
    }
    let mut by_scope: BTreeMap<&str, Vec<Estimate>> = BTreeMap::new();
    for (rows, same) in by_rows {
        let raw = Estimate::sum(same.iter().map(|own| own.raw.estimate(confidence)));
        let products = by_scope.entry(rows.scope()).or_default();
        products.extend(same.first().map(|own| own.probability(kind).times(raw)));
    }
    Estimate::dependent_sum(by_scope.into_values().map(Estimate::sum))
}

/// What a campaign's probabilities mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vulnerability {
    /// Faults are even over bits and time, as those of particles are.
    OverTime,
    /// Faults are even over executions of instructions.
    OverInstructions,
}

impl Vulnerability {
    /// That of a fault, in the words of a record: `transient flip_one_bit in lds of one lane`.
    pub fn of(fault: &str) -> Vulnerability {
        let target = fault.rsplit_once(" in ").and_then(|(_, rest)| rest.split(' ').next());
        match target {
            Some("register" | "lds" | "global_memory" | "scratch") => Vulnerability::OverTime,
            _ => Vulnerability::OverInstructions,
        }
    }

    /// What there is to know of it.
    pub fn note(self) -> &'static str {
        match self {
            Vulnerability::OverTime => {
                "an architectural vulnerability (AVF) of what the program had allocated: faults are even \
                 over its bits and over time, counted in executed instructions. Bits that nothing has \
                 allocated are not in it; leave them out of `bits`, too"
            }
            Vulnerability::OverInstructions => {
                "a vulnerability of executed instructions, like a program vulnerability factor (PVF), \
                 and no AVF: how long a value lies in its place unused does not count. Times a rate per \
                 bit it overestimates the failures; a campaign with `target: register` (or lds, \
                 global_memory, scratch) gives an AVF"
            }
        }
    }
}

#[cfg(test)]
mod tests;
