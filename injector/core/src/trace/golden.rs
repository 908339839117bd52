//! The golden run, advanced on demand of the faulty run.

use super::TraceError;
use super::log::{Entry, Keep, Log};
use crate::CancellationToken;
use flipwave_device::{DeviceError, WaveId};
use flipwave_machine::{Execution, Progress, Simulator, Unobserved};

/// Wave instructions by which the golden run is advanced at a time.
const CHUNK: u64 = 256;

/// Wave instructions at a time once nothing is compared any more.
const UNCOMPARED: u64 = 1 << 16;

/// Maximum size in words of the log of instructions that the golden run is ahead: 256 MiB.
const LOG_WORDS: usize = 64 << 20;

/// The golden run of a dispatch, in parallel to the faulty run.
pub struct Golden<'a> {
    pub gpu: Simulator,
    execution: Execution,
    pub log: Log,
    has_ended: bool,
    cancellation: &'a CancellationToken,
}

impl Golden<'_> {
    pub fn new(
        gpu: Simulator,
        execution: Execution,
        cancellation: &CancellationToken,
    ) -> Golden<'_> {
        Golden { gpu, execution, log: Log::new(LOG_WORDS), has_ended: false, cancellation }
    }

    /// The next instruction of a wave; `None` if the wave has ended or is excluded.
    ///
    /// # Errors
    /// [`DeviceError`] if the golden run cannot be continued.
    pub fn next(&mut self, wave: WaveId) -> Result<Option<Entry>, DeviceError> {
        loop {
            if let Some(entry) = self.log.next(wave) {
                return Ok(Some(entry));
            }
            if self.has_ended || !self.log.has_more(wave) {
                return Ok(None);
            }
            self.advance(CHUNK)?;
        }
    }

    /// Discards a wave of which the faulty run executes no more instructions.
    pub fn leave(&mut self, wave: WaveId) {
        self.log.keep(wave, Keep::Nothing);
    }

    /// Runs the dispatch to its end without logging.
    ///
    /// # Errors
    /// As [`Golden::next`], and [`TraceError::Stopped`].
    pub fn finish(&mut self) -> Result<(), TraceError> {
        while !self.has_ended {
            if self.cancellation.is_stopped() {
                return Err(TraceError::Stopped);
            }
            let until = self.execution.statistics().wave_instructions.saturating_add(UNCOMPARED);
            let progress = self.gpu.advance(&mut self.execution, &mut Unobserved, until)?;
            self.has_ended = matches!(progress, Progress::Ended(_));
        }
        Ok(())
    }

    fn advance(&mut self, instructions: u64) -> Result<(), DeviceError> {
        let until = self.execution.statistics().wave_instructions.saturating_add(instructions);
        let progress =
            self.gpu.advance_recording_writes(&mut self.execution, &mut self.log, until)?;
        self.has_ended = matches!(progress, Progress::Ended(_));
        Ok(())
    }
}
