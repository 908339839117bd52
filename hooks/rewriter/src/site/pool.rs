//! Register allocation for a hook call.
//!
//! Dead registers of the kernels' allocation are preferred, followed by registers that a larger
//! allocation provides, and registers with live values, which are spilled around the hook.

use crate::dataflow::Live;
use crate::registers::{Component, RegisterRun};
use flipwave_isa::{AccVgpr, Register, RegisterRange, RegisterSet, Sgpr, Vgpr};

/// Lanes of a vector register that are overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverwrittenLanes {
    /// Active lanes at the site.
    Active,
    /// All lanes.
    All,
}

/// Permission to allocate registers with live values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spill {
    Allowed,
    Forbidden,
}

/// Allocates registers at a site.
#[derive(Debug)]
pub struct RegisterPool<'a> {
    component: &'a Component,
    live: Live,
    /// Registers that are never allocated.
    forbidden: RegisterSet,
    taken: RegisterSet,
    displaced: RegisterSet,
}

impl<'a> RegisterPool<'a> {
    /// Creates a pool for a site with `live` registers, without those in `forbidden`.
    pub fn new(component: &'a Component, live: Live, forbidden: RegisterSet) -> RegisterPool<'a> {
        RegisterPool {
            component,
            live,
            forbidden,
            taken: RegisterSet::EMPTY,
            displaced: RegisterSet::EMPTY,
        }
    }

    /// All allocated registers.
    pub fn taken(&self) -> RegisterSet {
        self.taken
    }

    /// Allocated registers that are live.
    pub fn displaced(&self) -> RegisterSet {
        self.displaced
    }

    /// Allocates `words` consecutive SGPRs, the first a multiple of `alignment`.
    pub fn sgprs(&mut self, words: u8, alignment: u8) -> Option<Sgpr> {
        let run = RegisterRun { file: RegisterSet::SGPRS, words, alignment };
        match self.take(run, self.live.active, Spill::Allowed)? {
            Register::Sgpr(sgpr) => Some(sgpr),
            _ => None,
        }
    }

    /// Allocates `words` consecutive VGPRs, the first a multiple of `alignment`.
    pub fn vgprs(&mut self, words: u8, alignment: u8, lanes: OverwrittenLanes) -> Option<Vgpr> {
        let run = RegisterRun { file: RegisterSet::VGPRS, words, alignment };
        match self.take(run, self.live_in(lanes), Spill::Allowed)? {
            Register::Vgpr(vgpr) => Some(vgpr),
            _ => None,
        }
    }

    /// Allocates `words` consecutive dead AccVGPRs, the first a multiple of `alignment`.
    pub fn acc_vgprs(
        &mut self,
        words: u8,
        alignment: u8,
        lanes: OverwrittenLanes,
    ) -> Option<AccVgpr> {
        let run = RegisterRun { file: RegisterSet::ACC_VGPRS, words, alignment };
        match self.take(run, self.live_in(lanes), Spill::Forbidden)? {
            Register::AccVgpr(acc_vgpr) => Some(acc_vgpr),
            _ => None,
        }
    }

    /// Allocates a VGPR that is dead in all lanes.
    pub fn dead_vgpr(&mut self) -> Option<Vgpr> {
        let run = RegisterRun { file: RegisterSet::VGPRS, words: 1, alignment: 1 };
        match self.take(run, self.live_in(OverwrittenLanes::All), Spill::Forbidden)? {
            Register::Vgpr(vgpr) => Some(vgpr),
            _ => None,
        }
    }

    fn live_in(&self, lanes: OverwrittenLanes) -> RegisterSet {
        match lanes {
            OverwrittenLanes::Active => self.live.active,
            OverwrittenLanes::All => self.live.any(),
        }
    }

    fn take(&mut self, run: RegisterRun, live: RegisterSet, spill: Spill) -> Option<Register> {
        let free = self.component.allocatable.difference(self.forbidden).difference(self.taken);
        let dead = free.difference(live);
        let found = run
            .first(dead.intersection(self.component.allocated))
            .or_else(|| run.first(dead))
            .or_else(|| {
                run.cheapest(free, live, self.component.allocated)
                    .filter(|_| spill == Spill::Allowed)
            })?;
        let range = [RegisterRange::new(found, run.words)].into_iter().collect();
        self.taken = self.taken.union(range);
        self.displaced = self.displaced.union(live.intersection(range));
        Some(found)
    }
}
