//! Confidence intervals of a rate that is estimated by counting.

use serde::{Deserialize, Serialize};
use statrs::function::{
    beta::beta_reg,
    erf::{erf, erf_inv},
};
use std::fmt;

/// Probability with which an interval contains the true rate, above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(into = "f64", try_from = "f64")]
pub struct Confidence(f64);

impl Confidence {
    /// 95 %.
    pub const P95: Confidence = Confidence(0.95);
    /// 99 %.
    pub const P99: Confidence = Confidence(0.99);

    /// Creates a confidence from a probability.
    ///
    /// # Errors
    /// [`StatisticsError::Confidence`] unless the probability lies between 0 and 1, both excluded.
    pub fn new(probability: f64) -> Result<Confidence, StatisticsError> {
        if probability > 0.0 && probability < 1.0 {
            Ok(Confidence(probability))
        } else {
            Err(StatisticsError::Confidence(probability))
        }
    }

    /// The confidence as a probability.
    pub fn probability(self) -> f64 {
        self.0
    }

    /// The two-sided normal quantile: the number of standard deviations within which a normal variable
    /// lies with this probability, 1.96 for 95 %.
    pub(crate) fn z_score(self) -> f64 {
        std::f64::consts::SQRT_2 * erf_inv(self.0)
    }

    /// The probability with which a normal variable lies within `z_score` standard deviations.
    pub(crate) fn from_z_score(z_score: f64) -> Confidence {
        Confidence(erf(z_score / std::f64::consts::SQRT_2))
    }
}

impl From<Confidence> for f64 {
    fn from(confidence: Confidence) -> f64 {
        confidence.0
    }
}

impl TryFrom<f64> for Confidence {
    type Error = StatisticsError;

    fn try_from(probability: f64) -> Result<Confidence, StatisticsError> {
        Confidence::new(probability)
    }
}

impl fmt::Display for Confidence {
    /// Formats the confidence in percent: `95 %`, `99.8 %`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In floating point, 100 times 0.998 is not exactly 99.8.
        write!(f, "{} %", (self.0 * 1e12).round() / 1e10)
    }
}

/// Errors returned for statistical parameters outside their range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum StatisticsError {
    /// The confidence is not between 0 and 1.
    #[error("invalid confidence {0}: expected a number between 0 and 1, such as 0.95")]
    Confidence(f64),
    /// The margin of error is not between 0 and 1.
    #[error("invalid margin {0}: expected a number between 0 and 1, such as 0.01")]
    Margin(f64),
    /// The expected rate is not between 0 and 1.
    #[error("invalid expected rate {0}: expected a number between 0 and 1, such as 0.5")]
    Rate(f64),
}

/// An interval of rates between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lowest rate.
    pub low: f64,
    /// The highest rate.
    pub high: f64,
}

impl Interval {
    /// The interval of a rate without trials: all rates.
    pub(crate) const FULL: Interval = Interval { low: 0.0, high: 1.0 };

    /// Half of the interval's width.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The Wilson score interval of the rate of `successes` out of `trials`: E. B. Wilson,
/// "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22 (1927).
/// Without trials, the interval from 0 to 1; `successes` is capped at `trials`.
pub fn wilson(successes: u64, trials: u64, confidence: Confidence) -> Interval {
    if trials == 0 {
        return Interval::FULL;
    }
    wilson_of(successes.min(trials) as f64 / trials as f64, trials as f64, confidence)
}

/// The Wilson score interval of a measured `rate`. `trials` need not be an integer: for weighted trials
/// it is the effective sample size, the number of equally weighted trials with the same variance.
pub(crate) fn wilson_of(rate: f64, trials: f64, confidence: Confidence) -> Interval {
    let (n, z) = (trials, confidence.z_score());
    let scale = 1.0 + z * z / n;
    let centre = (rate + z * z / (2.0 * n)) / scale;
    let half = z / scale * (rate * (1.0 - rate) / n + z * z / (4.0 * n * n)).sqrt();
    // For the rates 0 and 1 the formula gives the limits 0 and 1 up to rounding.
    Interval {
        low: if rate <= 0.0 { 0.0 } else { (centre - half).max(0.0) },
        high: if rate >= 1.0 { 1.0 } else { (centre + half).min(1.0) },
    }
}

/// The Clopper-Pearson interval, whose coverage is at least `confidence` for every true rate and which is
/// therefore wider than Wilson's: C. J. Clopper and E. S. Pearson, "The Use of Confidence or
/// Fiducial Limits Illustrated in the Case of the Binomial", Biometrika 26 (1934). Without
/// trials, the interval from 0 to 1; `successes` is capped at `trials`.
pub fn clopper_pearson(successes: u64, trials: u64, confidence: Confidence) -> Interval {
    if trials == 0 {
        return Interval::FULL;
    }
    clopper_pearson_of(successes.min(trials) as f64 / trials as f64, trials as f64, confidence)
}

/// The Clopper-Pearson interval of a measured `rate`, for an effective sample size of `trials`, which need
/// not be an integer: E. L. Korn and B. I. Graubard, "Confidence Intervals for Proportions with Small
/// Expected Number of Positive Counts Estimated from Survey Data", Survey Methodology 24 (1998).
pub(crate) fn clopper_pearson_of(rate: f64, trials: f64, confidence: Confidence) -> Interval {
    let (hits, misses) = (rate * trials, (1.0 - rate) * trials);
    let tail = (1.0 - confidence.probability()) / 2.0;
    Interval {
        low: if rate <= 0.0 { 0.0 } else { beta_quantile(hits, misses + 1.0, tail) },
        high: if rate >= 1.0 { 1.0 } else { beta_quantile(hits + 1.0, misses, 1.0 - tail) },
    }
}

/// The quantile of the beta distribution with parameters `a` and `b`, to within the precision of a double.
/// Computed by bisection, as the regularised incomplete beta function is monotonic.
fn beta_quantile(a: f64, b: f64, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    loop {
        let middle = (low + high) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if beta_reg(a, b, middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(interval: Interval, low: f64, high: f64, tolerance: f64) {
        assert!((interval.low - low).abs() < tolerance, "{interval:?}, expected {low}..{high}");
        assert!((interval.high - high).abs() < tolerance, "{interval:?}, expected {low}..{high}");
    }

    #[test]
    fn z_scores_match_normal_tables() {
        for (probability, z_score) in [
            (0.6826894921370859, 1.0),
            (0.95, 1.959963984540054),
            (0.99, 2.5758293035489004),
            (0.998, 3.090232306167813),
        ] {
            let found = Confidence::new(probability).unwrap().z_score();
            assert!((found - z_score).abs() < 1e-12, "{probability}: {found}");
        }
    }

    #[test]
    fn confidence_is_displayed_without_rounding_noise() {
        for (probability, text) in [(0.95, "95 %"), (0.99, "99 %"), (0.998, "99.8 %")] {
            assert_eq!(Confidence::new(probability).unwrap().to_string(), text);
        }
        assert_eq!(Confidence::new(0.999_999).unwrap().to_string(), "99.9999 %");
    }

    #[test]
    fn out_of_range_confidences_are_rejected() {
        for probability in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
            assert!(Confidence::new(probability).is_err(), "{probability}");
        }
    }

    /// R. G. Newcombe, "Two-Sided Confidence Intervals for the Single Proportion", Statistics in
    /// Medicine 17 (1998), table I, methods 3 (Wilson) and 5 (Clopper-Pearson).
    #[test]
    fn intervals_match_newcombes_table() {
        for (successes, trials, wilson_expected, exact_expected) in [
            (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
            (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
            (0, 20, (0.0, 0.1611), (0.0, 0.1684)),
            (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
        ] {
            let (low, high) = wilson_expected;
            assert_close(wilson(successes, trials, Confidence::P95), low, high, 5.1e-5);
            let (low, high) = exact_expected;
            assert_close(clopper_pearson(successes, trials, Confidence::P95), low, high, 5.1e-5);
        }
    }

    /// Without successes in n trials, the upper limit p solves (1 - p)^n = tail.
    #[test]
    fn upper_limit_is_positive_without_successes() {
        assert_close(wilson(0, 1000, Confidence::P95), 0.0, 0.003827, 5e-7);
        let exact = 1.0 - 0.025_f64.powf(1.0 / 1000.0);
        assert_close(clopper_pearson(0, 1000, Confidence::P95), 0.0, exact, 1e-12);
    }

    /// The defining property of the Clopper-Pearson interval, with explicitly summed binomial tails.
    #[test]
    fn clopper_pearson_limits_cut_off_equal_binomial_tails() {
        let term = |n: u64, k: u64, p: f64| {
            let choose: f64 = (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product();
            choose * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)
        };
        for (k, n) in [(1, 10), (3, 17), (9, 10), (40, 100)] {
            let Interval { low, high } = clopper_pearson(k, n, Confidence::P99);
            let above: f64 = (k..=n).map(|i| term(n, i, low)).sum();
            let below: f64 = (0..=k).map(|i| term(n, i, high)).sum();
            assert!((above - 0.005).abs() < 1e-10, "{k} of {n}: {above}");
            assert!((below - 0.005).abs() < 1e-10, "{k} of {n}: {below}");
        }
    }

    #[test]
    fn intervals_contain_the_rate_and_stay_between_zero_and_one() {
        for trials in 1..60 {
            for successes in 0..=trials {
                let rate = successes as f64 / trials as f64;
                for interval in [
                    wilson(successes, trials, Confidence::P99),
                    clopper_pearson(successes, trials, Confidence::P99),
                ] {
                    assert!(0.0 <= interval.low && interval.low <= rate, "{interval:?}");
                    assert!(rate <= interval.high && interval.high <= 1.0, "{interval:?}");
                }
            }
        }
        assert_eq!(wilson(0, 0, Confidence::P95), Interval::FULL);
        assert_eq!(clopper_pearson(0, 0, Confidence::P95), Interval::FULL);
    }
}
