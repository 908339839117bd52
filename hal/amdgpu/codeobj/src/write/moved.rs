//! The map from old to new addresses of moved code.

use flipwave_isa::Pc;
use std::collections::BTreeMap;
use std::ops::Range;

/// Old and new addresses of moved code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovedCode {
    /// For each old instruction that no longer executes at its old address, the new address that
    /// branches to it must target. For the first instruction of a function, the function's new
    /// address.
    pub new_addresses: BTreeMap<Pc, Pc>,
    /// Runs of new code, as ELF virtual addresses, with the old instruction to which each belongs.
    /// Inserted code also belongs to an instruction. An instruction may have any number of runs.
    pub runs: Vec<(Range<u64>, Pc)>,
}

/// [`MovedCode`] indexed by old address.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeMap {
    new_addresses: BTreeMap<u64, u64>,
    /// Sorted by old address, then by new address.
    runs: Vec<Run>,
    old_code: OldCode,
}

/// The state of the old code after code has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OldCode {
    /// The old code is removed.
    #[default]
    Replaced,
    /// The old code stays at its address.
    Kept,
}

/// A run of new code.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Old address of the instruction to which the run belongs.
    pub(super) old: u64,
    pub(super) new: Range<u64>,
}

impl CodeMap {
    pub(super) fn new(moved: MovedCode, old_code: OldCode) -> CodeMap {
        let runs = moved.runs.into_iter().filter(|(new, _)| !new.is_empty());
        let mut runs: Vec<Run> = runs.map(|(new, old)| Run { old: old.0, new }).collect();
        runs.sort_by_key(|run| (run.old, run.new.start, run.new.end));
        let new_addresses = moved.new_addresses.iter().map(|(old, new)| (old.0, new.0)).collect();
        CodeMap { new_addresses, runs, old_code }
    }

    /// New address of the instruction at an old address, if it moved.
    pub(super) fn new_address(&self, old: u64) -> Option<u64> {
        self.new_addresses.get(&old).copied()
    }

    /// New range of the code in an old range: from its first to its last run. `None` if the code has
    /// not moved.
    pub(super) fn new_range(&self, old: Range<u64>) -> Option<Range<u64>> {
        if old.is_empty() || self.keeps_old_code() && self.new_address(old.start).is_none() {
            return None;
        }
        let (_, start) = self.new_addresses.range(old.clone()).next()?;
        Some(union(*start..*start, self.runs_of(old)))
    }

    /// The range of all new code.
    pub(super) fn all_new_code(&self) -> Option<Range<u64>> {
        self.runs.first().map(|first| union(first.new.clone(), &self.runs))
    }

    /// Returns `true` if the old code stays at its address.
    pub(super) fn keeps_old_code(&self) -> bool {
        self.old_code == OldCode::Kept
    }

    /// Returns `true` if code in an old range has moved away.
    pub(super) fn is_replaced(&self, old: Range<u64>) -> bool {
        !self.keeps_old_code() && !old.is_empty() && self.new_addresses.range(old).next().is_some()
    }

    /// New end address of the code before an old address.
    pub(super) fn end_before(&self, old: u64) -> Option<u64> {
        let (before, _) = self.new_addresses.range(..old).next_back()?;
        self.new_range(*before..old).map(|new| new.end)
    }

    /// The runs of the instructions in an old range.
    pub(super) fn runs_of(&self, old: Range<u64>) -> &[Run] {
        let [start, end] =
            [old.start, old.end].map(|address| self.runs.partition_point(|run| run.old < address));
        self.runs.get(start..end).unwrap_or_default()
    }
}

/// The smallest range that contains `range` and all runs.
fn union(range: Range<u64>, runs: &[Run]) -> Range<u64> {
    runs.iter().fold(range, |range, run| range.start.min(run.new.start)..range.end.max(run.new.end))
}
