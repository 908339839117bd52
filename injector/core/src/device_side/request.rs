//! What hooks a site needs: all that rewritten code depends on.

use crate::fault::{Action, FloatFormat};
use crate::site::{Lanes, Place, Site, When};
use flipwave_device::ModuleId;
use flipwave_isa::{Operation, Pc};

/// Hooks in a code object. Sites with the same request share the rewritten code; how they differ,
/// the host writes into the hooks' variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Request {
    /// The code object.
    pub module: ModuleId,
    /// The kernel, by its index there, that is rewritten without the others.
    pub kernel: Option<usize>,
    /// The instructions that are struck.
    pub at: Instructions,
    /// What is struck there; of memory, the kind.
    pub place: Place,
    /// Whether each lane has its own.
    pub is_per_lane: bool,
    /// Whether the lanes struck depend on those that the instruction runs on.
    pub is_active: bool,
    /// The number that is struck, where the fault strikes one.
    pub format: Option<FloatFormat>,
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
        let format = match site.action {
            Action::Relative(format, _) => Some(format),
            _ => None,
        };
        Request { module, kernel: None, at, place, is_per_lane, is_active: is_active(site), format }
    }

    /// How many words a value has.
    pub fn words(&self) -> u8 {
        self.format.map_or(1, FloatFormat::words)
    }

    /// The names of the sources of its hooks: what happens to a value, which waves and executions
    /// are struck, and where.
    pub fn sources(&self) -> [&'static str; 3] {
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
        [if self.format.is_some() { "number" } else { "bits" }, when, what]
    }
}

/// Whether only lanes are struck that the instruction runs on.
pub(super) fn is_active(site: &Site) -> bool {
    match &site.when {
        When::At(_) => site.lanes == Some(Lanes::Active),
        When::Always(unit) => unit.slot.is_some(),
    }
}
