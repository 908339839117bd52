//! The faults of a part of a plan, found batch by batch as workers come to them: a part of any length
//! begins as soon as its first batch is found, and has no more than a few in memory.

use flipwave_injector::{Plan, PlanError, Planned};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Scope};

/// Faults of the first batch: few, so that the first row is there soon.
const FIRST: u64 = 1 << 12;

/// Faults of every further batch. Finding them takes one run of the workload, which this many
/// injections outweigh, and their memory is some megabytes.
pub(crate) const BATCH: u64 = 1 << 16;

/// The batches of a part of a plan that are in use.
pub(crate) struct Batches<'scope, 'plan> {
    plan: &'plan Plan<'plan>,
    /// The indices of the part.
    part: Range<u64>,
    /// Where batches are found before anybody comes to them.
    scope: &'scope Scope<'scope, 'plan>,
    open: Mutex<BTreeMap<u64, Batch>>,
}

/// A batch: its faults, once they are found. Whoever comes first finds them; the others wait.
type Batch = Arc<OnceLock<Result<Box<[Planned]>, Arc<PlanError>>>>;

impl<'scope, 'plan> Batches<'scope, 'plan> {
    /// Those of the faults with indices in `part`; none in use yet.
    pub fn new(
        plan: &'plan Plan<'plan>,
        part: Range<u64>,
        scope: &'scope Scope<'scope, 'plan>,
    ) -> Batches<'scope, 'plan> {
        Batches { plan, part, scope, open: Mutex::default() }
    }

    /// The indices of the first batch of a part.
    pub fn first(part: &Range<u64>) -> Range<u64> {
        batch(part, 0)
    }

    /// Has the faults of the first batch, which were found elsewhere.
    pub fn put_first(&self, faults: Vec<Planned>) {
        let (batch, _) = self.open(0);
        // Whoever found them before found the same.
        let _ = batch.set(Ok(faults.into()));
    }

    /// The fault of an index. Indices may be asked for in any order, and are found fast where they
    /// are asked for as they ascend.
    ///
    /// # Errors
    /// [`PlanError`] as of [`Plan::faults`], and of indices outside of the part.
    pub fn fault(&self, index: u64) -> Result<Planned, Arc<PlanError>> {
        let unresolved = || Arc::new(PlanError::Unresolved { index });
        let number = number(index.checked_sub(self.part.start).ok_or_else(unresolved)?);
        let Range { start, end } = batch(&self.part, number);
        let (batch, _) = self.open(number);
        let found = batch.get_or_init(|| find(self.plan, start..end));
        let found = found.as_ref().map_err(Arc::clone)?;
        if index >= start + (end - start) / 2 && end < self.part.end {
            self.look_ahead(number + 1);
        }
        found.get((index - start) as usize).cloned().ok_or_else(unresolved)
    }

    /// Has a batch found while the workers still have faults of the one before it.
    fn look_ahead(&self, number: u64) {
        if let (batch, true) = self.open(number) {
            let (plan, indices) = (self.plan, self::batch(&self.part, number));
            let job = move || {
                batch.get_or_init(|| find(plan, indices));
            };
            // Where the system has no more threads for this process, the first worker there finds it.
            let _ = thread::Builder::new().spawn_scoped(self.scope, job);
        }
    }

    /// A batch, and whether nobody had it in use.
    fn open(&self, number: u64) -> (Batch, bool) {
        // A worker that panicked has left the map whole.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Workers may still be one behind; who is later than that finds the batch again.
        open.retain(|other, _| *other + 2 >= number);
        let is_new = !open.contains_key(&number);
        (Arc::clone(open.entry(number).or_default()), is_new)
    }
}

/// Finds the faults of a batch.
fn find(plan: &Plan<'_>, indices: Range<u64>) -> Result<Box<[Planned]>, Arc<PlanError>> {
    Ok(plan.faults(indices)?.into())
}

/// The indices of a batch of a part.
fn batch(part: &Range<u64>, number: u64) -> Range<u64> {
    let Range { start, end } = range(number);
    let within = |offset| part.start.saturating_add(offset).min(part.end);
    within(start)..within(end)
}

/// The batch of the fault that is this many after the first of a part.
fn number(index: u64) -> u64 {
    index.checked_sub(FIRST).map_or(0, |rest| 1 + rest / BATCH)
}

/// The faults of a batch, counted from the first of a part.
fn range(number: u64) -> Range<u64> {
    match number.checked_sub(1) {
        None => 0..FIRST,
        Some(before) => {
            let start = FIRST + before * BATCH;
            start..start.saturating_add(BATCH)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::campaign::Campaign;
    use crate::golden::surveyed;
    use crate::program::prepare::prepare;
    use flipwave_injector::{Allocation, Sampling};
    use std::num::NonZeroUsize;
    use std::path::Path;

    /// A plan that no memory could hold: its faults are found anywhere in it, are those that the plan
    /// says, and few batches stay.
    #[test]
    fn faults_far_into_a_plan_are_found_without_those_before() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/campaigns/vector_add.yaml");
        let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
        let survey = surveyed(&campaign, &prepared, false, NonZeroUsize::MIN);
        let profile = survey.unwrap_or_else(|error| panic!("{error}")).profile;
        // Ten in the last batch: the others take their time.
        let (count, allocation) = (FIRST + (BATCH << 40) + 10, Allocation::Proportional);
        let sampling = Sampling::random(count, allocation);
        let plan = Plan::new(&prepared.workload, &profile, 42, &sampling)
            .unwrap_or_else(|error| panic!("{error}"));
        let one = |index| plan.faults([index]).unwrap_or_else(|error| panic!("{error}")).remove(0);
        thread::scope(|scope| {
            let batches = Batches::new(&plan, 0..count, scope);
            let fault = |index| batches.fault(index).unwrap_or_else(|error| panic!("{error}"));
            for index in [0, count - 10, count - 1, FIRST - 1, 1] {
                assert_eq!(fault(index), one(index), "{index}");
                let open = batches.open.lock().unwrap_or_else(PoisonError::into_inner);
                assert!(open.len() <= 3, "{index}");
            }
            assert!(batches.fault(count).is_err(), "there is none");
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
    fn every_index_is_in_one_window() {
        let mut end = 0;
        for batch in 0..5 {
            let own = range(batch);
            assert_eq!(own.start, end);
            end = own.end;
            assert_eq!((number(own.start), number(own.end - 1)), (batch, batch));
        }
        assert!(range(number(u64::MAX)).contains(&(u64::MAX - 1)));
    }
}
