//! Executes numbered jobs on worker threads and returns their results in order.

use crate::run::reorder::ReorderBuffer;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};

/// Threads of [`in_order`].
#[derive(Clone, Copy)]
pub(crate) struct Workers {
    /// Number of threads.
    pub threads: NonZeroUsize,
    /// Largest number of results that wait for an earlier one; at least 1.
    pub ahead: u64,
}

/// Executes jobs 0 to `count` - 1 with `work` on several threads. `take` receives the results on
/// this thread, in order and as soon as possible. Jobs start in order; if `stop` is set or `take`
/// returns an error, the results taken are therefore those of the first jobs. Jobs that have
/// started when `stop` is set are completed.
///
/// # Errors
/// The first error of `take`.
pub(crate) fn in_order<T: Send, E>(
    count: u64,
    Workers { threads, ahead }: Workers,
    stop: &AtomicBool,
    work: impl Fn(u64) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicU64::new(0);
    let gate = Gate::default();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..(threads.get() as u64).min(count) {
            let sender = sender.clone();
            let job = || {
                let sender = sender;
                // If the job panics, no thread may wait for its result.
                let closing = Closing(&gate);
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    // After an error, nothing receives results.
                    if index >= count
                        || !gate.wait_for(index, ahead)
                        || sender.send((index, work(index))).is_err()
                    {
                        break;
                    }
                }
                std::mem::forget(closing);
            };
            // If a thread cannot be started, the ones that run do the work.
            if std::thread::Builder::new().spawn_scoped(scope, job).is_err() {
                break;
            }
            started += 1;
        }
        drop(sender);
        let _closing = Closing(&gate);
        if started == 0 {
            let mut jobs = (0..count).take_while(|_| !stop.load(Ordering::Relaxed));
            return jobs.try_for_each(|index| take(work(index)));
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

/// Prevents workers from running far ahead of the taken results.
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

    /// Waits until job `index` is less than `ahead` jobs after the next one to be taken. Returns
    /// `false` if no more results are taken.
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

    fn workers(threads: usize, ahead: u64) -> Workers {
        Workers { threads: NonZeroUsize::new(threads).expect("at least one"), ahead }
    }

    /// Takes longer for the first jobs of each four.
    fn slow_first(index: u64) -> u64 {
        std::thread::sleep(Duration::from_millis(3 - index % 4));
        index
    }

    #[test]
    fn results_are_taken_in_order_with_any_number_of_workers() {
        for count in [1, 2, 7] {
            let mut taken = Vec::new();
            let result: Result<(), ()> =
                in_order(40, workers(count, 3), &GO_ON, slow_first, |index| {
                    taken.push(index);
                    Ok(())
                });
            assert_eq!(result, Ok(()));
            assert_eq!(taken, (0..40).collect::<Vec<_>>());
        }
    }

    #[test]
    fn there_are_no_more_threads_than_jobs() {
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let job = |index| {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            let result = slow_first(index);
            now.fetch_sub(1, Ordering::Relaxed);
            result
        };
        let mut taken = Vec::new();
        let result: Result<(), ()> = in_order(8, workers(1_000_000, 100), &GO_ON, job, |index| {
            taken.push(index);
            Ok(())
        });
        assert_eq!(result, Ok(()));
        assert_eq!(taken, (0..8).collect::<Vec<_>>());
        assert!(most.into_inner() <= 8);
    }

    #[test]
    fn results_before_the_first_error_are_taken() {
        let mut taken = Vec::new();
        let result = in_order(40, workers(4, 40), &GO_ON, slow_first, |index| {
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
    fn results_are_contiguous_after_a_stop() {
        let stop = AtomicBool::new(false);
        let mut taken = Vec::new();
        let result: Result<(), ()> =
            in_order(1_000_000, workers(3, 50), &stop, slow_first, |index| {
                taken.push(index);
                stop.store(index >= 5, Ordering::Relaxed);
                Ok(())
            });
        assert_eq!(result, Ok(()));
        assert!((6..100).contains(&taken.len()), "{} taken", taken.len());
        assert_eq!(taken, (0..taken.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn waiting_results_are_limited_while_a_job_is_slow() {
        const AHEAD: u64 = 20;
        let begun = AtomicU64::new(0);
        let work = |index| {
            begun.fetch_max(index, Ordering::SeqCst);
            if index == 0 {
                while begun.load(Ordering::SeqCst) < AHEAD - 1 {
                    std::thread::yield_now();
                }
                // Leaves time for jobs to start that must not.
                std::thread::sleep(Duration::from_millis(50));
                assert_eq!(begun.load(Ordering::SeqCst), AHEAD - 1);
            }
            index
        };
        let mut taken = 0;
        let result: Result<(), ()> = in_order(100, workers(3, AHEAD), &GO_ON, work, |_| {
            taken += 1;
            Ok(())
        });
        assert_eq!((result, taken), (Ok(()), 100));
    }

    #[test]
    fn a_panic_of_a_job_is_propagated() {
        let work = |index| assert!(index != 1, "planted");
        let run = || in_order(100, workers(3, 2), &GO_ON, work, |()| Ok::<(), ()>(()));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
