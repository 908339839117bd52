//! Whether two put things in the same order.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// How often rates are drawn anew for an interval, and orders where there are too many for all.
const DRAWS: u32 = 10_000;
/// Programs of which all orders are looked at, 362,880 of nine.
const MOST_PERMUTED: usize = 9;
/// Injections after which more make no difference to an interval.
const MOST_TRIALS: u64 = 1_000_000;
/// Rank correlations that differ by less are equal: they are sums in another order.
const ROUNDING: f64 = 1e-9;

/// Spearman's rank correlation of two rates of some programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// The correlation, -1 to 1.
    pub rho: f64,
    /// Where it lies in 95 % of the cases when our own campaigns are made again, as far as their
    /// injections say: the parametric bootstrap (B. Efron, R. Tibshirani, "An Introduction to the
    /// Bootstrap" (1993), chapters 6 and 13). What is published counts as certain.
    pub low: f64,
    /// The upper end of that.
    pub high: f64,
    /// How likely a correlation that strong, of either sign, is among programs that are put in any
    /// order: of all orders for up to nine programs, of 10,000 random ones for more (E. J. G. Pitman,
    /// "Significance Tests Which May be Applied to Samples from any Populations. II", Supplement to
    /// the Journal of the Royal Statistical Society 4 (1937)).
    pub p: f64,
}

impl Correlation {
    pub(super) fn of(own: &[f64], other: &[f64], redrawn: &[Redrawn]) -> Option<Correlation> {
        if own.len() < 3 {
            return None;
        }
        let rho = spearman(own, other)?;
        let mut random = ChaCha8Rng::from_seed([0; 32]);
        let mut again: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let rates: Vec<f64> = redrawn.iter().map(|own| own.draw(&mut random)).collect();
                // Where all rates are equal, nothing is in any order.
                spearman(&rates, other).unwrap_or(0.0)
            })
            .collect();
        again.sort_by(f64::total_cmp);
        let quantile = |part: f64| again[(part * f64::from(DRAWS - 1)).round() as usize];
        let p = probability(rho, &ranks(own), &ranks(other), &mut random);
        Some(Correlation { rho, low: quantile(0.025), high: quantile(0.975), p })
    }
}

/// Spearman's rank correlation: that of the ranks, equal values sharing the mean of theirs (C. Spearman,
/// "The Proof and Measurement of Association between Two Things", American Journal of Psychology 15
/// (1904)). Nothing where one of both is the same for all.
pub fn spearman(own: &[f64], other: &[f64]) -> Option<f64> {
    pearson(&ranks(own), &ranks(other))
}

/// The rank of each value, from 1.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|own| *own < value).count();
        let equal = values.iter().filter(|own| *own == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

fn pearson(own: &[f64], other: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (own_mean, other_mean) = (mean(own), mean(other));
    let pairs = || own.iter().map(|a| a - own_mean).zip(other.iter().map(|b| b - other_mean));
    let covariance: f64 = pairs().map(|(a, b)| a * b).sum();
    let variances: f64 =
        pairs().map(|(a, _)| a * a).sum::<f64>() * pairs().map(|(_, b)| b * b).sum::<f64>();
    (variances > 0.0).then(|| (covariance / variances.sqrt()).clamp(-1.0, 1.0))
}

/// The part of the orders of `own` whose correlation with `other` is as strong as `rho`.
fn probability(rho: f64, own: &[f64], other: &[f64], random: &mut ChaCha8Rng) -> f64 {
    let mut own = own.to_vec();
    let is_as_strong =
        |own: &[f64]| pearson(own, other).is_some_and(|found| found.abs() >= rho.abs() - ROUNDING);
    let (mut strong, mut all) = (0u32, 0u32);
    if own.len() <= MOST_PERMUTED {
        permute(&mut own, 0, &mut |own| {
            strong += u32::from(is_as_strong(own));
            all += 1;
        });
    } else {
        for _ in 0..DRAWS {
            for last in (1..own.len()).rev() {
                own.swap(last, (fraction(random) * (last + 1) as f64) as usize);
            }
            strong += u32::from(is_as_strong(&own));
            all += 1;
        }
        // The order that was found is one of them.
        (strong, all) = (strong + 1, all + 1);
    }
    f64::from(strong) / f64::from(all)
}

/// Every order of what stands from `first` on.
fn permute(values: &mut [f64], first: usize, take: &mut dyn FnMut(&[f64])) {
    if first + 1 >= values.len() {
        return take(values);
    }
    for chosen in first..values.len() {
        values.swap(first, chosen);
        permute(values, first + 1, take);
        values.swap(first, chosen);
    }
}

/// A number from 0 to below 1, of 53 bits.
fn fraction(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// What comes of making a campaign again: hits by the binomial distribution.
pub(super) struct Redrawn {
    /// The probability of up to each number of hits.
    up_to: Vec<f64>,
}

impl Redrawn {
    /// The campaign had this rate. A rate of which there was no hit, or nothing else, is not known to be
    /// 0 or 1: half a hit more and half a miss more (H. Jeffreys, "Theory of Probability" (1961)).
    pub fn new(rate: f64, total: u64) -> Redrawn {
        let total = total.min(MOST_TRIALS);
        let trials = total as f64;
        let rate = (rate * trials + 0.5) / (trials + 1.0);
        let odds = rate / (1.0 - rate);
        // By logarithms: the first probability is too small for a number.
        let mut logarithm = trials * (-rate).ln_1p();
        let mut sum = 0.0;
        let up_to = (0..=total).map(|hits| {
            sum += logarithm.exp();
            let hits = hits as f64;
            logarithm += ((trials - hits) / (hits + 1.0) * odds).ln();
            sum
        });
        Redrawn { up_to: up_to.collect() }
    }

    fn draw(&self, random: &mut ChaCha8Rng) -> f64 {
        let drawn = fraction(random);
        let last = self.up_to.len() - 1;
        let hits = self.up_to.partition_point(|up_to| *up_to <= drawn).min(last);
        hits as f64 / last.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: d² of the ranks is 0+1+1+0+0, and rho = 1 - 6*2/(5*24) = 0.9; of ties the ranks
    /// 1.5, 1.5, 3 with 1, 2, 3 have covariance 1.5 and variances 1.5 and 2: sqrt(3)/2.
    #[test]
    fn ranks_are_correlated_as_by_hand() {
        let rho = spearman(&[0.1, 0.2, 0.3, 0.4, 0.5], &[1.0, 3.0, 2.0, 4.0, 50.0]).unwrap();
        assert!((rho - 0.9).abs() < 1e-12);
        let rho = spearman(&[5.0, 5.0, 7.0], &[1.0, 2.0, 3.0]).unwrap();
        assert!((rho - 3.0f64.sqrt() / 2.0).abs() < 1e-12);
        let rho = spearman(&[1.0, 2.0, 3.0], &[9.0, 8.0, 7.0]).unwrap();
        assert!((rho + 1.0).abs() < 1e-12);
        assert_eq!(spearman(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
    }

    /// Tables of Spearman's test: of five programs 0.9 has the two-sided probability 10 of 120, of
    /// four 1.0 has 2 of 24.
    #[test]
    fn probabilities_are_those_of_the_tables() {
        let mut random = ChaCha8Rng::from_seed([1; 32]);
        let mut p = |rho, count: u32| {
            let order: Vec<f64> = (1..=count).map(f64::from).collect();
            probability(rho, &order, &order, &mut random)
        };
        assert!((p(0.9, 5) - 10.0 / 120.0).abs() < 1e-12);
        assert!((p(1.0, 4) - 2.0 / 24.0).abs() < 1e-12);
        assert_eq!(p(0.0, 4), 1.0);
        // Of ten programs the tables have 0.648 at 5 %.
        assert!((p(0.648, 10) - 0.05).abs() < 0.01);
    }

    #[test]
    fn campaigns_made_again_scatter_as_the_binomial_distribution() {
        let redrawn = Redrawn::new(0.3, 1000);
        assert!((redrawn.up_to.last().unwrap() - 1.0).abs() < 1e-9);
        let mut random = ChaCha8Rng::from_seed([2; 32]);
        let drawn: Vec<f64> = (0..20_000).map(|_| redrawn.draw(&mut random)).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!((mean - 0.3002).abs() < 0.0005, "{mean}");
        assert!((variance / (0.3 * 0.7 / 1000.0) - 1.0).abs() < 0.05, "{variance}");
        // Where nothing was hit, something may be.
        let rare = Redrawn::new(0.0, 1000);
        assert!((0..1000).any(|_| rare.draw(&mut random) > 0.0));
    }

    /// Rates far apart stay in order whenever the campaigns are made again, and near ones do not.
    #[test]
    fn an_interval_is_as_wide_as_injections_leave_it() {
        let correlation = |rates: [f64; 4], total| {
            let redrawn = rates.map(|rate| Redrawn::new(rate, total));
            Correlation::of(&rates, &[0.1, 0.2, 0.3, 0.4], &redrawn).unwrap()
        };
        let sure = correlation([0.1, 0.3, 0.5, 0.7], 1000);
        assert_eq!((sure.rho, sure.low, sure.high), (1.0, 1.0, 1.0));
        let unsure = correlation([0.29, 0.30, 0.31, 0.32], 100);
        assert!(unsure.low < 0.0 && unsure.high == 1.0, "{unsure:?}");
        assert_eq!(unsure, correlation([0.29, 0.30, 0.31, 0.32], 100));
    }
}
