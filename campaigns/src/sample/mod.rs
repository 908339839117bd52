//! Sampling: the number of faults of a campaign, and how they are drawn from the fault space. [`written`]
//! describes the YAML keys, [`check_sample`] validates them, and [`Scheme`] applies them to a profile.

mod check;
mod draws;
mod scheme;
pub(crate) mod written;

#[cfg(test)]
mod coverage;

pub(crate) use check::check_sample;
pub(crate) use scheme::Scheme;

use flipwave_analysis::{Confidence, IntervalMethod, Outcome};
use flipwave_injector::{Draw, KnownMasked};
use std::num::NonZeroU64;

/// Number of faults of a campaign, and how they are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Number of faults.
    pub size: SampleSize,
    /// Confidence level of the reported intervals.
    pub confidence: Confidence,
    /// Method by which intervals are computed.
    pub intervals: IntervalMethod,
    /// Division of the faults among the strata.
    pub allocation: Allocation,
    /// `true` if a fault site can be drawn more than once.
    pub replacement: bool,
    /// The unit that is drawn with equal probability.
    pub draw: Draw,
    /// Treatment of fault sites that are known to be masked.
    pub known_masked: KnownMasked,
}

/// Number of faults of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleSize {
    /// A fixed number.
    Count(u64),
    /// The number needed to estimate a rate with a given precision.
    Precision {
        /// Half-width of the interval around the rate of each stratum, between 0 and 1.
        margin: f64,
    },
    /// Injections continue until the estimated rates have a given precision.
    Until {
        /// Half-width of the intervals around the rates, between 0 and 1.
        margin: f64,
        /// Outcomes whose rates are estimated.
        outcomes: Vec<Outcome>,
        /// Parts of the program for which rates are estimated.
        per: Vec<Per>,
        /// Maximum number of faults. If `None`, as many as could be needed.
        max_count: Option<u64>,
    },
    /// Every fault site once.
    Exhaustive,
}

/// Parts of a program for which rates are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// The whole program.
    All,
    /// Each kernel.
    Kernel,
    /// Each primary group of instructions.
    Group,
    /// Each opcode.
    Opcode,
}

/// Division of the faults among the strata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Proportional to the number of fault sites.
    Proportional,
    /// The same number for each stratum.
    Equal,
    /// Proportional to the number of fault sites and to the standard deviation of the outcomes, as
    /// estimated from the first faults (Neyman allocation).
    Optimal {
        /// Number of faults in the pilot.
        pilot: u64,
        /// Outcomes whose rates are estimated.
        outcomes: Vec<Outcome>,
    },
}

impl Sample {
    /// Returns this sample with another number of faults, as if the file had that `count`.
    ///
    /// # Errors
    /// Returns the setting that is incompatible with a `count`.
    pub(crate) fn with_count(&self, count: NonZeroU64) -> Result<Sample, String> {
        let count = count.get();
        let size = match &self.size {
            SampleSize::Count(_) => SampleSize::Count(count),
            SampleSize::Until { margin, outcomes, per, .. } => SampleSize::Until {
                margin: *margin,
                outcomes: outcomes.clone(),
                per: per.clone(),
                max_count: Some(count),
            },
            SampleSize::Precision { .. } => return Err("has `margin`".to_owned()),
            SampleSize::Exhaustive => return Err("is `exhaustive`".to_owned()),
        };
        match self.allocation {
            Allocation::Optimal { pilot, .. } if pilot >= count => {
                Err(format!("has a pilot of {pilot}"))
            }
            _ => Ok(Sample { size, ..self.clone() }),
        }
    }
}
