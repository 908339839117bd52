//! Rank correlation of rates.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Bootstrap samples for an interval, and random permutations for a p-value.
const DRAWS: u32 = 10_000;
/// Most programs for which the p-value enumerates all permutations, 362,880 for nine.
const MAX_PERMUTED: usize = 9;
/// Most injections to resample; more do not change the interval noticeably.
const MAX_TRIALS: u64 = 1_000_000;
/// Rounding error of rank correlations, whose terms are summed in varying order.
const ROUNDING: f64 = 1e-9;

/// A rate of a program in a list whose order is compared with that of another list.
pub(crate) struct RankedRate {
    rate: f64,
    /// Simulates repetitions of a measurement; `None` for an exact rate.
    resampler: Option<RateResampler>,
}

impl RankedRate {
    /// A rate measured with a number of injections.
    pub fn measured(rate: f64, total: u64) -> RankedRate {
        RankedRate { rate, resampler: Some(RateResampler::new(rate, total)) }
    }

    /// A rate without uncertainty.
    pub fn exact(rate: f64) -> RankedRate {
        RankedRate { rate, resampler: None }
    }

    /// The rate of another measurement.
    fn draw(&self, random: &mut ChaCha8Rng) -> f64 {
        self.resampler.as_ref().map_or(self.rate, |resampler| resampler.draw(random))
    }
}

/// Spearman's rank correlation of two lists of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// The correlation, from -1 to 1.
    pub rho: f64,
    /// Lower limit of the 95 % interval, from a parametric bootstrap of the measured rates (B. Efron,
    /// R. Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 6 and 13).
    pub low: f64,
    /// Upper limit of the 95 % interval.
    pub high: f64,
    /// Two-sided p-value of the permutation test: over all permutations of up to nine programs, over 10,000
    /// random permutations of more (E. J. G. Pitman, "Significance Tests Which May be Applied to Samples
    /// from any Populations. II", Supplement to the Journal of the Royal Statistical Society 4 (1937)).
    pub p: f64,
}

impl Correlation {
    /// Correlates the rates of the same programs in two lists. `None` for fewer than three programs or
    /// constant rates.
    pub(crate) fn new(a: &[RankedRate], b: &[RankedRate]) -> Option<Correlation> {
        if a.len() < 3 {
            return None;
        }
        let [rates_a, rates_b] =
            [a, b].map(|list| list.iter().map(|ranked| ranked.rate).collect::<Vec<f64>>());
        let rho = spearman(&rates_a, &rates_b)?;
        let mut random = ChaCha8Rng::from_seed([0; 32]);
        let mut bootstrap: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let [a, b] = [a, b].map(|list| {
                    list.iter().map(|ranked| ranked.draw(&mut random)).collect::<Vec<f64>>()
                });
                // Constant rates have no order.
                spearman(&a, &b).unwrap_or(0.0)
            })
            .collect();
        bootstrap.sort_by(f64::total_cmp);
        let quantile = |level: f64| bootstrap[(level * f64::from(DRAWS - 1)).round() as usize];
        let p = permutation_p(rho, &ranks(&rates_a), &ranks(&rates_b), &mut random);
        Some(Correlation { rho, low: quantile(0.025), high: quantile(0.975), p })
    }
}

/// Spearman's rank correlation: the correlation of the ranks, where equal values have the mean of their
/// ranks (C. Spearman, "The Proof and Measurement of Association between Two Things", American Journal of
/// Psychology 15 (1904)). `None` if `a` or `b` is constant.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    pearson(&ranks(a), &ranks(b))
}

/// The rank of each value, from 1.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|ranked| *ranked < value).count();
        let equal = values.iter().filter(|ranked| *ranked == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// Pearson's correlation; `None` if `a` or `b` is constant.
fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (a_mean, b_mean) = (mean(a), mean(b));
    let pairs = || a.iter().map(|a| a - a_mean).zip(b.iter().map(|b| b - b_mean));
    let covariance: f64 = pairs().map(|(a, b)| a * b).sum();
    let variances: f64 =
        pairs().map(|(a, _)| a * a).sum::<f64>() * pairs().map(|(_, b)| b * b).sum::<f64>();
    (variances > 0.0).then(|| (covariance / variances.sqrt()).clamp(-1.0, 1.0))
}

/// The fraction of the permutations of `a` whose correlation with `b` is at least as strong as `rho`.
fn permutation_p(rho: f64, a: &[f64], b: &[f64], random: &mut ChaCha8Rng) -> f64 {
    let mut a = a.to_vec();
    let is_as_strong =
        |a: &[f64]| pearson(a, b).is_some_and(|found| found.abs() >= rho.abs() - ROUNDING);
    let (mut strong, mut all) = (0u32, 0u32);
    if a.len() <= MAX_PERMUTED {
        permute(&mut a, 0, &mut |a| {
            strong += u32::from(is_as_strong(a));
            all += 1;
        });
    } else {
        for _ in 0..DRAWS {
            // Fisher-Yates shuffle.
            for last in (1..a.len()).rev() {
                a.swap(last, (fraction(random) * (last + 1) as f64) as usize);
            }
            strong += u32::from(is_as_strong(&a));
            all += 1;
        }
        // The measured order is a permutation, too.
        (strong, all) = (strong + 1, all + 1);
    }
    f64::from(strong) / f64::from(all)
}

/// Calls `visit` with every permutation of the values from index `first` on.
fn permute(values: &mut [f64], first: usize, visit: &mut dyn FnMut(&[f64])) {
    if first + 1 >= values.len() {
        return visit(values);
    }
    for chosen in first..values.len() {
        values.swap(first, chosen);
        permute(values, first + 1, visit);
        values.swap(first, chosen);
    }
}

/// A uniform random number from 0 to below 1, with 53 bits.
fn fraction(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Simulates repetitions of a campaign: draws rates with binomially distributed hits.
struct RateResampler {
    /// Cumulative probabilities of the numbers of hits.
    cumulative: Vec<f64>,
}

impl RateResampler {
    /// Creates the resampler of a campaign with a measured rate. As a measured rate of 0 or 1 may not be
    /// exact, half a hit and half a miss are added (H. Jeffreys, "Theory of Probability" (1961)).
    pub fn new(rate: f64, total: u64) -> RateResampler {
        let total = total.min(MAX_TRIALS);
        let trials = total as f64;
        let rate = (rate * trials + 0.5) / (trials + 1.0);
        let odds = rate / (1.0 - rate);
        // As a logarithm, since the first probability can underflow.
        let mut logarithm = trials * (-rate).ln_1p();
        let mut sum = 0.0;
        let cumulative = (0..=total).map(|hits| {
            sum += logarithm.exp();
            let hits = hits as f64;
            logarithm += ((trials - hits) / (hits + 1.0) * odds).ln();
            sum
        });
        RateResampler { cumulative: cumulative.collect() }
    }

    fn draw(&self, random: &mut ChaCha8Rng) -> f64 {
        let drawn = fraction(random);
        let last = self.cumulative.len() - 1;
        let hits = self.cumulative.partition_point(|sum| *sum <= drawn).min(last);
        hits as f64 / last.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by hand: d² of the ranks is 0+1+1+0+0, and rho = 1 - 6*2/(5*24) = 0.9. With ties, the ranks
    /// 1.5, 1.5, 3 and 1, 2, 3 have covariance 1.5 and variances 1.5 and 2, which gives sqrt(3)/2.
    #[test]
    fn spearman_matches_values_computed_by_hand() {
        let rho = spearman(&[0.1, 0.2, 0.3, 0.4, 0.5], &[1.0, 3.0, 2.0, 4.0, 50.0]).unwrap();
        assert!((rho - 0.9).abs() < 1e-12);
        let rho = spearman(&[5.0, 5.0, 7.0], &[1.0, 2.0, 3.0]).unwrap();
        assert!((rho - 3.0f64.sqrt() / 2.0).abs() < 1e-12);
        let rho = spearman(&[1.0, 2.0, 3.0], &[9.0, 8.0, 7.0]).unwrap();
        assert!((rho + 1.0).abs() < 1e-12);
        assert_eq!(spearman(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
    }

    /// Tables of Spearman's test: the two-sided p-value of 0.9 for five programs is 10/120, that of 1.0 for
    /// four programs 2/24.
    #[test]
    fn p_values_match_tables() {
        let mut random = ChaCha8Rng::from_seed([1; 32]);
        let mut p = |rho, count: u32| {
            let order: Vec<f64> = (1..=count).map(f64::from).collect();
            permutation_p(rho, &order, &order, &mut random)
        };
        assert!((p(0.9, 5) - 10.0 / 120.0).abs() < 1e-12);
        assert!((p(1.0, 4) - 2.0 / 24.0).abs() < 1e-12);
        assert_eq!(p(0.0, 4), 1.0);
        // The critical value for ten programs at 5 % is 0.648.
        assert!((p(0.648, 10) - 0.05).abs() < 0.01);
    }

    #[test]
    fn resampled_rates_are_binomially_distributed() {
        let resampler = RateResampler::new(0.3, 1000);
        assert!((resampler.cumulative.last().unwrap() - 1.0).abs() < 1e-9);
        let mut random = ChaCha8Rng::from_seed([2; 32]);
        let drawn: Vec<f64> = (0..20_000).map(|_| resampler.draw(&mut random)).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!((mean - 0.3002).abs() < 0.0005, "{mean}");
        assert!((variance / (0.3 * 0.7 / 1000.0) - 1.0).abs() < 0.05, "{variance}");
        // A measured rate of 0 may not be exact.
        let rare = RateResampler::new(0.0, 1000);
        assert!((0..1000).any(|_| rare.draw(&mut random) > 0.0));
    }

    /// Distant rates keep their order in every resampling; close rates with few injections do not.
    #[test]
    fn interval_reflects_the_uncertainty_of_the_order() {
        let correlation = |rates: [f64; 4], total| {
            let measured = rates.map(|rate| RankedRate::measured(rate, total));
            Correlation::new(&measured, &[0.1, 0.2, 0.3, 0.4].map(RankedRate::exact)).unwrap()
        };
        let distant = correlation([0.1, 0.3, 0.5, 0.7], 1000);
        assert_eq!((distant.rho, distant.low, distant.high), (1.0, 1.0, 1.0));
        let close = correlation([0.29, 0.30, 0.31, 0.32], 100);
        assert!(close.low < 0.0 && close.high == 1.0, "{close:?}");
        assert_eq!(close, correlation([0.29, 0.30, 0.31, 0.32], 100));
    }
}
