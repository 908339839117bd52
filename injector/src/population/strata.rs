//! Parts of a population that are sampled by themselves.

use std::fmt;
use std::str::FromStr;

/// What divides a population into strata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stratification {
    /// Nothing: there is one.
    #[default]
    None,
    /// The kernel launched.
    Kernel,
    /// The primary instruction group.
    Group,
    /// The operation.
    Opcode,
}

/// How many of a sample's faults each stratum gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocation {
    /// In proportion to its places.
    #[default]
    Proportional,
    /// All the same number.
    Equal,
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
        let name = Stratification::NAMES.iter().find(|(_, own)| own == self);
        f.pad(name.map_or("nothing", |(name, _)| name))
    }
}

impl FromStr for Stratification {
    type Err = UnknownStratification;

    fn from_str(name: &str) -> Result<Stratification, UnknownStratification> {
        let found = Stratification::NAMES.iter().find(|(own, _)| *own == name);
        found.map(|(_, own)| *own).ok_or_else(|| UnknownStratification(name.to_owned()))
    }
}

/// A name of nothing that divides populations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` divides no population; expected one of: kernel, group, opcode")]
pub struct UnknownStratification(pub String);

impl Allocation {
    /// How many of `count` faults each of the strata with this many places gets: those without a
    /// place none, of the others each its share, rounded so that the sum is right. What rounding
    /// leaves goes to the largest remainders, of equal ones to the first.
    pub(crate) fn shares(self, count: u64, places: &[u64]) -> Vec<u64> {
        let weight = |places: &u64| match self {
            Allocation::Proportional => *places,
            Allocation::Equal => u64::from(*places > 0),
        };
        let weights: Vec<u64> = places.iter().map(weight).collect();
        let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
        if total == 0 {
            return vec![0; places.len()];
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_follow_the_allocation() {
        let proportional = Allocation::Proportional;
        assert_eq!(proportional.shares(100, &[1, 0, 3]), [25, 0, 75]);
        assert_eq!(proportional.shares(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(proportional.shares(2, &[10, 1, 29]), [1, 0, 1]);
        assert_eq!(proportional.shares(u64::MAX, &[u64::MAX, u64::MAX])[0], u64::MAX / 2 + 1);
        assert_eq!(Allocation::Equal.shares(10, &[1, 0, 1_000_000, 7]), [4, 0, 3, 3]);
        assert_eq!(Allocation::Equal.shares(10, &[0, 0]), [0, 0]);
    }

    #[test]
    fn names_round_trip_and_unknown_ones_are_refused() {
        for (name, own) in Stratification::NAMES {
            assert_eq!(name.parse(), Ok(own));
            assert_eq!(own.to_string(), name);
        }
        assert!("register".parse::<Stratification>().is_err());
    }
}
