//! Resident workgroups.

use crate::dispatch::checker::Checker;
use crate::dispatch::turns::slowest;
use crate::dispatch::workgroup_barrier::WorkgroupBarrier;
use crate::memory::AlignedBytes;
use crate::wave::copy::WaveCopy;
use crate::wave::{Status, Wave};
use flipwave_device::{Dim3, Statistics};

/// Value of `short_turns` if no short turns follow.
const NO_SHORT_TURN: u32 = u32::MAX;

/// A resident workgroup.
#[derive(Clone, Debug)]
pub struct Workgroup {
    /// Position in the grid.
    pub position: Dim3,
    /// Slot among the resident workgroups.
    pub slot: usize,
    /// Waves of the workgroup.
    pub waves: Vec<Wave>,
    /// For each wave, whether an observer observes it.
    pub watched: Vec<bool>,
    /// Number of short turns that the waves have had since they started or passed a barrier
    /// together.
    pub short_turns: u32,
    /// Number of instructions executed at the end of the last whole round of turns.
    pub round_from: u64,
    /// LDS of the workgroup.
    pub lds: AlignedBytes,
    /// Barriers with separate signal and wait instructions.
    pub barrier: WorkgroupBarrier,
    /// Statistics of the workgroup.
    pub statistics: Statistics,
}

/// State that the waves of a workgroup share.
pub struct Common<'a> {
    /// LDS of the workgroup.
    pub lds: &'a mut [u8],
    /// Split barriers of the workgroup.
    pub barrier: &'a mut WorkgroupBarrier,
    /// Statistics of the workgroup.
    pub statistics: &'a mut Statistics,
}

impl Workgroup {
    /// Begins short turns, since all waves continue together.
    pub fn begin_together(&mut self) {
        self.short_turns = if self.waves.len() > 1 { 0 } else { NO_SHORT_TURN };
    }

    /// Progress of the slowest runnable wave except one; `None` if there is none, or no LDS that
    /// waves could share.
    pub fn slowest_beside(&self, index: usize) -> Option<u64> {
        let [before, after] = [&self.waves[..index], &self.waves[index + 1..]];
        if self.lds.is_empty() { None } else { slowest(before.iter().chain(after)) }
    }

    /// Returns `true` if the runnable waves have executed as much as whole turns of `wave_turn`
    /// instructions since the last time that this was so.
    pub fn has_whole_round(&mut self, wave_turn: u64) -> bool {
        let ready = self.waves.iter().filter(|wave| wave.status == Status::Ready).count();
        let executed = self.statistics.wave_instructions;
        let is_whole = executed - self.round_from >= wave_turn.saturating_mul(ready as u64);
        if is_whole {
            self.round_from = executed;
        }
        is_whole
    }

    /// Releases waves that wait at a completed split barrier. Returns `true` if there are any.
    pub fn pass_split_barrier(&mut self) -> bool {
        let mut passes = false;
        let slowest = slowest(&self.waves).unwrap_or(0);
        for wave in &mut self.waves {
            if wave.status == Status::AtSplitBarrier && self.barrier.let_pass(wave) {
                wave.status = Status::Ready;
                wave.set_progress(slowest);
                passes = true;
            }
        }
        passes
    }

    /// Releases the waves that wait at the barrier once no other wave can still reach it. Returns
    /// `true` if it did. Waves that have ended do not count (ISA manual, "S_BARRIER").
    pub fn pass_barrier(&mut self, checker: &mut impl Checker) -> bool {
        if self.waves.iter().any(|wave| !matches!(wave.status, Status::AtBarrier | Status::Ended)) {
            return false;
        }
        checker.passes_barrier(&self.waves);
        for wave in &mut self.waves {
            if wave.status == Status::AtBarrier {
                wave.status = Status::Ready;
                wave.set_progress(0);
            }
        }
        true
    }
}

/// Compact copy of a workgroup: takes no more memory than its state.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkgroupCopy {
    /// Position in the grid.
    pub position: Dim3,
    slot: usize,
    waves: Vec<WaveCopy>,
    short_turns: u32,
    round_from: u64,
    lds: AlignedBytes,
    barrier: WorkgroupBarrier,
    /// Statistics of the workgroup.
    pub statistics: Statistics,
}

impl WorkgroupCopy {
    /// Copies the state of a workgroup.
    pub fn of(workgroup: &Workgroup) -> WorkgroupCopy {
        WorkgroupCopy {
            position: workgroup.position,
            slot: workgroup.slot,
            waves: workgroup.waves.iter().map(WaveCopy::of).collect(),
            short_turns: workgroup.short_turns,
            round_from: workgroup.round_from,
            lds: workgroup.lds.clone(),
            barrier: workgroup.barrier,
            statistics: workgroup.statistics,
        }
    }

    /// Size in bytes of the registers and LDS.
    pub fn state_bytes(&self) -> u64 {
        self.waves.iter().map(WaveCopy::state_bytes).sum::<u64>() + self.lds.len() as u64
    }

    /// Number of instructions that a wave has executed.
    pub fn executed(&self, wave: u32) -> Option<u64> {
        self.waves.get(wave as usize).map(WaveCopy::executed)
    }

    /// Restores the workgroup, with no wave observed, into waves that `wave` supplies.
    pub fn restore(&self, mut wave: impl FnMut() -> Wave) -> Workgroup {
        let restore = |copy: &WaveCopy| {
            let mut wave = wave();
            copy.restore(&mut wave);
            wave
        };
        Workgroup {
            position: self.position,
            slot: self.slot,
            watched: vec![false; self.waves.len()],
            waves: self.waves.iter().map(restore).collect(),
            short_turns: self.short_turns,
            round_from: self.round_from,
            lds: self.lds.clone(),
            barrier: self.barrier,
            statistics: self.statistics,
        }
    }
}
