//! One injection of a plan.

use super::Group;
use crate::inject::injection::Struck;
use crate::resolve::fate::Fate;
use crate::site::{Lanes, Site};

/// One injection of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The fault site.
    pub site: Site,
    /// The kernel of the site's dispatch; `None` for a permanent fault, which strikes all kernels.
    pub kernel: Option<String>,
    /// Canonical name of the struck operation.
    pub opcode: &'static str,
    /// Its primary group.
    pub group: Group,
    /// Source line of the instruction, `file:line`, if the code object has line information.
    pub line: Option<String>,
    /// Index of the stratum that the fault was drawn from, in
    /// [`Profile::strata`](crate::Profile::strata).
    pub stratum: usize,
    /// Number of sites of the fault space that the fault represents, relative to the other injections:
    /// 1 on average, and equal within a stratum.
    pub weight: f64,
    /// Def-use analysis of the site in the golden run, if available.
    pub foresight: Option<Foresight>,
}

/// Def-use analysis of a fault that strikes one execution of an instruction by one wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foresight {
    /// Instructions that the wave has executed before the site's instruction.
    pub time: u64,
    /// Fate of the struck value, if it is a register's value after the instruction.
    pub fate: Option<Fate>,
    /// The value before the fault, if known; for a register of several lanes, the value of the lowest
    /// lane.
    pub before: Option<u64>,
}

impl Planned {
    /// The struck value, if nothing ever reads it: then a run with the fault equals the golden run and
    /// need not be executed.
    pub fn foreseen(&self) -> Option<Struck> {
        let Foresight { fate, before, .. } = self.foresight?;
        if matches!(fate?, Fate::Read) {
            return None;
        }
        let before = before?;
        let after = self.site.action.apply(before);
        Some(Struck { before, after, words: self.words()?, absorbed: false })
    }

    /// Fate of the struck value in the golden run, if known.
    pub fn fate(&self) -> Option<Fate> {
        self.foresight?.fate
    }

    /// Number of struck words, if known: only for sites that name their lanes.
    fn words(&self) -> Option<u64> {
        match self.site.lanes {
            None | Some(Lanes::One(_)) => Some(1),
            Some(Lanes::Mask(mask)) => Some(mask.count().into()),
            Some(Lanes::Active | Lanes::All) => None,
        }
    }
}
