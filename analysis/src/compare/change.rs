//! The difference of two rates: its interval, and tests of whether there is one.

use crate::Share;
use statrs::function::{beta::beta_reg, factorial::ln_binomial};

/// By how much a rate is another in the second campaign than in the first, -1 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The second rate less the first.
    pub rate: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Change {
    /// The change from `a` to `b`, by their intervals and the correlation of the two estimates, 0 of
    /// independent ones: the limits are as far from the change as those of the rates are from them, put
    /// together as variances are (G. Y. Zou and A. Donner, "Construction of Confidence Limits about
    /// Effect Measures: A General Approach", Statistics in Medicine 27 (2008), equations 4 and 5).
    /// With Wilson's intervals that is method 10 of R. G. Newcombe, "Interval Estimation for the
    /// Difference Between Independent Proportions", Statistics in Medicine 17 (1998), 873-890; of pairs,
    /// method 10 of his "Improved Confidence Intervals for the Difference Between Binomial Proportions
    /// Based on Paired Data", ibid., 2635-2650. It asks for nothing of the intervals, so that those of
    /// weighted and stratified rows serve as well.
    pub(crate) fn between(a: &Share, b: &Share, correlation: f64) -> Change {
        let rate = b.rate - a.rate;
        let (a_below, a_above) = (a.rate - a.interval.low, a.interval.high - a.rate);
        let (b_below, b_above) = (b.rate - b.interval.low, b.interval.high - b.rate);
        let together = |one: f64, other: f64| {
            (one * one + other * other - 2.0 * correlation * one * other).max(0.0).sqrt()
        };
        Change {
            rate,
            low: (rate - together(b_below, a_above)).max(-1.0),
            high: (rate + together(b_above, a_below)).min(1.0),
        }
    }

    /// Whether no change is outside of the interval.
    pub fn is_clear(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// Pairs of injections of the same fault, by whether each has an outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fourfold {
    /// In both campaigns.
    pub both: u64,
    /// In the first alone.
    pub only_a: u64,
    /// In the second alone.
    pub only_b: u64,
    /// In neither.
    pub neither: u64,
}

impl Fourfold {
    fn total(&self) -> u64 {
        self.both + self.only_a + self.only_b + self.neither
    }

    /// The covariance of the two outcomes of a pair. A positive one is taken as smaller by 1 / 2n, as
    /// Newcombe's method 10 does, since few pairs say little of it.
    fn covariance(&self) -> f64 {
        let n = self.total() as f64;
        let (both, neither) = (self.both as f64, self.neither as f64);
        let product = both * neither - self.only_a as f64 * self.only_b as f64;
        let product = if product > 0.0 { (product - n / 2.0).max(0.0) } else { product };
        product / (n * n)
    }

    /// The variances of the outcome in the first and in the second campaign.
    fn variances(&self) -> [f64; 2] {
        let n = self.total() as f64;
        [self.both + self.only_a, self.both + self.only_b].map(|hits| {
            let rate = hits as f64 / n;
            rate * (1.0 - rate)
        })
    }

    /// The probability of so uneven a split of the pairs that differ, or of a more uneven one, where
    /// both splits are as likely: the exact test of Q. McNemar, "Note on the Sampling Error of the
    /// Difference Between Correlated Proportions or Percentages", Psychometrika 12 (1947), on both
    /// sides.
    pub(crate) fn mcnemar(&self) -> f64 {
        let (less, more) = (self.only_a.min(self.only_b), self.only_a.max(self.only_b));
        match more {
            0 => 1.0,
            // As many or less of the one kind, each kind with probability 1/2.
            _ => (2.0 * beta_reg(more as f64, less as f64 + 1.0, 0.5)).min(1.0),
        }
    }
}

/// The correlation of two rates that are estimated from the same strata, by the pairs of each and what
/// the pairs stand for; 0 where one of the rates does not vary. Within a stratum pairs vary together; that
/// strata differ from each other is no uncertainty.
pub(crate) fn correlation<'a>(strata: impl Iterator<Item = (&'a f64, Fourfold)>) -> f64 {
    let (mut covariance, mut variances) = (0.0, [0.0; 2]);
    for (weight, pairs) in strata.filter(|(_, pairs)| pairs.total() > 0) {
        let part = weight * weight / pairs.total() as f64;
        covariance += part * pairs.covariance();
        for (sum, own) in variances.iter_mut().zip(pairs.variances()) {
            *sum += part * own;
        }
    }
    let [a, b] = variances;
    match a * b > 0.0 {
        true => (covariance / (a * b).sqrt()).clamp(-1.0, 1.0),
        false => 0.0,
    }
}

/// The probability that of as many hits so many or others as unlikely are in the first of two samples, where
/// both have the same rate: the exact test of R. A. Fisher, "Statistical Methods for Research Workers",
/// 5th edition (1934), section 21.02, on both sides by probability.
pub(crate) fn fisher([hits_a, total_a]: [u64; 2], [hits_b, total_b]: [u64; 2]) -> f64 {
    let hits = hits_a + hits_b;
    let all = ln_binomial(total_a + total_b, hits);
    let likelihood = |own: u64| ln_binomial(total_a, own) + ln_binomial(total_b, hits - own) - all;
    // Rounding must not leave out what is as likely as what was found.
    let found = likelihood(hits_a) + 1e-9;
    let possible = hits.saturating_sub(total_b)..=hits.min(total_a);
    let unlikely = possible.map(likelihood).filter(|own| *own <= found);
    unlikely.map(f64::exp).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Confidence, Interval, wilson};

    fn share(count: u64, total: u64) -> Share {
        let rate = count as f64 / total as f64;
        Share { count, rate, interval: wilson(count, total, Confidence::P95) }
    }

    fn assert_near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found}, not {expected}");
    }

    /// Newcombe's example (a) of independent proportions, 56/70 and 48/80: method 10 has 0.0524, 0.3339.
    #[test]
    fn independent_rates_have_the_published_interval() {
        let change = Change::between(&share(48, 80), &share(56, 70), 0.0);
        assert_near(change.low, 0.0524, 5e-5);
        assert_near(change.high, 0.3339, 5e-5);
        let back = Change::between(&share(56, 70), &share(48, 80), 0.0);
        assert_eq!((back.low, back.high), (-change.high, -change.low));
    }

    /// Method 10 written out by hand for 20 pairs with both 9, only the first 2, only the second 5,
    /// neither 4: Wilson's limits of 11/20 are 0.342085 and 0.741802, of 14/20 0.481029 and 0.854523;
    /// (36 - 10 - 10) / sqrt(11 * 9 * 14 * 6) = 0.175454.
    #[test]
    fn pairs_have_newcombe_s_interval() {
        let pairs = Fourfold { both: 9, only_a: 2, only_b: 5, neither: 4 };
        let phi = correlation([(&1.0, pairs)].into_iter());
        assert_near(phi, 0.175_454, 1e-6);
        let change = Change::between(&share(11, 20), &share(14, 20), phi);
        let (b_below, a_above) = (0.7 - 0.481_029_f64, 0.741_802 - 0.55_f64);
        let below = b_below.powi(2) + a_above.powi(2) - 2.0 * 0.175_454 * b_below * a_above;
        assert_near(change.low, 0.15 - below.sqrt(), 2e-6);
        let (b_above, a_below) = (0.854_523 - 0.7_f64, 0.55 - 0.342_085_f64);
        let above = b_above.powi(2) + a_below.powi(2) - 2.0 * 0.175_454 * b_above * a_below;
        assert_near(change.high, 0.15 + above.sqrt(), 2e-6);
    }

    #[test]
    fn tests_have_the_values_of_their_definition() {
        let split = |only_a, only_b| Fourfold { only_a, only_b, ..Fourfold::default() }.mcnemar();
        // 2 * (1 + 8 + 28) / 2^8.
        assert_near(split(2, 6), 74.0 / 256.0, 1e-12);
        assert_near(split(6, 2), 74.0 / 256.0, 1e-12);
        assert_near(split(0, 5), 2.0 / 32.0, 1e-12);
        assert_eq!((split(0, 0), split(4, 4)), (1.0, 1.0));
        // Fisher's tea: 3 of 4 and 1 of 4, (16 + 16 + 1 + 1) / 70.
        assert_near(fisher([3, 4], [1, 4]), 34.0 / 70.0, 1e-9);
        assert_near(fisher([4, 4], [0, 4]), 2.0 / 70.0, 1e-9);
        assert_eq!(fisher([0, 9], [0, 4]), 1.0);
        assert!(fisher([300_000, 1_000_000], [310_000, 1_000_000]) < 1e-9);
    }

    #[test]
    fn strata_that_differ_from_each_other_are_no_correlation() {
        // In each stratum the two outcomes have nothing to do with each other.
        let low = Fourfold { both: 1, only_a: 9, only_b: 9, neither: 81 };
        let high = Fourfold { both: 81, only_a: 9, only_b: 9, neither: 1 };
        assert_near(correlation([(&1.0, low), (&1.0, high)].into_iter()), 0.0, 1e-12);
        let mixed = Fourfold { both: 82, only_a: 18, only_b: 18, neither: 82 };
        assert!(correlation([(&1.0, mixed)].into_iter()) > 0.6);
    }

    #[test]
    fn a_rate_that_is_known_adds_nothing() {
        let known = Share { count: 0, rate: 0.25, interval: Interval { low: 0.25, high: 0.25 } };
        let other = share(30, 60);
        let change = Change::between(&known, &other, 0.0);
        assert_near(change.high - change.rate, other.interval.high - 0.5, 1e-12);
        assert_near(change.rate - change.low, 0.5 - other.interval.low, 1e-12);
    }
}
