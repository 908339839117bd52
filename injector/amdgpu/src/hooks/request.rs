//! Hook requests: all properties of a site that rewritten code depends on.

use flipwave_arch::{OperationName, Pc};
use flipwave_device::ModuleId;
use flipwave_injector::hooks::{change_sources, is_active};
use flipwave_injector::{Action, FaultFunction, FloatFormat, Place, Site, When};

/// Hooks in a code object. Sites with the same request share the rewritten code; the host writes their
/// differences into the hooks' variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Request {
    /// The code object.
    pub module: ModuleId,
    /// Index of the kernel, if only this kernel is rewritten.
    pub kernel: Option<usize>,
    /// The struck instructions.
    pub at: Instructions,
    /// The struck place; for memory, only its kind.
    pub place: Place,
    /// `true` if each lane has its own value.
    pub is_per_lane: bool,
    /// `true` if the struck lanes depend on the active lanes of the instruction.
    pub is_active: bool,
    /// Format of the struck number, if the fault changes a number.
    pub format: Option<FloatFormat>,
    /// The user's function that changes the value, if any.
    pub function: Option<FaultFunction>,
}

/// Instructions of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Instructions {
    /// The instruction at this ELF virtual address.
    At(Pc),
    /// All instructions of an operation.
    Of(OperationName),
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
            place => place,
        };
        let (format, function) = match site.action {
            Action::Relative(format, _) => (Some(format), None),
            Action::Function { function, format, .. } => (format, Some(function)),
            _ => (None, None),
        };
        let is_active = is_active(site);
        Request { module, kernel: None, at, place, is_per_lane, is_active, format, function }
    }

    /// Number of words of a value.
    pub fn words(&self) -> u8 {
        self.format.map_or(1, FloatFormat::words)
    }

    /// Names of the sources of the hooks: the change of the value, the struck waves and executions, and
    /// the struck place.
    pub fn sources(&self) -> Vec<&'static str> {
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
        let mut names = change_sources(self.function, self.format);
        names.extend([when, what]);
        names
    }
}
