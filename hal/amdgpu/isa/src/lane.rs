//! Lanes of a wave and sets of them.

use std::fmt;

/// A lane of a wave, 0 to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u8);

/// A set of lanes: bit `i` is lane `i`. EXEC and VCC hold such sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaneMask(pub u64);

impl LaneMask {
    /// No lane.
    pub const EMPTY: LaneMask = LaneMask(0);
    /// All 64 lanes.
    pub const FULL: LaneMask = LaneMask(u64::MAX);

    /// How many lanes are in the set.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether `lane` is in the set.
    pub fn contains(self, lane: Lane) -> bool {
        self.0 >> (lane.0 & 63) & 1 != 0
    }

    /// The lanes of the set, lowest first.
    pub fn lanes(self) -> impl Iterator<Item = Lane> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            Some(Lane(lane as u8))
        })
    }

    /// The `n`-th lane of the set, counted from 0 at the lowest.
    pub fn nth(self, n: u32) -> Option<Lane> {
        self.lanes().nth(n as usize)
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for LaneMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}
