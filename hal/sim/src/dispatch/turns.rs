//! How long the turns of workgroups and waves are.

use crate::dispatch::policy::Policy;

/// Workgroups that are started one by one, and have whole turns beside each other.
pub const FEW: usize = 8;
/// Rounds of the shortest turn of a workgroup: bringing its state into the host's caches takes less.
const SHORTEST_TURN: u32 = 4;

/// Rounds of a workgroup's turn beside so many others, where `whole` are those of a whole turn.
pub fn turn(whole: u32, resident: usize) -> u32 {
    if resident <= FEW {
        return whole;
    }
    let share = u64::from(whole) * FEW as u64 / resident as u64;
    whole.min(SHORTEST_TURN.max(share as u32))
}

/// When a wave's turn ends, by instructions that the wave has executed. It ends only where compiled
/// blocks end whatever the turns are, so that waves do not begin in the middle of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnEnd {
    /// Where it next branches from there on.
    pub branch_from: u64,
    /// The same where it jumps in another way, or leaves a page of code.
    pub leave_from: u64,
    /// Whether it has ended.
    pub is_over: bool,
}

impl TurnEnd {
    /// Ends the turn of a wave that has executed so many instructions, a branch the last of them, if it
    /// has had enough of it.
    #[inline(always)]
    pub fn branch(&mut self, executed: u64) {
        self.is_over |= executed >= self.branch_from;
    }

    /// The same where the last of them is another jump, or the last of a page.
    #[inline(always)]
    pub fn leave(&mut self, executed: u64) {
        self.is_over |= executed >= self.leave_from;
    }
}

impl Policy {
    /// When a turn that begins now ends for a wave that has executed so many instructions: one of those
    /// that follow [`short_turns`](Policy::first_turn) others.
    pub(crate) fn turn_end(&self, executed: u64, short_turns: u32) -> TurnEnd {
        let leave_from = executed.saturating_add(self.wave_turn);
        let branch_from =
            executed.saturating_add(self.short_turn(short_turns).unwrap_or(self.wave_turn));
        TurnEnd { branch_from, leave_from, is_over: false }
    }

    /// The length of the turn after so many short ones, if that is short as well.
    pub(crate) fn short_turn(&self, short_turns: u32) -> Option<u64> {
        let factor = 1_u64.checked_shl(short_turns)?;
        Some(self.first_turn?.saturating_mul(factor)).filter(|own| *own < self.wave_turn)
    }
}
