//! Code before it has addresses: positions count the bytes of what is certain, and leave out
//! islands, alignment and other padding.

use super::{FunctionIndex, InsertPurpose, InstIndex, LayoutError, encoding::with_distance};
use crate::flow::IndexVec;
use flipwave_isa::Pc;
use std::ops::Range;

/// Where something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spot {
    /// A position of the stream.
    Position(usize),
    /// An ELF virtual address that layout does not choose.
    Address(u64),
}

/// What a branch or an address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// A place that is known already.
    Spot(Spot),
    /// Where control comes to an instruction.
    Inst(InstIndex),
    /// Where a function begins.
    Entry(FunctionIndex),
    /// Where a routine begins.
    Routine(usize),
}

impl Label {
    pub fn position(position: usize) -> Label {
        Label::Spot(Spot::Position(position))
    }

    pub fn address(address: u64) -> Label {
        Label::Spot(Spot::Address(address))
    }
}

/// A branch whose 16-bit distance is to be filled in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    /// Where its word is.
    pub at: usize,
    /// The word, its distance zero.
    pub word: u32,
    /// Where it leads.
    pub to: Label,
    /// The edited instruction that needs it, where that stays at its old place.
    pub site: Option<InstIndex>,
}

/// An address that inserted code computes: position of its chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    /// Where its code begins.
    pub at: usize,
    /// Whose address.
    pub of: Label,
}

/// A place between the code of two instructions, where islands may stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct IslandSeam {
    /// Its position.
    pub at: usize,
    /// Whether control comes to it from the instruction before.
    pub falls: bool,
}

/// Where the code of an instruction is.
#[derive(Clone, Copy, Debug)]
pub(super) struct InstUnit {
    /// Where control comes to it.
    pub start: usize,
    /// The instruction itself, if it is still there.
    pub inst: Option<usize>,
    /// Behind it and what runs after it.
    pub end: usize,
}

/// Code in the making. All lists ascend by position.
#[derive(Debug, Default)]
pub(super) struct CodeStream {
    pub bytes: Vec<u8>,
    /// Positions that must have an address that is a multiple of a number of bytes.
    pub alignments: Vec<(usize, u64)>,
    pub branches: Vec<Branch>,
    pub addresses: Vec<Address>,
    pub seams: Vec<IslandSeam>,
    pub inserted: Vec<(Range<usize>, InsertPurpose)>,
    /// Which original instruction code belongs to.
    pub spans: Vec<(Range<usize>, InstIndex)>,
}

impl CodeStream {
    pub fn position(&self) -> usize {
        self.bytes.len()
    }

    pub fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    /// Adds a branch; `word` is that of a SOPP or SOPK branch.
    pub fn branch(&mut self, word: u32, to: Label, site: Option<InstIndex>) {
        let word = with_distance(word, 0);
        self.branches.push(Branch { at: self.position(), word, to, site });
        self.word(word);
    }

    pub fn align(&mut self, alignment: u64) {
        self.alignments.push((self.position(), alignment));
    }

    pub fn seam(&mut self, falls: bool) {
        self.seams.push(IslandSeam { at: self.position(), falls });
    }

    /// Notes that everything from `start` on was inserted.
    pub fn close_inserted(&mut self, start: usize, purpose: InsertPurpose) {
        if start < self.position() {
            self.inserted.push((start..self.position(), purpose));
        }
    }

    /// Notes that everything from `start` on belongs to an instruction.
    pub fn close_span(&mut self, start: usize, index: InstIndex) {
        if start < self.position() {
            self.spans.push((start..self.position(), index));
        }
    }
}

/// The distance in a branch at `from`, in words, if it has room for it.
pub(super) fn distance(from: u64, to: u64) -> Option<i16> {
    let bytes = to.wrapping_sub(from.wrapping_add(4)) as i64;
    (bytes % 4 == 0).then_some(bytes / 4).and_then(|words| i16::try_from(words).ok())
}

/// The position of a label, once everything is there.
pub(super) struct Labels<'a> {
    pub units: &'a IndexVec<InstIndex, Option<InstUnit>>,
    pub entries: &'a IndexVec<FunctionIndex, Spot>,
    pub routines: &'a [usize],
    /// Old addresses of the instructions.
    pub old: &'a IndexVec<InstIndex, Pc>,
}

impl Labels<'_> {
    /// # Errors
    /// Where an edit names what the program does not have.
    pub fn spot(&self, label: Label) -> Result<Spot, LayoutError> {
        let found = match label {
            Label::Spot(spot) => Some(spot),
            Label::Inst(index) => match self.units.get(index) {
                Some(Some(unit)) => Some(Spot::Position(unit.start)),
                Some(None) => Some(Spot::Address(self.old[index].0)),
                None => None,
            },
            Label::Entry(function) => self.entries.get(function).copied(),
            Label::Routine(routine) => self.routines.get(routine).copied().map(Spot::Position),
        };
        found.ok_or_else(|| LayoutError::Unknown { what: format!("{label:?}") })
    }
}
