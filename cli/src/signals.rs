//! Ctrl-C, SIGTERM and SIGHUP: the first ends what runs in good order, the second at once.

use crate::output::say;
use flipwave_campaigns::Attendance;
use nix::sys::signal::{SigSet, Signal, raise};
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::{self, Builder};
use std::time::Duration;

/// What asks a program to end: Ctrl-C, kill(1) and batch systems, a terminal that is closed.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// How long runs may take until they see that they are to stop. What does not look, such as reading a
/// large file, has nothing to save.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The number of the first that came; 0 before.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// Stops runs and compilers when one of the signals comes, and ends the program at the next, or if
/// nothing heeds the first. Those that were ignored when the program started stay so, as nohup(1) wants
/// it.
///
/// # Errors
/// If signals cannot be waited for. To be called before other threads are started.
pub fn listen(attendance: &Attendance) -> io::Result<()> {
    let ignored = ignored();
    let signals: SigSet = ENDING.into_iter().filter(|own| !ignored.contains(own)).collect();
    // Blocked in all threads to come, and taken by one. Applications get theirs back.
    signals.thread_block()?;
    let attendance = attendance.clone();
    let take = move || {
        while let Ok(signal) = signals.wait() {
            if RECEIVED.swap(signal as i32, Ordering::Relaxed) != 0 {
                end(signal);
            }
            attendance.stop();
            flipwave_host::child::kill_all();
            let attendance = attendance.clone();
            let wait = move || {
                thread::sleep(PATIENCE);
                if !attendance.is_heeded() {
                    say(format!("flipwave: ended by {signal}"));
                    end(signal);
                }
            };
            // Without another thread, the next signal has to wait.
            if Builder::new().spawn(wait.clone()).is_err() {
                wait();
            }
        }
    };
    Builder::new().name("signals".into()).spawn(take).map(drop)
}

/// Ends the program as if a signal had never been caught.
fn end(signal: Signal) {
    let _ = SigSet::from(signal).thread_unblock();
    let _ = raise(signal);
}

/// The first of the signals that came.
pub fn received() -> Option<Signal> {
    Signal::try_from(RECEIVED.load(Ordering::Relaxed)).ok()
}

/// Signals that this process ignores (proc_pid_status(5), `SigIgn`).
fn ignored() -> Vec<Signal> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ENDING.into_iter().filter(|own| (mask >> (*own as i32 - 1)) & 1 == 1).collect()
}
