//! Notifier: lets threads sleep until another thread has news for them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wakes all threads that wait on it. A notification that nobody waits for costs one addition.
#[derive(Default)]
pub struct Notifier {
    /// Number of notifications so far.
    count: AtomicU64,
    waiters: AtomicU32,
    lock: Mutex<()>,
    notified: Condvar,
}

impl Notifier {
    /// Number of notifications so far.
    ///
    /// To miss no news, read this number first, then check whether there is work, and pass the
    /// number to [`Notifier::wait`].
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Tells all waiting threads that there may be news.
    pub fn notify(&self) {
        // A waiter registers before it reads the count for the last time: either it sees the new
        // count, or it is seen here.
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.notified.notify_all();
        }
    }

    /// Waits until there are more than `seen` notifications, or until `timeout` has passed.
    pub fn wait(&self, seen: u64, timeout: Duration) {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_quiet = |_: &mut ()| self.count() == seen;
        drop(self.notified.wait_timeout_while(guard, timeout, is_quiet));
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// Calls `advance` forever, and waits for a notification after each call that found no work. As
    /// the runtime also submits work without a call that notifies, `advance` is called at intervals
    /// as well.
    pub fn serve(&self, mut advance: impl FnMut() -> bool) -> ! {
        let mut idle = Instant::now();
        loop {
            let seen = self.count();
            if advance() {
                idle = Instant::now();
            } else {
                self.wait(seen, poll_interval(idle.elapsed()));
            }
        }
    }
}

/// Time until the next look at memory that changes without a notification, for a thread that has
/// been `idle` for some time. It grows with that time, so that a long wait costs hardly any CPU
/// time.
pub fn poll_interval(idle: Duration) -> Duration {
    (idle / 4).clamp(Duration::from_micros(20), Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_that_read_the_count_first_misses_no_notification() {
        let notifier = Notifier::default();
        let news = AtomicU64::new(0);
        const ALL: u64 = 20_000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ALL {
                    news.fetch_add(1, Ordering::SeqCst);
                    notifier.notify();
                }
            });
            let start = Instant::now();
            loop {
                let seen = notifier.count();
                if news.load(Ordering::SeqCst) == ALL {
                    break;
                }
                notifier.wait(seen, Duration::from_secs(600));
            }
            assert!(start.elapsed() < Duration::from_secs(60));
        });
        assert_eq!(notifier.waiters.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_wait_without_a_notification_ends_at_its_timeout() {
        let notifier = Notifier::default();
        let start = Instant::now();
        notifier.wait(notifier.count(), Duration::from_millis(2));
        assert!(start.elapsed() >= Duration::from_millis(2));
        notifier.notify();
        notifier.wait(0, Duration::from_secs(600));
        assert!(start.elapsed() < Duration::from_secs(60));
    }
}
