//! The gate that dispatches pass one after another, where they get their numbers.

use super::code::LoadedKernel;
use super::queue::QueueState;
use super::signal::Signal;
use super::{Dispatch, TOOLS, Version};
use crate::HsaError;
use flipwave_device::{FaultCause, KernelPacket};
use hsa_sys::HSA_STATUS_ERROR_OUT_OF_RESOURCES;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Instant;

/// A dispatch on its way.
#[derive(Debug)]
pub struct Job {
    pub kernel: Arc<LoadedKernel>,
    pub version: Version,
    /// As it is submitted.
    pub packet: KernelPacket,
    pub queue: Arc<QueueState>,
    /// Everything before it in its queue is done.
    pub ready: Signal,
    /// It may begin.
    pub go: Signal,
    /// It has ended.
    pub done: Signal,
    /// What follows it may begin.
    pub over: Signal,
}

enum Event {
    Ready(Arc<Job>),
    Done(Arc<Job>),
    /// A queue is destroyed.
    Gone(Arc<QueueState>),
}

/// The gate. A thread of its own keeps it: what it does there may wait for the runtime's threads.
#[derive(Default)]
pub struct Gate {
    events: OnceLock<Sender<Event>>,
    running: Mutex<Option<Dispatch>>,
}

impl Gate {
    /// Lets a job come to the gate when everything before it is done.
    pub fn expect(&self, job: &Arc<Job>) -> Result<(), HsaError> {
        let events = match self.events.get() {
            Some(events) => events,
            None => {
                let (sender, receiver) = channel();
                let keeper = Builder::new().name("flipwave gate".into());
                let none = |_| HsaError {
                    call: "pthread_create",
                    status: HSA_STATUS_ERROR_OUT_OF_RESOURCES,
                };
                keeper.spawn(move || keep(&receiver)).map_err(none)?;
                // Where two threads come first, the keeper whose sender is dropped ends.
                self.events.get_or_init(|| sender)
            }
        };
        let send = |event: fn(Arc<Job>) -> Event| {
            let (events, job) = (events.clone(), Arc::clone(job));
            // Nobody is there any more only when the process ends.
            Box::new(move || _ = events.send(event(job)))
        };
        job.ready.when_zero(send(Event::Ready))?;
        job.done.when_zero(send(Event::Done))
    }

    fn running(&self) -> MutexGuard<'_, Option<Dispatch>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The dispatch that is under way.
    pub fn under_way(&self) -> Option<Dispatch> {
        self.running().clone()
    }

    /// A queue is destroyed: nothing of it executes any more.
    pub fn forget(&self, queue: Arc<QueueState>) {
        if let Some(events) = self.events.get() {
            _ = events.send(Event::Gone(queue));
        }
    }
}

/// Lets one job after the other through.
fn keep(events: &Receiver<Event>) {
    let Some(tools) = TOOLS.get() else { return };
    let mut waiting: VecDeque<Arc<Job>> = VecDeque::new();
    let mut gone: Vec<Arc<QueueState>> = Vec::new();
    let mut numbers = 0..;
    let mut deadline: Option<Instant> = None;
    loop {
        let event = match deadline {
            Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Ready(job)) => {
                job.queue.all_before_is_done();
                // The runtime's thread for signals has reported this one after all of theirs.
                gone.drain(..).for_each(|queue| queue.all_before_is_done());
                waiting.push_back(job);
            }
            Ok(Event::Done(job)) => {
                deadline = None;
                let ended = tools.gate.running().take();
                if let Some(dispatch) = ended {
                    tools.interceptor.end(&dispatch, &tools.memory());
                }
                job.over.clear();
                Arc::clone(&job.queue).retire(job);
            }
            Ok(Event::Gone(queue)) => gone.push(queue),
            Err(RecvTimeoutError::Timeout) => {
                deadline = None;
                tools.fault(&FaultCause::Watchdog { executed: 0 });
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if tools.gate.running().is_some() {
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
        tools.interceptor.begin(&dispatch, &tools.memory());
        *tools.gate.running() = Some(dispatch);
        deadline = tools.interceptor.time_limit().map(|limit| Instant::now() + limit);
        job.go.clear();
    }
}
