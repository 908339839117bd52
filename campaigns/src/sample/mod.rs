//! How many faults a campaign injects, and how they are drawn from what there is: as the file says it,
//! checked, and carried out beside a profile.

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

/// How many faults a campaign injects, and how they are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// How many.
    pub size: SampleSize,
    /// Probability with which the intervals that are reported hold the rates.
    pub confidence: Confidence,
    /// How intervals are computed.
    pub intervals: IntervalMethod,
    /// How many of the faults each stratum gets.
    pub allocation: Allocation,
    /// Whether a place can be drawn again.
    pub replacement: bool,
    /// What of the population is equally likely.
    pub draw: Draw,
    /// What becomes of places that are known to be masked.
    pub known_masked: KnownMasked,
}

/// How many faults a campaign injects.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleSize {
    /// This many.
    Count(u64),
    /// As many as the estimate of a rate needs.
    Precision {
        /// Half-width of the interval around the rate of each stratum, between 0 and 1.
        margin: f64,
    },
    /// As many as it takes until rates are known.
    Until {
        /// Half-width of the intervals around them, between 0 and 1.
        margin: f64,
        /// The outcomes whose rates are wanted.
        outcomes: Vec<Outcome>,
        /// The parts of the program of which they are wanted.
        per: Vec<Per>,
        /// No more than this; if it is not said, as many as could be needed.
        most: Option<u64>,
    },
    /// Every place of the population once.
    Exhaustive,
}

/// The parts of a program of which rates are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// The program as a whole.
    All,
    /// Each kernel.
    Kernel,
    /// Each primary group of instructions.
    Group,
    /// Each operation.
    Opcode,
}

/// How many of the faults each stratum gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// In proportion to its places.
    Proportional,
    /// All the same number.
    Equal,
    /// In proportion to its places and to how much outcomes vary in it, as the first faults show.
    Optimal {
        /// How many these are.
        pilot: u64,
        /// The outcomes whose rates are wanted.
        outcomes: Vec<Outcome>,
    },
}

impl Sample {
    /// The same with another number of faults, as if the file had that `count`.
    ///
    /// # Errors
    /// What the file says that does not go with it.
    pub(crate) fn with_count(&self, count: NonZeroU64) -> Result<Sample, String> {
        let count = count.get();
        let size = match &self.size {
            SampleSize::Count(_) => SampleSize::Count(count),
            SampleSize::Until { margin, outcomes, per, .. } => SampleSize::Until {
                margin: *margin,
                outcomes: outcomes.clone(),
                per: per.clone(),
                most: Some(count),
            },
            SampleSize::Precision { .. } => return Err("takes as many as its `margin`".to_owned()),
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
