//! The difference of two rates, with its interval and exact tests.

use crate::Share;
use statrs::function::{beta::beta_reg, factorial::ln_binomial};

/// The change of a rate from the first campaign to the second, from -1 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Second rate minus the first.
    pub rate: f64,
    /// Lower limit of the interval.
    pub low: f64,
    /// Upper limit of the interval.
    pub high: f64,
}

impl Change {
    /// The change from `a` to `b`, from the intervals of the rates and the correlation of the two estimates,
    /// which is 0 for independent samples. The distances of the rates' limits are combined like standard
    /// deviations (G. Y. Zou and A. Donner, "Construction of Confidence Limits about
    /// Effect Measures: A General Approach", Statistics in Medicine 27 (2008), equations 4 and 5).
    /// With Wilson intervals this is method 10 of R. G. Newcombe, "Interval Estimation for the
    /// Difference Between Independent Proportions", Statistics in Medicine 17 (1998), 873-890, and for pairs
    /// method 10 of his "Improved Confidence Intervals for the Difference Between Binomial Proportions
    /// Based on Paired Data", ibid., 2635-2650. The method works with any intervals, thus also for
    /// weighted and stratified rows.
    pub(crate) fn between(a: &Share, b: &Share, correlation: f64) -> Change {
        let rate = b.rate - a.rate;
        let (a_below, a_above) = (a.rate - a.interval.low, a.interval.high - a.rate);
        let (b_below, b_above) = (b.rate - b.interval.low, b.interval.high - b.rate);
        let combined = |x: f64, y: f64| (x * x + y * y - 2.0 * correlation * x * y).max(0.0).sqrt();
        Change {
            rate,
            low: (rate - combined(b_below, a_above)).max(-1.0),
            high: (rate + combined(b_above, a_below)).min(1.0),
        }
    }

    /// Returns `true` if the interval excludes a change of 0.
    pub fn is_significant(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// Counts of pairs of injections of the same fault, by which of the two has an outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCounts {
    /// Pairs with the outcome in both campaigns.
    pub both: u64,
    /// Pairs with the outcome only in the first campaign.
    pub only_a: u64,
    /// Pairs with the outcome only in the second campaign.
    pub only_b: u64,
    /// Pairs with the outcome in neither campaign.
    pub neither: u64,
}

impl PairCounts {
    fn total(&self) -> u64 {
        self.both + self.only_a + self.only_b + self.neither
    }

    /// The covariance of the outcome in the two campaigns. A positive covariance is reduced by 1 / 2n for
    /// its uncertainty with few pairs, as in Newcombe's method 10.
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

    /// The p-value of McNemar's exact two-sided test: the probability of a split of the discordant pairs at
    /// least as uneven as this one if both directions are equally likely. Q. McNemar, "Note on the Sampling
    /// Error of the Difference Between Correlated Proportions or Percentages", Psychometrika 12 (1947).
    pub(crate) fn mcnemar(&self) -> f64 {
        let (fewer, more) = (self.only_a.min(self.only_b), self.only_a.max(self.only_b));
        if more == 0 {
            return 1.0;
        }
        // Twice the binomial probability, at 1/2, of at most `fewer` pairs in one direction.
        (2.0 * beta_reg(more as f64, fewer as f64 + 1.0, 0.5)).min(1.0)
    }
}

/// The pairs of one stratum.
pub(crate) struct StratumPairs {
    /// Size of the stratum in the fault space, relative to the other strata.
    pub weight: f64,
    pub counts: PairCounts,
}

/// The correlation of two rates that are estimated from paired injections into the same strata; 0 if one of
/// the rates does not vary. Only the covariance within strata counts, as differences between strata do not
/// add to the uncertainty.
pub(crate) fn correlation(strata: impl Iterator<Item = StratumPairs>) -> f64 {
    let (mut covariance, mut variances) = (0.0, [0.0; 2]);
    for StratumPairs { weight, counts } in strata.filter(|pairs| pairs.counts.total() > 0) {
        let factor = weight * weight / counts.total() as f64;
        covariance += factor * counts.covariance();
        for (sum, variance) in variances.iter_mut().zip(counts.variances()) {
            *sum += factor * variance;
        }
    }
    let [a, b] = variances;
    if a * b > 0.0 { (covariance / (a * b).sqrt()).clamp(-1.0, 1.0) } else { 0.0 }
}

/// Injections of one campaign with an outcome, and all its injections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub hits: u64,
    pub total: u64,
}

/// The p-value of Fisher's exact two-sided test of two independent samples: the probability of all divisions
/// of the hits among the samples that are at most as likely as this one if both have the same rate.
/// R. A. Fisher, "Statistical Methods for Research Workers", 5th edition (1934), section 21.02.
pub(crate) fn fisher(a: Sample, b: Sample) -> f64 {
    let hits = a.hits + b.hits;
    let all = ln_binomial(a.total + b.total, hits);
    let ln_likelihood =
        |hits_a: u64| ln_binomial(a.total, hits_a) + ln_binomial(b.total, hits - hits_a) - all;
    // Rounding must not exclude divisions that are equally likely.
    let limit = ln_likelihood(a.hits) + 1e-9;
    let possible = hits.saturating_sub(b.total)..=hits.min(a.total);
    let unlikely = possible.map(ln_likelihood).filter(|likelihood| *likelihood <= limit);
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

    fn single_stratum(counts: PairCounts) -> f64 {
        correlation([StratumPairs { weight: 1.0, counts }].into_iter())
    }

    fn assert_near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found}, not {expected}");
    }

    /// Newcombe's example (a) of independent proportions, 56/70 and 48/80: method 10 gives 0.0524, 0.3339.
    #[test]
    fn independent_rates_have_the_published_interval() {
        let change = Change::between(&share(48, 80), &share(56, 70), 0.0);
        assert_near(change.low, 0.0524, 5e-5);
        assert_near(change.high, 0.3339, 5e-5);
        let back = Change::between(&share(56, 70), &share(48, 80), 0.0);
        assert_eq!((back.low, back.high), (-change.high, -change.low));
    }

    /// Method 10 computed by hand for 20 pairs. Wilson's limits of 11/20 are 0.342085 and 0.741802, those of
    /// 14/20 are 0.481029 and 0.854523; (36 - 10 - 10) / sqrt(11 * 9 * 14 * 6) = 0.175454.
    #[test]
    fn pairs_have_newcombes_interval() {
        let phi = single_stratum(PairCounts { both: 9, only_a: 2, only_b: 5, neither: 4 });
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
    fn mcnemar_matches_its_definition() {
        let p = |only_a, only_b| PairCounts { only_a, only_b, ..PairCounts::default() }.mcnemar();
        // 2 * (1 + 8 + 28) / 2^8.
        assert_near(p(2, 6), 74.0 / 256.0, 1e-12);
        assert_near(p(6, 2), 74.0 / 256.0, 1e-12);
        assert_near(p(0, 5), 2.0 / 32.0, 1e-12);
        assert_eq!((p(0, 0), p(4, 4)), (1.0, 1.0));
    }

    #[test]
    fn fisher_matches_its_definition() {
        let p = |hits_a, total_a, hits_b, total_b| {
            fisher(Sample { hits: hits_a, total: total_a }, Sample { hits: hits_b, total: total_b })
        };
        // The lady tasting tea: 3 of 4 and 1 of 4 give (16 + 16 + 1 + 1) / 70.
        assert_near(p(3, 4, 1, 4), 34.0 / 70.0, 1e-9);
        assert_near(p(4, 4, 0, 4), 2.0 / 70.0, 1e-9);
        assert_eq!(p(0, 9, 0, 4), 1.0);
        assert!(p(300_000, 1_000_000, 310_000, 1_000_000) < 1e-9);
    }

    #[test]
    fn differences_between_strata_are_no_correlation() {
        // In each stratum the two outcomes are independent.
        let low = PairCounts { both: 1, only_a: 9, only_b: 9, neither: 81 };
        let high = PairCounts { both: 81, only_a: 9, only_b: 9, neither: 1 };
        let strata = [low, high].map(|counts| StratumPairs { weight: 1.0, counts });
        assert_near(correlation(strata.into_iter()), 0.0, 1e-12);
        let pooled = PairCounts { both: 82, only_a: 18, only_b: 18, neither: 82 };
        assert!(single_stratum(pooled) > 0.6);
    }

    #[test]
    fn exact_rate_adds_no_uncertainty() {
        let exact = Share { count: 0, rate: 0.25, interval: Interval { low: 0.25, high: 0.25 } };
        let sampled = share(30, 60);
        let change = Change::between(&exact, &sampled, 0.0);
        assert_near(change.high - change.rate, sampled.interval.high - 0.5, 1e-12);
        assert_near(change.rate - change.low, 0.5 - sampled.interval.low, 1e-12);
    }
}
