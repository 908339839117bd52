//! Looks at a campaign under way: how many injections there are at each, and how much wider intervals
//! must be that hold at all of them.

use crate::{Confidence, StatisticsError, sample_size};
use statrs::function::erf::erf;
use std::f64::consts::{PI, SQRT_2};

/// The numbers of injections after which a campaign looks at its rates. They are known before the first
/// injection, so that it does not depend on shards or workers where it stops.
///
/// Intervals are repeated confidence intervals: C. Jennison and B. W. Turnbull, "Interim Analyses: The
/// Repeated Confidence Interval Approach", Journal of the Royal Statistical Society B 51 (1989). Each
/// spans the same number of standard deviations at all looks (S. J. Pocock, Biometrika 64 (1977)), as many
/// as it takes for a rate to be in all of its intervals with the confidence stated. Whatever is
/// decided at a look, the interval then reported holds as often as it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks {
    /// Injections at each look, ascending; at the last one the campaign ends.
    pub sizes: Vec<u64>,
    /// Standard deviations that intervals span to each side.
    pub deviations: f64,
}

/// Injections at the first look at least.
const FEWEST: u64 = 50;

/// How the size of a look follows from that of the one before: half as many more.
fn next(size: u64) -> u64 {
    size.saturating_add(size / 2)
}

impl Looks {
    /// The looks of a campaign that stops when its intervals are within `margin` to each side, after
    /// `most` injections in any case. The first is where the interval of an outcome that never occurred
    /// would be narrow enough.
    ///
    /// # Errors
    /// [`StatisticsError::Margin`].
    pub fn new(margin: f64, confidence: Confidence, most: u64) -> Result<Looks, StatisticsError> {
        if !(margin > 0.0 && margin < 1.0) {
            return Err(StatisticsError::Margin(margin));
        }
        // Of no hits Wilson's interval ends at t² / (n + t²).
        let squared = confidence.deviations().powi(2);
        let first = (squared * (0.5 / margin - 1.0)).ceil() as u64;
        let mut sizes = vec![first.max(FEWEST)];
        while let Some(last) = sizes.last().copied().filter(|last| *last < most) {
            sizes.push(next(last));
        }
        sizes.pop();
        // A look shortly before the end costs more than it saves.
        if let Some(last) = sizes.last()
            && most - last < most / 10
        {
            sizes.pop();
        }
        sizes.push(most);
        let deviations = deviations(&sizes, confidence);
        Ok(Looks { sizes, deviations })
    }

    /// The looks of a campaign that can do as many injections as it may take whatever the rates are,
    /// where `part` of its injections are in the smallest part of the program of which rates are wanted.
    ///
    /// # Errors
    /// [`StatisticsError::Margin`].
    pub fn enough(
        margin: f64,
        confidence: Confidence,
        part: f64,
    ) -> Result<Looks, StatisticsError> {
        let mut looks = Looks { sizes: Vec::new(), deviations: confidence.deviations() };
        // How many it takes depends on how wide intervals are, and that on how many looks there are:
        // each time round it gets more, until it is enough.
        loop {
            let wider = Confidence::within(looks.deviations);
            let each = sample_size(u64::MAX, margin, wider, 0.5)?;
            // What falls into a part varies: three standard deviations more are nearly always enough.
            let each = each as f64 + 3.0 * (each as f64 * (1.0 - part)).sqrt();
            let most = (each / part).ceil().min(u64::MAX as f64) as u64;
            if looks.sizes.last().is_some_and(|last| *last >= most) {
                return Ok(looks);
            }
            looks = Looks::new(margin, confidence, most)?;
        }
    }
}

/// Points at which densities are computed, an odd number.
const POINTS: usize = 161;

/// Bisections of the number of deviations.
const STEPS: u32 = 24;

/// The number of standard deviations within which a normal sum stays at all of these sizes with this
/// probability, rounded up to four decimals, so that no host's rounding shows.
fn deviations(sizes: &[u64], confidence: Confidence) -> f64 {
    let (mut low, mut high) = (confidence.deviations(), 10.0);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if stays_within(middle, sizes) < confidence.probability() {
            low = middle;
        } else {
            high = middle;
        }
    }
    ((high - 1e-5) * 1e4).ceil() / 1e4
}

/// The probability that a sum of independent normal variables is within this many of its standard
/// deviations at all of these sizes, by the recursion of P. Armitage, C. K. McPherson and B. C. Rowe,
/// "Repeated Significance Tests on Accumulating Data", Journal of the Royal Statistical Society A 132
/// (1969), with Simpson's rule.
fn stays_within(deviations: f64, sizes: &[u64]) -> f64 {
    let Some((first, rest)) = sizes.split_first() else { return 1.0 };
    let normal = |x: f64| (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
    // At each look the sum is in units of its own standard deviation then.
    let step = 2.0 * deviations / (POINTS - 1) as f64;
    let at = |point: usize| point as f64 * step - deviations;
    let weight = |point: usize| match point {
        0 => 1.0,
        last if last == POINTS - 1 => 1.0,
        odd if odd % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let mut density: Vec<f64> = (0..POINTS).map(|point| normal(at(point))).collect();
    let mut before = *first as f64;
    for size in rest {
        let size = *size as f64;
        // The sum is kept by this factor, and what comes to it has this standard deviation.
        let (kept, added) = ((before / size).sqrt(), (1.0 - before / size).sqrt());
        density = (0..POINTS)
            .map(|to| {
                let sum: f64 = (0..POINTS)
                    .map(|from| {
                        weight(from) * density[from] * normal((at(to) - kept * at(from)) / added)
                    })
                    .sum();
                sum * step / 3.0 / added
            })
            .collect();
        before = size;
    }
    if rest.is_empty() {
        return erf(deviations / SQRT_2);
    }
    (0..POINTS).map(|point| weight(point) * density[point]).sum::<f64>() * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C. Jennison and B. W. Turnbull, "Group Sequential Methods with Applications to Clinical Trials"
    /// (2000), table 2.1: Pocock's constants for looks of equal size.
    #[test]
    fn deviations_are_those_of_pococks_table() {
        for (confidence, looks, expected) in [
            (0.95, 1, 1.960),
            (0.95, 2, 2.178),
            (0.95, 3, 2.289),
            (0.95, 5, 2.413),
            (0.95, 10, 2.555),
            (0.99, 2, 2.772),
            (0.99, 5, 2.986),
            (0.90, 5, 2.122),
        ] {
            let sizes: Vec<u64> = (1..=looks).map(|look| look * 100).collect();
            let found = deviations(&sizes, Confidence::new(confidence).unwrap());
            assert!((found - expected).abs() < 1.2e-3, "{confidence} {looks}: {found}");
        }
    }

    #[test]
    fn looks_are_known_from_the_margin_alone() {
        let looks = Looks::new(0.05, Confidence::P95, 1000).unwrap();
        assert_eq!(looks.sizes, [50, 75, 112, 168, 252, 378, 567, 850, 1000]);
        assert!(looks.deviations > 2.4 && looks.deviations < 2.7, "{looks:?}");
        assert_eq!(Looks::new(0.05, Confidence::P95, 10).unwrap().sizes, [10]);
        assert_eq!(Looks::new(0.01, Confidence::P95, 190).unwrap().sizes, [190]);
        assert!(Looks::new(0.0, Confidence::P95, 10).is_err());
        assert!(Looks::new(1e-12, Confidence::P95, u64::MAX).is_ok());
    }

    /// Whatever the rate, the last look is narrow enough. The control: a fifth less is not.
    #[test]
    fn enough_is_enough_for_every_rate() {
        for (margin, confidence) in [(0.05, 0.95), (0.01, 0.99), (0.2, 0.9)] {
            let looks = Looks::enough(margin, Confidence::new(confidence).unwrap(), 1.0).unwrap();
            let widest = |trials: u64| {
                let nominal = Confidence::within(looks.deviations);
                crate::wilson(trials / 2, trials, nominal).half_width()
            };
            let last = *looks.sizes.last().unwrap();
            assert!(widest(last) <= margin, "{margin} {confidence} {looks:?}");
            assert!(widest(last - last / 5) > margin, "{margin} {confidence} {looks:?}");
            let parts = Looks::enough(margin, Confidence::new(confidence).unwrap(), 0.1).unwrap();
            assert!(*parts.sizes.last().unwrap() > 10 * last);
        }
    }
}
