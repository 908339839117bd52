//! Instructions that a tool has no numbers for, since no hook could be put at their sites.

use super::{Tool, ToolScope};
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::rewrite::Refused;
use std::collections::{BTreeMap, BTreeSet};

/// Content of a cell whose number is not known.
pub const NOT_COUNTED: &str = "not counted";

/// Cells of a row, after those of [`DispatchColumns`](super::DispatchColumns).
pub type Cells = Vec<String>;

/// Instructions of a code object that a tool has no numbers for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotCounted(BTreeSet<InstIndex>);

impl NotCounted {
    /// The instructions that `tool` counts at sites that were refused.
    pub fn of(tool: &impl Tool, program: &Disassembly, refused: &[Refused]) -> NotCounted {
        let sites = refused.iter().filter_map(|own| program.at(own.pc));
        NotCounted(sites.flat_map(|at| tool.counted_at(at).iter()).collect())
    }

    /// Whether an instruction is one of them.
    pub fn contains(&self, at: InstIndex) -> bool {
        self.0.contains(&at)
    }

    /// All of them, by ascending address.
    pub fn iter(&self) -> impl Iterator<Item = InstIndex> + '_ {
        self.0.iter().copied()
    }
}

/// A row for each instruction that could not be counted: its place, and a mark in every other
/// column.
pub(super) fn marked_places<T: Tool>(scope: &ToolScope<'_>) -> Vec<Cells> {
    let row = |at| {
        let place = scope.named(at)?;
        let mut cells = vec![place.function, place.pc.to_string(), place.instruction];
        cells.resize(T::COLUMNS.len(), NOT_COUNTED.to_owned());
        Some(cells)
    };
    scope.not_counted().filter_map(row).collect()
}

/// A row of marks, for a dispatch of which nothing was counted.
pub fn marked_dispatch<T: Tool>() -> Cells {
    vec![NOT_COUNTED.to_owned(); T::COLUMNS.len()]
}

/// How many sites were refused. Several hooks at one instruction have one site.
pub fn refused_sites(refused: &[Refused]) -> usize {
    refused.iter().map(|own| own.pc).collect::<BTreeSet<_>>().len()
}

/// A line for each reason for which sites were refused: how many, and the first of them.
pub fn refusal_reasons(refused: &[Refused]) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<&Refused>> = BTreeMap::new();
    for own in refused {
        by_reason.entry(&own.reason).or_default().push(own);
    }
    let line = |(reason, own): (&str, Vec<&Refused>)| {
        let first = own.iter().min_by_key(|own| own.pc)?;
        let sites: BTreeSet<_> = own.iter().map(|own| own.pc).collect();
        Some(format!(
            "not counted: sites: {}, the first pc {} `{}`: {reason}",
            sites.len(),
            first.pc,
            first.instruction.trim()
        ))
    };
    by_reason.into_iter().filter_map(line).collect()
}
