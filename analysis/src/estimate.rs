//! Estimates of a rate from a stratified sample.

use crate::interval::{clopper_pearson_of, wilson_of};
use crate::{Confidence, Interval};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The method that computes the interval of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`wilson` or `clopper_pearson`")]
pub enum IntervalMethod {
    /// Wilson score interval, whose mean coverage over all rates is the stated confidence.
    #[default]
    Wilson,
    /// Clopper-Pearson interval, whose coverage is at least the stated confidence for every rate; for rare
    /// outcomes.
    ClopperPearson,
}

impl IntervalMethod {
    /// Name for readers.
    pub fn name(self) -> &'static str {
        match self {
            IntervalMethod::Wilson => "Wilson",
            IntervalMethod::ClopperPearson => "Clopper-Pearson",
        }
    }

    fn interval(self, rate: f64, trials: f64, confidence: Confidence) -> Interval {
        match self {
            IntervalMethod::Wilson => wilson_of(rate, trials, confidence),
            IntervalMethod::ClopperPearson => clopper_pearson_of(rate, trials, confidence),
        }
    }
}

/// The injections of one domain (a subset of the fault space, such as a scope) in one stratum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StratumSample {
    /// Injections into the domain with the outcome.
    pub hits: u64,
    /// Injections into the domain, 1 or more.
    pub domain_trials: u64,
    /// Injections into the stratum, inside or outside of the domain.
    pub stratum_trials: u64,
    /// Size of the stratum in the fault space, relative to the other strata.
    pub weight: f64,
    /// Fault sites of the stratum, if they were drawn without replacement and each has one outcome.
    pub sites: Option<u64>,
}

impl StratumSample {
    fn rate(&self) -> f64 {
        self.hits as f64 / self.domain_trials as f64
    }

    /// Estimated size of the domain within the stratum, in units of the stratum weights.
    fn domain_weight(&self) -> f64 {
        self.weight * self.domain_trials as f64 / self.stratum_trials as f64
    }

    /// The finite population correction, a factor of the variance: W. G. Cochran, "Sampling Techniques"
    /// (1977), section 2.6.
    fn correction(&self) -> f64 {
        match self.sites {
            Some(sites) if sites <= self.stratum_trials => 0.0,
            Some(sites) => (sites - self.stratum_trials) as f64 / (sites - 1).max(1) as f64,
            None => 1.0,
        }
    }

    fn interval(&self, method: IntervalMethod, confidence: Confidence) -> Interval {
        let rate = self.rate();
        match self.correction() {
            0.0 => Interval { low: rate, high: rate },
            correction => method.interval(rate, self.domain_trials as f64 / correction, confidence),
        }
    }
}

/// Estimates the rate of an outcome in a domain, with its interval, from the domain's injections in each
/// stratum; `None` without injections. `unseen` are the weights of strata without injections, which can
/// have any rate.
///
/// The rate is the mean of the strata's rates, weighted by the domain's size in each. The distances of the
/// limits from the rate are those of the strata, combined like standard deviations: G. Y. Zou, W. Huang and
/// X. Zhang, "A note on confidence interval estimation for a linear function of binomial proportions",
/// Computational Statistics and Data Analysis 53 (2009). A single stratum keeps its interval. If the size of
/// the domain in a stratum is itself estimated, its variance is added: Cochran, section 5A.14.
pub(crate) fn estimate(
    samples: &[StratumSample],
    unseen: &[f64],
    method: IntervalMethod,
    confidence: Confidence,
) -> Option<(f64, Interval)> {
    if samples.is_empty() {
        return None;
    }
    if let ([sample], []) = (samples, unseen) {
        return Some((sample.rate(), sample.interval(method, confidence)));
    }
    let seen: f64 = samples.iter().map(StratumSample::domain_weight).sum();
    let total = seen + unseen.iter().sum::<f64>();
    // Rounding could bring the weighted sum of rates of 1 above or below 1.
    let is_always_hit = samples.iter().all(|sample| sample.hits == sample.domain_trials);
    let weighted: f64 =
        samples.iter().map(|sample| sample.domain_weight() / seen * sample.rate()).sum();
    let rate = if is_always_hit { 1.0 } else { weighted.min(1.0) };
    let z_score = confidence.z_score();
    // Squared distances of the limits from the rate.
    let (mut below, mut above) = (0.0, 0.0);
    for weight in unseen {
        below += (weight / total * rate).powi(2);
        above += (weight / total * (1.0 - rate)).powi(2);
    }
    for sample in samples {
        let (share, mean) = (sample.domain_weight() / total, sample.rate());
        let interval = sample.interval(method, confidence);
        let domain_share = sample.domain_trials as f64 / sample.stratum_trials as f64;
        let size = sample.weight / total * (mean - rate) * z_score;
        let size_variance = size * size * domain_share * (1.0 - domain_share)
            / sample.stratum_trials as f64
            * sample.correction();
        below += (share * (mean - interval.low)).powi(2) + size_variance;
        above += (share * (interval.high - mean)).powi(2) + size_variance;
    }
    // Rounding must not move the limits of the rates 0 and 1.
    let low = if rate <= 0.0 { 0.0 } else { (rate - below.sqrt()).max(0.0) };
    let high = if rate >= 1.0 { 1.0 } else { (rate + above.sqrt()).min(1.0) };
    Some((rate, Interval { low, high }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clopper_pearson, wilson};

    const WILSON: IntervalMethod = IntervalMethod::Wilson;

    fn sample(hits: u64, trials: u64, weight: f64) -> StratumSample {
        StratumSample { hits, domain_trials: trials, stratum_trials: trials, weight, sites: None }
    }

    #[test]
    fn single_stratum_has_the_interval_of_its_method() {
        let samples = [sample(7, 90, 0.3)];
        let with = |method| estimate(&samples, &[], method, Confidence::P95).unwrap();
        assert_eq!(with(WILSON), (7.0 / 90.0, wilson(7, 90, Confidence::P95)));
        let exact = with(IntervalMethod::ClopperPearson).1;
        assert_eq!(exact, clopper_pearson(7, 90, Confidence::P95));
        assert_eq!(estimate(&[], &[0.1], WILSON, Confidence::P95), None);
    }

    /// Zou, Huang and Zhang's formula for two strata, with Wilson's limits computed by hand: 0.236593 and
    /// 0.763407 for 5 of 10, and 0 and 0.003827 for 0 of 1,000.
    #[test]
    fn strata_limits_combine_like_standard_deviations() {
        let (rate, interval) =
            estimate(&[sample(5, 10, 0.5), sample(0, 1000, 0.5)], &[], WILSON, Confidence::P95)
                .unwrap();
        assert!((rate - 0.25).abs() < 1e-12);
        assert!((interval.low - (0.25 - 0.5 * 0.263407)).abs() < 1e-6, "{interval:?}");
        let above = 0.5 * (0.263407_f64.powi(2) + 0.003827_f64.powi(2)).sqrt();
        assert!((interval.high - (0.25 + above)).abs() < 1e-6, "{interval:?}");
    }

    /// A domain whose size in each stratum is estimated, with many trials. The expected variance is
    /// Cochran's for a ratio: sum of W^2 / n * (mean of squares of (y - r x)) / X^2.
    #[test]
    fn uncertain_domain_size_widens_the_interval() {
        struct Stratum {
            weight: f64,
            trials: f64,
            domain_share: f64,
            rate: f64,
        }
        let strata = [
            Stratum { weight: 0.6, trials: 100_000.0, domain_share: 0.3, rate: 0.8 },
            Stratum { weight: 0.4, trials: 50_000.0, domain_share: 0.5, rate: 0.1 },
        ];
        let size: f64 = strata.iter().map(|stratum| stratum.weight * stratum.domain_share).sum();
        let hits = |stratum: &Stratum| stratum.weight * stratum.domain_share * stratum.rate;
        let ratio = strata.iter().map(hits).sum::<f64>() / size;
        let variance: f64 = strata
            .iter()
            .map(|Stratum { weight, trials, domain_share, rate }| {
                let squares = rate * (1.0 - ratio) * (1.0 - ratio) + (1.0 - rate) * ratio * ratio;
                let mean = domain_share * (rate - ratio);
                weight * weight / trials * (domain_share * squares - mean * mean)
            })
            .sum::<f64>()
            / (size * size);
        let samples = strata.map(|Stratum { weight, trials, domain_share, rate }| {
            let domain_trials = trials * domain_share;
            StratumSample {
                hits: (domain_trials * rate) as u64,
                domain_trials: domain_trials as u64,
                stratum_trials: trials as u64,
                weight,
                sites: None,
            }
        });
        let (rate, interval) = estimate(&samples, &[], WILSON, Confidence::P95).unwrap();
        assert!((rate - ratio).abs() < 1e-9);
        let expected = 1.959964 * variance.sqrt();
        assert!((interval.half_width() / expected - 1.0).abs() < 1e-3, "{interval:?} {expected}");
    }

    /// A tenth of the fault space has no injections, so the overall rate is off by at most a tenth.
    #[test]
    fn strata_without_injections_can_have_any_rate() {
        let samples = [sample(500_000, 1_000_000, 0.9)];
        let (rate, interval) = estimate(&samples, &[0.1], WILSON, Confidence::P95).unwrap();
        assert!((rate - 0.5).abs() < 1e-12);
        assert!((interval.half_width() - 0.05).abs() < 1e-4, "{interval:?}");
    }

    #[test]
    fn exhaustive_sampling_leaves_no_uncertainty() {
        let exhaustive = StratumSample { sites: Some(90), ..sample(7, 90, 1.0) };
        let (rate, interval) = estimate(&[exhaustive], &[], WILSON, Confidence::P95).unwrap();
        assert_eq!((interval.low, interval.high), (rate, rate));
        let half_width = |sites| {
            let sample = StratumSample { sites, ..sample(7, 90, 1.0) };
            estimate(&[sample], &[], WILSON, Confidence::P95).unwrap().1.half_width()
        };
        // Sampling half of the sites leaves half of the variance; sampling almost none leaves all of it.
        assert!((half_width(Some(179)) / half_width(None) - 0.5_f64.sqrt()).abs() < 0.02);
        assert!((half_width(Some(1 << 40)) / half_width(None) - 1.0).abs() < 1e-6);
    }
}
