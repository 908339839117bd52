//! Programs compiled by the same compiler for the host and for the embedded GPU give the same
//! bits: an oracle that knows nothing of our reading of the ISA.

mod case;
mod csmith;
mod integer;

use std::sync::atomic::{AtomicUsize, Ordering};

/// Levels of optimisation: without any, locals live in scratch memory and calls stay calls.
const LEVELS: [&str; 4] = ["-O0", "-O1", "-O3", "-Os"];

/// What `work` makes of each item, in their order, on all of the host's processors.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).map(|item| (index, work(item)))
    };
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get());
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..workers).map(|_| scope.spawn(|| std::iter::from_fn(take).collect::<Vec<_>>())).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker's results")).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
