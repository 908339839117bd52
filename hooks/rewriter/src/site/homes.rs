//! Where what hooks ask for again and again is kept.

use crate::hook::EntryValue;
use flipwave_isa::{Pc, Register, RegisterRange, RegisterSet, Sgpr, Vgpr};
use std::collections::BTreeMap;

/// Where a word of a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HomeWord {
    /// In an SGPR.
    Sgpr(Sgpr),
    /// In a lane of a VGPR.
    Lane(Vgpr, u8),
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    /// Its first word.
    pub low: HomeWord,
    /// Its second, if it has two.
    pub high: Option<HomeWord>,
}

impl Home {
    /// Its words, the low one first.
    pub fn words(self) -> impl Iterator<Item = HomeWord> {
        [Some(self.low), self.high].into_iter().flatten()
    }

    /// Its registers.
    pub fn registers(self) -> RegisterSet {
        let register = |word| match word {
            HomeWord::Sgpr(sgpr) => Register::Sgpr(sgpr),
            HomeWord::Lane(vgpr, _) => Register::Vgpr(vgpr),
        };
        self.words().map(register).collect()
    }

    /// Its registers, where they are SGPRs in a row.
    pub(super) fn range(self) -> Option<RegisterRange> {
        match (self.low, self.high) {
            (HomeWord::Sgpr(low), None) => Some(RegisterRange::new(Register::Sgpr(low), 1)),
            (HomeWord::Sgpr(low), Some(HomeWord::Sgpr(high)))
                if low.0.checked_add(1) == Some(high.0) =>
            {
                Some(RegisterRange::new(Register::Sgpr(low), 2))
            }
            _ => None,
        }
    }
}

/// Where a component keeps what hooks ask for again and again, at a point.
#[derive(Clone, Debug, Default)]
pub struct Homes {
    /// The address of the hooks' data.
    pub data: Option<(RegisterRange, Pc)>,
    /// What is only known when a kernel starts.
    pub entry: BTreeMap<EntryValue, Home>,
}

impl Homes {
    /// The registers of all homes.
    pub fn registers(&self) -> RegisterSet {
        let data = self.data.iter().map(|(range, _)| *range).collect();
        self.entry.values().fold(data, |all: RegisterSet, home| all.union(home.registers()))
    }
}
