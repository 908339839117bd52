//! What hooks a site needs: all that rewritten code depends on.

use crate::site::{Lanes, Place, Site, When};
use flipwave_device::ModuleId;
use flipwave_isa::{Operation, Pc};

/// Hooks in a code object. Sites with the same request share the rewritten code; how they differ,
/// the host writes into the hooks' variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Request {
    /// The code object.
    pub module: ModuleId,
    /// The instructions that are struck.
    pub at: Instructions,
    /// What is struck there; of memory, the kind.
    pub place: Place,
    /// Whether each lane has its own.
    pub is_per_lane: bool,
    /// Whether the lanes struck depend on those that the instruction runs on.
    pub is_active: bool,
}

/// Instructions of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Instructions {
    /// The one at this ELF virtual address.
    At(Pc),
    /// All of an operation.
    Of(Operation),
}

impl Request {
    /// The request of a site in a code object.
    pub fn new(module: ModuleId, site: &Site) -> Request {
        let (at, is_per_lane) = match &site.when {
            When::At(event) => (Instructions::At(event.pc), site.place.is_per_lane()),
            When::Always(unit) => (Instructions::Of(unit.opcode), unit.slot.is_some()),
        };
        let place = match site.place {
            Place::Memory { .. } => Place::Memory { buffer: 0, offset: 0 },
            Place::Lds(_) => Place::Lds(0),
            other => other,
        };
        Request { module, at, place, is_per_lane, is_active: is_active(site) }
    }

    /// The sources of its hooks, in [`super::library`]: which waves and executions are struck, and
    /// how.
    pub fn sources(&self) -> [&'static str; 2] {
        let when = match self.at {
            Instructions::At(_) => "event",
            Instructions::Of(_) => "unit",
        };
        let what = match self.place {
            Place::Source(_) => "source",
            Place::Branch => "branch",
            Place::Memory { .. } | Place::Lds(_) => "memory",
            _ => "register",
        };
        [when, what]
    }
}

/// Whether only lanes are struck that the instruction runs on.
pub(super) fn is_active(site: &Site) -> bool {
    match &site.when {
        When::At(_) => site.lanes == Some(Lanes::Active),
        When::Always(unit) => unit.slot.is_some(),
    }
}
