//! Reserved registers: registers that hold values for all hooks of a component.

use crate::hook::EntryValue;
use flipwave_isa::{Pc, Register, RegisterRange, RegisterSet, Sgpr, Vgpr};
use std::collections::BTreeMap;

/// Location of a word of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReservedWord {
    /// In an SGPR.
    Sgpr(Sgpr),
    /// In a lane of a VGPR.
    Lane(Vgpr, u8),
}

/// Location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReservedValue {
    /// The low word.
    pub low: ReservedWord,
    /// The high word, if the value has two words.
    pub high: Option<ReservedWord>,
}

impl ReservedValue {
    /// The words, low word first.
    pub fn words(self) -> impl Iterator<Item = ReservedWord> {
        [Some(self.low), self.high].into_iter().flatten()
    }

    /// The registers that hold the value.
    pub fn registers(self) -> RegisterSet {
        let register = |word| match word {
            ReservedWord::Sgpr(sgpr) => Register::Sgpr(sgpr),
            ReservedWord::Lane(vgpr, _) => Register::Vgpr(vgpr),
        };
        self.words().map(register).collect()
    }

    /// The registers as a range, if they are consecutive SGPRs.
    pub(super) fn range(self) -> Option<RegisterRange> {
        match (self.low, self.high) {
            (ReservedWord::Sgpr(low), None) => Some(RegisterRange::new(Register::Sgpr(low), 1)),
            (ReservedWord::Sgpr(low), Some(ReservedWord::Sgpr(high)))
                if low.0.checked_add(1) == Some(high.0) =>
            {
                Some(RegisterRange::new(Register::Sgpr(low), 2))
            }
            _ => None,
        }
    }
}

/// Locations of values that a component keeps for its hooks, at a program point.
#[derive(Clone, Debug, Default)]
pub struct ReservedRegisters {
    /// The address of the hooks' data, and the registers that hold it.
    pub data: Option<(RegisterRange, Pc)>,
    /// Locations of values that are known only when a kernel starts.
    pub entry: BTreeMap<EntryValue, ReservedValue>,
}

impl ReservedRegisters {
    /// All registers that hold values.
    pub fn registers(&self) -> RegisterSet {
        let data = self.data.iter().map(|(range, _)| *range).collect();
        self.entry.values().fold(data, |all: RegisterSet, value| all.union(value.registers()))
    }
}
