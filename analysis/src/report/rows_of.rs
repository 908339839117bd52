//! Some of a campaign's injections, by what they struck.

use super::aggregates::Aggregates;
use super::key::{Dimension, Key};
use crate::{Outcome, ScopeSummary, Share};
use std::fmt;

/// Some of the injections of a campaign, by the scopes and values of `aggregates.csv`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowsOf {
    /// All of them.
    All,
    /// Those that struck a kind of place: `VGPR`, `lds`.
    Class(String),
    /// Those that struck an instruction of a primary group.
    Group(String),
    /// Those that struck an operation.
    Opcode(String),
    /// Those that struck a kernel.
    Kernel(String),
}

impl RowsOf {
    /// By what they are chosen.
    pub fn scope(&self) -> &'static str {
        self.dimension().name()
    }

    fn dimension(&self) -> Dimension {
        match self {
            RowsOf::All => Dimension::All,
            RowsOf::Class(_) => Dimension::Class,
            RowsOf::Group(_) => Dimension::Group,
            RowsOf::Opcode(_) => Dimension::Opcode,
            RowsOf::Kernel(_) => Dimension::Kernel,
        }
    }

    fn value(&self) -> &str {
        match self {
            RowsOf::All => "",
            RowsOf::Class(value)
            | RowsOf::Group(value)
            | RowsOf::Opcode(value)
            | RowsOf::Kernel(value) => value,
        }
    }
}

impl fmt::Display for RowsOf {
    /// `all`, `class VGPR`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(format!("{} {}", self.scope(), self.value()).trim_end())
    }
}

impl Aggregates {
    /// How many injections these are, and what they came to, in the order of [`Outcome::ALL`]; nothing
    /// where there are none.
    pub fn outcomes_of(&self, rows: &RowsOf) -> Option<(u64, [Share; Outcome::ALL.len()])> {
        let is_meant = |own: &&ScopeSummary<Key>| self.value(own.scope) == rows.value();
        let found = self.by(rows.dimension()).iter().find(is_meant);
        found.filter(|own| own.total > 0).map(|own| (own.total, own.outcomes))
    }

    /// What could stand in the place of the value of `rows`.
    pub fn values_beside(&self, rows: &RowsOf) -> Vec<String> {
        let all = self.by(rows.dimension()).iter().filter(|own| own.total > 0);
        all.map(|own| self.value(own.scope)).collect()
    }

    /// The campaign that they are of.
    pub fn about(&self) -> &super::About {
        &self.about
    }
}
