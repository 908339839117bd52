//! Hook requests: all properties of a site that rewritten code depends on.

use flipwave_arch::{OperationName, Pc};
use flipwave_device::ModuleId;
use flipwave_injector::hooks::change_sources;
use flipwave_injector::{Action, FaultFunction, FloatFormat, Place, Site, When};

/// Hooks in a module. Sites with the same request share the rewritten code; the host writes their differences into the
/// hooks' variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    /// The module.
    pub module: ModuleId,
    /// The struck instructions.
    pub at: Instructions,
    /// The struck place; for memory, only its kind.
    pub place: Place,
    /// Format of the struck number, if the fault changes a number.
    pub format: Option<FloatFormat>,
    /// The user's function that changes the value, if any.
    pub function: Option<FaultFunction>,
    /// `true` to strike registers of lanes that do not reach the instruction when they continue.
    pub is_deferred: bool,
}

/// Instructions of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Instructions {
    /// The instruction at this address.
    At(Pc),
    /// All instructions of an operation.
    Of(OperationName),
}

impl Request {
    /// The request of a site in a module.
    pub fn new(module: ModuleId, site: &Site) -> Request {
        let at = match &site.when {
            When::At(event) => Instructions::At(event.pc),
            When::Always(unit) => Instructions::Of(unit.opcode),
        };
        let (format, function) = match site.action {
            Action::Relative(format, _) => (Some(format), None),
            Action::Function { function, format, .. } => (format, Some(function)),
            _ => (None, None),
        };
        Request { module, at, place: kind(site.place), format, function, is_deferred: false }
    }

    /// Number of words of a value.
    pub fn words(&self) -> u8 {
        self.format.map_or(1, FloatFormat::words)
    }

    /// Names of the sources of the hooks: the change of the value, the struck waves and executions, and the struck
    /// place.
    pub fn sources(&self) -> Vec<&'static str> {
        let mut names = change_sources(self.function, self.format);
        names.push(match self.at {
            Instructions::At(_) => "event",
            Instructions::Of(_) => "unit",
        });
        names.push("wave");
        if self.is_deferred {
            names.push("deferred");
            return names;
        }
        names.push("reached");
        names.push(match self.place {
            Place::Source(_) => "source",
            Place::Branch => "branch",
            Place::Memory { .. } | Place::Lds(_) | Place::Scratch(_) => "memory",
            _ => "register",
        });
        names
    }
}

/// Maps all words of a memory to one representative.
fn kind(place: Place) -> Place {
    match place {
        Place::Memory { .. } => Place::Memory { buffer: 0, offset: 0 },
        Place::Lds(_) => Place::Lds(0),
        Place::Scratch(_) => Place::Scratch(0),
        register_or_other => register_or_other,
    }
}
