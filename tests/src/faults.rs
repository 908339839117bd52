//! Profiles and fault plans, as campaigns create them.

use flipwave_injector::{
    Allocation, Counting, Fault, Group, Plan, Planned, Profile, Sampling, Selection,
    Stratification, Workload,
};

/// Fault space of a fault in instructions of `groups`, or in all instructions if `groups` is empty.
pub fn profile_of(workload: &Workload, fault: &Fault, groups: &[Group]) -> Profile {
    let selection = Selection { groups: groups.to_vec(), ..Selection::default() };
    let (stratification, counting) = (Stratification::None, Counting::Exact);
    flipwave_injector::profile(workload, fault, &selection, stratification, counting)
        .unwrap_or_else(|error| panic!("{fault}: {error}"))
}

/// Draws `count` faults from a profile.
pub fn plan_of(workload: &Workload, profile: &Profile, seed: u64, count: u64) -> Vec<Planned> {
    let sampling = Sampling::random(count, Allocation::Proportional);
    Plan::new(workload, profile, seed, &sampling)
        .and_then(|plan| plan.faults(0..count))
        .unwrap_or_else(|error| panic!("{}: {error}", profile.fault()))
}
