//! Dispatches on several threads.

use super::EmbeddedGpu;
use super::helpers::panicked;
use crate::dispatch::checker::Unchecked;
use crate::dispatch::execution::Execution;
use crate::dispatch::observer::Unobserved;
use crate::dispatch::schedule::Scheduler;
use crate::dispatch::slots::Slots;
use crate::dispatch::turns::FEW;
use flipwave_device::{Completion, DeviceError, DeviceFault, Statistics};
use flipwave_machine::{Progress, Stalls};
use rustc_hash::FxHashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Wave instructions that a dispatch executes on one thread before it is divided, if the length of
/// its workgroups is unknown: it is known afterwards.
const ALONE: u64 = 1 << 13;
/// Minimum number of wave instructions per thread: waking a thread takes as long as executing a
/// good part of these.
const WORTHWHILE: u64 = 1 << 13;
/// Pieces of work per thread, for load balancing.
const PIECES: u64 = 16;

/// Approximate wave instructions per workgroup of a kernel in its last execution, by the device
/// address of the kernel's start.
pub(super) type Lengths = FxHashMap<u64, u64>;

/// Results of a thread for a dispatch.
#[derive(Default)]
struct Done {
    statistics: Statistics,
    /// First faulted workgroup of the piece, and its fault.
    fault: Option<(u64, DeviceFault)>,
}

/// Workgroups that threads take piece by piece.
pub(super) struct Pieces {
    next: AtomicU64,
    end: u64,
    length: u64,
    /// `true` if no more pieces are to be taken.
    has_stopped: AtomicBool,
}

impl Pieces {
    /// Splits `count` workgroups from `first` on.
    pub fn new(first: u64, count: u64, threads: usize) -> Pieces {
        Pieces {
            next: AtomicU64::new(first),
            end: first + count,
            length: (count / (threads as u64 * PIECES)).max(1),
            has_stopped: AtomicBool::new(false),
        }
    }

    /// Stops handing out pieces.
    pub fn stop(&self) {
        self.has_stopped.store(true, Ordering::Relaxed);
    }

    /// Takes the next piece.
    pub fn take(&self) -> Option<Range<u64>> {
        if self.has_stopped.load(Ordering::Relaxed) {
            return None;
        }
        let first = self.next.fetch_add(self.length, Ordering::Relaxed);
        (first < self.end).then(|| first..self.end.min(first + self.length))
    }
}

impl EmbeddedGpu {
    /// Like [`EmbeddedGpu::advance`] without an observer, on at most this number of threads if the
    /// order of workgroups is not observable: unless the program has a data race, memory of the
    /// host has the same content afterwards as with one thread. The dispatch pauses at the end of
    /// workgroups, possibly some way beyond `until`.
    ///
    /// Each thread has a copy of the device's own memory, so that workgroups find its previous
    /// content there, and their writes are not visible to others. The reported fault is that of the
    /// first faulting workgroup in grid order; others may have continued for a while.
    ///
    /// # Errors
    /// See [`EmbeddedGpu::advance`].
    pub fn advance_divided(
        &mut self,
        execution: &mut Execution,
        threads: NonZeroUsize,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let Some((pieces, places)) = self.divide(execution, threads, until) else {
            let executed = execution.statistics.wave_instructions;
            // The length of workgroups is unknown until one has ended.
            let until = until.min(ALONE.max(2 * executed));
            let progress = self.advance(execution, &mut Unobserved, until)?;
            if let Progress::Ended(Completion::Completed(all)) = &progress {
                let length = all.wave_instructions / execution.launch.workgroup_count().max(1);
                self.lengths.insert(execution.launch.start, length);
            }
            return Ok(progress);
        };
        self.share_memory();
        let (device, shared) = (&*self, &*execution);
        let share = |places: &Vec<usize>| device.clone().execute_pieces(shared, places, &pieces);
        let done = self.helpers.share(threads, &places, share);
        let back =
            places.into_iter().rev().flat_map(|thread_places| thread_places.into_iter().rev());
        back.for_each(|place| execution.free.give_back(place));
        let mut first: Option<(u64, DeviceFault)> = None;
        for done in done {
            let Done { statistics, fault } = done?;
            add(&mut execution.statistics, statistics);
            first = first.into_iter().chain(fault).min_by_key(|(piece, _)| *piece);
        }
        let Some((_, fault)) = first else { return Ok(Progress::Paused) };
        self.end(execution)?;
        Ok(Progress::Ended(Completion::Faulted(fault)))
    }

    /// Takes unstarted workgroups from a dispatch and the slots that each thread has for them. Each
    /// thread gets about an equal share of the instructions remaining until `until`, limited to the
    /// number executed so far if the number of workgroups is unknown. `None` if the dispatch cannot
    /// be divided or is almost complete.
    fn divide(
        &self,
        execution: &mut Execution,
        threads: NonZeroUsize,
        until: u64,
    ) -> Option<(Pieces, Vec<Vec<usize>>)> {
        let executed = execution.statistics.wave_instructions;
        let start = execution.launch.start;
        let left = until.saturating_sub(executed);
        let (length, of_thread) = if executed < ALONE {
            (*self.lengths.get(&start)?, left)
        } else {
            (execution.instructions_of_workgroup()?, left.min(executed))
        };
        let (count, threads) = workgroups_at_once(execution, threads, length, of_thread)?;
        let programs = self.programs_of(execution);
        if !programs.get(execution.home)?.reached(start).is_order_free {
            return None;
        }
        let threads = threads.get();
        let mut places = vec![Vec::new(); threads];
        'taken: for _ in 0..FEW {
            for thread_places in &mut places {
                let Some(place) = execution.free.take() else { break 'taken };
                thread_places.push(place);
            }
        }
        places.retain(|thread_places| !thread_places.is_empty());
        if places.is_empty() {
            return None;
        }
        let first = execution.waiting.start;
        execution.waiting.start += count;
        Some((Pieces::new(first, count, threads), places))
    }

    /// Executes pieces of a dispatch until none remain, on a clone of the device that is discarded
    /// afterwards.
    fn execute_pieces(&mut self, execution: &Execution, places: &[usize], pieces: &Pieces) -> Done {
        let mut done = Done::default();
        let programs = self.programs_of(execution);
        let (observer, checker) = (&mut Unobserved, &mut Unchecked);
        let spare = self.spare.take();
        let mut scheduler = Scheduler::new(&programs, observer, checker, u64::MAX, spare);
        while let Some(piece) = pieces.take() {
            let first = piece.start;
            let mut part = execution.part(piece, Slots::of(places.to_vec()));
            // Writes of other threads are not visible here.
            part.policy.stalls = Stalls::Ignore;
            let mut progress = scheduler.run(&mut part, &mut self.space, None);
            add(&mut done.statistics, part.statistics);
            self.explain(&mut part, &programs, &mut progress);
            if let Progress::Ended(Completion::Faulted(fault)) = progress {
                pieces.stop();
                done.fault = Some((first, fault));
            }
        }
        self.spare.give(scheduler.into_spare());
        done
    }

    /// Runs a dispatch that has not started to its end, with its workgroups divided among threads,
    /// in a nondeterministic order. They share memory of the host, where atomic operations are
    /// atomic; each thread has a copy of the device's own memory, so that workgroups find its
    /// previous content there, and their writes are not visible to others.
    ///
    /// Each thread has separate resources of global wave sync: dispatches that use them are not
    /// supported.
    ///
    /// The reported fault is that of the first faulting workgroup in grid order; others may have
    /// continued for a while.
    ///
    /// # Errors
    /// See [`EmbeddedGpu::advance`].
    pub fn finish_parallel(
        &mut self,
        execution: &Execution,
        threads: NonZeroUsize,
    ) -> Result<Completion, DeviceError> {
        let parts = execution.split(threads.get()).into_iter().map(|mut part| {
            // Writes of other threads are not visible here.
            part.policy.stalls = Stalls::Ignore;
            (self.clone(), part)
        });
        let parts: Vec<_> = parts.enumerate().collect();
        let others = parts.len().saturating_sub(1);
        let parts = Mutex::new(parts);
        let work = || {
            let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut ends = Vec::new();
            while let Some((place, (mut device, mut part))) = next() {
                let end =
                    AssertUnwindSafe(|| device.finish(&mut part, &mut Unobserved, &mut Unchecked));
                ends.push((place, catch_unwind(end).map_err(|_| panicked()).flatten()));
            }
            ends
        };
        let mut ends = thread::scope(|scope| {
            // If the system cannot start more threads, the existing ones execute all parts.
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let threads: Vec<_> = (0..others).map_while(start).collect();
            let mut ends = work();
            ends.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()));
            ends
        });
        ends.sort_by_key(|(place, _)| *place);
        execution.release(&mut self.space)?;
        let mut statistics = Statistics::default();
        let mut first: Option<DeviceFault> = None;
        for (_, end) in ends {
            match end? {
                Completion::Completed(part_statistics) => add(&mut statistics, part_statistics),
                // Parts are in grid order.
                Completion::Faulted(fault) => first = first.or(Some(fault)),
            }
        }
        Ok(first.map_or(Completion::Completed(statistics), Completion::Faulted))
    }
}

/// Number of unstarted workgroups, of `length` wave instructions each, to execute at once, and the
/// number of threads: about `of_thread` instructions per thread. `None` if the remaining work is
/// not enough for several.
pub(super) fn workgroups_at_once(
    execution: &Execution,
    threads: NonZeroUsize,
    length: u64,
    of_thread: u64,
) -> Option<(u64, NonZeroUsize)> {
    let left = execution.waiting.end - execution.waiting.start;
    let length = length.max(1);
    let worthwhile = left.saturating_mul(length) / WORTHWHILE;
    let threads = (threads.get() as u64).min(left).min(worthwhile);
    let count = (of_thread / length).max(1).saturating_mul(threads).min(left);
    (threads > 1).then_some((count, NonZeroUsize::new(threads as usize)?))
}

pub(super) fn add(all: &mut Statistics, added: Statistics) {
    all.wave_instructions += added.wave_instructions;
    all.lane_operations += added.lane_operations;
    all.waves += added.waves;
}
