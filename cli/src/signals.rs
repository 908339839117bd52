//! Ctrl-C, SIGTERM and SIGHUP: the first signal stops runs in an orderly way, the second immediately.

use crate::output::say;
use flipwave_campaigns::CancellationToken;
use nix::sys::signal::{SigSet, Signal, raise};
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::{self, Builder};
use std::time::Duration;

/// The signals that stop the program: sent by Ctrl-C, by kill(1) and batch systems, and by a closing
/// terminal.
const STOP_SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// The time in which runs have to notice the first signal. Work that does not check for it, such as
/// reading a large file, has nothing to save.
const GRACE: Duration = Duration::from_millis(1500);

/// The number of the first signal received; 0 before.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// Starts a thread that stops runs and compilers at the first stop signal, and ends the program at the
/// second, or if no run notices the first. Signals that were ignored when the program started stay
/// ignored, as nohup(1) requires. Must be called before other threads are started.
///
/// # Errors
/// If the signals cannot be blocked or the thread cannot be started.
pub fn listen(cancellation: &CancellationToken) -> io::Result<()> {
    let ignored = ignored();
    let signals: SigSet =
        STOP_SIGNALS.into_iter().filter(|signal| !ignored.contains(signal)).collect();
    // Threads started later inherit the blocked set, so only this thread receives the signals. They are
    // unblocked again in applications.
    signals.thread_block()?;
    let cancellation = cancellation.clone();
    let listen = move || {
        while let Ok(signal) = signals.wait() {
            if RECEIVED.swap(signal as i32, Ordering::Relaxed) != 0 {
                end(signal);
            }
            cancellation.stop();
            flipwave_host::child::kill_all();
            let cancellation = cancellation.clone();
            let end_if_unnoticed = move || {
                thread::sleep(GRACE);
                if !cancellation.is_acknowledged() {
                    say(format!("flipwave: ended by {signal}"));
                    end(signal);
                }
            };
            // If no thread can be started, this one waits, and the second signal with it.
            if Builder::new().spawn(end_if_unnoticed.clone()).is_err() {
                end_if_unnoticed();
            }
        }
    };
    Builder::new().name("signals".into()).spawn(listen).map(drop)
}

/// Ends the program by the signal's default action.
fn end(signal: Signal) {
    let _ = SigSet::from(signal).thread_unblock();
    let _ = raise(signal);
}

/// The first stop signal received, if any.
pub fn received() -> Option<Signal> {
    Signal::try_from(RECEIVED.load(Ordering::Relaxed)).ok()
}

/// The stop signals that this process ignores (proc_pid_status(5), `SigIgn`).
fn ignored() -> Vec<Signal> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    STOP_SIGNALS.into_iter().filter(|signal| (mask >> (*signal as i32 - 1)) & 1 == 1).collect()
}
