//! Reports how long dispatches take and what they executed, whatever else is done with them.

use super::{report_dispatches, report_event};
use crate::report::Event;
use flipwave_device::{Completion, DeviceError};
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine, Refusal};
use flipwave_sim::{EmbeddedGpu, Execution, Progress};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a dispatch runs before that is reported for the first time; then each time that it has
/// run twice as long, but no more rarely than `RARELY`.
const FIRST: Duration = Duration::from_secs(5);
const RARELY: Duration = Duration::from_secs(600);
/// How often the clock is looked at.
const TICK: Duration = Duration::from_millis(500);

/// Runs dispatches as another driver does.
pub struct Watching {
    driver: Box<dyn DispatchDriver>,
    underway: Arc<Mutex<Option<Underway>>>,
    /// Whether each dispatch is reported when it has ended.
    counts: bool,
}

/// A dispatch that runs.
struct Underway {
    dispatch: Option<u32>,
    kernel: String,
    since: Instant,
    /// Wave instructions so far, where the driver stops now and then.
    instructions: u64,
    /// When it is reported, after its beginning.
    next: Duration,
}

impl Underway {
    fn of(dispatch: &KernelDispatch) -> Underway {
        let kernel = dispatch.kernel.as_ref();
        Underway {
            dispatch: kernel.map(|kernel| kernel.number),
            kernel: kernel.map_or_else(String::new, |kernel| kernel.name.to_string()),
            since: Instant::now(),
            instructions: 0,
            next: FIRST,
        }
    }

    /// What is to be reported when it has run for so long.
    fn report(&mut self, elapsed: Duration) -> Option<Event> {
        if elapsed < self.next {
            return None;
        }
        self.next = elapsed + elapsed.min(RARELY);
        Some(Event::Running {
            dispatch: self.dispatch,
            kernel: self.kernel.clone(),
            instructions: self.instructions,
            milliseconds: elapsed.as_millis() as u64,
        })
    }
}

impl Watching {
    /// Watches what a driver runs, from a thread of its own.
    ///
    /// # Errors
    /// If there is no thread.
    pub fn new(driver: Box<dyn DispatchDriver>, counts: bool) -> std::io::Result<Watching> {
        let underway = Arc::<Mutex<Option<Underway>>>::default();
        let seen = Arc::clone(&underway);
        let watch = move || {
            loop {
                std::thread::sleep(TICK);
                let mut underway = lock(&seen);
                let news = underway.as_mut().and_then(|own| own.report(own.since.elapsed()));
                drop(underway);
                news.iter().for_each(report_event);
            }
        };
        std::thread::Builder::new().name("flipwave watch".into()).spawn(watch)?;
        Ok(Watching { driver, underway, counts })
    }
}

fn lock(underway: &Mutex<Option<Underway>>) -> MutexGuard<'_, Option<Underway>> {
    underway.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DispatchDriver for Watching {
    fn begin(&mut self, machine: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        if dispatch.kernel.is_some() {
            report_dispatches();
        }
        *lock(&self.underway) = Some(Underway::of(dispatch));
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
        if let Some(underway) = &mut *lock(&self.underway) {
            underway.instructions = execution.statistics().wave_instructions;
        }
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
        let ended = lock(&self.underway).take().filter(|_| self.counts);
        if let Some(Underway { dispatch, kernel, instructions, .. }) = ended {
            // Of one that several threads share, the end has the count.
            let instructions = match completion {
                Completion::Completed(statistics) => statistics.wave_instructions,
                Completion::Faulted(_) => instructions,
            };
            report_event(&Event::Executed { dispatch, kernel, instructions });
        }
        self.driver.end(machine, gpu, dispatch, completion)
    }

    fn abandon(&mut self) {
        *lock(&self.underway) = None;
        self.driver.abandon();
    }

    fn refuse(&mut self, queue: u64, packet: Option<u64>, refusal: &Refusal) {
        let text = match packet {
            Some(packet) => format!("packet {packet} of queue {queue}: {refusal}"),
            None => format!("queue {queue}: {refusal}"),
        };
        report_event(&match refusal {
            Refusal::Packet(_) => Event::Refused { text },
            Refusal::Memory(cause) => Event::Fault {
                dispatch: None,
                kernel: String::new(),
                cause: cause.name().to_owned(),
                text,
            },
        });
        self.driver.refuse(queue, packet, refusal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each question as no driver does by default.
    struct Other;

    impl DispatchDriver for Other {
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
    fn what_ends_a_dispatch_is_up_to_the_driver_that_is_watched() {
        let watching = Watching::new(Box::new(Other), false).expect("a thread");
        assert!(watching.injects());
        assert!(!watching.ends_stalls());
    }

    #[test]
    fn a_long_dispatch_is_reported_early_and_then_rarely() {
        let (since, kernel) = (Instant::now(), "long".to_owned());
        let mut underway =
            Underway { dispatch: Some(3), kernel, since, instructions: 9, next: FIRST };
        let reported: Vec<u64> = (0..4000)
            .filter(|second| underway.report(Duration::from_secs(*second)).is_some())
            .collect();
        assert_eq!(reported, [5, 10, 20, 40, 80, 160, 320, 640, 1240, 1840, 2440, 3040, 3640]);
    }
}
