//! Stratification of a fault space.

use std::fmt;
use std::str::FromStr;

/// Attribute that divides a fault space into strata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stratification {
    /// No stratification: a single stratum.
    #[default]
    None,
    /// The kernel launched.
    Kernel,
    /// The primary instruction group.
    Group,
    /// The operation.
    Opcode,
}

/// Allocation of a sample's faults to strata.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Allocation {
    /// Proportional to the number of sites.
    #[default]
    Proportional,
    /// Equal for all strata.
    Equal,
    /// Proportional to the number of sites times the standard deviation of a site's outcomes, given per
    /// stratum (J. Neyman, "On the Two Different Aspects of the Representative Method", Journal of the
    /// Royal Statistical Society 97 (1934)).
    Optimal(Vec<f64>),
}

impl Stratification {
    const NAMES: [(&str, Stratification); 3] = [
        ("kernel", Stratification::Kernel),
        ("group", Stratification::Group),
        ("opcode", Stratification::Opcode),
    ];
}

impl fmt::Display for Stratification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Stratification::NAMES.iter().find(|(_, stratification)| stratification == self);
        f.pad(name.map_or("nothing", |(name, _)| name))
    }
}

impl FromStr for Stratification {
    type Err = UnknownStratification;

    fn from_str(name: &str) -> Result<Stratification, UnknownStratification> {
        let found = Stratification::NAMES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, stratification)| *stratification)
            .ok_or_else(|| UnknownStratification(name.to_owned()))
    }
}

/// Error returned for an unknown stratification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a stratification; expected one of: kernel, group, opcode")]
pub struct UnknownStratification(pub String);

impl Allocation {
    /// Divides `count` faults among strata with these numbers of sites. Strata without sites get none;
    /// the shares of the others are rounded so that the sum is exact, where remaining faults go to the
    /// largest remainders, and among equal ones to the first. No stratum gets more than its `room`; the
    /// excess goes to the other strata.
    pub(crate) fn shares(&self, count: u64, sites: &[u64], room: &[u64]) -> Vec<u64> {
        let total_room: u128 = room.iter().map(|stratum_room| u128::from(*stratum_room)).sum();
        let mut left = u128::from(count).min(total_room) as u64;
        let mut shares = vec![0; sites.len()];
        while left > 0 {
            let weights: Vec<u64> =
                (0..sites.len())
                    .map(|stratum| {
                        if shares[stratum] < room[stratum] {
                            self.weight(stratum, sites)
                        } else {
                            0
                        }
                    })
                    .collect();
            let more = divided(left, &weights);
            if more.iter().all(|share| *share == 0) {
                break;
            }
            for (stratum, more) in more.into_iter().enumerate() {
                let more = more.min(room[stratum] - shares[stratum]);
                shares[stratum] += more;
                left -= more;
            }
        }
        shares
    }

    /// The weight that a stratum's share is proportional to.
    fn weight(&self, stratum: usize, sites: &[u64]) -> u64 {
        let count = sites[stratum];
        match self {
            Allocation::Proportional => count,
            Allocation::Equal => u64::from(count > 0),
            Allocation::Optimal(deviations) => {
                let product = |stratum: usize| {
                    deviations.get(stratum).copied().unwrap_or(0.0) * sites[stratum] as f64
                };
                let largest = (0..sites.len()).map(product).fold(0.0, f64::max);
                // Integers of 40 bits, because the other weights are integers.
                let share = product(stratum) / largest * (1u64 << 40) as f64;
                (share as u64).max(u64::from(count > 0))
            }
        }
    }
}

/// Divides a number in proportion to weights.
fn divided(count: u64, weights: &[u64]) -> Vec<u64> {
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if total == 0 {
        return vec![0; weights.len()];
    }
    let exact = |weight: &u64| u128::from(count) * u128::from(*weight);
    // The sum of the quotients is at most `count`.
    let mut shares: Vec<u64> =
        weights.iter().map(|weight| (exact(weight) / total) as u64).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(exact(&weights[*index]) % total));
    let left = count - shares.iter().sum::<u64>();
    for index in order.into_iter().take(left as usize) {
        shares[index] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_follow_the_allocation() {
        let shares = |allocation: Allocation, count, sites: &[u64]| {
            allocation.shares(count, sites, &vec![u64::MAX; sites.len()])
        };
        let proportional = || Allocation::Proportional;
        assert_eq!(shares(proportional(), 100, &[1, 0, 3]), [25, 0, 75]);
        assert_eq!(shares(proportional(), 10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(shares(proportional(), 2, &[10, 1, 29]), [1, 0, 1]);
        assert_eq!(shares(proportional(), u64::MAX, &[u64::MAX; 2])[0], u64::MAX / 2 + 1);
        assert_eq!(shares(Allocation::Equal, 10, &[1, 0, 1_000_000, 7]), [4, 0, 3, 3]);
        assert_eq!(shares(Allocation::Equal, 10, &[0, 0]), [0, 0]);
        let optimal = || Allocation::Optimal(vec![0.5, 0.5, 0.1, 0.0]);
        assert_eq!(shares(optimal(), 110, &[10, 0, 50, 10]), [55, 0, 55, 0]);
        assert_eq!(shares(optimal(), 1000, &[300, 0, 500, 0]), [750, 0, 250, 0]);
    }

    #[test]
    fn shares_do_not_exceed_room() {
        let shares =
            |allocation: Allocation, count| allocation.shares(count, &[10, 20, 30], &[10, 2, 30]);
        assert_eq!(shares(Allocation::Equal, 12), [5, 2, 5]);
        assert_eq!(shares(Allocation::Equal, 30), [10, 2, 18]);
        assert_eq!(shares(Allocation::Proportional, 18), [4, 2, 12]);
        assert_eq!(shares(Allocation::Optimal(vec![0.0, 1.0, 0.0]), 6), [2, 2, 2]);
        // More faults than sites: all sites are drawn.
        assert_eq!(shares(Allocation::Proportional, 100), [10, 2, 30]);
    }

    #[test]
    fn names_round_trip_and_unknown_names_are_rejected() {
        for (name, stratification) in Stratification::NAMES {
            assert_eq!(name.parse(), Ok(stratification));
            assert_eq!(stratification.to_string(), name);
        }
        assert!("register".parse::<Stratification>().is_err());
    }
}
