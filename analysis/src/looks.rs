//! The schedule of interim looks at a campaign, and how much its intervals must be widened for them.

use crate::{Confidence, StatisticsError, sample_size};
use statrs::function::erf::erf;
use std::f64::consts::{PI, SQRT_2};

/// The injection counts after which a campaign checks the precision of its rates. They are fixed before the
/// first injection, so that the stopping point does not depend on shards or workers.
///
/// Intervals are repeated confidence intervals: C. Jennison and B. W. Turnbull, "Interim Analyses: The
/// Repeated Confidence Interval Approach", Journal of the Royal Statistical Society B 51 (1989). They span
/// the same number of standard deviations at all looks (S. J. Pocock, Biometrika 64 (1977)), chosen such
/// that all intervals of a rate contain it simultaneously with the stated confidence. The reported interval
/// keeps its confidence whatever is decided at a look.
#[derive(Clone, Debug, PartialEq)]
pub struct LookSchedule {
    /// Injections at each look, ascending. The campaign ends at the last look.
    pub sizes: Vec<u64>,
    /// Standard deviations that intervals span to each side.
    pub z_score: f64,
}

/// Fewest injections at the first look.
const MIN_FIRST: u64 = 50;

/// The size of the next look: half as many injections more.
fn next(size: u64) -> u64 {
    size.saturating_add(size / 2)
}

impl LookSchedule {
    /// The looks of a campaign that stops when its intervals are within `margin` to each side, or after
    /// `max_injections`. The first look is where the interval of an outcome that never occurred is narrow
    /// enough.
    ///
    /// # Errors
    /// [`StatisticsError::Margin`] unless the margin lies between 0 and 1.
    pub fn new(
        margin: f64,
        confidence: Confidence,
        max_injections: u64,
    ) -> Result<LookSchedule, StatisticsError> {
        if !(margin > 0.0 && margin < 1.0) {
            return Err(StatisticsError::Margin(margin));
        }
        // Without hits, Wilson's interval ends at t² / (n + t²).
        let squared = confidence.z_score().powi(2);
        let first = (squared * (0.5 / margin - 1.0)).ceil() as u64;
        let mut sizes = vec![first.max(MIN_FIRST)];
        while let Some(last) = sizes.last().copied().filter(|last| *last < max_injections) {
            sizes.push(next(last));
        }
        sizes.pop();
        // A look shortly before the end costs more than it saves.
        if let Some(last) = sizes.last()
            && max_injections - last < max_injections / 10
        {
            sizes.pop();
        }
        sizes.push(max_injections);
        let z_score = repeated_z_score(&sizes, confidence);
        Ok(LookSchedule { sizes, z_score })
    }

    /// The looks of a campaign whose last look meets `margin` whatever the rates are. `smallest_share` is
    /// the fraction of the injections in the smallest scope whose rates must meet the margin.
    ///
    /// # Errors
    /// [`StatisticsError::Margin`] unless the margin lies between 0 and 1.
    pub fn for_any_rate(
        margin: f64,
        confidence: Confidence,
        smallest_share: f64,
    ) -> Result<LookSchedule, StatisticsError> {
        let mut looks = LookSchedule { sizes: Vec::new(), z_score: confidence.z_score() };
        // More looks widen the intervals, which takes more injections and thus more looks; each iteration
        // adds injections until they are sufficient.
        loop {
            let widened = Confidence::from_z_score(looks.z_score);
            let in_scope = sample_size(u64::MAX, margin, widened, 0.5)? as f64;
            // The number of injections that fall into the scope varies; three standard deviations more
            // are nearly always sufficient.
            let in_scope = in_scope + 3.0 * (in_scope * (1.0 - smallest_share)).sqrt();
            let needed = (in_scope / smallest_share).ceil().min(u64::MAX as f64) as u64;
            if looks.sizes.last().is_some_and(|last| *last >= needed) {
                return Ok(looks);
            }
            looks = LookSchedule::new(margin, confidence, needed)?;
        }
    }
}

/// Points at which densities are evaluated; odd, for Simpson's rule.
const POINTS: usize = 161;

/// Bisection steps for the z-score.
const STEPS: u32 = 24;

/// The number of standard deviations within which a normal sum stays at all of `sizes` with probability
/// `confidence`, rounded up to four decimals to hide differences between hosts in floating-point rounding.
fn repeated_z_score(sizes: &[u64], confidence: Confidence) -> f64 {
    let (mut low, mut high) = (confidence.z_score(), 10.0);
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

/// The probability that a sum of independent normal variables is within `z_score` of its standard
/// deviations at all of `sizes`, by the recursion of P. Armitage, C. K. McPherson and B. C. Rowe,
/// "Repeated Significance Tests on Accumulating Data", Journal of the Royal Statistical Society A 132
/// (1969), with Simpson's rule.
fn stays_within(z_score: f64, sizes: &[u64]) -> f64 {
    let Some((first, later)) = sizes.split_first() else { return 1.0 };
    let normal = |x: f64| (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
    // At each look the sum is in units of its current standard deviation.
    let step = 2.0 * z_score / (POINTS - 1) as f64;
    let at = |point: usize| point as f64 * step - z_score;
    let weight = |point: usize| match point {
        0 => 1.0,
        last if last == POINTS - 1 => 1.0,
        odd if odd % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let mut density: Vec<f64> = (0..POINTS).map(|point| normal(at(point))).collect();
    let mut previous = *first as f64;
    for size in later {
        let size = *size as f64;
        // In the new units the previous sum is scaled by `scale`, and the added terms have the standard
        // deviation `added`.
        let (scale, added) = ((previous / size).sqrt(), (1.0 - previous / size).sqrt());
        density = (0..POINTS)
            .map(|to| {
                let sum: f64 = (0..POINTS)
                    .map(|from| {
                        weight(from) * density[from] * normal((at(to) - scale * at(from)) / added)
                    })
                    .sum();
                sum * step / 3.0 / added
            })
            .collect();
        previous = size;
    }
    if later.is_empty() {
        return erf(z_score / SQRT_2);
    }
    (0..POINTS).map(|point| weight(point) * density[point]).sum::<f64>() * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C. Jennison and B. W. Turnbull, "Group Sequential Methods with Applications to Clinical Trials"
    /// (2000), table 2.1: Pocock's constants for looks of equal size.
    #[test]
    fn z_scores_match_pococks_table() {
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
            let found = repeated_z_score(&sizes, Confidence::new(confidence).unwrap());
            assert!((found - expected).abs() < 1.2e-3, "{confidence} {looks}: {found}");
        }
    }

    #[test]
    fn looks_depend_on_margin_and_limit_only() {
        let looks = LookSchedule::new(0.05, Confidence::P95, 1000).unwrap();
        assert_eq!(looks.sizes, [50, 75, 112, 168, 252, 378, 567, 850, 1000]);
        assert!(looks.z_score > 2.4 && looks.z_score < 2.7, "{looks:?}");
        assert_eq!(LookSchedule::new(0.05, Confidence::P95, 10).unwrap().sizes, [10]);
        assert_eq!(LookSchedule::new(0.01, Confidence::P95, 190).unwrap().sizes, [190]);
        assert!(LookSchedule::new(0.0, Confidence::P95, 10).is_err());
        assert!(LookSchedule::new(1e-12, Confidence::P95, u64::MAX).is_ok());
    }

    /// Negative control: a fifth fewer injections do not meet the margin.
    #[test]
    fn last_look_meets_the_margin_for_every_rate() {
        for (margin, confidence) in [(0.05, 0.95), (0.01, 0.99), (0.2, 0.9)] {
            let level = Confidence::new(confidence).unwrap();
            let looks = LookSchedule::for_any_rate(margin, level, 1.0).unwrap();
            let widest = |trials: u64| {
                let widened = Confidence::from_z_score(looks.z_score);
                crate::wilson(trials / 2, trials, widened).half_width()
            };
            let last = *looks.sizes.last().unwrap();
            assert!(widest(last) <= margin, "{margin} {confidence} {looks:?}");
            assert!(widest(last - last / 5) > margin, "{margin} {confidence} {looks:?}");
            let small_scope = LookSchedule::for_any_rate(margin, level, 0.1).unwrap();
            assert!(*small_scope.sizes.last().unwrap() > 10 * last);
        }
    }
}
