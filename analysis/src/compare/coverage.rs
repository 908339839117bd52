//! How often intervals of differences hold the difference, by drawing many samples.

use super::change::{Change, Fourfold, correlation};
use crate::estimate::{Found, IntervalMethod, estimate};
use crate::{Confidence, Share, wilson};

const SAMPLES: u32 = 4000;

/// SplitMix64, of which the same seed gives the same numbers everywhere.
struct Random(u64);

impl Random {
    /// Whether something of this probability happens.
    fn happens(&mut self, probability: f64) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 <= probability
    }

    fn hits(&mut self, rate: f64, trials: u64) -> u64 {
        (0..trials).filter(|_| self.happens(rate)).count() as u64
    }
}

fn share(count: u64, total: u64) -> Share {
    let rate = count as f64 / total as f64;
    Share { count, rate, interval: wilson(count, total, Confidence::P95) }
}

/// The part of samples whose interval holds the truth, and the mean width of the intervals.
fn coverage(truth: f64, mut sample: impl FnMut() -> (f64, f64)) -> (f64, f64) {
    let (mut held, mut width) = (0, 0.0);
    for _ in 0..SAMPLES {
        let (low, high) = sample();
        held += u32::from((low..=high).contains(&truth));
        width += (high - low) / f64::from(SAMPLES);
    }
    (f64::from(held) / f64::from(SAMPLES), width)
}

/// Of both rates the interval that textbooks have: of normal variables, with what was found in the place
/// of the rates.
fn wald(a: &Share, b: &Share, trials: f64) -> (f64, f64) {
    let variance = |own: &Share| own.rate * (1.0 - own.rate) / trials;
    let half = 1.959_964 * (variance(a) + variance(b)).sqrt();
    (b.rate - a.rate - half, b.rate - a.rate + half)
}

#[test]
fn intervals_of_independent_rates_hold_the_difference_where_naive_ones_do_not() {
    for (rate_a, rate_b, trials) in [(0.02, 0.01, 100), (0.01, 0.06, 60), (0.31, 0.02, 200)] {
        let truth = rate_b - rate_a;
        let mut random = Random(1);
        let mut pair = || [rate_a, rate_b].map(|rate| share(random.hits(rate, trials), trials));
        let (held, _) = coverage(truth, || {
            let [a, b] = pair();
            let Change { low, high, .. } = Change::between(&a, &b, 0.0);
            (low, high)
        });
        // Newcombe's own simulations have 0.95 on average, and a little more for rates near 0.
        assert!((0.935..=0.995).contains(&held), "{rate_a}, {rate_b} of {trials}: {held}");
        let (naive, _) = coverage(truth, || {
            let [a, b] = pair();
            wald(&a, &b, trials as f64)
        });
        assert!(naive < held, "{rate_a}, {rate_b} of {trials}: naive {naive}, {held}");
        if rate_a < 0.05 {
            assert!(naive < 0.93, "{rate_a}, {rate_b} of {trials}: naive {naive}");
        }
    }
}

/// Pairs of which most have the same outcome, as the same fault in two versions has: the interval of
/// pairs holds the difference as often as it says and is much narrower than that of independent rates.
#[test]
fn intervals_of_pairs_hold_the_difference_and_are_narrower_than_of_independent_rates() {
    let (both, only_a, only_b, trials) = (0.25, 0.04, 0.02, 400_u64);
    let truth = only_b - only_a;
    let mut random = Random(2);
    let mut draw = || {
        let mut pairs = Fourfold::default();
        for _ in 0..trials {
            // One after the other, each of what is left.
            if random.happens(both) {
                pairs.both += 1;
            } else if random.happens(only_a / (1.0 - both)) {
                pairs.only_a += 1;
            } else if random.happens(only_b / (1.0 - both - only_a)) {
                pairs.only_b += 1;
            } else {
                pairs.neither += 1;
            }
        }
        pairs
    };
    let mut measured = |is_paired: bool| {
        coverage(truth, || {
            let pairs = draw();
            let phi = if is_paired { correlation([(&1.0, pairs)].into_iter()) } else { 0.0 };
            let a = share(pairs.both + pairs.only_a, trials);
            let b = share(pairs.both + pairs.only_b, trials);
            let Change { low, high, .. } = Change::between(&a, &b, phi);
            (low, high)
        })
    };
    let ((paired, narrow), (ignored, wide)) = (measured(true), measured(false));
    assert!((0.94..=0.975).contains(&paired), "{paired}");
    assert!(ignored > 0.995, "without the pairs the interval holds too often: {ignored}");
    assert!(narrow < 0.5 * wide, "{narrow}, {wide}");
}

/// Rows of strata that stand for different parts of the population: the intervals of the strata's sums.
#[test]
fn intervals_of_strata_hold_the_difference_where_ignoring_the_weights_does_not() {
    let weights = [0.8, 0.2];
    let (rates_a, rates_b) = ([0.03, 0.60], [0.01, 0.30]);
    let sum = |rates: [f64; 2]| weights[0] * rates[0] + weights[1] * rates[1];
    let truth = sum(rates_b) - sum(rates_a);
    let trials = 120;
    let mut random = Random(3);
    let mut draw = |rates: [f64; 2]| rates.map(|rate| random.hits(rate, trials));
    let estimated = |hits: [u64; 2]| {
        let found = [0, 1].map(|own| Found {
            hits: hits[own],
            part: trials,
            stratum: trials,
            weight: weights[own],
            places: None,
        });
        let estimate = estimate(&found, &[], IntervalMethod::Wilson, Confidence::P95);
        let (rate, interval) = estimate.expect("strata");
        Share { count: hits.iter().sum(), rate, interval }
    };
    let (held, _) = coverage(truth, || {
        let change = Change::between(&estimated(draw(rates_a)), &estimated(draw(rates_b)), 0.0);
        (change.low, change.high)
    });
    assert!((0.94..=0.98).contains(&held), "{held}");
    let (ignored, _) = coverage(truth, || {
        let pooled = |hits: [u64; 2]| share(hits.iter().sum(), 2 * trials);
        let change = Change::between(&pooled(draw(rates_a)), &pooled(draw(rates_b)), 0.0);
        (change.low, change.high)
    });
    assert!(ignored < 0.93, "{ignored}");
}
