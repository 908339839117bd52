//! Instructions that are executed one after the other, whatever happens between them.

use super::Op;
use flipwave_isa::Inst;

/// A stretch of code that is executed as a whole, and counted as one.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// No other stretch of this process has it.
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
