//! Instructions that are executed one after the other, whatever happens between them.

use super::Op;
use flipwave_isa::Inst;

/// A stretch of code that is executed as a whole, and counted as one.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// No other stretch of this process has it; they are counted from zero.
    pub number: u64,
    /// Device address of the first instruction.
    pub(crate) start: u64,
    /// Its instructions.
    pub(crate) ops: &'a [Op],
    /// Which of them are seen one by one when they are executed.
    pub(crate) seen_alone: &'a [bool],
    /// How many are executed before EXEC changes, which it does once at most.
    pub(crate) before_exec: usize,
    /// What has to be seen instruction by instruction by some.
    pub(crate) traits: Traits,
}

/// What makes a stretch one that not all can count as a whole; a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits(pub u32);

impl Traits {
    /// It writes to other lanes than those that are active.
    pub const OWN_LANES: Traits = Traits(1);
    /// It has operations whose results are not settled.
    pub const UNSETTLED: Traits = Traits(2);

    /// Those of `self` for which it is so.
    pub fn when(self, condition: bool) -> Traits {
        Traits(if condition { self.0 } else { 0 })
    }

    /// Those of both.
    pub fn or(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    /// Whether there are some in both.
    pub fn meets(self, other: Traits) -> bool {
        self.0 & other.0 != 0
    }
}

impl<'a> Stretch<'a> {
    /// Whether it writes to other lanes than those that are active.
    pub fn has_own_lanes(&self) -> bool {
        self.traits.meets(Traits::OWN_LANES)
    }

    /// Its instructions, in their order.
    pub fn instructions(&self) -> impl ExactSizeIterator<Item = &'a Inst> + use<'a> {
        self.ops.iter().map(|op| &*op.inst)
    }

    /// The instructions that are only seen as parts of the stretch; each with whether EXEC has changed
    /// before it.
    pub fn parts(&self) -> impl Iterator<Item = (&'a Inst, bool)> {
        let before_exec = self.before_exec;
        self.counted().map(move |(index, op)| (&*op.inst, index >= before_exec))
    }

    /// The instructions that are only seen as parts of the stretch, with their indices.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (usize, &'a Op)> + use<'a> {
        let each = self.ops.iter().zip(self.seen_alone).enumerate();
        each.filter(|(_, (_, seen_alone))| !**seen_alone).map(|(index, (op, _))| (index, op))
    }
}

/// What is known of each of some stretches.
pub(crate) struct StretchMap<T> {
    /// By the number of a stretch one more than the place of what is known of it; zero if nothing is.
    places: Vec<u32>,
    known: Vec<T>,
}

impl<T> Default for StretchMap<T> {
    fn default() -> StretchMap<T> {
        StretchMap { places: Vec::new(), known: Vec::new() }
    }
}

impl<T> StretchMap<T> {
    /// The place of what is known of a stretch, if something is.
    #[inline(always)]
    pub fn place(&self, stretch: Stretch<'_>) -> Option<usize> {
        let place = self.places.get(stretch.number as usize)?;
        (*place as usize).checked_sub(1)
    }

    /// Adds what is known of a stretch of which nothing was; its place.
    pub fn insert(&mut self, stretch: Stretch<'_>, known: T) -> usize {
        let number = stretch.number as usize;
        if number >= self.places.len() {
            self.places.resize(number + 1, 0);
        }
        self.known.push(known);
        self.places[number] = self.known.len() as u32;
        self.known.len() - 1
    }

    /// What is known, by the places.
    pub fn known(&mut self) -> &mut [T] {
        &mut self.known
    }

    /// All that is known, in the order of the places.
    pub fn into_known(self) -> Vec<T> {
        self.known
    }
}
