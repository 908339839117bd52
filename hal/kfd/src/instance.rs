//! The driver instance of this process. Its machine is created when the runtime first opens a
//! device. A forked process does not use its parent's instance, whose engine threads it does not
//! have: it gets its own when it opens a device.

use crate::ioctl::Process;
use crate::machine::Machine;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

type Opener = fn() -> Option<Arc<Machine>>;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// Driver instance of the process with number `id`.
struct Instance {
    id: u32,
    /// `None` if no machine could be created.
    process: Option<Process>,
}

/// The instance that was created last: this process's, or that of a process from which it was
/// forked. Instances are never freed.
static INSTANCE: AtomicPtr<Instance> = AtomicPtr::new(std::ptr::null_mut());

/// Named range (ROCTX) that the application is in, for a machine that does not exist yet.
static RANGE: Mutex<Option<Arc<str>>> = Mutex::new(None);

/// Sets the function that creates the machine when the runtime first opens a device.
pub fn on_open(opener: Opener) {
    let _ = OPENER.set(opener);
}

/// The instance of this process, if it has opened a device.
fn instance() -> Option<&'static Instance> {
    // SAFETY: null, or an instance, which is never freed.
    let instance = unsafe { INSTANCE.load(Ordering::Acquire).as_ref() };
    instance.filter(|instance| instance.id == std::process::id())
}

/// The machine of this process, if it has opened a device.
fn machine() -> Option<&'static Machine> {
    Some(&instance()?.process.as_ref()?.machine)
}

/// The driver state of this process, created on the first call; `None` if there is no machine.
pub(crate) fn process() -> Option<&'static Process> {
    static CREATION: Mutex<()> = Mutex::new(());
    if instance().is_none() {
        let _creation = CREATION.lock().unwrap_or_else(PoisonError::into_inner);
        if instance().is_none() {
            let process = OPENER.get().and_then(|open| open()).map(Process::new);
            let range = RANGE.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(process) = &process {
                process.machine.enter_range(range.clone());
            }
            let instance = Box::new(Instance { id: std::process::id(), process });
            INSTANCE.store(Box::into_raw(instance), Ordering::Release);
        }
    }
    instance()?.process.as_ref()
}

/// Sets the named range of everything that the application submits from now on: a part of the
/// application that it has given a name, or none.
pub fn enter_range(range: Option<Arc<str>>) {
    let mut current = RANGE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(machine) = machine() {
        machine.enter_range(range.clone());
    }
    *current = range;
}

/// Logs at once which packets were written to the compute queues: packets are executed in the order
/// in which they were seen. To be called after the application has submitted packets.
pub fn note_submissions() {
    if let Some(machine) = machine() {
        machine.note_submissions();
    }
}

/// Waits until `is_over`, a condition on the value of a signal, or until `timeout` has passed.
/// Returns `false` at once if this process has no machine, which would wake the thread.
pub fn wait_until(is_over: &mut dyn FnMut() -> bool, timeout: Duration) -> bool {
    machine().map(|machine| machine.wait_until(is_over, timeout)).is_some()
}

/// Virtual memory that programs manage themselves: address and size in bytes of each mapping, as it
/// was requested.
pub fn virtual_mappings() -> Vec<(u64, u64)> {
    let process = instance().and_then(|instance| instance.process.as_ref());
    process.map(|process| process.gem_objects.mappings()).unwrap_or_default()
}
