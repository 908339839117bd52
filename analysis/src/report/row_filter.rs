//! Selection of a campaign's injections.

use super::aggregates::Aggregates;
use super::key::{Dimension, Key};
use crate::{Outcome, ScopeSummary, Share};
use std::fmt;

/// A selection of a campaign's injections by a scope and value of `aggregates.csv`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowFilter {
    /// All injections.
    All,
    /// Injections into a class of storage: `VGPR`, `lds`.
    Class(String),
    /// Injections into instructions of a primary instruction group.
    Group(String),
    /// Injections into instructions with an opcode.
    Opcode(String),
    /// Injections into a kernel.
    Kernel(String),
}

impl RowFilter {
    /// Name of the filter's scope.
    pub fn scope(&self) -> &'static str {
        self.dimension().name()
    }

    fn dimension(&self) -> Dimension {
        match self {
            RowFilter::All => Dimension::All,
            RowFilter::Class(_) => Dimension::Class,
            RowFilter::Group(_) => Dimension::Group,
            RowFilter::Opcode(_) => Dimension::Opcode,
            RowFilter::Kernel(_) => Dimension::Kernel,
        }
    }

    fn value(&self) -> &str {
        match self {
            RowFilter::All => "",
            RowFilter::Class(value)
            | RowFilter::Group(value)
            | RowFilter::Opcode(value)
            | RowFilter::Kernel(value) => value,
        }
    }
}

impl fmt::Display for RowFilter {
    /// `all`, `class VGPR`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(format!("{} {}", self.scope(), self.value()).trim_end())
    }
}

impl Aggregates {
    /// The number of selected injections and the shares of their outcomes, in the order of
    /// [`Outcome::ALL`]; `None` without injections.
    pub fn outcomes_of(&self, filter: &RowFilter) -> Option<(u64, [Share; Outcome::ALL.len()])> {
        let is_selected = |rates: &&ScopeSummary<Key>| self.value(rates.scope) == filter.value();
        let found = self.rates_by(filter.dimension()).iter().find(is_selected);
        found.filter(|rates| rates.total > 0).map(|rates| (rates.total, rates.outcomes))
    }

    /// Values with injections in the scope of a filter.
    pub fn filter_values(&self, filter: &RowFilter) -> Vec<String> {
        let struck = self.rates_by(filter.dimension()).iter().filter(|rates| rates.total > 0);
        struck.map(|rates| self.value(rates.scope)).collect()
    }

    /// Information about the campaign.
    pub fn info(&self) -> &super::CampaignInfo {
        &self.info
    }
}
