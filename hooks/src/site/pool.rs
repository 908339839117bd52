//! Which registers a hook gets at a site.
//!
//! Dead registers come first, those of the kernels' allocation before others; then registers that
//! growing the allocation brings; last those that hold wanted values, which must be saved and
//! given back around the hook.

use crate::component::Component;
use crate::liveness::Live;
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
        let first = numbers(alignment).take_while(|n| *n < SGPRS).map(Sgpr).map(Register::Sgpr);
        match self.take(first, words, self.live.active, true)? {
            Register::Sgpr(sgpr) => Some(sgpr),
            _ => None,
        }
    }

    /// `words` VGPRs in a row, the first a multiple of `alignment`.
    pub fn vgprs(&mut self, words: u8, alignment: u8, lanes: Lanes) -> Option<Vgpr> {
        let first = numbers(alignment).map(Vgpr).map(Register::Vgpr);
        match self.take(first, words, self.wanted(lanes), true)? {
            Register::Vgpr(vgpr) => Some(vgpr),
            _ => None,
        }
    }

    /// `words` AccVGPRs in a row without wanted values, the first a multiple of `alignment`.
    pub fn acc_vgprs(&mut self, words: u8, alignment: u8, lanes: Lanes) -> Option<AccVgpr> {
        let first = numbers(alignment).map(AccVgpr).map(Register::AccVgpr);
        match self.take(first, words, self.wanted(lanes), false)? {
            Register::AccVgpr(acc_vgpr) => Some(acc_vgpr),
            _ => None,
        }
    }

    /// A VGPR without a wanted value in any lane.
    pub fn dead_vgpr(&mut self) -> Option<Vgpr> {
        let first = numbers(1).map(Vgpr).map(Register::Vgpr);
        match self.take(first, 1, self.wanted(Lanes::All), false)? {
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

    fn take(
        &mut self,
        candidates: impl Iterator<Item = Register>,
        words: u8,
        wanted: RegisterSet,
        displace: bool,
    ) -> Option<Register> {
        let free = self.component.allocatable.difference(self.forbidden).difference(self.taken);
        let mut best: Option<((u32, bool), Register)> = None;
        for first in candidates {
            let range = RegisterRange::new(first, words);
            if range.first.offset(words - 1).is_none() {
                break;
            }
            if !free.contains_range(range) {
                continue;
            }
            let costs = range.iter().filter(|own| wanted.contains(*own)).count() as u32;
            let grows = !self.component.allocated.contains_range(range);
            if (displace || costs == 0) && best.is_none_or(|(best, _)| (costs, grows) < best) {
                best = Some(((costs, grows), first));
            }
            if best.is_some_and(|(best, _)| best == (0, false)) {
                break;
            }
        }
        let (_, first) = best?;
        let range = RegisterRange::new(first, words);
        self.taken.insert_range(range);
        self.displaced = self.displaced.union(wanted.intersection([range].into_iter().collect()));
        Some(first)
    }
}

/// SGPRs that instructions of any target can name.
const SGPRS: u8 = 106;

/// The numbers of registers that are multiples of `alignment`.
fn numbers(alignment: u8) -> impl Iterator<Item = u8> {
    (0..=u8::MAX).step_by(alignment.max(1).into())
}
