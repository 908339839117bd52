//! Which registers a hook gets at a site.
//!
//! Dead registers come first, those of the kernels' allocation before others; then registers that
//! growing the allocation brings; last those that hold live values, which must be saved and
//! given back around the hook.

use crate::dataflow::Live;
use crate::registers::{Component, RegisterRun};
use flipwave_isa::{AccVgpr, Register, RegisterRange, RegisterSet, Sgpr, Vgpr};

/// Lanes in which a vector register is going to be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverwrittenLanes {
    /// Only those that EXEC selects at the site.
    Active,
    /// Any.
    All,
}

/// The registers of a site.
#[derive(Debug)]
pub struct RegisterPool<'a> {
    component: &'a Component,
    live: Live,
    /// Not to be taken in any case.
    forbidden: RegisterSet,
    taken: RegisterSet,
    displaced: RegisterSet,
}

impl<'a> RegisterPool<'a> {
    /// The pool of a site where `live` registers are live; those in `forbidden` are not given.
    pub fn new(component: &'a Component, live: Live, forbidden: RegisterSet) -> RegisterPool<'a> {
        RegisterPool {
            component,
            live,
            forbidden,
            taken: RegisterSet::EMPTY,
            displaced: RegisterSet::EMPTY,
        }
    }

    /// Everything that was given.
    pub fn taken(&self) -> RegisterSet {
        self.taken
    }

    /// What was given although it is live.
    pub fn displaced(&self) -> RegisterSet {
        self.displaced
    }

    /// `words` SGPRs in a row, the first a multiple of `alignment`.
    pub fn sgprs(&mut self, words: u8, alignment: u8) -> Option<Sgpr> {
        let run = RegisterRun { file: RegisterSet::SGPRS, words, alignment };
        match self.take(run, self.live.active, true)? {
            Register::Sgpr(sgpr) => Some(sgpr),
            _ => None,
        }
    }

    /// `words` VGPRs in a row, the first a multiple of `alignment`.
    pub fn vgprs(&mut self, words: u8, alignment: u8, lanes: OverwrittenLanes) -> Option<Vgpr> {
        let run = RegisterRun { file: RegisterSet::VGPRS, words, alignment };
        match self.take(run, self.live_in(lanes), true)? {
            Register::Vgpr(vgpr) => Some(vgpr),
            _ => None,
        }
    }

    /// `words` AccVGPRs in a row without live values, the first a multiple of `alignment`.
    pub fn acc_vgprs(
        &mut self,
        words: u8,
        alignment: u8,
        lanes: OverwrittenLanes,
    ) -> Option<AccVgpr> {
        let run = RegisterRun { file: RegisterSet::ACC_VGPRS, words, alignment };
        match self.take(run, self.live_in(lanes), false)? {
            Register::AccVgpr(acc_vgpr) => Some(acc_vgpr),
            _ => None,
        }
    }

    /// A VGPR without a live value in any lane.
    pub fn dead_vgpr(&mut self) -> Option<Vgpr> {
        let run = RegisterRun { file: RegisterSet::VGPRS, words: 1, alignment: 1 };
        match self.take(run, self.live_in(OverwrittenLanes::All), false)? {
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

    fn take(&mut self, run: RegisterRun, live: RegisterSet, displace: bool) -> Option<Register> {
        let free = self.component.allocatable.difference(self.forbidden).difference(self.taken);
        let dead = free.difference(live);
        let found = run
            .first(dead.intersection(self.component.allocated))
            .or_else(|| run.first(dead))
            .or_else(|| run.cheapest(free, live, self.component.allocated).filter(|_| displace))?;
        let range = [RegisterRange::new(found, run.words)].into_iter().collect();
        self.taken = self.taken.union(range);
        self.displaced = self.displaced.union(live.intersection(range));
        Some(found)
    }
}
