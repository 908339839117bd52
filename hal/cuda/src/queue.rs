//! The queue of all work that the application has submitted. One thread executes it in the order of
//! submission: a schedule that streams and events permit.

use crate::driver::Driver;
use crate::handles::lock;
use crate::launch::KernelLaunch;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// An address, by the memory that it belongs to.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Memory of a device.
    Device(u64),
    /// Memory of the host.
    Host(u64),
}

/// Source of a copy.
#[derive(Clone, Debug)]
pub enum Source {
    /// Memory, which is read when the copy is executed.
    Memory(Place),
    /// Content of memory of the host, row after row without padding.
    Bytes(Arc<[u8]>),
}

/// A copy of rows.
#[derive(Clone, Debug)]
pub struct CopyWork {
    /// The source.
    pub from: Source,
    /// The destination.
    pub to: Place,
    /// Bytes of a row.
    pub width: u64,
    /// Numbers of rows in a slice, and of slices.
    pub counts: [u64; 2],
    /// Distances of rows and of slices in the source, in bytes.
    pub from_pitches: [u64; 2],
    /// Distances of rows and of slices in the destination, in bytes.
    pub to_pitches: [u64; 2],
}

/// Filling rows with an element.
#[derive(Clone, Debug)]
pub struct FillWork {
    /// The first address.
    pub to: u64,
    /// The element: 1, 2 or 4 bytes.
    pub element: Vec<u8>,
    /// Elements of a row.
    pub width: u64,
    /// Number of rows.
    pub height: u64,
    /// Distance of rows in bytes.
    pub pitch: u64,
}

/// A function of the application.
#[derive(Clone, Copy, Debug)]
pub enum HostFunction {
    /// Called with its argument (`CUhostFn`).
    Plain(unsafe extern "C" fn(usize)),
    /// Called with stream, status and argument (`CUstreamCallback`).
    Callback(unsafe extern "C" fn(usize, i32, usize), usize),
}

/// Work of a stream.
#[derive(Clone, Debug)]
pub enum Work {
    /// Runs a kernel.
    Kernel(Box<KernelLaunch>),
    /// Copies memory.
    Copy(CopyWork),
    /// Fills memory.
    Fill(FillWork),
    /// Calls a function of the application.
    Call(HostFunction, usize),
    /// Stores the device's clock.
    Record(Arc<AtomicU64>),
    /// Frees device memory.
    Free(u64),
}

struct Submitted {
    number: u64,
    device: usize,
    work: Work,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Submitted>,
    submitted: u64,
    completed: u64,
}

/// The queue.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    /// Appends work for a device, and returns its number.
    pub fn submit(&self, device: usize, work: Work) -> u64 {
        let mut state = lock(&self.state);
        state.submitted += 1;
        let number = state.submitted;
        state.waiting.push_back(Submitted { number, device, work });
        drop(state);
        self.changed.notify_all();
        number
    }

    /// Number of the work that was submitted last.
    pub fn last(&self) -> u64 {
        lock(&self.state).submitted
    }

    /// Returns `true` if the work with a number has ended.
    pub fn is_done(&self, number: u64) -> bool {
        lock(&self.state).completed >= number
    }

    /// Waits until the work with a number has ended.
    pub fn wait(&self, number: u64) {
        let mut state = lock(&self.state);
        while state.completed < number {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Executes work until the process ends.
    pub fn run(&self, driver: &Driver) {
        IS_EXECUTING.set(true);
        loop {
            let mut state = lock(&self.state);
            let submitted = loop {
                match state.waiting.pop_front() {
                    Some(submitted) => break submitted,
                    None => {
                        state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
                    }
                }
            };
            drop(state);
            driver.execute(submitted.device, submitted.work);
            lock(&self.state).completed = submitted.number;
            self.changed.notify_all();
        }
    }
}

thread_local! {
    /// `true` on the thread that executes work.
    static IS_EXECUTING: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` on the thread that executes work.
pub fn is_executing() -> bool {
    IS_EXECUTING.get()
}

/// The clock of a device in nanoseconds. It counts work, not time, so that it is the same in each run: one
/// nanosecond per wave instruction, and [`Clock::WORK`] per piece of work.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// Nanoseconds for a kernel, copy or other piece of work, in addition to its instructions.
    pub const WORK: u64 = 1000;

    /// Advances the clock.
    pub fn add(&self, nanoseconds: u64) {
        self.0.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The current value.
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
