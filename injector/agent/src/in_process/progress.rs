//! Reports long-running dispatches and the number of executed instructions, for any driver.

use super::reporting::{report_dispatches, report_event};
use crate::report::Event;
use flipwave_device::{Completion, DeviceError};
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine, Refusal};
use flipwave_sim::{EmbeddedGpu, Execution, Progress};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The run time at which a dispatch is first reported. Further reports follow each time the run time has
/// doubled, but at least every `MAX_INTERVAL`.
const FIRST: Duration = Duration::from_secs(5);
const MAX_INTERVAL: Duration = Duration::from_secs(600);
/// The interval at which the clock is checked.
const TICK: Duration = Duration::from_millis(500);

/// DispatchDriver that delegates to another driver and reports progress.
pub struct ProgressDriver {
    driver: Box<dyn DispatchDriver>,
    progress: ProgressReporter,
}

/// Reports progress of dispatches. A thread looks at the current one from time to time.
pub struct ProgressReporter {
    current: Arc<Mutex<Option<CurrentDispatch>>>,
    /// Reports each dispatch at its end.
    counts: bool,
}

/// A running dispatch.
struct CurrentDispatch {
    dispatch: Option<u32>,
    kernel: String,
    since: Instant,
    /// Wave instructions executed so far, updated each time the driver returns.
    instructions: u64,
    /// The run time at which the dispatch is reported next.
    next: Duration,
}

impl CurrentDispatch {
    fn new(dispatch: Option<u32>, kernel: String) -> CurrentDispatch {
        let since = Instant::now();
        CurrentDispatch { dispatch, kernel, since, instructions: 0, next: FIRST }
    }

    /// The event to report after a run time of `elapsed`, if any is due.
    fn report(&mut self, elapsed: Duration) -> Option<Event> {
        if elapsed < self.next {
            return None;
        }
        self.next = elapsed + elapsed.min(MAX_INTERVAL);
        Some(Event::Running {
            dispatch: self.dispatch,
            kernel: self.kernel.clone(),
            instructions: self.instructions,
            milliseconds: elapsed.as_millis() as u64,
        })
    }
}

impl ProgressDriver {
    /// Starts a thread that reports the progress of `driver`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn new(driver: Box<dyn DispatchDriver>, counts: bool) -> std::io::Result<ProgressDriver> {
        Ok(ProgressDriver { driver, progress: ProgressReporter::new(counts)? })
    }
}

impl ProgressReporter {
    /// Starts the thread that reports long-running dispatches. With `counts`, each dispatch is reported at
    /// its end.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn new(counts: bool) -> std::io::Result<ProgressReporter> {
        let current = Arc::<Mutex<Option<CurrentDispatch>>>::default();
        let watched = Arc::clone(&current);
        let watch = move || {
            loop {
                std::thread::sleep(TICK);
                let mut current = lock(&watched);
                let event = current.as_mut().and_then(|running| {
                    let elapsed = running.since.elapsed();
                    running.report(elapsed)
                });
                drop(current);
                event.iter().for_each(report_event);
            }
        };
        std::thread::Builder::new().name("flipwave watch".into()).spawn(watch)?;
        Ok(ProgressReporter { current, counts })
    }

    /// Begins a dispatch; `number` is `None` for runtime kernels.
    pub fn begin(&self, number: Option<u32>, kernel: &str) {
        if number.is_some() {
            report_dispatches();
        }
        *lock(&self.current) = Some(CurrentDispatch::new(number, kernel.to_owned()));
    }

    /// Sets the number of wave instructions that the current dispatch has executed.
    pub fn advance(&self, instructions: u64) {
        if let Some(current) = &mut *lock(&self.current) {
            current.instructions = instructions;
        }
    }

    /// Ends the current dispatch.
    pub fn end(&self, completion: &Completion) {
        let ended = lock(&self.current).take().filter(|_| self.counts);
        if let Some(CurrentDispatch { dispatch, kernel, instructions, .. }) = ended {
            // A dispatch executed by several threads is counted only at its end.
            let instructions = match completion {
                Completion::Completed(statistics) => statistics.wave_instructions,
                Completion::Faulted(_) => instructions,
            };
            report_event(&Event::Executed { dispatch, kernel, instructions });
        }
    }

    /// Forgets the current dispatch.
    pub fn abandon(&self) {
        *lock(&self.current) = None;
    }
}

fn lock(current: &Mutex<Option<CurrentDispatch>>) -> MutexGuard<'_, Option<CurrentDispatch>> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DispatchDriver for ProgressDriver {
    fn begin(&mut self, machine: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        let kernel = dispatch.kernel.as_ref();
        let name = kernel.map_or("", |kernel| &kernel.name);
        self.progress.begin(kernel.map(|kernel| kernel.number), name);
        self.driver.begin(machine, dispatch)
    }

    fn start(&mut self, gpu: &EmbeddedGpu, execution: &Execution) -> Result<(), DeviceError> {
        self.driver.start(gpu, execution)
    }

    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let progress = self.driver.advance(gpu, execution, until);
        self.progress.advance(execution.statistics().wave_instructions);
        progress
    }

    fn limit(&self, dispatch: &KernelDispatch) -> u64 {
        self.driver.limit(dispatch)
    }

    fn injects(&self) -> bool {
        self.driver.injects()
    }

    fn ends_stalls(&self) -> bool {
        self.driver.ends_stalls()
    }

    fn end(
        &mut self,
        machine: &Machine,
        gpu: &EmbeddedGpu,
        dispatch: &KernelDispatch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        self.progress.end(completion);
        self.driver.end(machine, gpu, dispatch, completion)
    }

    fn abandon(&mut self) {
        self.progress.abandon();
        self.driver.abandon();
    }

    fn refuse(&mut self, queue: u64, packet: Option<u64>, refusal: &Refusal) {
        let text = match packet {
            Some(packet) => format!("packet {packet} of queue {queue}: {refusal}"),
            None => format!("queue {queue}: {refusal}"),
        };
        report_event(&match refusal {
            Refusal::Packet(_) => Event::Refused { text },
            Refusal::Memory(cause) => {
                Event::Fault { dispatch: None, kernel: String::new(), cause: cause.kind(), text }
            }
        });
        self.driver.refuse(queue, packet, refusal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver whose properties all differ from the defaults.
    struct NonDefault;

    impl DispatchDriver for NonDefault {
        fn advance(
            &mut self,
            _: &mut EmbeddedGpu,
            _: &mut Execution,
            until: u64,
        ) -> Result<Progress, DeviceError> {
            Err(DeviceError::Internal(until.to_string()))
        }

        fn injects(&self) -> bool {
            true
        }

        fn ends_stalls(&self) -> bool {
            false
        }
    }

    #[test]
    fn driver_properties_are_delegated() {
        let driver = ProgressDriver::new(Box::new(NonDefault), false).expect("a thread");
        assert!(driver.injects());
        assert!(!driver.ends_stalls());
    }

    #[test]
    fn report_interval_doubles_up_to_a_maximum() {
        let (since, kernel) = (Instant::now(), "long".to_owned());
        let mut current =
            CurrentDispatch { dispatch: Some(3), kernel, since, instructions: 9, next: FIRST };
        let reported: Vec<u64> = (0..4000)
            .filter(|second| current.report(Duration::from_secs(*second)).is_some())
            .collect();
        assert_eq!(reported, [5, 10, 20, 40, 80, 160, 320, 640, 1240, 1840, 2440, 3040, 3640]);
    }
}
