//! Lengths of the turns of workgroups and waves.

use crate::dispatch::leads::Leads;
use crate::dispatch::policy::Policy;
use crate::instruction::Shared;
use crate::translate::code::DecodedCode;
use crate::wave::{Status, Wave};

/// Number of workgroups that are started one by one, and have whole turns.
pub const FEW: usize = 8;
/// Rounds of the shortest turn of a workgroup. Loading its state into the host's caches takes less
/// time.
const SHORTEST_TURN: u32 = 4;

/// Progress of the slowest runnable wave; `None` if there is none.
pub(crate) fn slowest<'a>(waves: impl IntoIterator<Item = &'a Wave>) -> Option<u64> {
    let ready = waves.into_iter().filter(|wave| wave.status == Status::Ready);
    ready.map(Wave::progress).min()
}

/// Rounds of a workgroup's turn if `resident` workgroups are resident; a whole turn has `whole`
/// rounds.
pub fn rounds_of_turn(whole: u32, resident: usize) -> u32 {
    if resident <= FEW {
        return whole;
    }
    let share = u64::from(whole) * FEW as u64 / resident as u64;
    whole.min(SHORTEST_TURN.max(share as u32))
}

/// Number of instructions during which a wave that begins its turn with an LDS write may write
/// without waiting for others. Otherwise it would stop at each of several writes that are not
/// adjacent.
const WRITE_RUN: u64 = 16;

/// End of a wave's turn, in numbers of executed instructions. A turn ends only where compiled
/// blocks end in any case, so that waves do not begin inside of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnEnd {
    /// The turn ends at the first branch from this number on.
    pub branch_from: u64,
    /// The turn ends at the first other jump, or end of a page of code, from this number on.
    pub leave_from: u64,
    /// The turn ends before a run of LDS writes if the wave has executed more than this.
    pub write_until: u64,
    /// The turn ends before a run of LDS reads if the wave has executed more than this.
    pub read_until: u64,
    /// `true` once the turn has ended.
    pub is_over: bool,
}

/// The rest of a wave's turn.
pub struct CurrentTurn<'a> {
    /// Number of instructions that the wave may have executed in all.
    pub until: u64,
    /// End of the turn.
    pub end: &'a mut TurnEnd,
}

impl TurnEnd {
    /// A turn without end.
    #[cfg(test)]
    pub const NEVER: TurnEnd = TurnEnd {
        branch_from: u64::MAX,
        leave_from: u64::MAX,
        write_until: u64::MAX,
        read_until: u64::MAX,
        is_over: false,
    };

    /// Ends the turn if the wave, which has executed `executed` instructions, is too far ahead for
    /// a run of LDS accesses that begins now.
    #[inline(always)]
    pub fn begin_run(&mut self, shared: Shared, executed: u64) {
        self.is_over |= match shared {
            Shared::Nothing => false,
            Shared::Read => executed > self.read_until,
            Shared::Write => executed > self.write_until,
        };
    }

    /// Ends the turn of a wave that has branched if it is too far ahead for the LDS access at its
    /// PC.
    #[inline(always)]
    pub fn arrive(&mut self, code: &DecodedCode, wave: &Wave) {
        if self.write_until != u64::MAX {
            self.begin_run(access_at(code, wave.pc), wave.executed);
        }
    }

    /// Checks the LDS access at the PC when a turn begins.
    fn begin(&mut self, code: &DecodedCode, wave: &Wave) {
        let shared = access_at(code, wave.pc);
        self.begin_run(shared, wave.executed);
        if shared == Shared::Write && !self.is_over {
            self.write_until = self.write_until.max(wave.executed.saturating_add(WRITE_RUN));
        }
    }

    /// Ends the turn after a branch if the wave has executed enough instructions.
    #[inline(always)]
    pub fn branch(&mut self, executed: u64) {
        self.is_over |= executed >= self.branch_from;
    }

    /// Ends the turn after another jump, or at the end of a page of code, if the wave has executed
    /// enough instructions.
    #[inline(always)]
    pub fn leave(&mut self, executed: u64) {
        self.is_over |= executed >= self.leave_from;
    }
}

impl Policy {
    /// End of a turn that begins now for a wave that has executed `executed` instructions, after
    /// `short_turns` [short turns](Policy::first_turn).
    pub(crate) fn turn_end(&self, executed: u64, short_turns: u32) -> TurnEnd {
        let leave_from = executed.saturating_add(self.wave_turn);
        let branch_from =
            executed.saturating_add(self.short_turn(short_turns).unwrap_or(self.wave_turn));
        let (write_until, read_until) = (u64::MAX, u64::MAX);
        TurnEnd { branch_from, leave_from, write_until, read_until, is_over: false }
    }

    /// Length of the turn after `short_turns` short ones; `None` if it is not short.
    pub(crate) fn short_turn(&self, short_turns: u32) -> Option<u64> {
        let factor = 1_u64.checked_shl(short_turns)?;
        Some(self.first_turn?.saturating_mul(factor)).filter(|turn| *turn < self.wave_turn)
    }
}

impl TurnEnd {
    /// Limits the turn so that the wave does not get further ahead of the slowest other wave, whose
    /// progress is given, than `leads` allows.
    pub(crate) fn limited_by_slowest(
        self,
        code: &DecodedCode,
        wave: &Wave,
        slowest: u64,
        leads: Leads,
    ) -> TurnEnd {
        let until = |lead: u64| {
            let most = slowest.saturating_add(lead);
            wave.executed.saturating_add(most).saturating_sub(wave.progress())
        };
        let (write_until, read_until) = (until(leads.write), until(leads.read));
        let mut end = TurnEnd { write_until, read_until, ..self };
        end.begin(code, wave);
        end
    }
}

/// The LDS access of the instruction at a device address, if waves may be too early for it.
#[inline(always)]
fn access_at(code: &DecodedCode, pc: u64) -> Shared {
    let op = code.contains(pc).then(|| code.fetch(pc));
    op.and_then(Result::ok).map_or(Shared::Nothing, |op| op.held)
}
