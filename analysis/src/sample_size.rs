//! The number of injections needed for a margin of error.

use crate::{Confidence, StatisticsError};

/// The number of injections, drawn with replacement from `sites` fault sites, after which an
/// estimated rate is within `margin` of the true rate with `confidence`:
/// n = N / (1 + e² (N - 1) / (t² p (1 - p))), rounded up; R. Leveugle et al., "Statistical Fault
/// Injection: Quantified Error and Confidence", DATE 2009. `margin` is absolute: 0.01 is one
/// percentage point to either side. `expected_rate` is p; use 0.5 if it is unknown, which gives the
/// largest number.
///
/// The reduction for small N only holds for sampling without replacement (W. G. Cochran,
/// "Sampling Techniques" (1977), sections 2.6 and 4.4). The result is therefore at least the number for
/// which the reported [`wilson`](crate::wilson) interval is within the margin: its half-width is
/// t √(p (1 - p) / n + t² / 4n²) / (1 + t² / n), which at p = 0.5 is at most e for
/// n ≥ t² / 4e² - t².
///
/// # Errors
/// [`StatisticsError`] unless margin and expected rate lie between 0 and 1, both excluded.
pub fn sample_size(
    sites: u64,
    margin: f64,
    confidence: Confidence,
    expected_rate: f64,
) -> Result<u64, StatisticsError> {
    let is_in_range = |value: f64| value > 0.0 && value < 1.0;
    if !is_in_range(margin) {
        return Err(StatisticsError::Margin(margin));
    }
    if !is_in_range(expected_rate) {
        return Err(StatisticsError::Rate(expected_rate));
    }
    if sites == 0 {
        return Ok(0);
    }
    let n = sites as f64;
    let (squared, t) = (margin * margin, confidence.z_score());
    let variance = expected_rate * (1.0 - expected_rate);
    let leveugle = n / (1.0 + squared * (n - 1.0) / (t * t * variance));
    let wilson = t * t * variance / squared - t * t;
    Ok((leveugle.max(wilson).ceil() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wilson;

    fn size(sites: u64, margin: f64, confidence: f64) -> u64 {
        sample_size(sites, margin, Confidence::new(confidence).unwrap(), 0.5).unwrap()
    }

    #[test]
    fn large_fault_spaces_need_the_published_sizes() {
        for sites in [1 << 40, u64::MAX] {
            assert_eq!(size(sites, 0.05, 0.95), 385);
            assert_eq!(size(sites, 0.01, 0.95), 9_604);
            assert_eq!(size(sites, 0.05, 0.99), 664);
            assert_eq!(size(sites, 0.01, 0.99), 16_588);
            assert_eq!(size(sites, 0.05, 0.998), 955);
            assert_eq!(size(sites, 0.01, 0.998), 23_874);
            assert_eq!(size(sites, 1e-300, 0.95), u64::MAX);
        }
    }

    /// Computed by hand: t² / 4e² - t² = 3.841459 / 0.01 - 3.841459 = 380.3. Without replacement, 1,000
    /// sites would need 278.
    #[test]
    fn small_fault_spaces_need_hardly_fewer() {
        assert_eq!((size(1000, 0.05, 0.95), size(1, 0.05, 0.95)), (381, 381));
        assert_eq!((size(1, 0.9, 0.5), size(0, 0.05, 0.95)), (1, 0));
    }

    /// Negative control: with a tenth fewer injections, some interval exceeds the margin.
    #[test]
    fn wilson_interval_is_within_the_margin_for_every_rate() {
        for (margin, confidence) in [(0.05, 0.95), (0.03, 0.99), (0.2, 0.9), (0.4, 0.998)] {
            let level = Confidence::new(confidence).unwrap();
            let widest = |trials: u64| {
                let half_widths = (0..=trials).map(|hits| wilson(hits, trials, level).half_width());
                half_widths.fold(0.0, f64::max)
            };
            for sites in [1, 1000, 1 << 40] {
                let size = size(sites, margin, confidence);
                assert!(widest(size) <= margin, "{margin} {confidence} {sites}: {size}");
                if margin < 0.1 {
                    assert!(widest(size - size / 10) > margin, "{margin} {confidence}");
                }
            }
        }
    }

    #[test]
    fn out_of_range_parameters_are_rejected() {
        let size = |margin, rate| sample_size(1000, margin, Confidence::P95, rate);
        assert_eq!(size(5.0, 0.5), Err(StatisticsError::Margin(5.0)));
        assert_eq!(size(0.0, 0.5), Err(StatisticsError::Margin(0.0)));
        assert!(size(f64::NAN, 0.5).is_err());
        assert_eq!(size(0.05, 1.0), Err(StatisticsError::Rate(1.0)));
    }
}
