//! How many injections a margin of error takes.

use crate::{Confidence, StatisticsError};

/// The number of injections, drawn from `population` possible faults, after which an estimated
/// rate is within `margin` of the true one with `confidence`:
/// n = N / (1 + e² (N - 1) / (t² p (1 - p))), rounded up; R. Leveugle et al., "Statistical Fault
/// Injection: Quantified Error and Confidence", DATE 2009. `margin` is absolute: 0.01 is one
/// percentage point to either side. `expected_rate` is p; 0.5 when it is unknown, which asks
/// for the most.
///
/// # Errors
/// [`StatisticsError`] unless margin and expected rate lie between 0 and 1, both excluded.
pub fn sample_size(
    population: u64,
    margin: f64,
    confidence: Confidence,
    expected_rate: f64,
) -> Result<u64, StatisticsError> {
    let inside = |value: f64| value > 0.0 && value < 1.0;
    if !inside(margin) {
        return Err(StatisticsError::Margin(margin));
    }
    if !inside(expected_rate) {
        return Err(StatisticsError::Rate(expected_rate));
    }
    if population == 0 {
        return Ok(0);
    }
    let n = population as f64;
    let t = confidence.deviations();
    let variance = expected_rate * (1.0 - expected_rate);
    let size = n / (1.0 + margin * margin * (n - 1.0) / (t * t * variance));
    // Rounding must not ask for more than there is.
    Ok((size.ceil() as u64).clamp(1, population))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(population: u64, margin: f64, confidence: f64) -> u64 {
        sample_size(population, margin, Confidence::new(confidence).unwrap(), 0.5).unwrap()
    }

    #[test]
    fn large_populations_need_the_published_sizes() {
        for population in [1 << 40, u64::MAX] {
            assert_eq!(size(population, 0.05, 0.95), 385);
            assert_eq!(size(population, 0.01, 0.95), 9_604);
            assert_eq!(size(population, 0.05, 0.99), 664);
            assert_eq!(size(population, 0.01, 0.99), 16_588);
            assert_eq!(size(population, 0.05, 0.998), 955);
            assert_eq!(size(population, 0.01, 0.998), 23_874);
        }
    }

    /// By hand: t² p (1 - p) = 3.841459 / 4 = 0.960365; e² (N - 1) = 0.0025 * 999 = 2.4975;
    /// 1000 / (1 + 2.4975 / 0.960365) = 277.74.
    #[test]
    fn small_populations_need_less() {
        assert_eq!(size(1000, 0.05, 0.95), 278);
    }

    #[test]
    fn no_sample_exceeds_its_population() {
        for population in 0..200 {
            assert!(size(population, 1e-9, 0.998) <= population);
        }
        assert_eq!(size(1, 0.9, 0.5), 1);
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let size = |margin, rate| sample_size(1000, margin, Confidence::P95, rate);
        assert_eq!(size(5.0, 0.5), Err(StatisticsError::Margin(5.0)));
        assert_eq!(size(0.0, 0.5), Err(StatisticsError::Margin(0.0)));
        assert!(size(f64::NAN, 0.5).is_err());
        assert_eq!(size(0.05, 1.0), Err(StatisticsError::Rate(1.0)));
    }
}
