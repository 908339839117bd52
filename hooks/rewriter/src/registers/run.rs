//! Search for consecutive registers.

use flipwave_isa::{AccVgpr, Register, RegisterRange, RegisterSet, Sgpr, Vgpr};

/// A request for consecutive registers.
#[derive(Clone, Copy, Debug)]
pub struct RegisterRun {
    /// The register file: one of the constants of [`RegisterSet`].
    pub file: RegisterSet,
    /// Number of registers.
    pub words: u8,
    /// The number of the first register is a multiple of this.
    pub alignment: u8,
}

impl RegisterRun {
    /// The first registers of all matching runs in a set.
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

    /// The first register of the first matching run in a set.
    pub fn first(self, set: RegisterSet) -> Option<Register> {
        self.all(set).next()
    }

    /// The first register of the matching run in `set` with the fewest live registers. Allocated runs are
    /// preferred among equals.
    pub fn cheapest(
        self,
        set: RegisterSet,
        live: RegisterSet,
        allocated: RegisterSet,
    ) -> Option<Register> {
        let cost = |first: &Register| {
            let range = RegisterRange::new(*first, self.words);
            let live_count = range.iter().filter(|register| live.contains(*register)).count();
            (live_count, !allocated.contains_range(range))
        };
        self.all(set).min_by_key(cost)
    }
}
