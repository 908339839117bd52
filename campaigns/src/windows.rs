//! The faults of a plan, found window by window as workers come to them: a campaign of any length
//! begins as soon as its first window is found, and has no more than a few in memory.

use flipwave_injector::{Plan, PlanError, Planned};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Faults of the first window: few, so that the first row is there soon.
const FIRST: u64 = 1 << 12;

/// Faults of every further window. Finding them takes one run of the workload, which so many
/// injections outweigh, and their memory is some megabytes.
pub(crate) const WINDOW: u64 = 1 << 16;

/// The windows of a plan that are in use.
pub(crate) struct Windows<'a> {
    plan: &'a Plan<'a>,
    open: Mutex<BTreeMap<u64, Arc<Window>>>,
}

/// A window: its faults, once they are found. Whoever comes first finds them; the others wait.
type Window = Mutex<Option<Arc<[Planned]>>>;

impl<'a> Windows<'a> {
    /// None in use yet.
    pub fn new(plan: &'a Plan<'a>) -> Windows<'a> {
        Windows { plan, open: Mutex::default() }
    }

    /// The fault of an index. Indices may be asked for in any order, and are found fast where they
    /// are asked for as they ascend.
    ///
    /// # Errors
    /// [`PlanError`] as of [`Plan::faults`].
    pub fn fault(&self, index: u64) -> Result<Planned, PlanError> {
        let number = number(index);
        let Range { start, end } = range(number);
        // The next window is found while the other workers still have faults of this one.
        if index == start + (end - start) / 2 && end < self.plan.count() {
            self.window(number + 1)?;
        }
        let found = self.window(number)?;
        found.get((index - start) as usize).cloned().ok_or(PlanError::Unresolved { index })
    }

    fn window(&self, number: u64) -> Result<Arc<[Planned]>, PlanError> {
        let window = {
            let mut open = lock(&self.open);
            // Workers may still be one behind; who is later than that finds the window again.
            open.retain(|other, _| *other + 2 >= number);
            Arc::clone(open.entry(number).or_default())
        };
        let mut found = lock(&window);
        if let Some(planned) = &*found {
            return Ok(Arc::clone(planned));
        }
        let Range { start, end } = range(number);
        let planned: Arc<[Planned]> = self.plan.faults(start..end.min(self.plan.count()))?.into();
        Ok(Arc::clone(found.insert(planned)))
    }
}

/// The window of an index.
fn number(index: u64) -> u64 {
    index.checked_sub(FIRST).map_or(0, |rest| 1 + rest / WINDOW)
}

/// The indices of a window.
fn range(number: u64) -> Range<u64> {
    match number.checked_sub(1) {
        None => 0..FIRST,
        Some(before) => {
            let start = FIRST + before * WINDOW;
            start..start.saturating_add(WINDOW)
        }
    }
}

/// What a mutex holds: a worker that panicked has left it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Campaign;
    use crate::prepare::prepare;
    use crate::run::count;
    use flipwave_injector::{Allocation, Sampling};
    use std::path::Path;

    /// A plan that no memory could hold: its faults are found anywhere in it, are those that the plan
    /// says, and few windows stay.
    #[test]
    fn faults_far_into_a_plan_are_found_without_those_before() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/vector_add.yaml");
        let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
        let faults = campaign.faults().unwrap_or_else(|error| panic!("{error}"));
        let profile = count(&prepared.workload, faults).unwrap_or_else(|error| panic!("{error}"));
        // Ten in the last window: the others take their time.
        let (count, allocation) = (FIRST + (WINDOW << 40) + 10, Allocation::Proportional);
        let sampling = Sampling::Random { count, allocation };
        let plan = Plan::new(&prepared.workload, &profile, 42, sampling)
            .unwrap_or_else(|error| panic!("{error}"));
        let windows = Windows::new(&plan);
        let fault = |index| windows.fault(index).unwrap_or_else(|error| panic!("{error}"));
        let one = |index| plan.faults([index]).unwrap_or_else(|error| panic!("{error}")).remove(0);
        for index in [0, FIRST - 1, count - 10, count - 1, 1] {
            assert_eq!(fault(index), one(index), "{index}");
            assert!(lock(&windows.open).len() <= 2, "{index}");
        }
        assert!(windows.fault(count).is_err(), "there is none");
    }

    #[test]
    fn every_index_is_in_one_window() {
        let mut end = 0;
        for window in 0..5 {
            let own = range(window);
            assert_eq!(own.start, end);
            end = own.end;
            assert_eq!((number(own.start), number(own.end - 1)), (window, window));
        }
        assert!(range(number(u64::MAX)).contains(&(u64::MAX - 1)));
    }
}
