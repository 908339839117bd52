//! The components of a difference between two rates.

use crate::Outcome;
use crate::compare::{Comparison, ScopeKind};

/// Why the rate of an outcome differs between two campaigns: other instructions are struck, or faults in the
/// same group of instructions have another rate (E. M. Kitagawa, "Components of a Difference Between Two
/// Rates", Journal of the American Statistical Association 50 (1955), 1168-1194). The sum is the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateComponents {
    /// Because groups contain other parts of the faults.
    pub composition: f64,
    /// Because of other rates within groups.
    pub rates: f64,
}

/// A group in a campaign.
#[derive(Clone, Copy)]
struct Part {
    /// Part of all injections.
    part: f64,
    /// Rate of the outcome in the group.
    rate: f64,
}

impl RateComponents {
    /// The components of one program's difference. Groups that only one of the campaigns has count as one
    /// group.
    pub(super) fn of(comparison: &Comparison, outcome: Outcome) -> RateComponents {
        let Some(overall) = comparison.overall() else { return RateComponents::default() };
        let rate = overall.rate(outcome);
        let mut rest =
            [Part { part: 1.0, rate: rate.a.rate }, Part { part: 1.0, rate: rate.b.rate }];
        let mut sum = RateComponents::default();
        for group in comparison.of_kind(ScopeKind::Group) {
            let rate = group.rate(outcome);
            let sides = [0, 1].map(|side| {
                let total = overall.totals[side].max(1) as f64;
                let rate = if side == 0 { rate.a.rate } else { rate.b.rate };
                Part { part: group.totals[side] as f64 / total, rate }
            });
            for (rest, side) in rest.iter_mut().zip(sides) {
                // The rate holds the sum of part and rate until the end.
                rest.part -= side.part;
                rest.rate -= side.part * side.rate;
            }
            sum.add(sides);
        }
        let rest = rest.map(|Part { part, rate }| {
            let rate = if part > 1e-9 { rate / part } else { f64::NAN };
            Part { part: part.max(0.0), rate }
        });
        sum.add(rest);
        sum
    }

    /// Adds the components of a group. A group that one side lacks has no rate there: it counts as a
    /// difference of composition.
    fn add(&mut self, [a, b]: [Part; 2]) {
        let [rate_a, rate_b] = match [a.rate, b.rate] {
            [a, b] if a.is_nan() && b.is_nan() => return,
            [a, b] if a.is_nan() => [b, b],
            [a, b] if b.is_nan() => [a, a],
            rates => rates,
        };
        self.composition += (b.part - a.part) * (rate_a + rate_b) / 2.0;
        self.rates += (rate_b - rate_a) * (a.part + b.part) / 2.0;
    }

    /// The mean over programs.
    pub(super) fn mean(all: impl Iterator<Item = RateComponents>) -> RateComponents {
        let (mut sum, mut count) = (RateComponents::default(), 0.0);
        for components in all {
            sum.composition += components.composition;
            sum.rates += components.rates;
            count += 1.0;
        }
        let count = f64::max(count, 1.0);
        RateComponents { composition: sum.composition / count, rates: sum.rates / count }
    }
}
