//! Instructions that are executed one after the other, whatever happens between them.

use super::Op;

/// A stretch of code that is executed as a whole, and counted as one.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// No other stretch of this process has it.
    pub number: u64,
    /// Device address of the first instruction.
    pub start: u64,
    /// Its instructions.
    pub ops: &'a [Op],
    /// Which of them are seen one by one when they are executed.
    pub seen_alone: &'a [bool],
    /// How many are executed before EXEC changes, which it does once at most.
    pub before_exec: usize,
    /// Whether it writes to other lanes than those that are active.
    pub has_own_lanes: bool,
}

impl<'a> Stretch<'a> {
    /// The instructions that are only seen as parts of the stretch, with their indices.
    pub fn counted(&self) -> impl Iterator<Item = (usize, &'a Op)> {
        let each = self.ops.iter().zip(self.seen_alone).enumerate();
        each.filter(|(_, (_, seen_alone))| !**seen_alone).map(|(index, (op, _))| (index, op))
    }
}
