//! How long the turns of workgroups and waves are.

use crate::dispatch::leads::Leads;
use crate::dispatch::policy::Policy;
use crate::instruction::Shared;
use crate::translate::code::DecodedCode;
use crate::wave::{Status, Wave};

/// Workgroups that are started one by one, and have whole turns beside each other.
pub const FEW: usize = 8;
/// Rounds of the shortest turn of a workgroup: bringing its state into the host's caches takes less.
const SHORTEST_TURN: u32 = 4;

/// The progress of the slowest of some waves that can execute; nothing where there is none.
pub(crate) fn slowest<'a>(waves: impl IntoIterator<Item = &'a Wave>) -> Option<u64> {
    let ready = waves.into_iter().filter(|wave| wave.status == Status::Ready);
    ready.map(Wave::progress).min()
}

/// Rounds of a workgroup's turn beside so many others, where `whole` are those of a whole turn.
pub fn turn(whole: u32, resident: usize) -> u32 {
    if resident <= FEW {
        return whole;
    }
    let share = u64::from(whole) * FEW as u64 / resident as u64;
    whole.min(SHORTEST_TURN.max(share as u32))
}

/// Instructions in which a wave writes whatever others do that has begun a turn with a write: else it would
/// stop at each write among others that are not next to each other.
const RUN: u64 = 16;

/// When a wave's turn ends, by instructions that the wave has executed. It ends only where compiled
/// blocks end whatever the turns are, so that waves do not begin in the middle of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnEnd {
    /// Where it next branches from there on.
    pub branch_from: u64,
    /// The same where it jumps in another way, or leaves a page of code.
    pub leave_from: u64,
    /// It ends in front of a run of writes to LDS if the wave has executed more than this.
    pub write_until: u64,
    /// The same of reads.
    pub read_until: u64,
    /// Whether it has ended.
    pub is_over: bool,
}

impl TurnEnd {
    /// That of a turn without end.
    #[cfg(test)]
    pub const NEVER: TurnEnd = TurnEnd {
        branch_from: u64::MAX,
        leave_from: u64::MAX,
        write_until: u64::MAX,
        read_until: u64::MAX,
        is_over: false,
    };

    /// Ends the turn of a wave that has executed so many instructions if it is too far ahead for a run of
    /// accesses that begins now.
    #[inline(always)]
    pub fn begin_run(&mut self, shared: Shared, executed: u64) {
        self.is_over |= match shared {
            Shared::Nothing => false,
            Shared::Read => executed > self.read_until,
            Shared::Write => executed > self.write_until,
        };
    }

    /// Ends the turn of a wave that has branched if it is too far ahead for the access to LDS at its PC.
    #[inline(always)]
    pub fn arrive(&mut self, code: &DecodedCode, wave: &Wave) {
        if self.write_until != u64::MAX {
            self.begin_run(access_at(code, wave.pc), wave.executed);
        }
    }

    /// The same where a turn begins.
    fn begin(&mut self, code: &DecodedCode, wave: &Wave) {
        let shared = access_at(code, wave.pc);
        self.begin_run(shared, wave.executed);
        if shared == Shared::Write && !self.is_over {
            self.write_until = self.write_until.max(wave.executed.saturating_add(RUN));
        }
    }

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
        let (write_until, read_until) = (u64::MAX, u64::MAX);
        TurnEnd { branch_from, leave_from, write_until, read_until, is_over: false }
    }

    /// The length of the turn after so many short ones, if that is short as well.
    pub(crate) fn short_turn(&self, short_turns: u32) -> Option<u64> {
        let factor = 1_u64.checked_shl(short_turns)?;
        Some(self.first_turn?.saturating_mul(factor)).filter(|own| *own < self.wave_turn)
    }
}

impl TurnEnd {
    /// The same turn of a wave that is not to be further ahead of the slowest of the others, which has
    /// this progress, than `leads` says.
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

/// The access to LDS of the instruction at a device address for which a wave may be too early, if there is
/// one.
#[inline(always)]
fn access_at(code: &DecodedCode, pc: u64) -> Shared {
    let op = code.contains(pc).then(|| code.fetch(pc));
    op.and_then(Result::ok).map_or(Shared::Nothing, |op| op.held)
}
