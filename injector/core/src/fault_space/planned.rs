//! One injection of a plan.

use super::Group;
use crate::inject::injection::InjectedChange;
use crate::resolve::def_use::NextUse;
use crate::site::{Lanes, Site};
use flipwave_arch::Lane;

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
    pub analysis: Option<SiteAnalysis>,
}

/// Def-use analysis of a fault that strikes one execution of an instruction by one wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteAnalysis {
    /// Instructions that the wave has executed before the site's instruction.
    pub time: u64,
    /// Next use of the struck value, if it is a register's value after the instruction.
    pub next_use: Option<NextUse>,
    /// The value before the fault, if known; for a register of several lanes, the value of the lowest
    /// lane.
    pub before: Option<u64>,
}

impl Planned {
    /// The struck value, if nothing ever reads it: then a run with the fault equals the golden run and
    /// need not be executed.
    pub fn masked_strike(&self) -> Option<InjectedChange> {
        let SiteAnalysis { next_use, before, .. } = self.analysis?;
        if matches!(next_use?, NextUse::Read) {
            return None;
        }
        let before = before?;
        let lane = match self.site.lanes {
            Some(Lanes::One(lane)) => lane,
            Some(Lanes::Mask(mask)) => mask.lanes().next()?,
            _ => Lane(0),
        };
        // A function that fails is reported by the run.
        let after = self.site.action.apply(before, self.site.place.bits(), lane).ok()?;
        Some(InjectedChange { before, after, words: self.words()?, absorbed: false })
    }

    /// Next use of the struck value in the golden run, if known.
    pub fn next_use(&self) -> Option<NextUse> {
        self.analysis?.next_use
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
