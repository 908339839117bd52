//! The two golden runs of a campaign. The profiling run counts the same as an observer of every
//! instruction. The resolving run finds the same fault sites as the plan, and its checkpoints change no
//! outcome.

use flipwave_injector::{
    Accelerations, Allocation, Checkpoints, Counting, Draw, Duration, Ending, Fault, FaultModel,
    FaultTarget, Injection, InjectionError, Injector, KnownMasked, MaskedSites, NextUse, Plan,
    PlanError, Planned, Profile, ProfiledRun, ProfilingOptions, RecordedRun, ResolvingLimits,
    ResolvingRun, Sampling, Scope, Selection, Stratification, Workload, profile,
    run_with_profiling,
};
use flipwave_isa::LaneMask;
use flipwave_tests::{MACHINES, examples, workload};
use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

/// Options of one profiling run.
#[derive(Clone)]
struct Case {
    fault: Fault,
    selection: Selection,
    stratification: Stratification,
    draw: Draw,
    known_masked: KnownMasked,
}

impl Case {
    fn profiled(&self, workload: &Workload) -> ProfiledRun {
        self.profiled_with(workload, 1)
    }

    fn profiled_with(&self, workload: &Workload, threads: usize) -> ProfiledRun {
        let Case { fault, selection, stratification, draw, known_masked } = self;
        let (stratification, counting) = (*stratification, Counting::Exact);
        let options = ProfilingOptions {
            fault,
            selection,
            stratification,
            counting,
            draw: *draw,
            known_masked: *known_masked,
            touched: true,
            threads: NonZeroUsize::new(threads).expect("threads"),
        };
        let (run, _) = run_with_profiling(workload, &options);
        run.unwrap_or_else(|error| panic!("{fault}: {error}"))
    }

    fn observed(&self, workload: &Workload) -> Profile {
        let Case { fault, selection, stratification, .. } = self;
        profile(workload, fault, selection, *stratification, Counting::Exact)
            .unwrap_or_else(|error| panic!("{fault}: {error}"))
    }
}

/// Faults of each target and scope, selections of program parts, and stratifications.
fn cases() -> Vec<Case> {
    let one_bit = Fault::transient(FaultModel::FlipOneBit);
    let everything = Case {
        fault: one_bit.clone(),
        selection: Selection::default(),
        stratification: Stratification::None,
        draw: Draw::Bits,
        known_masked: KnownMasked::Sampled,
    };
    let targets = FaultTarget::ALL.map(|target| Fault { target, ..one_bit.clone() });
    let scopes = [Scope::ActiveLanes, Scope::Wave, Scope::Workgroup]
        .map(|scope| Fault { scope, ..one_bit.clone() });
    let units = Duration::Permanent(NonZeroU32::new(8).expect("units"));
    let permanent = Fault { duration: units, ..one_bit };
    let faults = targets.into_iter().chain(scopes).chain([permanent]);
    let mut cases: Vec<Case> = faults.map(|fault| Case { fault, ..everything.clone() }).collect();
    let all = Selection::default();
    let selections = [
        Selection { lanes: Some(LaneMask(0xf0)), ..all.clone() },
        Selection { lanes: Some(LaneMask(1 << 40)), ..all.clone() },
        Selection { waves: Some(0..=0), ..all.clone() },
        Selection { workgroups: vec![[1, 0, 0]], ..all.clone() },
        Selection { occurrences: Some(1..=3), ..all.clone() },
        Selection { window: Some(10..=40), ..all },
    ];
    let selected = |selection| Case { selection, ..everything.clone() };
    cases.extend(selections.map(selected));
    let strata = [Stratification::Kernel, Stratification::Group, Stratification::Opcode];
    cases.extend(strata.map(|stratification| Case { stratification, ..everything.clone() }));
    cases
}

#[test]
fn profiling_counts_agree_with_an_observer() {
    let mut compared = 0;
    for file in examples() {
        let workload = workload(MACHINES[0], &file, &["-O3"]);
        let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
        let mut profiles = Vec::new();
        for case in cases() {
            let run = case.profiled(&workload);
            let what = format!("{}: {}, {}", file.display(), case.fault, case.selection);
            assert!(run.golden == golden, "{what}");
            assert!(run.profile == case.observed(&workload), "{what}");
            profiles.push(run.profile);
            compared += 1;
        }
        // Negative control: the cases have different profiles.
        assert!(profiles.iter().filter(|profile| **profile == profiles[0]).count() == 1);
    }
    assert!(compared > 100, "{compared} compared");
}

/// The number of known-masked sites, counted during profiling, equals the number of sites that def-use
/// pruning finds one by one. The remaining fault space contains each other site exactly once.
#[test]
fn known_masked_sites_are_counted_exactly() {
    let (mut places, mut known) = (0, 0);
    for (machine, file) in MACHINES
        .into_iter()
        .step_by(4)
        .flat_map(|machine| examples().into_iter().map(move |file| (machine, file)))
    {
        let workload = workload(machine, &file, &["-O1"]);
        // A part of each program small enough to enumerate: scalar registers and one lane.
        let selection = Selection {
            workgroups: vec![[0, 0, 0]],
            waves: Some(0..=0),
            lanes: Some(LaneMask(1 << 3)),
            ..Selection::default()
        };
        let sampled = Case {
            fault: Fault::transient(FaultModel::ZeroValue),
            selection,
            stratification: Stratification::Opcode,
            draw: Draw::Bits,
            known_masked: KnownMasked::Sampled,
        };
        let counted = Case { known_masked: KnownMasked::Counted, ..sampled.clone() };
        let faults = |profile: &Profile| {
            Plan::new(&workload, profile, 1, &Sampling::Exhaustive)
                .and_then(|plan| plan.faults(0..plan.count()))
                .unwrap_or_else(|error| panic!("{error}"))
        };
        let all = faults(&sampled.profiled(&workload).profile);
        let profile = counted.profiled(&workload).profile;
        let what = format!("{} on {machine}", file.display());
        let with = |next_use: NextUse| {
            let mut count: BTreeMap<&str, u64> = BTreeMap::new();
            let matching = all.iter().filter(|planned| planned.next_use() == Some(next_use));
            matching.for_each(|planned| *count.entry(planned.opcode).or_default() += 1);
            count
        };
        let sums = |field: fn(MaskedSites) -> u64| {
            let mut count: BTreeMap<&str, u64> = BTreeMap::new();
            for inst in &profile.instructions {
                *count.entry(inst.opcode).or_default() += inst.known.map_or(0, field);
            }
            count.retain(|_, places| *places > 0);
            count
        };
        assert_eq!(sums(|known| known.overwritten), with(NextUse::Overwritten), "{what}");
        assert_eq!(sums(|known| known.dead), with(NextUse::Dead), "{what}");
        let site = |planned: &Planned| {
            (planned.site.to_string(), planned.analysis.map(|planned| planned.time))
        };
        let is_known = |planned: &&Planned| {
            matches!(planned.next_use(), Some(NextUse::Overwritten | NextUse::Dead))
        };
        let left: BTreeSet<_> = all.iter().filter(|planned| !is_known(planned)).map(site).collect();
        let struck: BTreeSet<_> = faults(&profile).iter().map(site).collect();
        assert!(left == struck, "{what}: {} and {}", left.len(), struck.len());
        places += all.len();
        known += all.len() - left.len();
    }
    println!("{known} of {places} places are known to be masked");
    assert!(places > 10_000 && known > 500, "{known} of {places}");
}

/// A program with many independent workgroups, each of which can be executed alone.
fn many_workgroups() -> PathBuf {
    let workloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/throughput/workloads");
    workloads.join("matmul_naive.yaml")
}

/// The injection without the position of a hang, which depends on the method of execution.
fn ending(injection: Result<Injection, InjectionError>) -> Result<Injection, String> {
    let mut injection = injection.map_err(|error| error.to_string())?;
    if let Ending::Faulted { fault, .. } = &mut injection.ending
        && fault.cause.is_hang()
    {
        injection.ending = Ending::Completed { outputs: Vec::new(), statistics: Vec::new() };
    }
    Ok(injection)
}

/// Input of the resolving run, with or without checkpoints between dispatches, which let it execute only
/// the struck parts.
fn recorded(case: &Case, workload: &Workload, has_checkpoints: bool) -> RecordedRun {
    let recorded = case.profiled(workload).recorded.expect("a recording");
    let RecordedRun { touched, checkpoints } = recorded;
    RecordedRun { touched, checkpoints: checkpoints.filter(|_| has_checkpoints) }
}

/// The resolving run finds the sites of the plan, and its checkpoints change no outcome, for any limit
/// of memory, with and without checkpoints between dispatches, and for any number of threads.
#[test]
fn checkpoints_of_the_resolving_run_change_no_outcome() {
    let (mut injected, mut kept, mut few) = (0, 0, 0);
    for file in examples().into_iter().chain([many_workgroups()]) {
        let workload = workload(MACHINES[0], &file, &["-O3"]);
        let case = &cases()[0];
        let sampling = Sampling::random(60, Allocation::Proportional);
        let ProfiledRun { golden, profile, .. } = case.profiled(&workload);
        let plan = Plan::new(&workload, &profile, 3, &sampling);
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let faults = plan.faults(0..60).unwrap_or_else(|error| panic!("{error}"));
        let slow = Injector::with_checkpoints(&workload, &golden, None, Accelerations::NONE);
        let expected: Vec<_> = faults.iter().map(|fault| ending(slow.inject(fault))).collect();
        let most = Checkpoints::MOST_BYTES;
        let variants = [(most, false, 1), (most, true, 1), (100_000, true, 3), (0, true, 2)];
        for (state_bytes, has_checkpoints, threads) in variants {
            let recorded = recorded(case, &workload, has_checkpoints);
            let threads = NonZeroUsize::new(threads).expect("threads");
            let limits = ResolvingLimits { state_bytes, threads };
            let again = plan.resolve(0..60, &golden.statistics, Some(recorded), limits);
            let ResolvingRun { golden: second, faults: found, checkpoints: states } =
                again.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(second == golden && found == faults, "{}", file.display());
            let count = states.as_ref().map_or(0, Checkpoints::count);
            match state_bytes {
                Checkpoints::MOST_BYTES => kept += count,
                0 => assert_eq!(count, 0),
                _ => few += count,
            }
            let accelerations = Accelerations { dead_values: false, ..Accelerations::ALL };
            let fast = Injector::with_checkpoints(&workload, &golden, states, accelerations);
            for (fault, expected) in faults.iter().zip(&expected) {
                assert!(ending(fast.inject(fault)) == *expected, "{}", fault.site);
                injected += 1;
            }
        }
    }
    assert!(
        injected > 1000 && few > 0 && few < kept,
        "{injected} injected, {few} of {kept} states"
    );
}

/// A resolving run that behaves differently from the profiling run is refused. The test passes the
/// footprints of less optimised code.
#[test]
fn resolving_run_that_differs_is_refused() {
    let [workload, less_optimised] =
        ["-O3", "-O1"].map(|level| workload(MACHINES[0], &many_workgroups(), &[level]));
    let case = &cases()[0];
    let ProfiledRun { golden, profile, .. } = case.profiled(&workload);
    let sampling = Sampling::random(20, Allocation::Proportional);
    let plan = Plan::new(&workload, &profile, 3, &sampling);
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let run = |footprints_from: &Workload| {
        let touched = recorded(case, footprints_from, true).touched;
        let recorded = RecordedRun { touched, ..recorded(case, &workload, true) };
        let threads = NonZeroUsize::new(2).expect("threads");
        let limits = ResolvingLimits { state_bytes: Checkpoints::MOST_BYTES, threads };
        plan.resolve(0..20, &golden.statistics, Some(recorded), limits)
    };
    assert!(run(&workload).is_ok());
    let refused = run(&less_optimised).map(|_| ());
    let is_named = matches!(refused, Err(PlanError::NotTheSame { workgroup: Some(_), .. }));
    assert!(is_named, "{refused:?}");
}
