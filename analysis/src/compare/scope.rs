//! By what two campaigns are compared.

use crate::{Row, Scope};

/// A set of injections that both campaigns have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComparedScope {
    /// What they have in common.
    pub by: By,
    /// Which kernel, line, operation or group; empty of all.
    pub value: String,
}

/// What injections have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// Nothing: all of them.
    All,
    /// The kernel that they struck.
    Kernel,
    /// The label of the dispatch.
    Label,
    /// The source line.
    Line,
    /// The operation.
    Opcode,
    /// The primary group of instructions.
    Group,
}

impl By {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            By::All => "all",
            By::Kernel => "kernel",
            By::Label => "label",
            By::Line => "line",
            By::Opcode => "opcode",
            By::Group => "group",
        }
    }
}

impl ComparedScope {
    /// All injections.
    pub(crate) fn all() -> ComparedScope {
        ComparedScope { by: By::All, value: String::new() }
    }

    /// Those that a row belongs to, without all.
    pub(super) fn of(row: &Row) -> impl Iterator<Item = ComparedScope> {
        let values = [
            (By::Kernel, row.kernel.as_ref()),
            (By::Label, row.label.as_ref()),
            (By::Line, row.line.as_ref()),
            (By::Opcode, Some(&row.opcode)),
            (By::Group, Some(&row.group)),
        ];
        let there = values.into_iter().filter_map(|(by, value)| Some((by, value?.clone())));
        there.map(|(by, value)| ComparedScope { by, value })
    }

    pub(super) fn is_line(&self) -> bool {
        self.by == By::Line
    }

    /// The same as a summary has it; it has no lines.
    pub(super) fn summarised(&self) -> Option<Scope> {
        let value = self.value.clone();
        match self.by {
            By::All => Some(Scope::All),
            By::Kernel => Some(Scope::Kernel(value)),
            By::Label => Some(Scope::Label(value)),
            By::Line => None,
            By::Opcode => Some(Scope::Opcode(value)),
            By::Group => Some(Scope::Group(value)),
        }
    }
}
