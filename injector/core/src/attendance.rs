//! Looking after long runs: what runs, and a request to stop.

use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Completion, Device, DeviceError, Dispatch, ModuleId};
use flipwave_isa::Target;
use flipwave_sim::strict::{StrictOptions, Violation};
use flipwave_sim::{EmbeddedGpu, Execution, Footprints, Observer, Progress, Unobserved};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Wave instructions after which is looked whether a dispatch is to stop: some milliseconds.
const SLICE: u64 = 1 << 18;

/// Looks after the runs of workloads. Whoever has a clone can stop them, and can see what takes
/// long.
///
/// A dispatch that is stopped ends where it stands, as by its watchdog. What comes of a run is
/// therefore nothing, whatever it says, where [`Attendance::is_stopped`] is true afterwards.
#[derive(Clone, Debug, Default)]
pub struct Attendance(Arc<State>);

#[derive(Debug, Default)]
struct State {
    stopped: Arc<AtomicBool>,
    /// Whether somebody has seen that runs are to stop.
    is_heeded: AtomicBool,
    running: Mutex<Option<Running>>,
}

/// A dispatch under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its kernel.
    pub kernel: String,
    /// Wave instructions that it has executed so far.
    pub wave_instructions: u64,
    /// How long it has been running.
    pub elapsed: Duration,
}

/// Who looks after something is no part of what it is.
impl PartialEq for Attendance {
    fn eq(&self, _: &Attendance) -> bool {
        true
    }
}

impl Attendance {
    /// Stops all runs, those that begin later too.
    pub fn stop(&self) {
        self.stopped().store(true, Ordering::Relaxed);
    }

    /// Whether runs are to stop, for those who have to ask again and again.
    pub fn stopped(&self) -> &Arc<AtomicBool> {
        &self.0.stopped
    }

    /// Whether runs are to stop.
    pub fn is_stopped(&self) -> bool {
        let is_stopped = self.stopped().load(Ordering::Relaxed);
        if is_stopped {
            self.0.is_heeded.store(true, Ordering::Relaxed);
        }
        is_stopped
    }

    /// Whether somebody has seen that runs are to stop, and is about to end in good order.
    pub fn is_heeded(&self) -> bool {
        self.0.is_heeded.load(Ordering::Relaxed)
    }

    /// The dispatch that was last seen under way, after a few milliseconds or more of it; it may have
    /// ended since.
    pub fn running(&self) -> Option<Running> {
        self.lock().clone()
    }

    /// Shows others a dispatch that is under way somewhere else.
    pub fn see(&self, running: Running) {
        *self.lock() = Some(running);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets an execution that pauses end where it stands, if runs are to stop: the wave whose turn it
    /// is says where that is.
    pub(crate) fn attend(&self, execution: &mut Execution) {
        if self.is_stopped() {
            execution.set_limit(execution.statistics().wave_instructions);
        }
    }

    /// Carries an execution of `kernel` on to its end; adds to `footprints`, if there are any, what
    /// its workgroups touch.
    pub(crate) fn finish(
        &self,
        kernel: &str,
        device: &mut EmbeddedGpu,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        mut footprints: Option<&mut Footprints>,
    ) -> Result<Completion, DeviceError> {
        self.carry_on(kernel, execution, |execution, until| match &mut footprints {
            Some(footprints) => device.advance_recorded(execution, observer, footprints, until),
            None => device.advance(execution, observer, until),
        })
    }

    /// The same at the strict level, and what breaks the rules of the hardware.
    pub(crate) fn finish_strict(
        &self,
        kernel: &str,
        device: &mut EmbeddedGpu,
        execution: &mut Execution,
        options: StrictOptions,
    ) -> Result<(Completion, Vec<Violation>), DeviceError> {
        let mut check = device.begin_check(execution, options)?;
        let completion = self.carry_on(kernel, execution, |execution, until| {
            device.advance_checked(execution, &mut check, until)
        })?;
        Ok((completion, device.violations(check)))
    }

    /// Carries an execution of `kernel` on to its end by `advance`, in slices after which is looked
    /// whether it is to stop.
    pub(crate) fn carry_on(
        &self,
        kernel: &str,
        execution: &mut Execution,
        mut advance: impl FnMut(&mut Execution, u64) -> Result<Progress, DeviceError>,
    ) -> Result<Completion, DeviceError> {
        loop {
            let end = self.carry_to(kernel, execution, u64::MAX, &mut advance)?;
            if let Progress::Ended(completion) = end {
                return Ok(completion);
            }
        }
    }

    /// The same until it has executed `end` wave instructions in all, if it has not ended before.
    pub(crate) fn carry_to(
        &self,
        kernel: &str,
        execution: &mut Execution,
        end: u64,
        mut advance: impl FnMut(&mut Execution, u64) -> Result<Progress, DeviceError>,
    ) -> Result<Progress, DeviceError> {
        let clock = Instant::now();
        loop {
            let slice = execution.statistics().wave_instructions.saturating_add(SLICE);
            let progress = advance(execution, slice.min(end))?;
            let wave_instructions = execution.statistics().wave_instructions;
            if matches!(progress, Progress::Ended(_)) || wave_instructions >= end {
                return Ok(progress);
            }
            let (kernel, elapsed) = (kernel.to_owned(), clock.elapsed());
            self.see(Running { kernel, wave_instructions, elapsed });
            self.attend(execution);
        }
    }
}

/// A GPU whose dispatches are looked after.
pub struct Attended<'a> {
    /// The GPU.
    pub device: &'a mut EmbeddedGpu,
    /// Who looks after them.
    pub attendance: &'a Attendance,
}

impl Device for Attended<'_> {
    fn target(&self) -> &Target {
        self.device.target()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        self.device.allocate(bytes)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.device.free(address)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(address, bytes)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(address, bytes)
    }

    fn load(&mut self, code_object: &CodeObject) -> Result<ModuleId, DeviceError> {
        self.device.load(code_object)
    }

    fn address_of(&self, module: ModuleId, address: u64) -> Result<Address, DeviceError> {
        self.device.address_of(module, address)
    }

    fn dispatch(&mut self, dispatch: &Dispatch) -> Result<Completion, DeviceError> {
        let mut execution = self.device.begin(dispatch)?;
        let kernel = &dispatch.kernel;
        self.attendance.finish(kernel, self.device, &mut execution, &mut Unobserved, None)
    }
}
