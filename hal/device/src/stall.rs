//! Deadlocks: the waves that wait, their instructions, and the workgroups that cannot start.

use crate::{ModuleId, WaveId, WaveLocation};
use flipwave_codeobj::SourceLine;
use flipwave_isa::{Pc, Residency};
use std::fmt;

/// A deadlock: all waves of the resident workgroups wait, and no other workgroup can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Wave instructions executed.
    pub executed: u64,
    /// Workgroups in the grid.
    pub workgroups: u64,
    /// Workgroups that have ended.
    pub ended: u64,
    /// Workgroups that are resident.
    pub resident: u64,
    /// Maximum number of resident workgroups, and the resource that limits it.
    pub residency: Residency,
    /// The waiting waves, grouped by reason and instruction.
    pub waits: Vec<Waiting>,
}

/// The reason why a wave waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// The wave waits at a barrier for the other waves of its workgroup.
    Barrier,
    /// The wave waits for a resource of global wave sync.
    GlobalSync,
    /// The wave has halted itself.
    Halted,
    /// The wave spins in a loop that polls memory and changes no state.
    Loop,
}

/// Waves that wait for the same reason at the same instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The reason.
    pub wait: Wait,
    /// The code object of the instruction.
    pub module: ModuleId,
    /// Address of the instruction. For a loop, its first instruction that accesses memory shared with
    /// other waves, if there is one.
    pub pc: Pc,
    /// The instruction, as printed by the assembler.
    pub instruction: String,
    /// Source line of the instruction, if the code object has line information.
    pub line: Option<SourceLine>,
    /// Number of waves.
    pub waves: u64,
    /// The first of the waves.
    pub first: WaveId,
    /// The last of the waves.
    pub last: WaveId,
}

impl Stall {
    /// Applies `map` to the location of every wait.
    pub(crate) fn map_locations(&mut self, map: impl Fn(WaveLocation) -> WaveLocation) {
        for waiting in &mut self.waits {
            waiting.pc = map(WaveLocation { pc: waiting.pc, wave: waiting.first }).pc;
        }
    }

    /// Number of workgroups that have not started.
    pub fn not_started(&self) -> u64 {
        self.workgroups.saturating_sub(self.ended + self.resident)
    }
}

/// Maximum number of entries of [`Stall::waits`] that are printed.
const MAX_PRINTED: usize = 8;

impl Stall {
    /// Writes the number of workgroups that wait, and why others cannot start.
    fn fmt_summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "watchdog: deadlock after {} wave instructions: {} of {} workgroups have ended, and all \
             waves of the {} resident workgroups wait",
            self.executed, self.ended, self.workgroups, self.resident
        )?;
        if self.not_started() > 0 {
            let Residency { workgroups, limit } = self.residency;
            write!(
                f,
                "; {} more cannot start, because the device keeps {workgroups} of them resident \
                 (limited by {limit}): workgroups that wait for each other must all be resident, so \
                 launch at most {workgroups}",
                self.not_started()
            )?;
        }
        Ok(())
    }

    /// Writes the waits, each after `separator`.
    fn fmt_waits(&self, f: &mut fmt::Formatter<'_>, separator: &str) -> fmt::Result {
        for waiting in self.waits.iter().take(MAX_PRINTED) {
            write!(f, "{separator}{waiting}")?;
        }
        match self.waits.len().checked_sub(MAX_PRINTED) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, "{separator}and {more} more waits"),
        }
    }

    /// Writes the summary and each wait in a line of its own, indented by `indent`.
    pub(crate) fn fmt_lines(&self, f: &mut fmt::Formatter<'_>, indent: &str) -> fmt::Result {
        self.fmt_summary(f)?;
        self.fmt_waits(f, indent)
    }
}

impl fmt::Display for Stall {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_summary(f)?;
        self.fmt_waits(f, "; ")
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
            Wait::Loop => ["spins in a loop", "spin in a loop"],
        };
        let reason = if self.waves == 1 { one } else { many };
        write!(f, "{reason} at pc {} `{}`", self.pc, self.instruction)?;
        match &self.line {
            Some(line) if line.line > 0 => write!(f, " ({}:{})", line.file, line.line),
            _ => Ok(()),
        }
    }
}
