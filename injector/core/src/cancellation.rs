//! Cancellation and monitoring of long runs.

use flipwave_device::{Completion, DeviceError};
use flipwave_machine::{Execution, Footprints, Limited, Observer, Progress, Simulator};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Wave instructions between checks for cancellation: some milliseconds.
const SLICE: u64 = 1 << 18;

/// Cancels the runs of workloads and shows which dispatch is running. Clones share their state.
///
/// A cancelled dispatch ends at its current instruction, as if stopped by its watchdog. If
/// [`CancellationToken::is_stopped`] is true after a run, its result must be discarded.
#[derive(Clone, Debug, Default)]
pub struct CancellationToken(Arc<State>);

#[derive(Debug, Default)]
struct State {
    stopped: Arc<AtomicBool>,
    /// `true` if a run has noticed the cancellation.
    is_acknowledged: AtomicBool,
    running: Mutex<Option<Running>>,
}

/// A running dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its kernel.
    pub kernel: String,
    /// Wave instructions executed so far.
    pub wave_instructions: u64,
    /// Time since its start.
    pub elapsed: Duration,
}

/// Tokens are not part of the identity of the values that contain them.
impl PartialEq for CancellationToken {
    fn eq(&self, _: &CancellationToken) -> bool {
        true
    }
}

impl CancellationToken {
    /// Cancels all runs, including later ones.
    pub fn stop(&self) {
        self.stopped().store(true, Ordering::Relaxed);
    }

    /// The flag that is set on cancellation, for code that polls it.
    pub fn stopped(&self) -> &Arc<AtomicBool> {
        &self.0.stopped
    }

    /// Returns `true` if runs are cancelled, and records that this was noticed.
    pub fn is_stopped(&self) -> bool {
        let is_stopped = self.stopped().load(Ordering::Relaxed);
        if is_stopped {
            self.0.is_acknowledged.store(true, Ordering::Relaxed);
        }
        is_stopped
    }

    /// Returns `true` if code has noticed the cancellation and will end in an orderly way.
    pub fn is_acknowledged(&self) -> bool {
        self.0.is_acknowledged.load(Ordering::Relaxed)
    }

    /// The running dispatch reported last, after at least a few milliseconds of execution; it may have
    /// ended since.
    pub fn running(&self) -> Option<Running> {
        self.lock().clone()
    }

    /// Reports a dispatch that runs in another component.
    pub fn report(&self, running: Running) {
        *self.lock() = Some(running);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a paused execution at its current instruction if runs are cancelled.
    pub(crate) fn stop_if_cancelled(&self, execution: &mut impl Limited) {
        if self.is_stopped() {
            execution.set_limit(execution.wave_instructions());
        }
    }

    /// Runs an execution of `kernel` to its end, and adds the footprints of its workgroups to
    /// `footprints`, if given.
    pub(crate) fn finish(
        &self,
        kernel: &str,
        device: &mut Simulator,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        mut footprints: Option<&mut Footprints>,
    ) -> Result<Completion, DeviceError> {
        self.run_to_end(kernel, execution, |execution, until| match &mut footprints {
            Some(footprints) => device.advance_recorded(execution, observer, footprints, until),
            None => device.advance(execution, observer, until),
        })
    }

    /// Runs an execution of `kernel` to its end with `advance`, in slices between which cancellation is
    /// checked.
    ///
    /// # Errors
    /// Errors of `advance`.
    pub fn run_to_end<E: Limited>(
        &self,
        kernel: &str,
        execution: &mut E,
        mut advance: impl FnMut(&mut E, u64) -> Result<Progress, DeviceError>,
    ) -> Result<Completion, DeviceError> {
        loop {
            let end = self.run_until(kernel, execution, u64::MAX, &mut advance)?;
            if let Progress::Ended(completion) = end {
                return Ok(completion);
            }
        }
    }

    /// Runs an execution until it has executed `end` wave instructions in total or has ended.
    pub(crate) fn run_until<E: Limited>(
        &self,
        kernel: &str,
        execution: &mut E,
        end: u64,
        mut advance: impl FnMut(&mut E, u64) -> Result<Progress, DeviceError>,
    ) -> Result<Progress, DeviceError> {
        let clock = Instant::now();
        loop {
            let slice = execution.wave_instructions().saturating_add(SLICE);
            let progress = advance(execution, slice.min(end))?;
            let wave_instructions = execution.wave_instructions();
            if matches!(progress, Progress::Ended(_)) || wave_instructions >= end {
                return Ok(progress);
            }
            let (kernel, elapsed) = (kernel.to_owned(), clock.elapsed());
            self.report(Running { kernel, wave_instructions, elapsed });
            self.stop_if_cancelled(execution);
        }
    }
}
