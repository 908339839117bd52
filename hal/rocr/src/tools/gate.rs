//! The gate: serializes the dispatches of all queues and numbers them.

use super::code::LoadedKernel;
use super::queue::QueueState;
use super::runtime::{RUNTIME, Runtime};
use super::signal::Signal;
use super::{Dispatch, Version};
use crate::HsaError;
use flipwave_device::{FaultCause, KernelPacket};
use hsa_sys::HSA_STATUS_ERROR_OUT_OF_RESOURCES;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Instant;

/// A submitted dispatch. Each signal becomes 0 when its event occurs.
#[derive(Debug)]
pub struct Job {
    pub kernel: Arc<LoadedKernel>,
    pub version: Version,
    /// The packet as submitted to the hardware queue.
    pub packet: KernelPacket,
    pub queue: Arc<QueueState>,
    /// All preceding packets of the queue are done.
    pub ready: Signal,
    /// The dispatch may start.
    pub go: Signal,
    /// The dispatch has ended.
    pub done: Signal,
    /// The following packets of the queue may start.
    pub over: Signal,
}

enum Event {
    Ready(Arc<Job>),
    Done(Arc<Job>),
    QueueDestroyed(Arc<QueueState>),
}

/// The gate. It runs on its own thread, because it may wait for the runtime's threads.
#[derive(Default)]
pub struct Gate {
    events: OnceLock<Sender<Event>>,
    running: Mutex<Option<Dispatch>>,
}

/// The gate of this process.
pub fn gate() -> &'static Gate {
    static GATE: LazyLock<Gate> = LazyLock::new(Gate::default);
    &GATE
}

impl Gate {
    /// Registers a job, which enters the gate when all preceding packets of its queue are done.
    pub fn register(&self, job: &Arc<Job>) -> Result<(), HsaError> {
        let events = match self.events.get() {
            Some(events) => events,
            None => {
                let (sender, receiver) = channel();
                let thread = Builder::new().name("flipwave gate".into());
                let failed = |_| HsaError {
                    call: "pthread_create",
                    status: HSA_STATUS_ERROR_OUT_OF_RESOURCES,
                };
                thread.spawn(move || run(&receiver)).map_err(failed)?;
                // If two threads race, the gate thread whose sender is dropped ends.
                self.events.get_or_init(|| sender)
            }
        };
        let send = |event: fn(Arc<Job>) -> Event| {
            let (events, job) = (events.clone(), Arc::clone(job));
            // Sending fails only while the process exits.
            Box::new(move || _ = events.send(event(job)))
        };
        job.ready.when_zero(send(Event::Ready))?;
        job.done.when_zero(send(Event::Done))
    }

    fn running(&self) -> MutexGuard<'_, Option<Dispatch>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a fault to the interceptor, with the running dispatch.
    pub fn report_fault(&self, runtime: &Runtime, cause: &FaultCause) {
        let dispatch = self.running().clone();
        let memory = match &dispatch {
            Some(dispatch) => runtime.memory().by_engine_of(dispatch.gpu),
            None => runtime.memory(),
        };
        runtime.interceptor.fault(dispatch.as_ref(), cause, &memory);
    }

    /// Handles the destruction of a queue, of which no packet executes any more.
    pub fn queue_destroyed(&self, queue: Arc<QueueState>) {
        if let Some(events) = self.events.get() {
            _ = events.send(Event::QueueDestroyed(queue));
        }
    }
}

/// The gate thread: runs one job after the other.
fn run(events: &Receiver<Event>) {
    let Some(runtime) = RUNTIME.get() else { return };
    let mut waiting: VecDeque<Arc<Job>> = VecDeque::new();
    let mut destroyed: Vec<Arc<QueueState>> = Vec::new();
    let mut numbers = 0..;
    let mut deadline: Option<Instant> = None;
    loop {
        let event = match deadline {
            Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Ready(job)) => {
                job.queue.drop_retired();
                // The runtime's signal thread has reported all signals of the destroyed queues before
                // this one.
                destroyed.drain(..).for_each(|queue| queue.drop_retired());
                waiting.push_back(job);
            }
            Ok(Event::Done(job)) => {
                deadline = None;
                let ended = gate().running().take();
                if let Some(dispatch) = ended {
                    runtime.interceptor.end(&dispatch, &runtime.memory());
                }
                job.over.clear();
                Arc::clone(&job.queue).retire(job);
            }
            Ok(Event::QueueDestroyed(queue)) => destroyed.push(queue),
            Err(RecvTimeoutError::Timeout) => {
                deadline = None;
                gate().report_fault(runtime, &FaultCause::Watchdog { executed: 0 });
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if gate().running().is_some() {
            continue;
        }
        let Some(job) = waiting.pop_front() else { continue };
        let dispatch = Dispatch {
            number: numbers.next().unwrap_or(u32::MAX),
            code: job.kernel.code,
            kernel: Arc::clone(&job.kernel.name),
            version: job.version,
            packet: job.packet,
            bias: job.kernel.bias(job.version),
            gpu: job.kernel.gpu,
        };
        runtime.interceptor.begin(&dispatch, &runtime.memory());
        *gate().running() = Some(dispatch);
        deadline = runtime.interceptor.time_limit().map(|limit| Instant::now() + limit);
        job.go.clear();
    }
}
