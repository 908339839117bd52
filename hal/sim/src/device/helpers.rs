//! Helper threads that share the work of a device.

use flipwave_device::DeviceError;
use flipwave_jit::spawn_with_signals_blocked;
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// A thread pool shared by the clones of a device. The threads start with the first shared work and
/// then sleep between jobs: starting a thread takes longer than many dispatches.
#[derive(Clone, Default)]
pub struct Helpers(Arc<Mutex<Option<Arc<ThreadPool>>>>);

impl Helpers {
    /// Runs `job` for each share, on at most `threads` threads, the first share on the calling
    /// thread. The results are in the order of the shares; if the system cannot start threads, the
    /// other shares are not executed.
    pub fn share<S: Sync, T: Send>(
        &self,
        threads: NonZeroUsize,
        shares: &[S],
        job: impl Fn(&S) -> T + Sync,
    ) -> Vec<Result<T, DeviceError>> {
        let job = |share| catch_unwind(AssertUnwindSafe(|| job(share))).map_err(|_| panicked());
        let Some((first, others)) = shares.split_first() else { return Vec::new() };
        let Some(pool) = self.pool(threads.get() - 1).filter(|_| !others.is_empty()) else {
            return vec![job(first)];
        };
        let mut ends: Vec<_> = others.iter().map(|_| None).collect();
        let here = pool.in_place_scope(|scope| {
            for (share, end) in others.iter().zip(&mut ends) {
                let job = &job;
                scope.spawn(move |_| *end = Some(job(share)));
            }
            job(first)
        });
        // A scope ends after all of its tasks.
        [here].into_iter().chain(ends.into_iter().flatten()).collect()
    }

    /// A pool of at most this number of threads; `None` if the system cannot start any.
    fn pool(&self, threads: usize) -> Option<Arc<ThreadPool>> {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let present = pool.as_ref().map_or(0, |pool| pool.current_num_threads());
        if present < threads {
            let start = |thread: rayon_core::ThreadBuilder| {
                // Signals are left to the program that owns the device.
                spawn_with_signals_blocked("flipwave share", move || thread.run())
            };
            let build = |threads| {
                ThreadPoolBuilder::new().num_threads(threads).spawn_handler(start).build().ok()
            };
            let fewer = std::iter::successors(Some(threads), |threads| Some(threads / 2));
            let larger = fewer.take_while(|threads| *threads > present).find_map(build);
            *pool = larger.map(Arc::new).or(pool.take());
        }
        pool.clone()
    }
}

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Helpers")
    }
}

/// Error for a thread that has panicked.
pub fn panicked() -> DeviceError {
    DeviceError::Internal("a thread of the GPU panicked".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

    #[test]
    fn results_are_in_the_order_of_the_shares() {
        let helpers = Helpers::default();
        for count in [0, 1, 2, 7, 200] {
            let shares: Vec<u64> = (0..count).collect();
            let given = helpers.share(THREADS, &shares, |share| share * 3);
            let given: Vec<u64> =
                given.into_iter().map(|result| result.expect("no panic")).collect();
            assert_eq!(given, shares.iter().map(|share| share * 3).collect::<Vec<u64>>());
        }
    }

    #[test]
    fn panicking_share_is_an_error_and_others_complete() {
        let helpers = Helpers::default();
        for wrong in [0, 2] {
            let job = |share: &i32| assert_ne!(*share, wrong, "planted");
            let given = helpers.share(THREADS, &[0, 1, 2], job);
            let errors = given.iter().enumerate().filter(|(_, result)| result.is_err());
            assert_eq!(errors.map(|(place, _)| place as i32).collect::<Vec<i32>>(), [wrong]);
            assert_eq!(given.len(), 3);
        }
    }
}
