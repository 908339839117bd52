//! The scopes and outcomes whose rates are compared.

use crate::report::line_label;
use crate::{Outcome, Row, Scope};
use std::borrow::Cow;

/// A subset of the injections that both campaigns contain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComparedScope {
    /// Kind of the scope.
    pub kind: ScopeKind,
    /// The kernel, label, line, opcode or group; empty for all injections.
    pub value: String,
}

/// The property that the injections of a scope have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScopeKind {
    /// All injections.
    All,
    /// Kernel.
    Kernel,
    /// Label of the dispatch.
    Label,
    /// Source line.
    Line,
    /// Opcode.
    Opcode,
    /// Primary instruction group.
    Group,
}

impl ScopeKind {
    /// Name in result tables.
    pub fn name(self) -> &'static str {
        match self {
            ScopeKind::All => "all",
            ScopeKind::Kernel => "kernel",
            ScopeKind::Label => "label",
            ScopeKind::Line => "line",
            ScopeKind::Opcode => "opcode",
            ScopeKind::Group => "group",
        }
    }
}

impl ComparedScope {
    /// The scope of all injections.
    pub(crate) fn all() -> ComparedScope {
        ComparedScope { kind: ScopeKind::All, value: String::new() }
    }

    /// Scopes that contain a row, except that of all injections.
    pub(super) fn containing(row: &Row) -> impl Iterator<Item = ComparedScope> {
        let values = [
            (ScopeKind::Kernel, row.kernel.as_ref()),
            (ScopeKind::Label, row.label.as_ref()),
            (ScopeKind::Line, row.line.as_ref()),
            (ScopeKind::Opcode, Some(&row.opcode)),
            (ScopeKind::Group, Some(&row.group)),
        ];
        values
            .into_iter()
            .filter_map(|(kind, value)| Some(ComparedScope { kind, value: value?.clone() }))
    }

    /// The value, as people read it.
    pub(super) fn label(&self) -> Cow<'_, str> {
        match self.kind {
            ScopeKind::Line => line_label(&self.value),
            _ => Cow::Borrowed(&self.value),
        }
    }

    /// The corresponding scope of a summary; `None` for lines, which summaries do not contain.
    pub(super) fn summary_scope(&self) -> Option<Scope> {
        let value = self.value.clone();
        match self.kind {
            ScopeKind::All => Some(Scope::All),
            ScopeKind::Kernel => Some(Scope::Kernel(value)),
            ScopeKind::Label => Some(Scope::Label(value)),
            ScopeKind::Line => None,
            ScopeKind::Opcode => Some(Scope::Opcode(value)),
            ScopeKind::Group => Some(Scope::Group(value)),
        }
    }
}

/// An outcome whose rates are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedOutcome {
    /// An outcome.
    Outcome(Outcome),
    /// SDC with critical severity.
    CriticalSdc,
}

impl ComparedOutcome {
    /// Name in result tables.
    pub fn name(self) -> &'static str {
        match self {
            ComparedOutcome::Outcome(outcome) => outcome.name(),
            ComparedOutcome::CriticalSdc => "sdc_critical",
        }
    }

    /// The outcome, regardless of severity.
    pub fn outcome(self) -> Outcome {
        match self {
            ComparedOutcome::Outcome(outcome) => outcome,
            ComparedOutcome::CriticalSdc => Outcome::Sdc,
        }
    }
}
