//! Estimates of a rate from strata that were sampled by themselves.

use crate::interval::{clopper_pearson_of, wilson_of};
use crate::{Confidence, Interval};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the interval of a rate is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`wilson` or `clopper_pearson`")]
pub enum IntervalMethod {
    /// Wilson's, whose coverage is as stated on average over all rates.
    #[default]
    Wilson,
    /// Clopper and Pearson's, whose coverage is as stated or more for every rate: for outcomes that
    /// are rare.
    ClopperPearson,
}

impl IntervalMethod {
    /// The method's name in sentences.
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

/// What was found of a part of the population in one stratum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Injections with the outcome.
    pub hits: u64,
    /// Injections into the part, 1 or more.
    pub part: u64,
    /// Injections into the stratum, of the part or not.
    pub stratum: u64,
    /// How much of the population the stratum is, relative to the others.
    pub weight: f64,
    /// Places of the stratum, where none was drawn twice and each has one outcome.
    pub places: Option<u64>,
}

impl Found {
    fn rate(&self) -> f64 {
        self.hits as f64 / self.part as f64
    }

    /// How much of the population the part is in this stratum.
    fn size(&self) -> f64 {
        self.weight * self.part as f64 / self.stratum as f64
    }

    /// By how much the variance is smaller since no place was drawn twice: W. G. Cochran, "Sampling
    /// Techniques" (1977), section 2.6.
    fn correction(&self) -> f64 {
        match self.places {
            Some(places) if places <= self.stratum => 0.0,
            Some(places) => (places - self.stratum) as f64 / (places - 1).max(1) as f64,
            None => 1.0,
        }
    }

    fn interval(&self, method: IntervalMethod, confidence: Confidence) -> Interval {
        let rate = self.rate();
        match self.correction() {
            0.0 => Interval { low: rate, high: rate },
            correction => method.interval(rate, self.part as f64 / correction, confidence),
        }
    }
}

/// The rate of an outcome in a part of the population, and its interval, from what was found of the
/// part in each stratum; nothing of no injections. Strata of which nothing was found can have any rate;
/// `unseen` are their weights.
///
/// The rate is the sum of the strata's rates, each with its size. The interval's limits are as far from
/// it as those of the strata are from theirs, added up as variances are: G. Y. Zou, W. Huang and X. Zhang,
/// "A note on confidence interval estimation for a linear function of binomial proportions",
/// Computational Statistics and Data Analysis 53 (2009). Of one stratum it is that stratum's own. Where
/// it is estimated, too, how much of each stratum belongs to the part, the variance of that is added:
/// Cochran, section 5A.14.
pub(crate) fn estimate(
    found: &[Found],
    unseen: &[f64],
    method: IntervalMethod,
    confidence: Confidence,
) -> Option<(f64, Interval)> {
    if found.is_empty() {
        return None;
    }
    if let ([one], []) = (found, unseen) {
        return Some((one.rate(), one.interval(method, confidence)));
    }
    let seen: f64 = found.iter().map(Found::size).sum();
    let total = seen + unseen.iter().sum::<f64>();
    // Summed in another order, all of them can come to more than all.
    let is_all = found.iter().all(|own| own.hits == own.part);
    let weighted: f64 = found.iter().map(|own| own.size() / seen * own.rate()).sum();
    let rate = if is_all { 1.0 } else { weighted.min(1.0) };
    let deviations = confidence.deviations();
    let (mut below, mut above) = (0.0, 0.0);
    for weight in unseen {
        below += (weight / total * rate).powi(2);
        above += (weight / total * (1.0 - rate)).powi(2);
    }
    for own in found {
        let (share, mean) = (own.size() / total, own.rate());
        let interval = own.interval(method, confidence);
        let inside = own.part as f64 / own.stratum as f64;
        let size = own.weight / total * (mean - rate) * deviations;
        let of_size = size * size * inside * (1.0 - inside) / own.stratum as f64 * own.correction();
        below += (share * (mean - interval.low)).powi(2) + of_size;
        above += (share * (interval.high - mean)).powi(2) + of_size;
    }
    // Rounding leaves something where there is nothing.
    let low = if rate <= 0.0 { 0.0 } else { (rate - below.sqrt()).max(0.0) };
    let high = if rate >= 1.0 { 1.0 } else { (rate + above.sqrt()).min(1.0) };
    Some((rate, Interval { low, high }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clopper_pearson, wilson};

    const WILSON: IntervalMethod = IntervalMethod::Wilson;

    fn found(hits: u64, part: u64, weight: f64) -> Found {
        Found { hits, part, stratum: part, weight, places: None }
    }

    #[test]
    fn one_stratum_has_the_interval_of_its_method() {
        let one = [found(7, 90, 0.3)];
        let of = |method| estimate(&one, &[], method, Confidence::P95).unwrap();
        assert_eq!(of(WILSON), (7.0 / 90.0, wilson(7, 90, Confidence::P95)));
        let exact = of(IntervalMethod::ClopperPearson).1;
        assert_eq!(exact, clopper_pearson(7, 90, Confidence::P95));
        assert_eq!(estimate(&[], &[0.1], WILSON, Confidence::P95), None);
    }

    /// Zou, Huang and Zhang's formula for two strata, with Wilson's limits written out by hand: of 5 of
    /// 10 they are 0.236593 and 0.763407, of 0 of 1,000 they are 0 and 0.003827.
    #[test]
    fn limits_add_up_as_variances_do() {
        let (rate, interval) =
            estimate(&[found(5, 10, 0.5), found(0, 1000, 0.5)], &[], WILSON, Confidence::P95)
                .unwrap();
        assert!((rate - 0.25).abs() < 1e-12);
        assert!((interval.low - (0.25 - 0.5 * 0.263407)).abs() < 1e-6, "{interval:?}");
        let above = 0.5 * (0.263407_f64.powi(2) + 0.003827_f64.powi(2)).sqrt();
        assert!((interval.high - (0.25 + above)).abs() < 1e-6, "{interval:?}");
    }

    /// A part whose size in each stratum is only estimated: what Cochran's formula for the variance of
    /// a ratio gives, sum of W^2 / n * (mean of squares of (y - r x)) / X^2, with many trials.
    #[test]
    fn the_size_of_a_part_is_uncertain_too() {
        let strata = [(0.6, 100_000.0, 0.3, 0.8), (0.4, 50_000.0, 0.5, 0.1)];
        let size: f64 = strata.iter().map(|(weight, _, inside, _)| weight * inside).sum();
        let sum: f64 = strata.iter().map(|(weight, _, inside, rate)| weight * inside * rate).sum();
        let ratio = sum / size;
        let variance: f64 = strata
            .iter()
            .map(|(weight, trials, inside, rate): &(f64, f64, f64, f64)| {
                let squares = rate * (1.0 - ratio) * (1.0 - ratio) + (1.0 - rate) * ratio * ratio;
                let mean = inside * (rate - ratio);
                weight * weight / trials * (inside * squares - mean * mean)
            })
            .sum::<f64>()
            / (size * size);
        let found = strata.map(|(weight, trials, inside, rate)| {
            let part = trials * inside;
            let (hits, part, stratum) = ((part * rate) as u64, part as u64, trials as u64);
            Found { hits, part, stratum, weight, places: None }
        });
        let (rate, interval) = estimate(&found, &[], WILSON, Confidence::P95).unwrap();
        assert!((rate - ratio).abs() < 1e-9);
        let expected = 1.959964 * variance.sqrt();
        assert!((interval.half_width() / expected - 1.0).abs() < 1e-3, "{interval:?} {expected}");
    }

    /// Of a tenth of the population nothing was found: the rate of all is off by that much at most.
    #[test]
    fn strata_without_injections_can_have_any_rate() {
        let found = [found(500_000, 1_000_000, 0.9)];
        let (rate, interval) = estimate(&found, &[0.1], WILSON, Confidence::P95).unwrap();
        assert!((rate - 0.5).abs() < 1e-12);
        assert!((interval.half_width() - 0.05).abs() < 1e-4, "{interval:?}");
    }

    #[test]
    fn what_was_struck_everywhere_is_known() {
        let all = Found { places: Some(90), ..found(7, 90, 1.0) };
        let (rate, interval) = estimate(&[all], &[], WILSON, Confidence::P95).unwrap();
        assert_eq!((interval.low, interval.high), (rate, rate));
        let of = |places| {
            let found = Found { places, ..found(7, 90, 1.0) };
            estimate(&[found], &[], WILSON, Confidence::P95).unwrap().1.half_width()
        };
        // Half of the places leave half of the variance; next to none leave all of it.
        assert!((of(Some(179)) / of(None) - 0.5_f64.sqrt()).abs() < 0.02);
        assert!((of(Some(1 << 40)) / of(None) - 1.0).abs() < 1e-6);
    }
}
