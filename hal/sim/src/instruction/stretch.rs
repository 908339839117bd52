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
    /// Whether it writes to other lanes than those that are active.
    pub has_own_lanes: bool,
}

impl<'a> Stretch<'a> {
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
