//! How threads sleep until others have news for them, without a look at the clock for each other's
//! sake.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes all who sleep. To ring costs an addition where nobody does.
#[derive(Default)]
pub struct Bell {
    /// How often it has rung.
    rings: AtomicU64,
    sleepers: AtomicU32,
    turn: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// How often it has rung: what is looked at after this is called, and found to be as it was, is
    /// not missed by a sleep that begins with this number.
    pub fn rings(&self) -> u64 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Says that there may be news.
    pub fn ring(&self) {
        // Who is about to sleep has said so before it looks at the number for the last time: one of
        // the two sees the other.
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
            self.rung.notify_all();
        }
    }

    /// Sleeps until it has rung more often than this, or for so long.
    pub fn sleep(&self, rings: u64, time: Duration) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let is_quiet = |_: &mut ()| self.rings() == rings;
        drop(self.rung.wait_timeout_while(turn, time, is_quiet));
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long to sleep before the next look at what may change without a ring, after so long without
/// news: what comes late is seen a little later, and who waits for hours hardly works.
pub fn nap(waited: Duration) -> Duration {
    (waited / 4).clamp(Duration::from_micros(20), Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn no_ring_is_missed_by_who_has_looked_before() {
        let bell = Bell::default();
        let news = AtomicU64::new(0);
        const ALL: u64 = 20_000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ALL {
                    news.fetch_add(1, Ordering::SeqCst);
                    bell.ring();
                }
            });
            let start = Instant::now();
            loop {
                let rings = bell.rings();
                if news.load(Ordering::SeqCst) == ALL {
                    break;
                }
                bell.sleep(rings, Duration::from_secs(600));
            }
            assert!(start.elapsed() < Duration::from_secs(60));
        });
        assert_eq!(bell.sleepers.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_sleep_without_a_ring_is_over_in_time() {
        let bell = Bell::default();
        let start = Instant::now();
        bell.sleep(bell.rings(), Duration::from_millis(2));
        assert!(start.elapsed() >= Duration::from_millis(2));
        bell.ring();
        bell.sleep(0, Duration::from_secs(600));
        assert!(start.elapsed() < Duration::from_secs(60));
    }
}
