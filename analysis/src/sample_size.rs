//! How many injections a margin of error takes.

use crate::{Confidence, StatisticsError};

/// The number of injections, drawn with replacement from `population` possible faults, after which an
/// estimated rate is within `margin` of the true one with `confidence`:
/// n = N / (1 + e² (N - 1) / (t² p (1 - p))), rounded up; R. Leveugle et al., "Statistical Fault
/// Injection: Quantified Error and Confidence", DATE 2009. `margin` is absolute: 0.01 is one
/// percentage point to either side. `expected_rate` is p; 0.5 when it is unknown, which asks
/// for the most.
///
/// That small populations need less holds only where no fault is drawn twice (W. G. Cochran,
/// "Sampling Techniques" (1977), sections 2.6 and 4.4). So it is never fewer than those of which
/// [`wilson`](crate::wilson)'s interval, which is what is reported, is within the margin: half of it
/// is t √(p (1 - p) / n + t² / 4n²) / (1 + t² / n), at p = 0.5 no more than e from
/// n = t² / 4e² - t² on.
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
    let (squared, t) = (margin * margin, confidence.deviations());
    let variance = expected_rate * (1.0 - expected_rate);
    let published = n / (1.0 + squared * (n - 1.0) / (t * t * variance));
    let reported = t * t * variance / squared - t * t;
    Ok((published.max(reported).ceil() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wilson;

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
            assert_eq!(size(population, 1e-300, 0.95), u64::MAX);
        }
    }

    /// By hand: t² / 4e² - t² = 3.841459 / 0.01 - 3.841459 = 380.3; without replacement, of 1,000,
    /// it would be 278.
    #[test]
    fn small_populations_need_hardly_less() {
        assert_eq!((size(1000, 0.05, 0.95), size(1, 0.05, 0.95)), (381, 381));
        assert_eq!((size(1, 0.9, 0.5), size(0, 0.05, 0.95)), (1, 0));
    }

    /// What is asked for holds for what is reported. The control: with a tenth fewer it does not.
    #[test]
    fn the_interval_reported_is_within_the_margin_whatever_the_rate() {
        let asked = [(0.05, 0.95), (0.03, 0.99), (0.2, 0.9), (0.4, 0.998)];
        for ((margin, confidence), population) in
            asked.into_iter().flat_map(|own| [1, 1000, 1 << 40].map(|places| (own, places)))
        {
            let own = Confidence::new(confidence).unwrap();
            let widest = |trials: u64| {
                let halves = (0..=trials).map(|hits| {
                    let interval = wilson(hits, trials, own);
                    (interval.high - interval.low) / 2.0
                });
                halves.fold(0.0, f64::max)
            };
            let size = size(population, margin, confidence);
            assert!(widest(size) <= margin, "{margin} {confidence} {population}: {size}");
            if margin < 0.1 {
                assert!(widest(size - size / 10) > margin, "{margin} {confidence}");
            }
        }
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
