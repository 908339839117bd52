//! Instructions that could not be counted because the engine refused their hooks.

use super::{Tool, ToolScope};
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::rewrite::Refused;
use std::collections::{BTreeMap, BTreeSet};

/// The content of a table cell whose number is unknown.
pub const NOT_COUNTED: &str = "not counted";

/// The cells of a row, after those of [`DispatchColumns`](super::DispatchColumns).
pub type Cells = Vec<String>;

/// The instructions of a code object that could not be counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotCounted(BTreeSet<InstIndex>);

impl NotCounted {
    /// The instructions that `tool` counts at the refused sites.
    pub fn of(tool: &impl Tool, program: &Disassembly, refused: &[Refused]) -> NotCounted {
        let sites = refused.iter().filter_map(|refused| program.at(refused.pc));
        NotCounted(sites.flat_map(|at| tool.counted_at(at).iter()).collect())
    }

    /// Returns `true` if an instruction could not be counted.
    pub fn contains(&self, at: InstIndex) -> bool {
        self.0.contains(&at)
    }

    /// The instructions, by ascending address.
    pub fn iter(&self) -> impl Iterator<Item = InstIndex> + '_ {
        self.0.iter().copied()
    }
}

/// One row per instruction that could not be counted: its location, and [`NOT_COUNTED`] in every other
/// column.
pub(super) fn uncounted_instructions<T: Tool>(scope: &ToolScope<'_>) -> Vec<Cells> {
    let row = |at| {
        let location = scope.any_location(at)?;
        let mut cells = vec![location.function, location.pc.to_string(), location.instruction];
        cells.resize(T::COLUMNS.len(), NOT_COUNTED.to_owned());
        Some(cells)
    };
    scope.not_counted().filter_map(row).collect()
}

/// A row with [`NOT_COUNTED`] in all columns, for a dispatch that could not be counted at all.
pub fn uncounted_dispatch<T: Tool>() -> Cells {
    vec![NOT_COUNTED.to_owned(); T::COLUMNS.len()]
}

/// The number of refused sites. Several hooks at one instruction are one site.
pub fn refused_sites(refused: &[Refused]) -> usize {
    refused.iter().map(|refused| refused.pc).collect::<BTreeSet<_>>().len()
}

/// One message per refusal reason, with the number of its sites and the first site.
pub fn refusal_reasons(refused: &[Refused]) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<&Refused>> = BTreeMap::new();
    for refused in refused {
        by_reason.entry(&refused.reason).or_default().push(refused);
    }
    let line = |(reason, refused): (&str, Vec<&Refused>)| {
        let first = refused.iter().min_by_key(|refused| refused.pc)?;
        let sites: BTreeSet<_> = refused.iter().map(|refused| refused.pc).collect();
        Some(format!(
            "not counted: {} sites, the first at pc {} `{}`: {reason}",
            sites.len(),
            first.pc,
            first.instruction.trim()
        ))
    };
    by_reason.into_iter().filter_map(line).collect()
}
