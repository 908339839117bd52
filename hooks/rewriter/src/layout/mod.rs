//! Edited code in a new place, with everything that refers to it mended.

mod addresses;
mod chains;
mod emit;
mod encoding;
mod error;
mod far;
mod finish;
mod hints;
mod lookup;
mod mending;
mod preload;
mod reach;
mod relayout;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod ways;

pub(crate) use encoding::address_chain;
pub use error::LayoutError;
pub(crate) use far::is_far;
pub use relayout::relayout;

use crate::flow::{FunctionIndex, IndexRange, IndexVec, InstIndex, Key};
use crate::point::ProgramPoint;
use flipwave_codeobj::MovedCode;
use flipwave_isa::{Pc, Sgpr};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// A piece of inserted code, before it has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Whole instructions that mean the same everywhere.
    Bytes(Bytes),
    /// A SOPP branch within the same [`InsertedCode`].
    Branch {
        /// The instruction's word, its offset field zero.
        word: u32,
        /// Index of the piece it goes to; the number of pieces for the end.
        to: usize,
    },
    /// `s_getpc_b64`, `s_add_u32`, `s_addc_u32`: an address into a register pair. SCC is lost.
    Address {
        /// Low half of the pair.
        destination: Sgpr,
        /// Whose address.
        of: Reference,
    },
}

/// What an address is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// An ELF virtual address of the new code object that is not in moved code: data.
    Data(Pc),
    /// An original instruction, wherever it is now.
    Inst(InstIndex),
    /// The beginning of a routine of [`Edits::routines`].
    Routine(usize),
}

/// Bytes of an instruction or some, which mostly need no memory of their own.
pub type Bytes = SmallVec<[u8; 16]>;

impl Piece {
    /// Whole instructions.
    pub fn bytes(bytes: &[u8]) -> Piece {
        Piece::Bytes(SmallVec::from_slice(bytes))
    }
}

/// A run of pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InsertedCode {
    /// One after the other.
    pub pieces: Vec<Piece>,
}

/// Where the edited code of a function goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// The whole function moves, its edits in place.
    Inline,
    /// The function stays. Its edited instructions move; branches lead to them and back.
    Trampoline,
}

impl InsertedCode {
    /// Makes the branch at index `branch` of the pieces go to piece `to`.
    ///
    /// # Panics
    /// Where that piece is no branch.
    pub fn link(&mut self, branch: usize, to: usize) {
        match &mut self.pieces[branch] {
            Piece::Branch { to: own, .. } => *own = to,
            other => panic!("{other:?} is no branch"),
        }
    }

    /// Puts other code after this.
    pub fn append(&mut self, code: InsertedCode) {
        let base = self.pieces.len();
        if base == 0 {
            *self = code;
            return;
        }
        self.pieces.extend(code.pieces.into_iter().map(|piece| match piece {
            Piece::Branch { word, to } => Piece::Branch { word, to: base + to },
            other => other,
        }));
    }
}

/// What to do to a program's code.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// Inserted code. Code after an instruction requires
    /// [`Control::has_known_successor`](flipwave_isa::Control::has_known_successor). Code in place of
    /// an instruction, empty to remove the instruction, is left at its end.
    pub code: BTreeMap<ProgramPoint, InsertedCode>,
    /// Code that runs once when a kernel starts, and not when control comes back to its first
    /// instruction. A kernel that has such code begins with it, at its entry: if it preloaded
    /// arguments, the code has to load them and its descriptor must not preload any more.
    pub entries: BTreeMap<FunctionIndex, InsertedCode>,
    /// Code that stands for itself after everything. Control does not leave it at its end.
    pub routines: Vec<InsertedCode>,
    /// Where the code of functions goes. Of those not named, the ones that can be moved are.
    pub placements: BTreeMap<FunctionIndex, Placement>,
    /// First registers of pairs that, with SCC, hold nothing that is live before an instruction.
    /// Trampolines that branches do not reach need one where control comes to them, and one where
    /// it comes back to old text: where there is none at the instruction itself, instructions
    /// beside it are displaced with it.
    pub free_pairs: BTreeMap<InstIndex, Sgpr>,
}

impl Edits {
    /// Whether an instruction is edited.
    pub fn touches(&self, index: InstIndex) -> bool {
        self.code.range(ProgramPoint::all(index)).next().is_some()
    }

    /// The edited instruction in a range that is nearest to an instruction; of two at the same
    /// distance, the lower.
    pub fn nearest(&self, index: InstIndex, within: IndexRange<InstIndex>) -> Option<InstIndex> {
        let below =
            self.code.range(ProgramPoint::within(within.start.min(index), index)).next_back();
        let above = self.code.range(ProgramPoint::within(index, within.end)).next();
        let edited = below.into_iter().chain(above).map(|(point, _)| point.at);
        edited.min_by_key(|at| at.0.abs_diff(index.0))
    }

    /// Returns `true` if an instruction in a range is edited.
    fn touches_any(&self, indices: IndexRange<InstIndex>) -> bool {
        self.code.range(ProgramPoint::within(indices.start, indices.end)).next().is_some()
    }
}

/// Where an original instruction is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelocatedInst {
    /// Where control that came to the instruction comes to now: the first instruction inserted
    /// before it, or itself.
    pub start: Pc,
    /// The instruction itself; `None` where it was removed, replaced or dropped.
    pub inst: Option<Pc>,
    /// Behind everything that was inserted after it, the way of a branch that is taken left
    /// aside.
    pub end: Pc,
}

/// What an inserted range is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertPurpose {
    /// Code at a program point; two ranges after a conditional branch.
    Point(ProgramPoint),
    /// Runs when the kernel starts.
    Entry(FunctionIndex),
    /// A routine.
    Routine(usize),
    /// A branch on the way of another, or one that leads around islands or back to old text; or
    /// padding.
    Island,
}

/// Bytes to change in the old text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPatch {
    /// ELF virtual address.
    pub address: u64,
    /// What to put there.
    pub bytes: Vec<u8>,
}

/// Edited code with addresses. Each byte is of an original instruction or in [`CodeLayout::inserted`].
#[derive(Clone, Debug, Default)]
pub struct CodeLayout {
    /// ELF virtual address of the first byte.
    pub address: u64,
    /// The code.
    pub bytes: Vec<u8>,
    /// Where each original instruction is now.
    pub places: IndexVec<InstIndex, RelocatedInst>,
    /// All code that is not original, by ascending address; that in old text, too.
    pub inserted: Vec<(Range<u64>, InsertPurpose)>,
    /// Where each function begins now.
    pub entries: IndexVec<FunctionIndex, Pc>,
    /// The instruction that code of each range belongs to, inserted code included, by ascending
    /// address. A range that begins runs has code of its first instruction.
    pub spans: Vec<(Range<u64>, InstIndex)>,
    /// Hints that were left out, because they say something of code that was edited: `s_clause`,
    /// `s_delay_alu`, and messages that give VGPRs back.
    pub dropped: Vec<InstIndex>,
    /// Where the code of each function went.
    pub placements: IndexVec<FunctionIndex, Placement>,
    /// What changes in the old text, by ascending address. Where no function stays, the old text
    /// can go.
    pub patches: Vec<TextPatch>,
    /// Instructions in functions that stay whose way into moved code could not be mended: it
    /// leads to the original.
    pub stale: Vec<InstIndex>,
    /// Old addresses of the instructions.
    old: IndexVec<InstIndex, Pc>,
    /// New address for the old address of each function.
    functions: BTreeMap<Pc, Pc>,
    /// Instructions of the functions that moved in whole.
    relaid: Vec<IndexRange<InstIndex>>,
}

impl CodeLayout {
    /// Where control that came to an old address comes to now: for the beginning of a function
    /// its entry, for another instruction what was inserted before it. `None` where no
    /// instruction begins.
    pub fn new_of(&self, old: Pc) -> Option<Pc> {
        if let Some(entry) = self.functions.get(&old) {
            return Some(*entry);
        }
        let index = self.old.binary_search(&old).ok()?;
        Some(self.places[InstIndex::new(index)].start)
    }

    /// Old address of the instruction that code at a new address belongs to, be it inserted or
    /// original; `None` for routines, islands and padding.
    pub fn old_of(&self, new: Pc) -> Option<Pc> {
        if let Ok(at) = self.old.binary_search(&new) {
            // Old text, where only what stays belongs to somebody.
            return self.places[InstIndex::new(at)].inst.filter(|place| *place == new);
        }
        let above = self.spans.partition_point(|(range, _)| range.start <= new.0);
        let (range, index) = &self.spans[above.checked_sub(1)?];
        range.contains(&new.0).then(|| self.old[*index])
    }

    /// A place in the new code, by the address that its instruction had before.
    pub fn old_place(&self, place: flipwave_device::WaveLocation) -> flipwave_device::WaveLocation {
        flipwave_device::WaveLocation { pc: self.old_of(place.pc).unwrap_or(place.pc), ..place }
    }

    /// What symbols, descriptors, relocations and line tables follow: where functions and the
    /// instructions of those that moved in whole are now, and what new code belongs to.
    pub fn moved(&self) -> MovedCode {
        let relaid = self.relaid.iter().flat_map(|range| range.iter());
        let places = relaid.filter_map(|at| Some((self.old[at], self.new_of(self.old[at])?)));
        let entries = self.functions.iter().map(|(old, new)| (*old, *new));
        let new_addresses = places.chain(entries.filter(|(old, new)| old != new)).collect();
        let runs = self.spans.iter().map(|(run, at)| (run.clone(), self.old[*at]));
        MovedCode { new_addresses, runs: runs.collect() }
    }

    /// Whether functions stay where they are, so that the old text must, too.
    pub fn keeps_old_text(&self) -> bool {
        self.placements.contains(&Placement::Trampoline)
    }
}
