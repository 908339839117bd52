//! Where code was, and where it is now.

use flipwave_isa::Pc;
use std::collections::BTreeMap;
use std::ops::Range;

/// Code that has another place than before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovedCode {
    /// Where control that came to an old instruction comes to now, for every instruction that does
    /// not run at its old place any more; for the first one of a function: where the function
    /// begins now.
    pub places: BTreeMap<Pc, Pc>,
    /// Runs of new code, ELF virtual addresses, and the old instruction that each belongs to.
    /// Inserted code belongs to an instruction too; an instruction may have several runs, or none.
    pub runs: Vec<(Range<u64>, Pc)>,
}

/// Code that moved, by old address.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeMap {
    places: BTreeMap<u64, u64>,
    /// By old address, then by new one.
    runs: Vec<Run>,
    /// Whether the old code is still there.
    keeps_old: bool,
}

/// A run of new code.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The old address of the instruction that it belongs to.
    pub(super) old: u64,
    pub(super) new: Range<u64>,
}

impl CodeMap {
    pub(super) fn new(moved: MovedCode, keeps_old: bool) -> CodeMap {
        let runs = moved.runs.into_iter().filter(|(new, _)| !new.is_empty());
        let mut runs: Vec<Run> = runs.map(|(new, old)| Run { old: old.0, new }).collect();
        runs.sort_by_key(|run| (run.old, run.new.start, run.new.end));
        let places = moved.places.iter().map(|(old, new)| (old.0, new.0)).collect();
        CodeMap { places, runs, keeps_old }
    }

    /// Where the code at an old address begins now.
    pub(super) fn start(&self, old: u64) -> Option<u64> {
        self.places.get(&old).copied()
    }

    /// Where code from one old address to another is now: all its runs, and what lies between
    /// them. Nothing if it is where it was.
    pub(super) fn range(&self, old: Range<u64>) -> Option<Range<u64>> {
        if old.is_empty() || self.keeps_old && self.start(old.start).is_none() {
            return None;
        }
        let (_, place) = self.places.range(old.clone()).next()?;
        Some(around(*place..*place, self.within(old)))
    }

    /// All new code.
    pub(super) fn everything(&self) -> Option<Range<u64>> {
        self.runs.first().map(|first| around(first.new.clone(), &self.runs))
    }

    /// Whether the old code is still there.
    pub(super) fn keeps_old(&self) -> bool {
        self.keeps_old
    }

    /// Whether code from one old address to another has moved, and is not there any more.
    pub(super) fn is_gone(&self, old: Range<u64>) -> bool {
        !self.keeps_old && !old.is_empty() && self.places.range(old).next().is_some()
    }

    /// Where the code before an old address ends now.
    pub(super) fn end_before(&self, old: u64) -> Option<u64> {
        let (before, _) = self.places.range(..old).next_back()?;
        self.range(*before..old).map(|new| new.end)
    }

    /// The runs of the instructions from one old address to another.
    pub(super) fn within(&self, old: Range<u64>) -> &[Run] {
        let [start, end] =
            [old.start, old.end].map(|address| self.runs.partition_point(|run| run.old < address));
        self.runs.get(start..end).unwrap_or_default()
    }
}

/// The range with all runs in it.
fn around(range: Range<u64>, runs: &[Run]) -> Range<u64> {
    runs.iter().fold(range, |range, run| range.start.min(run.new.start)..range.end.max(run.new.end))
}
