//! Lanes and lane masks.

use std::fmt;

/// A lane of a wave, 0 to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u8);

/// A set of lanes, as in EXEC and VCC: bit `i` is lane `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaneMask(pub u64);

impl LaneMask {
    /// The empty set.
    pub const EMPTY: LaneMask = LaneMask(0);
    /// All 64 lanes.
    pub const FULL: LaneMask = LaneMask(u64::MAX);

    /// The number of lanes in the set.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns `true` if `lane` is in the set.
    pub fn contains(self, lane: Lane) -> bool {
        self.0 >> (lane.0 & 63) & 1 != 0
    }

    /// The lanes of the set in ascending order.
    pub fn lanes(self) -> impl Iterator<Item = Lane> {
        let mut remaining = self.0;
        std::iter::from_fn(move || {
            if remaining == 0 {
                return None;
            }
            let lane = remaining.trailing_zeros();
            remaining &= remaining - 1;
            Some(Lane(lane as u8))
        })
    }

    /// The `n`-th lowest lane of the set, from 0.
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
