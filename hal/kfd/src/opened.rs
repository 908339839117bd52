//! The driver as this process has it, with a machine that is made when the runtime opens a device for
//! the first time. A process that was forked has none of its parent's, as the threads that would do
//! its work are not there: it gets one of its own when it opens a device.

use crate::ioctl::Process;
use crate::machine::Machine;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

type Opener = fn() -> Option<Arc<Machine>>;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// What a process has opened.
struct Opened {
    id: u32,
    /// Nothing if no machine could be made.
    process: Option<Process>,
}

/// The last, which is this process's own or that of one from which it was forked. Each stays for ever.
static OPENED: AtomicPtr<Opened> = AtomicPtr::new(std::ptr::null_mut());

/// Says who makes the machine.
pub fn on_open(opener: Opener) {
    let _ = OPENER.set(opener);
}

/// What this process has opened, if it has opened anything.
fn opened() -> Option<&'static Opened> {
    // SAFETY: null, or one that stays.
    let opened = unsafe { OPENED.load(Ordering::Acquire).as_ref() };
    opened.filter(|opened| opened.id == std::process::id())
}

/// The driver of this process; `None` if there is no machine.
pub(crate) fn process() -> Option<&'static Process> {
    static TURN: Mutex<()> = Mutex::new(());
    if opened().is_none() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        if opened().is_none() {
            let process = OPENER.get().and_then(|open| open()).map(Process::new);
            let range = RANGE.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(process) = &process {
                process.machine.enter_range(range.clone());
            }
            let own = Box::new(Opened { id: std::process::id(), process });
            OPENED.store(Box::into_raw(own), Ordering::Release);
        }
    }
    opened()?.process.as_ref()
}

/// The range in which the application is, for a machine that is not there yet.
static RANGE: Mutex<Option<Arc<str>>> = Mutex::new(None);

/// Says that what the application submits from now on belongs to `range`, a part of itself to which it
/// has given a name, or to none.
pub fn enter_range(range: Option<Arc<str>>) {
    let mut own = RANGE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(process) = opened().and_then(|opened| opened.process.as_ref()) {
        process.machine.enter_range(range.clone());
    }
    *own = range;
}

/// Has the machine of this process, if there is one, look at once which packets its compute queues
/// have got: packets are executed in the order in which they were seen. To be called when the
/// application has submitted some.
pub fn note_submissions() {
    if let Some(process) = opened().and_then(|opened| opened.process.as_ref()) {
        process.machine.note_submissions();
    }
}

/// Sleeps until `is_over` of a signal, or for so long, and whether there is a machine that wakes this
/// thread: without one, nothing is done.
pub fn wait_until(is_over: &mut dyn FnMut() -> bool, time: Duration) -> bool {
    let process = opened().and_then(|opened| opened.process.as_ref());
    process.map(|process| process.machine.wait_until(is_over, time)).is_some()
}

/// Where programs have mapped memory for GPUs that they manage themselves, as they have asked for it:
/// addresses, and bytes from there on.
pub fn virtual_mappings() -> Vec<(u64, u64)> {
    let process = opened().and_then(|opened| opened.process.as_ref());
    process.map(|process| process.objects.mappings()).unwrap_or_default()
}
