//! Ctrl-C, SIGTERM and SIGHUP: the first ends what runs in good order, the second at once.

use flipwave_campaigns::Attendance;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, raise};
use std::sync::atomic::{AtomicI32, Ordering};

/// What asks a program to end: Ctrl-C, kill(1) and batch systems, a terminal that is closed.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// The number of the first that came; 0 before.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// Stops runs when one of the signals comes, and ends the program at the next. Those that were ignored
/// when the program started stay so, as nohup(1) wants it.
///
/// # Errors
/// If signals cannot be waited for. To be called before other threads are started.
pub fn listen(attendance: &Attendance) -> Result<(), Errno> {
    let ignored = ignored();
    let signals: SigSet = ENDING.into_iter().filter(|own| !ignored.contains(own)).collect();
    // Blocked in all threads to come, and taken by one. So they are in compilers, whose work is done
    // before the end; applications get theirs back.
    signals.thread_block()?;
    let attendance = attendance.clone();
    std::thread::spawn(move || {
        while let Ok(signal) = signals.wait() {
            if RECEIVED.swap(signal as i32, Ordering::Relaxed) != 0 {
                // Ends the program as if it had never been caught.
                let _ = signals.thread_unblock();
                let _ = raise(signal);
            }
            attendance.stop();
        }
    });
    Ok(())
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
