//! Populations and plans of faults, as campaigns draw them.

use flipwave_injector::{
    Allocation, Counting, Fault, Group, Plan, Planned, Profile, Sampling, Selection,
    Stratification, Workload,
};

/// What a fault can strike in instructions of these groups, all of them if there are none.
pub fn profile_of(workload: &Workload, fault: &Fault, groups: &[Group]) -> Profile {
    let selection = Selection { groups: groups.to_vec(), ..Selection::default() };
    let (stratification, counting) = (Stratification::None, Counting::Exact);
    flipwave_injector::profile(workload, fault, &selection, stratification, counting)
        .unwrap_or_else(|error| panic!("{fault}: {error}"))
}

/// That many faults of a profile's population.
pub fn plan_of(workload: &Workload, profile: &Profile, seed: u64, count: u64) -> Vec<Planned> {
    let sampling = Sampling::random(count, Allocation::Proportional);
    Plan::new(workload, profile, seed, &sampling)
        .and_then(|plan| plan.faults(0..count))
        .unwrap_or_else(|error| panic!("{}: {error}", profile.fault()))
}
