//! A dispatch in which nothing can happen any more: which waves wait where, and why no other comes.

use crate::{ModuleId, WaveId, WaveLocation};
use flipwave_codeobj::SourceLine;
use flipwave_isa::{Pc, Residency};
use std::fmt;

/// All waves of the resident workgroups wait, and no other workgroup can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Wave instructions executed.
    pub executed: u64,
    /// Workgroups of the grid.
    pub workgroups: u64,
    /// Those that have ended.
    pub ended: u64,
    /// Those that are resident.
    pub resident: u64,
    /// How many of them the device keeps resident.
    pub residency: Residency,
    /// The waves that wait; those that wait for the same at the same instruction together.
    pub waits: Vec<Waiting>,
}

/// What a wave waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// The other waves of its workgroup, at a barrier.
    Barrier,
    /// A resource of global wave sync.
    GlobalSync,
    /// Nothing: it has halted itself.
    Halted,
    /// It goes round in a loop in which nothing changes, and looks at the same memory again and again.
    Loop,
}

/// Waves that wait for the same at the same instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What for.
    pub wait: Wait,
    /// The code object of the instruction.
    pub module: ModuleId,
    /// The instruction's address; of a loop, the first instruction in it that accesses memory which
    /// others share, if there is one.
    pub pc: Pc,
    /// The instruction, as the assembler prints it.
    pub instruction: String,
    /// Its source line, where the code object says it.
    pub line: Option<SourceLine>,
    /// How many waves.
    pub waves: u64,
    /// The first of them.
    pub first: WaveId,
    /// The last of them.
    pub last: WaveId,
}

impl Stall {
    /// The same with every place as `place` says that it is.
    pub(crate) fn map_places(&mut self, place: impl Fn(WaveLocation) -> WaveLocation) {
        for waiting in &mut self.waits {
            waiting.pc = place(WaveLocation { pc: waiting.pc, wave: waiting.first }).pc;
        }
    }

    /// Workgroups that have not started.
    pub fn left(&self) -> u64 {
        self.workgroups.saturating_sub(self.ended + self.resident)
    }
}

/// Entries of [`Stall::waits`] that are printed.
const PRINTED: usize = 8;

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "watchdog: nothing can happen any more after {} wave instructions: of {} workgroups {} \
             have ended, and all waves of the {} resident ones wait",
            self.executed, self.workgroups, self.ended, self.resident
        )?;
        if self.left() > 0 {
            let Residency { workgroups, limit } = self.residency;
            write!(
                f,
                "; {} more cannot start, because the device keeps {workgroups} of them resident \
                 (limited by {limit}): workgroups that wait for each other must all be resident, so \
                 launch at most {workgroups}",
                self.left()
            )?;
        }
        for waiting in self.waits.iter().take(PRINTED) {
            write!(f, "; {waiting}")?;
        }
        match self.waits.len().checked_sub(PRINTED) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, "; and at {more} more places"),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.waves {
            1 => write!(f, "{} ", self.first)?,
            waves => write!(f, "{waves} waves, from {} to {}, ", self.first, self.last)?,
        }
        let [one, many] = match self.wait {
            Wait::Barrier => ["waits at the barrier", "wait at the barrier"],
            Wait::GlobalSync => ["waits for global wave sync", "wait for global wave sync"],
            Wait::Halted => ["has halted itself", "have halted themselves"],
            Wait::Loop => ["goes round in a loop", "go round in a loop"],
        };
        let what = if self.waves == 1 { one } else { many };
        write!(f, "{what} at pc {} `{}`", self.pc, self.instruction)?;
        match &self.line {
            Some(line) if line.line > 0 => write!(f, " ({}:{})", line.file, line.line),
            _ => Ok(()),
        }
    }
}
