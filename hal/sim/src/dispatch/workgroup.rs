//! A workgroup under way.

use crate::dispatch::checker::Checker;
use crate::dispatch::turns::slowest;
use crate::dispatch::workgroup_barrier::WorkgroupBarrier;
use crate::memory::AlignedBytes;
use crate::wave::copy::WaveCopy;
use crate::wave::{Status, Wave};
use flipwave_device::{Dim3, Statistics};

/// How many short turns have been where no more follow.
const NO_SHORT_TURN: u32 = u32::MAX;

/// A workgroup under way.
#[derive(Clone, Debug)]
pub struct Workgroup {
    /// Its position in the grid.
    pub position: Dim3,
    /// Its place among the workgroups under way.
    pub slot: usize,
    /// Its waves.
    pub waves: Vec<Wave>,
    /// Which waves the observer watches.
    pub watched: Vec<bool>,
    /// Turns that its waves have had since they started or passed a barrier together, as long as these
    /// are shorter than others.
    pub short_turns: u32,
    /// What it had executed at the end of the last whole round of turns.
    pub round_from: u64,
    /// Its LDS.
    pub lds: AlignedBytes,
    /// Its barrier, where signal and wait are instructions of their own.
    pub barrier: WorkgroupBarrier,
    /// What it has executed.
    pub statistics: Statistics,
}

/// What the waves of a workgroup have in common.
pub struct Common<'a> {
    /// The LDS.
    pub lds: &'a mut [u8],
    /// The split barrier.
    pub barrier: &'a mut WorkgroupBarrier,
    /// What is executed.
    pub statistics: &'a mut Statistics,
}

impl Workgroup {
    /// Its waves go on together: their first turns are short.
    pub fn begin_together(&mut self) {
        self.short_turns = if self.waves.len() > 1 { 0 } else { NO_SHORT_TURN };
    }

    /// The progress of the slowest wave besides one, of those that can execute; nothing where there is
    /// none, or no LDS that it could share.
    pub fn slowest_beside(&self, index: usize) -> Option<u64> {
        let [before, after] = [&self.waves[..index], &self.waves[index + 1..]];
        if self.lds.is_empty() { None } else { slowest(before.iter().chain(after)) }
    }

    /// Whether its waves that can execute have had whole turns, of so many instructions, since this was
    /// last so, in however many turns.
    pub fn has_whole_round(&mut self, wave_turn: u64) -> bool {
        let ready = self.waves.iter().filter(|wave| wave.status == Status::Ready).count();
        let executed = self.statistics.wave_instructions;
        let is_whole = executed - self.round_from >= wave_turn.saturating_mul(ready as u64);
        if is_whole {
            self.round_from = executed;
        }
        is_whole
    }

    /// Lets the waves go on that wait at a split barrier which has completed; whether there are any.
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

    /// Lets the waves go on that wait at a barrier, once no other wave can still reach it; whether they
    /// do. Waves that have ended do not count (ISA manual, "S_BARRIER").
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

/// A workgroup put away: no more memory than its state takes.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkgroupCopy {
    /// Its position in the grid.
    pub position: Dim3,
    slot: usize,
    waves: Vec<WaveCopy>,
    short_turns: u32,
    round_from: u64,
    lds: AlignedBytes,
    barrier: WorkgroupBarrier,
    /// What it has executed.
    pub statistics: Statistics,
}

impl WorkgroupCopy {
    /// The state of a workgroup.
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

    /// Bytes of registers and LDS.
    pub fn state_bytes(&self) -> u64 {
        self.waves.iter().map(WaveCopy::state_bytes).sum::<u64>() + self.lds.len() as u64
    }

    /// Instructions that one of its waves has executed.
    pub fn executed(&self, wave: u32) -> Option<u64> {
        self.waves.get(wave as usize).map(WaveCopy::executed)
    }

    /// The workgroup, none of whose waves is watched, in waves that `wave` gives.
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
