//! Numbered jobs on worker threads, their results in order.

use crate::run::reorder::ReorderBuffer;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};

/// Does jobs 0 to `count` - 1 on `workers` threads. `take` gets the results on this thread, in
/// the jobs' order, as soon as that is possible. Jobs are begun in order, so the results taken
/// are always those of the first jobs, whatever ends the work early: `stop`, or an error of
/// `take`, which is given back. Jobs that were begun when `stop` was set are still done. Results wait
/// for those before them, `ahead` of them at most, which are 1 or more.
pub(crate) fn in_order<T: Send, E>(
    count: u64,
    (workers, ahead): (NonZeroUsize, u64),
    stop: &AtomicBool,
    work: impl Fn(u64) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicU64::new(0);
    let gate = Gate::default();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        // More threads than jobs would have nothing to do.
        let mut threads = 0;
        for _ in 0..(workers.get() as u64).min(count) {
            let sender = sender.clone();
            let job = || {
                let sender = sender;
                // Nobody may wait for a job that panicked.
                let closing = Closing(&gate);
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody receives any more after an error.
                    if index >= count
                        || !gate.wait_for(index, ahead)
                        || sender.send((index, work(index))).is_err()
                    {
                        break;
                    }
                }
                std::mem::forget(closing);
            };
            // Where the system has no more threads for this process, those that it has do the work.
            if std::thread::Builder::new().spawn_scoped(scope, job).is_err() {
                break;
            }
            threads += 1;
        }
        drop(sender);
        let _closing = Closing(&gate);
        if threads == 0 {
            let mut left = (0..count).take_while(|_| !stop.load(Ordering::Relaxed));
            return left.try_for_each(|index| take(work(index)));
        }
        let mut results = ReorderBuffer::new();
        for (index, result) in receiver {
            results.push(index, result);
            while let Some(result) = results.pop() {
                take(result)?;
                gate.advance();
            }
        }
        Ok(())
    })
}

/// Keeps workers from running far ahead of the results that are taken.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    taken: u64,
    is_closed: bool,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until job `index` is fewer than `ahead` after the next one to be taken; `false` if nothing
    /// is taken any more.
    fn wait_for(&self, index: u64, ahead: u64) -> bool {
        let is_early =
            |state: &mut GateState| !state.is_closed && index - state.taken.min(index) >= ahead;
        let state = self.changed.wait_while(self.state(), is_early);
        !state.unwrap_or_else(PoisonError::into_inner).is_closed
    }

    fn advance(&self) {
        self.state().taken += 1;
        self.changed.notify_all();
    }
}

/// Closes a gate when it goes out of scope.
struct Closing<'a>(&'a Gate);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    static GO_ON: AtomicBool = AtomicBool::new(false);

    fn workers(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).expect("at least one")
    }

    /// A job that takes the longer the lower its number is among four.
    fn slow_first(index: u64) -> u64 {
        std::thread::sleep(Duration::from_millis(3 - index % 4));
        index
    }

    #[test]
    fn results_are_taken_in_order_whatever_the_workers() {
        for count in [1, 2, 7] {
            let mut taken = Vec::new();
            let result: Result<(), ()> =
                in_order(40, (workers(count), 3), &GO_ON, slow_first, |index| {
                    taken.push(index);
                    Ok(())
                });
            assert_eq!(result, Ok(()));
            assert_eq!(taken, (0..40).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_million_workers_are_no_more_than_the_jobs() {
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let job = |index| {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            let result = slow_first(index);
            now.fetch_sub(1, Ordering::Relaxed);
            result
        };
        let mut taken = Vec::new();
        let result: Result<(), ()> = in_order(8, (workers(1_000_000), 100), &GO_ON, job, |index| {
            taken.push(index);
            Ok(())
        });
        assert_eq!(result, Ok(()));
        assert_eq!(taken, (0..8).collect::<Vec<_>>());
        assert!(most.into_inner() <= 8);
    }

    #[test]
    fn everything_before_the_first_error_is_taken() {
        let mut taken = Vec::new();
        let result = in_order(40, (workers(4), 40), &GO_ON, slow_first, |index| {
            if index == 10 || index == 12 {
                return Err(index);
            }
            taken.push(index);
            Ok(())
        });
        assert_eq!(result, Err(10));
        assert_eq!(taken, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_stop_keeps_what_is_done_without_a_gap() {
        let stop = AtomicBool::new(false);
        let mut taken = Vec::new();
        let workers = (workers(3), 50);
        let result: Result<(), ()> = in_order(1_000_000, workers, &stop, slow_first, |index| {
            taken.push(index);
            stop.store(index >= 5, Ordering::Relaxed);
            Ok(())
        });
        assert_eq!(result, Ok(()));
        assert!((6..100).contains(&taken.len()), "{} taken", taken.len());
        assert_eq!(taken, (0..taken.len() as u64).collect::<Vec<_>>());
    }

    /// One slow job must not let the others fill the memory with their results.
    #[test]
    fn no_more_results_wait_for_a_slow_job_than_may() {
        const AHEAD: u64 = 20;
        let begun = AtomicU64::new(0);
        let work = |index| {
            begun.fetch_max(index, Ordering::SeqCst);
            if index == 0 {
                while begun.load(Ordering::SeqCst) < AHEAD - 1 {
                    std::thread::yield_now();
                }
                // Time for those that may not begin to begin.
                std::thread::sleep(Duration::from_millis(50));
                assert_eq!(begun.load(Ordering::SeqCst), AHEAD - 1);
            }
            index
        };
        let mut taken = 0;
        let result: Result<(), ()> = in_order(100, (workers(3), AHEAD), &GO_ON, work, |_| {
            taken += 1;
            Ok(())
        });
        assert_eq!((result, taken), (Ok(()), 100));
    }

    #[test]
    fn nobody_waits_for_a_job_that_panicked() {
        let work = |index| assert!(index != 1, "planted");
        let run = || in_order(100, (workers(3), 2), &GO_ON, work, |()| Ok::<(), ()>(()));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
