//! Progress messages about long kernels.

use flipwave_campaigns::{CancellationToken, Running};
use flipwave_device::demangled_kernel;
use flipwave_host::output::printable;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time before the first message; the interval doubles with each message.
const FIRST: Duration = Duration::from_secs(2);
/// The maximum interval between messages.
const LONGEST: Duration = Duration::from_secs(64);

/// A thread that reports long-running kernels until it is dropped.
pub struct LongRuns {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LongRuns {
    /// Starts the thread, which passes each message to `report`.
    pub fn start(
        cancellation: &CancellationToken,
        report: impl Fn(String) + Send + 'static,
    ) -> LongRuns {
        let (end, ended) = channel();
        let cancellation = cancellation.clone();
        let watch = move || {
            let (mut pause, mut last) = (FIRST, cancellation.running());
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(pause) {
                let now = cancellation.running();
                // A kernel without progress may have ended.
                if let Some(now) = now.as_ref().filter(|_| now != last) {
                    report(line(last.as_ref(), now));
                    pause = (pause * 2).min(LONGEST);
                }
                last = now;
            }
        };
        // Without a thread there are no messages.
        let thread = std::thread::Builder::new().name("long runs".into()).spawn(watch).ok();
        LongRuns { end: Some(end), thread }
    }
}

impl Drop for LongRuns {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Formats a message: the kernel, its progress, and its speed since the last message.
fn line(last: Option<&Running>, now: &Running) -> String {
    // A kernel that was started again was at 0 in between.
    let since_last = last.filter(|last| last.kernel == now.kernel).and_then(|last| {
        let executed = now.wave_instructions.checked_sub(last.wave_instructions)?;
        let elapsed = now.elapsed.checked_sub(last.elapsed)?;
        (!elapsed.is_zero()).then_some((executed, elapsed))
    });
    let (executed, elapsed) = since_last.unwrap_or((now.wave_instructions, now.elapsed));
    let rate = executed as f64 / elapsed.as_secs_f64() / 1e6;
    format!(
        "running kernel `{}`: {} wave instructions so far, {rate:.1} million per second",
        printable(&demangled_kernel(&now.kernel)),
        now.wave_instructions
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_measured_since_the_last_message() {
        let running = |kernel: &str, wave_instructions, seconds| Running {
            kernel: kernel.to_owned(),
            wave_instructions,
            elapsed: Duration::from_secs(seconds),
        };
        let now = running("spin", 10_000_000, 2);
        let all =
            "running kernel `spin`: 10000000 wave instructions so far, 5.0 million per second";
        assert_eq!(line(None, &now), all);
        assert_eq!(line(Some(&running("other", 1_000, 1)), &now), all);
        // Started again, slower or faster.
        assert_eq!(line(Some(&running("spin", 20_000_000, 1)), &now), all);
        assert_eq!(line(Some(&running("spin", 8_000_000, 3)), &now), all);
        let before = running("spin", 8_000_000, 1);
        assert!(line(Some(&before), &now).ends_with("2.0 million per second"));
    }
}
