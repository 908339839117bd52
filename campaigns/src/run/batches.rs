//! Resolves the faults of a part of a plan in batches, as workers request them: injection starts as
//! soon as the first batch is resolved, and few batches are in memory, regardless of the length of
//! the part.

use flipwave_injector::{Plan, PlanError, Planned};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Scope};

/// Faults of the first batch: few, so that the first rows are available soon.
const FIRST_BATCH: u64 = 1 << 12;

/// Faults of each further batch. Resolving them takes one run of the workload, which is short
/// compared with this many injections, and some megabytes of memory.
pub(crate) const BATCH: u64 = 1 << 16;

/// The batches in use of a part of a plan.
pub(crate) struct Batches<'scope, 'plan> {
    plan: &'plan Plan<'plan>,
    /// The indices of the part.
    part: Range<u64>,
    /// Scope of the threads that resolve batches in advance.
    scope: &'scope Scope<'scope, 'plan>,
    open: Mutex<BTreeMap<u64, Batch>>,
}

/// The resolved faults of a batch. The first thread that needs them resolves them; others wait.
type Batch = Arc<OnceLock<Result<Box<[Planned]>, Arc<PlanError>>>>;

impl<'scope, 'plan> Batches<'scope, 'plan> {
    /// Creates the batches of the faults with indices in `part`, none of them in use.
    pub fn new(
        plan: &'plan Plan<'plan>,
        part: Range<u64>,
        scope: &'scope Scope<'scope, 'plan>,
    ) -> Batches<'scope, 'plan> {
        Batches { plan, part, scope, open: Mutex::default() }
    }

    /// The indices of the first batch of a part.
    pub fn first(part: &Range<u64>) -> Range<u64> {
        indices(part, 0)
    }

    /// Stores the faults of the first batch, which were resolved elsewhere.
    pub fn put_first(&self, faults: Vec<Planned>) {
        let (batch, _) = self.open(0);
        // If another thread has resolved them, it has found the same faults.
        let _ = batch.set(Ok(faults.into()));
    }

    /// The fault of an index. Any order of calls is possible; ascending indices are fast.
    ///
    /// # Errors
    /// The errors of [`Plan::faults`], and [`PlanError::Unresolved`] for indices outside the part.
    pub fn fault(&self, index: u64) -> Result<Planned, Arc<PlanError>> {
        let unresolved = || Arc::new(PlanError::Unresolved { index });
        let number = batch_number(index.checked_sub(self.part.start).ok_or_else(unresolved)?);
        let Range { start, end } = indices(&self.part, number);
        let (batch, _) = self.open(number);
        let resolved = batch.get_or_init(|| resolve(self.plan, start..end));
        let resolved = resolved.as_ref().map_err(Arc::clone)?;
        if index >= start + (end - start) / 2 && end < self.part.end {
            self.resolve_ahead(number + 1);
        }
        resolved.get((index - start) as usize).cloned().ok_or_else(unresolved)
    }

    /// Resolves a batch in the background, while workers inject the batch before it.
    fn resolve_ahead(&self, number: u64) {
        let (batch, is_new) = self.open(number);
        if is_new {
            let (plan, indices) = (self.plan, indices(&self.part, number));
            let job = move || {
                batch.get_or_init(|| resolve(plan, indices));
            };
            // If the thread cannot be started, the first worker that needs the batch resolves it.
            let _ = thread::Builder::new().spawn_scoped(self.scope, job);
        }
    }

    /// Returns a batch, and whether it was not in use before.
    fn open(&self, number: u64) -> (Batch, bool) {
        // The map is consistent even if a worker panicked.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Workers may be one batch behind; a batch that is requested later is resolved again.
        open.retain(|open_number, _| *open_number + 2 >= number);
        let is_new = !open.contains_key(&number);
        (Arc::clone(open.entry(number).or_default()), is_new)
    }
}

/// Resolves the faults of a batch.
fn resolve(plan: &Plan<'_>, indices: Range<u64>) -> Result<Box<[Planned]>, Arc<PlanError>> {
    Ok(plan.faults(indices)?.into())
}

/// The indices of a batch of a part.
fn indices(part: &Range<u64>, number: u64) -> Range<u64> {
    let Range { start, end } = offsets(number);
    let within = |offset| part.start.saturating_add(offset).min(part.end);
    within(start)..within(end)
}

/// Number of the batch that contains the fault at `offset` in a part.
fn batch_number(offset: u64) -> u64 {
    offset.checked_sub(FIRST_BATCH).map_or(0, |rest| 1 + rest / BATCH)
}

/// Offsets in a part of the faults of a batch.
fn offsets(number: u64) -> Range<u64> {
    match number.checked_sub(1) {
        None => 0..FIRST_BATCH,
        Some(before) => {
            let start = FIRST_BATCH + before * BATCH;
            start..start.saturating_add(BATCH)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::campaign::Campaign;
    use crate::golden::profiled;
    use crate::program::prepare::prepare;
    use flipwave_injector::{Allocation, Sampling};
    use std::num::NonZeroUsize;
    use std::path::Path;

    /// Uses a plan that does not fit into memory.
    #[test]
    fn faults_at_any_index_are_resolved_with_few_batches_in_memory() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/campaigns/vector_add.yaml");
        let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
        let survey = profiled(&campaign, &prepared, false, NonZeroUsize::MIN);
        let profile = survey.unwrap_or_else(|error| panic!("{error}")).profile;
        // Ten faults in the last batch, because full batches take long.
        let (count, allocation) = (FIRST_BATCH + (BATCH << 40) + 10, Allocation::Proportional);
        let sampling = Sampling::random(count, allocation);
        let plan = Plan::new(&prepared.workload, &profile, 42, &sampling)
            .unwrap_or_else(|error| panic!("{error}"));
        let one = |index| plan.faults([index]).unwrap_or_else(|error| panic!("{error}")).remove(0);
        thread::scope(|scope| {
            let batches = Batches::new(&plan, 0..count, scope);
            let fault = |index| batches.fault(index).unwrap_or_else(|error| panic!("{error}"));
            for index in [0, count - 10, count - 1, FIRST_BATCH - 1, 1] {
                assert_eq!(fault(index), one(index), "{index}");
                let open = batches.open.lock().unwrap_or_else(PoisonError::into_inner);
                assert!(open.len() <= 3, "{index}");
            }
            assert!(batches.fault(count).is_err(), "index out of range");
            let part = count / 3..count / 3 + 20;
            let batches = Batches::new(&plan, part.clone(), scope);
            for index in [part.end - 1, part.start] {
                assert_eq!(batches.fault(index).ok(), Some(one(index)), "{index}");
            }
            for outside in [part.start - 1, part.end] {
                assert!(batches.fault(outside).is_err(), "{outside}");
            }
        });
    }

    #[test]
    fn every_index_is_in_one_batch() {
        let mut end = 0;
        for batch in 0..5 {
            let offsets = offsets(batch);
            assert_eq!(offsets.start, end);
            end = offsets.end;
            assert_eq!(batch_number(offsets.start), batch);
            assert_eq!(batch_number(offsets.end - 1), batch);
        }
        assert!(offsets(batch_number(u64::MAX)).contains(&(u64::MAX - 1)));
    }
}
