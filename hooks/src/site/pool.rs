//! Which registers a hook gets at a site.
//!
//! Dead registers come first, those of the kernels' allocation before others; then registers that
//! growing the allocation brings; last those that hold wanted values, which must be saved and
//! given back around the hook.

use crate::dataflow::Live;
use crate::registers::Component;
use flipwave_isa::{AccVgpr, Register, RegisterRange, RegisterSet, Sgpr, Vgpr};

/// Lanes in which a vector register is going to be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// Only those that EXEC selects at the site.
    Active,
    /// Any.
    All,
}

/// The registers of a site.
#[derive(Debug)]
pub struct Pool<'a> {
    component: &'a Component,
    live: Live,
    /// Not to be taken in any case.
    forbidden: RegisterSet,
    taken: RegisterSet,
    displaced: RegisterSet,
}

impl<'a> Pool<'a> {
    /// The pool of a site where `live` registers are wanted; those in `forbidden` are not given.
    pub fn new(component: &'a Component, live: Live, forbidden: RegisterSet) -> Pool<'a> {
        Pool {
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

    /// What was given although its value is wanted.
    pub fn displaced(&self) -> RegisterSet {
        self.displaced
    }

    /// `words` SGPRs in a row, the first a multiple of `alignment`.
    pub fn sgprs(&mut self, words: u8, alignment: u8) -> Option<Sgpr> {
        let run = Run { file: RegisterSet::SGPRS, words, alignment };
        match self.take(run, self.live.active, true)? {
            Register::Sgpr(sgpr) => Some(sgpr),
            _ => None,
        }
    }

    /// `words` VGPRs in a row, the first a multiple of `alignment`.
    pub fn vgprs(&mut self, words: u8, alignment: u8, lanes: Lanes) -> Option<Vgpr> {
        let run = Run { file: RegisterSet::VGPRS, words, alignment };
        match self.take(run, self.wanted(lanes), true)? {
            Register::Vgpr(vgpr) => Some(vgpr),
            _ => None,
        }
    }

    /// `words` AccVGPRs in a row without wanted values, the first a multiple of `alignment`.
    pub fn acc_vgprs(&mut self, words: u8, alignment: u8, lanes: Lanes) -> Option<AccVgpr> {
        let run = Run { file: RegisterSet::ACC_VGPRS, words, alignment };
        match self.take(run, self.wanted(lanes), false)? {
            Register::AccVgpr(acc_vgpr) => Some(acc_vgpr),
            _ => None,
        }
    }

    /// A VGPR without a wanted value in any lane.
    pub fn dead_vgpr(&mut self) -> Option<Vgpr> {
        let run = Run { file: RegisterSet::VGPRS, words: 1, alignment: 1 };
        match self.take(run, self.wanted(Lanes::All), false)? {
            Register::Vgpr(vgpr) => Some(vgpr),
            _ => None,
        }
    }

    fn wanted(&self, lanes: Lanes) -> RegisterSet {
        match lanes {
            Lanes::Active => self.live.active,
            Lanes::All => self.live.any(),
        }
    }

    fn take(&mut self, run: Run, wanted: RegisterSet, displace: bool) -> Option<Register> {
        let free = self.component.allocatable.difference(self.forbidden).difference(self.taken);
        let dead = free.difference(wanted);
        let found = run
            .first(dead.intersection(self.component.allocated))
            .or_else(|| run.first(dead))
            .or_else(|| {
                run.cheapest(free, wanted, self.component.allocated).filter(|_| displace)
            })?;
        let range = [RegisterRange::new(found, run.words)].into_iter().collect();
        self.taken = self.taken.union(range);
        self.displaced = self.displaced.union(wanted.intersection(range));
        Some(found)
    }
}

/// Registers in a row that are looked for.
#[derive(Clone, Copy)]
struct Run {
    file: RegisterSet,
    words: u8,
    alignment: u8,
}

impl Run {
    /// Where such runs begin in a set.
    fn all(self, set: RegisterSet) -> impl Iterator<Item = Register> {
        let is_aligned = move |register: &Register| {
            let number = match *register {
                Register::Vgpr(Vgpr(n))
                | Register::AccVgpr(AccVgpr(n))
                | Register::Sgpr(Sgpr(n)) => n,
                _ => 0,
            };
            number.is_multiple_of(self.alignment.max(1))
        };
        let is_whole = move |first: &Register| {
            first.offset(self.words.saturating_sub(1)).is_some()
                && set.contains_range(RegisterRange::new(*first, self.words))
        };
        set.intersection(self.file).iter().filter(is_aligned).filter(is_whole)
    }

    /// Where the first in a set begins.
    fn first(self, set: RegisterSet) -> Option<Register> {
        self.all(set).next()
    }

    /// Where the one with the fewest wanted registers begins, of those rather one that is
    /// allocated.
    fn cheapest(
        self,
        set: RegisterSet,
        wanted: RegisterSet,
        allocated: RegisterSet,
    ) -> Option<Register> {
        let cost = |first: &Register| {
            let range = RegisterRange::new(*first, self.words);
            let costs = range.iter().filter(|own| wanted.contains(*own)).count();
            (costs, !allocated.contains_range(range))
        };
        self.all(set).min_by_key(cost)
    }
}
