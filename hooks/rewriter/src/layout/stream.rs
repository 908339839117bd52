//! Code without addresses. Positions count the bytes of code, without islands, alignment and other
//! padding, whose sizes are not known yet.

use super::{FunctionIndex, InsertPurpose, InstIndex, LayoutError, encoding::with_distance};
use crate::flow::IndexVec;
use flipwave_isa::Pc;
use std::ops::Range;

/// A location in new or old code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Location {
    /// A position in the stream.
    Position(usize),
    /// A fixed ELF virtual address.
    Address(u64),
}

/// Target of a branch or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// A known location.
    Location(Location),
    /// An instruction, with the code inserted before it.
    Inst(InstIndex),
    /// The entry of a function.
    Entry(FunctionIndex),
    /// The start of a routine.
    Routine(usize),
}

impl Label {
    pub fn position(position: usize) -> Label {
        Label::Location(Location::Position(position))
    }

    pub fn address(address: u64) -> Label {
        Label::Location(Location::Address(address))
    }
}

/// A branch whose 16-bit distance is filled in later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    /// Position of its word.
    pub at: usize,
    /// The word, with a zero distance.
    pub word: u32,
    /// The target.
    pub to: Label,
    /// The edited instruction whose trampoline needs it.
    pub site: Option<InstIndex>,
}

/// An address chain in inserted code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    /// Position of the chain.
    pub at: usize,
    /// The target.
    pub to: Label,
}

/// A place for islands between the code of two instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct IslandSite {
    /// Its position.
    pub at: usize,
    /// `true` if control falls through to it.
    pub falls_through: bool,
}

/// Positions of the code of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct InstUnit {
    /// Start of the code inserted before it.
    pub start: usize,
    /// The instruction itself, if it was not removed.
    pub inst: Option<usize>,
    /// End of the code inserted after it.
    pub end: usize,
}

/// Code that is being emitted. All lists ascend by position.
#[derive(Debug, Default)]
pub(super) struct CodeStream {
    pub bytes: Vec<u8>,
    /// Aligned positions, with the alignment in bytes.
    pub alignments: Vec<(usize, u64)>,
    pub branches: Vec<Branch>,
    pub addresses: Vec<Address>,
    pub island_sites: Vec<IslandSite>,
    pub inserted: Vec<(Range<usize>, InsertPurpose)>,
    /// The original instruction that each range belongs to.
    pub spans: Vec<(Range<usize>, InstIndex)>,
}

impl CodeStream {
    pub fn position(&self) -> usize {
        self.bytes.len()
    }

    pub fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    /// Appends a branch with the SOPP or SOPK word `word`.
    pub fn branch(&mut self, word: u32, to: Label, site: Option<InstIndex>) {
        let word = with_distance(word, 0);
        self.branches.push(Branch { at: self.position(), word, to, site });
        self.word(word);
    }

    pub fn align(&mut self, alignment: u64) {
        self.alignments.push((self.position(), alignment));
    }

    /// Permits islands at the current position.
    pub fn island_site(&mut self, falls_through: bool) {
        self.island_sites.push(IslandSite { at: self.position(), falls_through });
    }

    /// Records the range from `start` as inserted.
    pub fn close_inserted(&mut self, start: usize, purpose: InsertPurpose) {
        if start < self.position() {
            self.inserted.push((start..self.position(), purpose));
        }
    }

    /// Records that the range from `start` belongs to an instruction.
    pub fn close_span(&mut self, start: usize, index: InstIndex) {
        if start < self.position() {
            self.spans.push((start..self.position(), index));
        }
    }
}

/// The distance of a branch at `from` in words; `None` if `to` is out of range.
pub(super) fn distance(from: u64, to: u64) -> Option<i16> {
    let bytes = to.wrapping_sub(from.wrapping_add(4)) as i64;
    (bytes % 4 == 0).then_some(bytes / 4).and_then(|words| i16::try_from(words).ok())
}

/// Resolves labels after all code has been emitted.
pub(super) struct Labels<'a> {
    pub units: &'a IndexVec<InstIndex, Option<InstUnit>>,
    pub entries: &'a IndexVec<FunctionIndex, Location>,
    pub routines: &'a [usize],
    /// Old addresses of the instructions.
    pub old: &'a IndexVec<InstIndex, Pc>,
}

impl Labels<'_> {
    /// Location of a label.
    ///
    /// # Errors
    /// [`LayoutError::Unknown`] if the label refers to a missing instruction, function or routine.
    pub fn location(&self, label: Label) -> Result<Location, LayoutError> {
        let found = match label {
            Label::Location(location) => Some(location),
            Label::Inst(index) => match self.units.get(index) {
                Some(Some(unit)) => Some(Location::Position(unit.start)),
                Some(None) => Some(Location::Address(self.old[index].0)),
                None => None,
            },
            Label::Entry(function) => self.entries.get(function).copied(),
            Label::Routine(routine) => self.routines.get(routine).copied().map(Location::Position),
        };
        found.ok_or_else(|| LayoutError::Unknown { what: format!("{label:?}") })
    }
}
