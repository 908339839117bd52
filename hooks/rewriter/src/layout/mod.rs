//! Layout: assigns addresses to edited code and fixes all references to it.

mod addresses;
mod chains;
mod emit;
mod encoding;
mod error;
mod far;
mod finish;
mod fixups;
mod hints;
mod join_points;
mod lookup;
mod preload;
mod reach;
mod relayout;
mod stream;
#[cfg(test)]
pub(crate) mod tests;

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
    /// Complete position-independent instructions.
    Bytes(Bytes),
    /// A SOPP branch within its [`InsertedCode`].
    Branch {
        /// The instruction word with a zero offset.
        word: u32,
        /// Index of the target piece; the number of pieces for the end.
        to: usize,
    },
    /// Loads an address into a register pair with `s_getpc_b64`, `s_add_u32`, `s_addc_u32`, which
    /// clobber SCC.
    Address {
        /// Low register of the pair.
        destination: Sgpr,
        /// The target of the address.
        to: Reference,
    },
}

/// Target of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Data, by ELF virtual address in the new code object.
    Data(Pc),
    /// An original instruction, at its new address.
    Inst(InstIndex),
    /// The start of a routine of [`Edits::routines`].
    Routine(usize),
}

/// Bytes of a few instructions, usually without a heap allocation.
pub type Bytes = SmallVec<[u8; 16]>;

impl Piece {
    /// A piece of complete instructions.
    pub fn bytes(bytes: &[u8]) -> Piece {
        Piece::Bytes(SmallVec::from_slice(bytes))
    }
}

/// Code to insert: a sequence of pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InsertedCode {
    /// The pieces in order.
    pub pieces: Vec<Piece>,
}

/// Placement of a function's edited code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// The whole function moves; edits are inserted inline.
    Inline,
    /// The function stays. Its edited instructions move to trampolines, which are entered and left by
    /// branches.
    Trampoline,
}

impl InsertedCode {
    /// Sets the target of the branch piece `branch` to piece `to`.
    ///
    /// # Panics
    /// Panics if `branch` is not a branch piece.
    pub fn link(&mut self, branch: usize, to: usize) {
        match &mut self.pieces[branch] {
            Piece::Branch { to: target, .. } => *target = to,
            piece => panic!("{piece:?} is not a branch"),
        }
    }

    /// Appends other code.
    pub fn append(&mut self, code: InsertedCode) {
        let base = self.pieces.len();
        if base == 0 {
            *self = code;
            return;
        }
        self.pieces.extend(code.pieces.into_iter().map(|piece| match piece {
            Piece::Branch { word, to } => Piece::Branch { word, to: base + to },
            piece => piece,
        }));
    }
}

/// Edits of a program's code.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// Inserted code. Code after an instruction requires
    /// [`Control::has_known_successor`](flipwave_isa::Control::has_known_successor). Code in place of
    /// an instruction, empty to remove the instruction, is left at its end.
    pub code: BTreeMap<ProgramPoint, InsertedCode>,
    /// Code that runs once when a kernel starts, but not when a branch reaches the kernel's first
    /// instruction again. It is placed at the kernel's entry. For a kernel that preloads arguments, the
    /// code must load them, and the descriptor must no longer preload them.
    pub entries: BTreeMap<FunctionIndex, InsertedCode>,
    /// Separate routines after all functions. They must not fall through at their end.
    pub routines: Vec<InsertedCode>,
    /// Placements of functions. Functions without one move if they can be moved.
    pub placements: BTreeMap<FunctionIndex, Placement>,
    /// For instructions before which SCC and an SGPR pair are dead, the first register of the pair.
    /// A trampoline out of branch range needs such a pair where it is entered, and where it returns to
    /// the old text. If there is no pair at the edited instruction, its neighbours are displaced too.
    pub free_pairs: BTreeMap<InstIndex, Sgpr>,
}

impl Edits {
    /// Returns `true` if an instruction is edited.
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

/// New addresses of an original instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelocatedInst {
    /// Target of branches to the instruction: the first instruction inserted before it, or the
    /// instruction itself.
    pub start: Pc,
    /// The instruction itself; `None` if it was removed, replaced or dropped.
    pub inst: Option<Pc>,
    /// End of the code inserted after it on the fall-through path.
    pub end: Pc,
}

/// Purpose of an inserted range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertPurpose {
    /// Code at a program point; two ranges after a conditional branch.
    Point(ProgramPoint),
    /// Code that runs when the kernel starts.
    Entry(FunctionIndex),
    /// A routine.
    Routine(usize),
    /// A branch island, a branch around islands or back to the old text, or padding.
    Island,
}

/// A change of the old text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPatch {
    /// ELF virtual address.
    pub address: u64,
    /// The new bytes.
    pub bytes: Vec<u8>,
}

/// Edited code with addresses. Each byte belongs to an original instruction or to a range in
/// [`CodeLayout::inserted`].
#[derive(Clone, Debug, Default)]
pub struct CodeLayout {
    /// ELF virtual address of the first byte.
    pub address: u64,
    /// The code.
    pub bytes: Vec<u8>,
    /// New addresses of each original instruction.
    pub places: IndexVec<InstIndex, RelocatedInst>,
    /// All code that is not original, in the new and the old text, by ascending address.
    pub inserted: Vec<(Range<u64>, InsertPurpose)>,
    /// New entry of each function.
    pub entries: IndexVec<FunctionIndex, Pc>,
    /// The original instruction that each range of code belongs to, inserted code included, by
    /// ascending address.
    pub spans: Vec<(Range<u64>, InstIndex)>,
    /// Hints that were removed because edits invalidate them: `s_clause`, `s_delay_alu`, and messages
    /// that release VGPRs.
    pub dropped: Vec<InstIndex>,
    /// Placement of each function.
    pub placements: IndexVec<FunctionIndex, Placement>,
    /// Changes of the old text, by ascending address. If no function stays, the old text is not needed.
    pub patches: Vec<TextPatch>,
    /// Branches and addresses in functions that stay that could not be redirected to moved code and
    /// still refer to the original.
    pub stale: Vec<InstIndex>,
    /// Old addresses of the instructions.
    old: IndexVec<InstIndex, Pc>,
    /// New addresses of functions, by old address.
    functions: BTreeMap<Pc, Pc>,
    /// Instructions of functions that moved as a whole.
    moved_functions: Vec<IndexRange<InstIndex>>,
}

impl CodeLayout {
    /// The new target of branches to an old address: the entry of a function, or the start of the code
    /// inserted before an instruction. `None` if no instruction starts there.
    pub fn new_address(&self, old: Pc) -> Option<Pc> {
        if let Some(entry) = self.functions.get(&old) {
            return Some(*entry);
        }
        let index = self.old.binary_search(&old).ok()?;
        Some(self.places[InstIndex::new(index)].start)
    }

    /// Old address of the instruction that original or inserted code at a new address belongs to;
    /// `None` for routines, islands and padding.
    pub fn old_address(&self, new: Pc) -> Option<Pc> {
        if let Ok(at) = self.old.binary_search(&new) {
            // In the old text, only instructions that stay belong to an instruction.
            return self.places[InstIndex::new(at)].inst.filter(|place| *place == new);
        }
        let above = self.spans.partition_point(|(range, _)| range.start <= new.0);
        let (range, index) = &self.spans[above.checked_sub(1)?];
        range.contains(&new.0).then(|| self.old[*index])
    }

    /// Translates a location in the new code to the old address of its instruction.
    pub fn original_location(
        &self,
        place: flipwave_device::WaveLocation,
    ) -> flipwave_device::WaveLocation {
        flipwave_device::WaveLocation {
            pc: self.old_address(place.pc).unwrap_or(place.pc),
            ..place
        }
    }

    /// The movement of code that symbols, descriptors, relocations and line tables follow.
    pub fn moved(&self) -> MovedCode {
        let moved = self.moved_functions.iter().flat_map(|range| range.iter());
        let places = moved.filter_map(|at| Some((self.old[at], self.new_address(self.old[at])?)));
        let entries = self.functions.iter().map(|(old, new)| (*old, *new));
        let new_addresses = places.chain(entries.filter(|(old, new)| old != new)).collect();
        let runs = self.spans.iter().map(|(run, at)| (run.clone(), self.old[*at]));
        MovedCode { new_addresses, runs: runs.collect() }
    }

    /// Returns `true` if functions stay, so that the old text must be kept.
    pub fn keeps_old_text(&self) -> bool {
        self.placements.contains(&Placement::Trampoline)
    }
}
