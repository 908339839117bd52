//! The two fault-free runs of a campaign: the first counts what an observer that sees every
//! instruction counts, the second finds what a plan finds and saves states that change no outcome.

use flipwave_injector::{
    Accelerations, Allocation, Counting, Duration, Ending, Fault, FaultModel, FaultTarget,
    Injection, InjectionError, Injector, Inquiry, KnownMasked, Plan, Profile, Rehearsal, Sampling,
    SavedStates, Scope, Selection, Stratification, Survey, Workload, profile, survey,
};
use flipwave_isa::LaneMask;
use flipwave_tests::{MACHINES, examples, workload};
use std::num::NonZeroU32;

/// What is counted of a workload.
#[derive(Clone)]
struct Case {
    fault: Fault,
    selection: Selection,
    stratification: Stratification,
}

impl Case {
    fn surveyed(&self, workload: &Workload) -> Survey {
        let Case { fault, selection, stratification } = self;
        let (stratification, counting) = (*stratification, Counting::Exact);
        let inquiry = Inquiry {
            fault,
            selection,
            stratification,
            counting,
            known_masked: KnownMasked::Sampled,
            touched: true,
        };
        let (survey, _) = survey(workload, &inquiry);
        survey.unwrap_or_else(|error| panic!("{fault}: {error}"))
    }

    fn observed(&self, workload: &Workload) -> Profile {
        let Case { fault, selection, stratification } = self;
        profile(workload, fault, selection, *stratification, Counting::Exact)
            .unwrap_or_else(|error| panic!("{fault}: {error}"))
    }
}

/// Faults of each target and scope, and parts of programs.
fn cases() -> Vec<Case> {
    let one_bit = Fault::transient(FaultModel::FlipOneBit);
    let everything = Case {
        fault: one_bit.clone(),
        selection: Selection::default(),
        stratification: Stratification::None,
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
fn what_is_counted_by_wave_is_what_an_observer_counts() {
    let mut compared = 0;
    for file in examples() {
        let workload = workload(MACHINES[0], &file, &["-O3"]);
        let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
        let mut profiles = Vec::new();
        for case in cases() {
            let survey = case.surveyed(&workload);
            let what = format!("{}: {}, {}", file.display(), case.fault, case.selection);
            assert!(survey.golden == golden, "{what}");
            assert!(survey.profile == case.observed(&workload), "{what}");
            profiles.push(survey.profile);
            compared += 1;
        }
        // The negative control: cases are counted differently.
        assert!(profiles.iter().filter(|own| **own == profiles[0]).count() == 1);
    }
    assert!(compared > 100, "{compared} compared");
}

/// How an injection ended: where an endless run is stopped depends on how it is executed.
fn ending(injection: Result<Injection, InjectionError>) -> Result<Injection, String> {
    let mut injection = injection.map_err(|error| error.to_string())?;
    if let Ending::Faulted { fault, .. } = &mut injection.ending
        && fault.cause.is_hang()
    {
        injection.ending = Ending::Completed { outputs: Vec::new(), statistics: Vec::new() };
    }
    Ok(injection)
}

/// The second run finds what a plan finds, and its states change no outcome, however few may be kept.
#[test]
fn states_that_a_second_run_saves_change_no_outcome() {
    let (mut injected, mut kept, mut few) = (0, 0, 0);
    for file in examples() {
        let workload = workload(MACHINES[0], &file, &["-O3"]);
        let case = &cases()[0];
        let sampling = Sampling::random(60, Allocation::Proportional);
        let Survey { golden, profile, .. } = case.surveyed(&workload);
        let plan = Plan::new(&workload, &profile, 3, &sampling);
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let faults = plan.faults(0..60).unwrap_or_else(|error| panic!("{error}"));
        let slow = Injector::with_states(&workload, &golden, None, Accelerations::NONE);
        let expected: Vec<_> = faults.iter().map(|own| ending(slow.inject(own))).collect();
        for most_bytes in [SavedStates::MOST_BYTES, 100_000, 0] {
            let touched = case.surveyed(&workload).touched;
            let again = plan.rehearse(0..60, &golden.statistics, touched, most_bytes);
            let Rehearsal { golden: second, faults: found, states, .. } =
                again.unwrap_or_else(|error| panic!("{error}"));
            assert!(second == golden && found == faults, "{}", file.display());
            let count = states.as_ref().map_or(0, SavedStates::count);
            match most_bytes {
                SavedStates::MOST_BYTES => kept += count,
                0 => assert_eq!(count, 0),
                _ => few += count,
            }
            let accelerations = Accelerations { dead_values: false, ..Accelerations::ALL };
            let fast = Injector::with_states(&workload, &golden, states, accelerations);
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
