//! Registers in a row.

use flipwave_isa::{AccVgpr, Register, RegisterRange, RegisterSet, Sgpr, Vgpr};

/// Registers in a row that are looked for.
#[derive(Clone, Copy, Debug)]
pub struct RegisterRun {
    /// Their file, one of the sets that [`RegisterSet`] names.
    pub file: RegisterSet,
    /// How many.
    pub words: u8,
    /// The first one's number is a multiple of this.
    pub alignment: u8,
}

impl RegisterRun {
    /// Where such runs begin in a set.
    fn all(self, set: RegisterSet) -> impl Iterator<Item = Register> {
        let is_aligned = move |register: &Register| {
            let number = match *register {
                Register::Vgpr(Vgpr(n)) => n,
                Register::AccVgpr(AccVgpr(n)) | Register::Sgpr(Sgpr(n)) => n.into(),
                _ => 0,
            };
            number.is_multiple_of(self.alignment.max(1).into())
        };
        let is_whole = move |first: &Register| {
            first.offset(self.words.saturating_sub(1)).is_some()
                && set.contains_range(RegisterRange::new(*first, self.words))
        };
        set.intersection(self.file).iter().filter(is_aligned).filter(is_whole)
    }

    /// Where the first in a set begins.
    pub fn first(self, set: RegisterSet) -> Option<Register> {
        self.all(set).next()
    }

    /// Where the one with the fewest live registers begins, of those rather one that is
    /// allocated.
    pub fn cheapest(
        self,
        set: RegisterSet,
        live: RegisterSet,
        allocated: RegisterSet,
    ) -> Option<Register> {
        let cost = |first: &Register| {
            let range = RegisterRange::new(*first, self.words);
            let costs = range.iter().filter(|own| live.contains(*own)).count();
            (costs, !allocated.contains_range(range))
        };
        self.all(set).min_by_key(cost)
    }
}
