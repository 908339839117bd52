//! Instruction sequences that are executed without interruption.

use super::Op;
use flipwave_isa::Inst;

/// An instruction sequence that is executed as a unit and counted as one.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// Unique number in this process, starting at zero.
    pub number: u64,
    /// Device address of the first instruction.
    pub(crate) start: u64,
    /// Instructions of the sequence.
    pub(crate) ops: &'a [Op],
    /// For each instruction, whether observers see it individually.
    pub(crate) seen_alone: &'a [bool],
    /// Number of instructions executed before EXEC changes, which happens at most once.
    pub(crate) before_exec: usize,
    /// Properties that require individual observation by some observers.
    pub(crate) traits: Traits,
}

/// A set of properties because of which some observers cannot count a sequence as a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits(pub u32);

impl Traits {
    /// Writes to lanes other than the active ones.
    pub const OWN_LANES: Traits = Traits(1);
    /// Contains operations whose results are not settled.
    pub const UNSETTLED: Traits = Traits(2);

    /// Returns these properties if `condition` holds, otherwise none.
    pub fn when(self, condition: bool) -> Traits {
        Traits(if condition { self.0 } else { 0 })
    }

    /// Union of both sets.
    pub fn or(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    /// Returns `true` if the sets intersect.
    pub fn meets(self, other: Traits) -> bool {
        self.0 & other.0 != 0
    }
}

impl<'a> Stretch<'a> {
    /// Returns `true` if the sequence writes to lanes other than the active ones.
    pub fn has_own_lanes(&self) -> bool {
        self.traits.meets(Traits::OWN_LANES)
    }

    /// Instructions in order.
    pub fn instructions(&self) -> impl ExactSizeIterator<Item = &'a Inst> + use<'a> {
        self.ops.iter().map(|op| &*op.inst)
    }

    /// Instructions that are observed only as parts of the sequence, and whether EXEC has changed
    /// before each.
    pub fn parts(&self) -> impl Iterator<Item = (&'a Inst, bool)> {
        let before_exec = self.before_exec;
        self.counted().map(move |(index, op)| (&*op.inst, index >= before_exec))
    }

    /// Instructions that are observed only as parts of the sequence, with their indices.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (usize, &'a Op)> + use<'a> {
        let each = self.ops.iter().zip(self.seen_alone).enumerate();
        each.filter(|(_, (_, seen_alone))| !**seen_alone).map(|(index, (op, _))| (index, op))
    }
}

/// A map from sequences to values.
pub(crate) struct StretchMap<T> {
    /// Index of the value plus one, by sequence number; zero if there is none.
    places: Vec<u32>,
    known: Vec<T>,
}

impl<T> Default for StretchMap<T> {
    fn default() -> StretchMap<T> {
        StretchMap { places: Vec::new(), known: Vec::new() }
    }
}

impl<T> StretchMap<T> {
    /// Index of a sequence's value, if there is one.
    #[inline(always)]
    pub fn place(&self, stretch: Stretch<'_>) -> Option<usize> {
        let place = self.places.get(stretch.number as usize)?;
        (*place as usize).checked_sub(1)
    }

    /// Adds a value for a sequence without one; returns its index.
    pub fn insert(&mut self, stretch: Stretch<'_>, known: T) -> usize {
        let number = stretch.number as usize;
        if number >= self.places.len() {
            self.places.resize(number + 1, 0);
        }
        self.known.push(known);
        self.places[number] = self.known.len() as u32;
        self.known.len() - 1
    }

    /// Values by index.
    pub fn known(&mut self) -> &mut [T] {
        &mut self.known
    }

    /// Returns all values in index order.
    pub fn into_known(self) -> Vec<T> {
        self.known
    }
}
