//! The coverage of hardened programs: outcomes of the same faults without and with the hardening.

mod plot;

pub use plot::curve_svg;

use crate::interval::wilson_of;
use crate::{Confidence, Interval, Outcome, Row};

/// Paired outcomes of the same faults in a plain and a hardened program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage {
    /// Sums of the faults' weights by outcome in the plain and in the hardened program, in the order of
    /// [`Outcome::ALL`].
    weights: [[f64; Outcome::ALL.len()]; Outcome::ALL.len()],
    /// Sum of the weights of faults that are SDC in the plain program.
    sdc_weight: f64,
    /// Sum of the squares of these weights.
    sdc_squares: f64,
}

impl Coverage {
    /// Adds a fault by its rows in the plain and in the hardened program.
    pub fn add(&mut self, plain: &Row, hardened: &Row) {
        let weight = plain.weight;
        self.weights[plain.outcome as usize][hardened.outcome as usize] += weight;
        if plain.outcome == Outcome::Sdc {
            self.sdc_weight += weight;
            self.sdc_squares += weight * weight;
        }
    }

    /// Total weight of the faults with outcome `plain` in the plain program and `hardened` in the hardened
    /// one.
    pub fn transition_weight(&self, plain: Outcome, hardened: Outcome) -> f64 {
        self.weights[plain as usize][hardened as usize]
    }

    /// Fraction of the plain program's SDC that is not SDC in the hardened program, from 0 to 1; 0 without
    /// any SDC.
    pub fn rate(&self) -> f64 {
        if self.sdc_weight > 0.0 {
            1.0 - self.transition_weight(Outcome::Sdc, Outcome::Sdc) / self.sdc_weight
        } else {
            0.0
        }
    }

    /// Wilson interval of [`Coverage::rate`] for the effective number of SDC faults: the squared sum of
    /// their weights over the sum of the squared weights, which is their number if all weights are equal
    /// (L. Kish, "Survey Sampling", 1965, section 8.2).
    pub fn interval(&self, confidence: Confidence) -> Interval {
        if self.sdc_squares > 0.0 {
            let effective_count = self.sdc_weight * self.sdc_weight / self.sdc_squares;
            wilson_of(self.rate(), effective_count, confidence)
        } else {
            Interval::FULL
        }
    }
}

/// The cost and the coverage of one hardened version of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct HardenedPoint {
    /// Allowed cost: executed instructions relative to the plain program.
    pub budget: f64,
    /// Measured cost: executed instructions relative to the plain program.
    pub cost: f64,
    /// Static instructions that are duplicated.
    pub duplicated: usize,
    /// Static instructions of the plain program that are executed.
    pub executed: usize,
    /// Rates of the outcomes, in the order of [`Outcome::ALL`].
    pub rates: [f64; Outcome::ALL.len()],
    /// Fraction of the plain program's SDC that is not SDC any more.
    pub coverage: f64,
    /// Interval of the coverage.
    pub interval: Interval,
    /// False positives: the fraction of the plain program's masked faults that are detected.
    pub false_positives: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;
    use crate::wilson;

    /// Adds `count` faults of equal weight.
    fn add(coverage: &mut Coverage, plain: Outcome, hardened: Outcome, weight: f64, count: u32) {
        let row = |outcome| Row { weight, ..row("valu", outcome, None) };
        (0..count).for_each(|_| coverage.add(&row(plain), &row(hardened)));
    }

    #[test]
    fn coverage_is_the_fraction_of_sdc_removed() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.rate(), 0.0);
        assert_eq!(coverage.interval(Confidence::P95), Interval { low: 0.0, high: 1.0 });
        for (plain, hardened, count) in [
            (Outcome::Sdc, Outcome::Detected, 70),
            (Outcome::Sdc, Outcome::Due, 5),
            (Outcome::Sdc, Outcome::Sdc, 25),
            (Outcome::Masked, Outcome::Detected, 50),
            (Outcome::Masked, Outcome::Masked, 50),
        ] {
            add(&mut coverage, plain, hardened, 1.0, count);
        }
        assert_eq!(coverage.rate(), 0.75);
        assert_eq!(coverage.interval(Confidence::P95), wilson(75, 100, Confidence::P95));
        assert_eq!(coverage.transition_weight(Outcome::Masked, Outcome::Detected), 50.0);
    }

    /// One fault of weight 9 gives less certainty than nine faults of weight 1.
    #[test]
    fn unequal_weights_reduce_the_effective_count() {
        let (mut equal, mut unequal) = (Coverage::default(), Coverage::default());
        for (hardened, weight) in [(Outcome::Detected, 9.0), (Outcome::Sdc, 1.0)] {
            add(&mut unequal, Outcome::Sdc, hardened, weight, 10);
            add(&mut equal, Outcome::Sdc, hardened, 1.0, 10 * weight as u32);
        }
        assert_eq!((equal.rate(), unequal.rate()), (0.9, 0.9));
        let [equal, unequal] = [equal, unequal].map(|coverage| coverage.interval(Confidence::P95));
        assert!(unequal.half_width() > 2.0 * equal.half_width());
    }
}
