//! One injection of a plan.

use super::Group;
use crate::inject::injection::Struck;
use crate::resolve::fate::Fate;
use crate::site::{Lanes, Site};

/// One injection of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Where the fault strikes.
    pub site: Site,
    /// The kernel of the site's dispatch; nothing for a permanent fault, which strikes in all.
    pub kernel: Option<String>,
    /// Canonical name of the operation struck.
    pub opcode: &'static str,
    /// Its primary group.
    pub group: Group,
    /// The instruction's source line, `file:line`, where the code object says it.
    pub line: Option<String>,
    /// The stratum it was drawn from, by its number in [`Profile::strata`](crate::Profile::strata).
    pub stratum: usize,
    /// How many places of the population it stands for, relative to the other injections: 1 on
    /// average, and the same for all of a stratum.
    pub weight: f64,
    /// What is known of the fault from the fault-free run.
    pub foresight: Option<Foresight>,
}

/// What the fault-free run says of a fault that strikes one execution of an instruction by one
/// wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foresight {
    /// Instructions that the wave has executed before the one of the site.
    pub time: u64,
    /// What becomes of the value that is struck, where it is one of a register after the instruction.
    pub fate: Option<Fate>,
    /// What that value is before the fault, where the search has seen it. Of the registers of several
    /// lanes it is that of the lowest.
    pub before: Option<u64>,
}

impl Planned {
    /// What the fault strikes, if nothing ever reads it: a run with the fault is the fault-free one
    /// then, and need not be made.
    pub fn foreseen(&self) -> Option<Struck> {
        let Foresight { fate, before, .. } = self.foresight?;
        if matches!(fate?, Fate::Read) {
            return None;
        }
        let before = before?;
        let after = self.site.action.apply(before);
        Some(Struck { before, after, words: self.words()?, absorbed: false })
    }

    /// What becomes of the value in the fault-free run, where that is known.
    pub fn fate(&self) -> Option<Fate> {
        self.foresight?.fate
    }

    /// How many places the fault strikes, where that is known: of a site with the lanes named.
    fn words(&self) -> Option<u64> {
        match self.site.lanes {
            None | Some(Lanes::One(_)) => Some(1),
            Some(Lanes::Mask(mask)) => Some(mask.count().into()),
            Some(Lanes::Active | Lanes::All) => None,
        }
    }
}
