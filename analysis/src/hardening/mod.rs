//! What protecting a program has brought: the same faults in it without the protection and with it.

mod plot;

pub use plot::curve_svg;

use crate::interval::wilson_of;
use crate::{Confidence, Interval, Outcome, Row};

/// What became of the silent data corruption of a program when it was hardened, fault by fault.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage {
    /// Weights of faults by their outcomes, without and with the hardening, in the order of
    /// [`Outcome::ALL`].
    counts: [[f64; Outcome::ALL.len()]; Outcome::ALL.len()],
    /// Sum and sum of squares of the weights of those that were SDC.
    weights: [f64; 2],
}

impl Coverage {
    /// Takes in a fault: its row without the hardening, and with it.
    pub fn add(&mut self, plain: &Row, hardened: &Row) {
        let weight = plain.weight;
        self.counts[plain.outcome as usize][hardened.outcome as usize] += weight;
        if plain.outcome == Outcome::Sdc {
            self.weights[0] += weight;
            self.weights[1] += weight * weight;
        }
    }

    /// Faults of an outcome without the hardening that have another with it, by their weights.
    pub fn moved(&self, plain: Outcome, hardened: Outcome) -> f64 {
        self.counts[plain as usize][hardened as usize]
    }

    /// How much of the silent data corruption is silent no more, from 0 to 1; 0 where there was none.
    pub fn rate(&self) -> f64 {
        let all = self.weights[0];
        match all > 0.0 {
            true => 1.0 - self.moved(Outcome::Sdc, Outcome::Sdc) / all,
            false => 0.0,
        }
    }

    /// The interval of [`Coverage::rate`]: Wilson's, for as many faults as weigh as much as those that
    /// were SDC (L. Kish, "Survey Sampling", 1965, section 8.2: the square of the sum of the weights over
    /// the sum of their squares, which is their number where all weigh the same).
    pub fn interval(&self, confidence: Confidence) -> Interval {
        let [sum, squares] = self.weights;
        match squares > 0.0 {
            true => wilson_of(self.rate(), sum * sum / squares, confidence),
            false => Interval::EVERYTHING,
        }
    }
}

/// A hardened version of a program: what it costs, and what it brings.
#[derive(Clone, Debug, PartialEq)]
pub struct HardenedPoint {
    /// What it may cost: instructions executed, those of the plain program being 1.
    pub budget: f64,
    /// What it costs.
    pub cost: f64,
    /// Instructions of the code that are executed twice.
    pub duplicated: usize,
    /// How many the program executes of its code, and are executed once or twice.
    pub executed: usize,
    /// Rates of the outcomes, in the order of [`Outcome::ALL`].
    pub rates: [f64; Outcome::ALL.len()],
    /// How much of the SDC is silent no more.
    pub coverage: f64,
    /// Its interval.
    pub interval: Interval,
    /// Of the faults that were masked without the hardening, how much is detected, which need not be.
    pub needless: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;
    use crate::wilson;

    /// Takes in `count` faults of one weight.
    fn add(coverage: &mut Coverage, plain: Outcome, hardened: Outcome, weight: f64, count: u32) {
        let row = |outcome| Row { weight, ..row("valu", outcome, None) };
        (0..count).for_each(|_| coverage.add(&row(plain), &row(hardened)));
    }

    #[test]
    fn coverage_is_the_part_of_sdc_that_is_silent_no_more() {
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
        assert_eq!(coverage.moved(Outcome::Masked, Outcome::Detected), 50.0);
    }

    /// One fault that stands for nine is not as sure as nine.
    #[test]
    fn faults_of_unequal_weights_count_as_fewer() {
        let (mut equal, mut unequal) = (Coverage::default(), Coverage::default());
        for (hardened, weight) in [(Outcome::Detected, 9.0), (Outcome::Sdc, 1.0)] {
            add(&mut unequal, Outcome::Sdc, hardened, weight, 10);
            add(&mut equal, Outcome::Sdc, hardened, 1.0, 10 * weight as u32);
        }
        assert_eq!((equal.rate(), unequal.rate()), (0.9, 0.9));
        let [equal, unequal] = [equal, unequal].map(|own| own.interval(Confidence::P95));
        assert!(unequal.half_width() > 2.0 * equal.half_width());
    }
}
