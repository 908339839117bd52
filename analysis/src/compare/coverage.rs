//! Simulations of the coverage of the intervals of changes.

use super::change::{Change, PairCounts, StratumPairs, correlation};
use crate::estimate::{IntervalMethod, StratumSample, estimate};
use crate::{Confidence, Share, wilson};

const SAMPLES: u32 = 4000;

/// A SplitMix64 generator, which produces the same numbers on every host.
struct Random(u64);

impl Random {
    /// Returns `true` with a probability.
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

/// The coverage and the mean width of simulated intervals.
struct Coverage {
    /// Fraction of the intervals that contain the true change.
    rate: f64,
    mean_width: f64,
}

fn measure(true_change: f64, mut sample: impl FnMut() -> (f64, f64)) -> Coverage {
    let (mut contained, mut mean_width) = (0, 0.0);
    for _ in 0..SAMPLES {
        let (low, high) = sample();
        contained += u32::from((low..=high).contains(&true_change));
        mean_width += (high - low) / f64::from(SAMPLES);
    }
    Coverage { rate: f64::from(contained) / f64::from(SAMPLES), mean_width }
}

/// Wald's interval of the difference of two independent rates.
fn wald(a: &Share, b: &Share, trials: f64) -> (f64, f64) {
    let variance = |share: &Share| share.rate * (1.0 - share.rate) / trials;
    let half = 1.959_964 * (variance(a) + variance(b)).sqrt();
    (b.rate - a.rate - half, b.rate - a.rate + half)
}

/// Negative control: Wald's intervals are too narrow.
#[test]
fn intervals_of_independent_rates_contain_the_true_change() {
    for (rate_a, rate_b, trials) in [(0.02, 0.01, 100), (0.01, 0.06, 60), (0.31, 0.02, 200)] {
        let true_change = rate_b - rate_a;
        let mut random = Random(1);
        let mut pair = || [rate_a, rate_b].map(|rate| share(random.hits(rate, trials), trials));
        let newcombe = measure(true_change, || {
            let [a, b] = pair();
            let Change { low, high, .. } = Change::between(&a, &b, 0.0);
            (low, high)
        })
        .rate;
        // Newcombe's simulations give 0.95 on average and slightly more for rates near 0.
        assert!((0.935..=0.995).contains(&newcombe), "{rate_a}, {rate_b} of {trials}: {newcombe}");
        let wald = measure(true_change, || {
            let [a, b] = pair();
            wald(&a, &b, trials as f64)
        })
        .rate;
        assert!(wald < newcombe, "{rate_a}, {rate_b} of {trials}: {wald}, {newcombe}");
        if rate_a < 0.05 {
            assert!(wald < 0.93, "{rate_a}, {rate_b} of {trials}: {wald}");
        }
    }
}

/// Most pairs have equal outcomes, as the same fault in two versions of a program has.
#[test]
fn intervals_of_pairs_contain_the_true_change_and_are_narrower_than_independent_ones() {
    let (both, only_a, only_b, trials) = (0.25, 0.04, 0.02, 400_u64);
    let true_change = only_b - only_a;
    let mut random = Random(2);
    let mut draw = || {
        let mut pairs = PairCounts::default();
        for _ in 0..trials {
            // Each probability is conditional on the preceding events not happening.
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
    let mut measure_with = |correlation: fn(PairCounts) -> f64| {
        measure(true_change, || {
            let pairs = draw();
            let a = share(pairs.both + pairs.only_a, trials);
            let b = share(pairs.both + pairs.only_b, trials);
            let Change { low, high, .. } = Change::between(&a, &b, correlation(pairs));
            (low, high)
        })
    };
    let paired =
        measure_with(|counts| correlation([StratumPairs { weight: 1.0, counts }].into_iter()));
    let independent = measure_with(|_| 0.0);
    assert!((0.94..=0.975).contains(&paired.rate), "{}", paired.rate);
    assert!(independent.rate > 0.995, "intervals without pairing are wide: {}", independent.rate);
    let widths = (paired.mean_width, independent.mean_width);
    assert!(widths.0 < 0.5 * widths.1, "{widths:?}");
}

/// Negative control: intervals that ignore the weights of the strata rarely contain the true change.
#[test]
fn intervals_of_stratified_rates_contain_the_true_change() {
    let weights = [0.8, 0.2];
    let (rates_a, rates_b) = ([0.03, 0.60], [0.01, 0.30]);
    let sum = |rates: [f64; 2]| weights[0] * rates[0] + weights[1] * rates[1];
    let true_change = sum(rates_b) - sum(rates_a);
    let trials = 120;
    let mut random = Random(3);
    let mut draw = |rates: [f64; 2]| rates.map(|rate| random.hits(rate, trials));
    let stratified = |hits: [u64; 2]| {
        let samples = [0, 1].map(|stratum| StratumSample {
            hits: hits[stratum],
            domain_trials: trials,
            stratum_trials: trials,
            weight: weights[stratum],
            sites: None,
        });
        let estimate = estimate(&samples, &[], IntervalMethod::Wilson, Confidence::P95);
        let (rate, interval) = estimate.expect("strata");
        Share { count: hits.iter().sum(), rate, interval }
    };
    let weighted = measure(true_change, || {
        let change = Change::between(&stratified(draw(rates_a)), &stratified(draw(rates_b)), 0.0);
        (change.low, change.high)
    });
    assert!((0.94..=0.98).contains(&weighted.rate), "{}", weighted.rate);
    let pooled = |hits: [u64; 2]| share(hits.iter().sum(), 2 * trials);
    let unweighted = measure(true_change, || {
        let change = Change::between(&pooled(draw(rates_a)), &pooled(draw(rates_b)), 0.0);
        (change.low, change.high)
    });
    assert!(unweighted.rate < 0.93, "{}", unweighted.rate);
}
