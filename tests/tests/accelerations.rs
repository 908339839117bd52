//! Accelerations do not change results: def-use pruning decides faults in dead values without a run, and
//! runs start from a checkpoint near the fault and skip workgroups that it cannot reach.

use flipwave_device::FaultCause;
use flipwave_injector::{
    Accelerations, Duration, Ending, Fault, FaultModel, FaultTarget, Golden, Injection, Injector,
    Intermittent, NextUse, Output, Planned, Scope, SiteAnalysis, StruckWorkgroups, Workload,
};
use flipwave_tests::{MACHINES, example, examples, flipwave, plan_of, profile_of, workload};
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

/// Faults of every kind that the embedded GPU injects.
fn faults() -> Vec<Fault> {
    let one_bit = Fault::transient(FaultModel::FlipOneBit);
    let targets = FaultTarget::ALL.map(|target| Fault { target, ..one_bit.clone() });
    let scopes = [Scope::ActiveLanes, Scope::Wave, Scope::Workgroup]
        .map(|scope| Fault { scope, ..one_bit.clone() });
    let window = NonZeroU64::new(20).expect("a window");
    let intermittent = Duration::Intermittent(Intermittent { window, rate: 1 << 31 });
    let permanent = Duration::Permanent(NonZeroU32::new(8).expect("units"));
    let durations = [intermittent, permanent].map(|duration| Fault { duration, ..one_bit.clone() });
    targets.into_iter().chain(scopes).chain(durations).collect()
}

/// The injection without the position of a hang, because the position at the watchdog's limit depends on
/// the order of workgroups.
fn result(injection: Injection) -> Injection {
    let ending = match injection.ending {
        Ending::Faulted { dispatch, mut fault } => {
            if fault.cause.is_hang() {
                fault.cause = FaultCause::Watchdog { executed: 0 };
                fault.place.pc.0 = 0;
                fault.place.wave.wave = 0;
            }
            Ending::Faulted { dispatch, fault }
        }
        completed => completed,
    };
    Injection { ending, ..injection }
}

/// Asserts that the injections of a plan are equal with and without accelerations.
fn compare(workload: &Workload, plan: &[Planned], what: &str) {
    let golden = workload.golden().unwrap_or_else(|error| panic!("{what}: {error}"));
    let injector = |accelerations| {
        Injector::new(workload, &golden, StruckWorkgroups::of(plan), accelerations)
            .unwrap_or_else(|error| panic!("{what}: {error}"))
    };
    let (slow, fast) = (injector(Accelerations::NONE), injector(Accelerations::ALL));
    for planned in plan {
        let inject = |injector: &Injector<'_>| {
            let injection = injector.inject(planned);
            injection.map(result).map_err(|error| error.to_string())
        };
        let (expected, found) = (inject(&slow), inject(&fast));
        assert!(expected == found, "{what}: {}\n{expected:?}\n{found:?}", planned.site);
    }
}

/// All kinds of faults in all examples.
#[test]
fn accelerated_injections_agree_with_complete_runs() {
    let files = examples();
    let compare_all = |file: &PathBuf| {
        let workload = workload(MACHINES[0], file, &["-O3"]);
        let mut compared = Vec::new();
        for fault in faults() {
            let profile = profile_of(&workload, &fault, &[]);
            if profile.fault_space.sites == 0 {
                continue;
            }
            let plan = plan_of(&workload, &profile, 11, 41);
            compare(&workload, &plan, &format!("{}: {fault}", file.display()));
            compared.push((fault.to_string(), plan.len()));
        }
        compared
    };
    let mut compared: BTreeMap<String, usize> = BTreeMap::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            files.iter().map(|file| scope.spawn(move || compare_all(file))).collect();
        for (fault, count) in
            workers.into_iter().flat_map(|worker| worker.join().expect("agreement"))
        {
            *compared.entry(fault).or_default() += count;
        }
    });
    println!("{compared:#?}");
    let all: usize = compared.values().sum();
    assert!(all >= 5000, "{all} faults in {compared:?}");
    // No example uses scratch or matrix instructions.
    assert_eq!(compared.len(), faults().len() - 4, "{compared:?}");
}

/// Byte that replaces the outputs of the golden run.
const MARK: u8 = 0xa5;

/// A run that returns to the state of the golden run ends early with the outputs of the golden run. The
/// test marks these outputs to recognise such runs.
#[test]
fn runs_that_converge_with_the_golden_run_end_early() {
    let (mut with, mut without) = (0, 0);
    for file in examples() {
        let workload = workload(MACHINES[0], &file, &["-O3"]);
        let fault = Fault::transient(FaultModel::FlipOneBit);
        let profile = profile_of(&workload, &fault, &[]);
        let plan = plan_of(&workload, &profile, 7, 60);
        let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
        let mut marked = golden.clone();
        marked.outputs.iter_mut().for_each(|output| *output = vec![MARK; output.len()].into());
        let all = Accelerations { dead_values: false, ..Accelerations::ALL };
        let injector = |accelerations| {
            Injector::new(&workload, &marked, StruckWorkgroups::of(&plan), accelerations)
                .unwrap_or_else(|error| panic!("{error}"))
        };
        let converging = injector(all);
        let running = injector(Accelerations { convergence: false, ..all });
        let whole = Injector::with_checkpoints(&workload, &golden, None, Accelerations::NONE);
        for planned in &plan {
            let inject = |injector: &Injector<'_>| {
                let injection = injector.inject(planned).map(result);
                injection.unwrap_or_else(|error| panic!("{}: {error}", planned.site)).ending
            };
            let is_marked = |ending: &Ending| match ending {
                Ending::Completed { outputs, .. } => *outputs == marked.outputs,
                Ending::Faulted { .. } => false,
            };
            let (ending, expected) = (inject(&converging), inject(&whole));
            without += u64::from(is_marked(&inject(&running)));
            if is_marked(&ending) {
                with += 1;
                let Golden { outputs, .. } = golden.clone();
                let Ending::Completed { statistics, .. } = ending else { continue };
                let right = Ending::Completed { outputs, statistics };
                assert!(right == expected, "{}", planned.site);
            } else {
                assert!(unmarked(ending, &golden) == expected, "{}", planned.site);
            }
        }
    }
    println!("{with} runs ended early, {without} of them without a change in memory");
    assert!(with > without, "{with} with convergence, {without} without");
}

/// Replaces the marked blocks of a run's outputs with those of the golden run.
fn unmarked(ending: Ending, golden: &Golden) -> Ending {
    let Ending::Completed { outputs, statistics } = ending else { return ending };
    let unmarked = |(output, golden): (&Output, &Output)| {
        let (mut bytes, golden) = (output.bytes().into_owned(), golden.bytes());
        for (block, golden) in bytes.chunks_mut(Output::BLOCK).zip(golden.chunks(Output::BLOCK)) {
            if block.iter().all(|byte| *byte == MARK) {
                block.copy_from_slice(golden);
            }
        }
        Output::from(bytes)
    };
    let outputs = outputs.iter().zip(&golden.outputs).map(unmarked).collect();
    Ending::Completed { outputs, statistics }
}

/// Faults in dead or overwritten values, which def-use pruning decides without a run, leave outputs and
/// instruction counts unchanged in a real run. The values before the faults also agree.
#[test]
fn faults_in_dead_values_change_nothing() {
    let machine = MACHINES[0];
    let (mut dead, mut overwritten, mut read) = (0, 0, 0);
    for file in examples() {
        let workload = workload(machine, &file, &["-O3"]);
        let target = FaultTarget::Register;
        let fault = Fault { target, ..Fault::transient(FaultModel::RandomValue) };
        let profile = profile_of(&workload, &fault, &[]);
        let plan = plan_of(&workload, &profile, 5, 150);
        let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
        let struck = StruckWorkgroups::of(&plan);
        let slow = Injector::new(&workload, &golden, struck, Accelerations::NONE)
            .unwrap_or_else(|error| panic!("{error}"));
        for planned in plan {
            let injection =
                slow.inject(&planned).unwrap_or_else(|error| panic!("{}: {error}", planned.site));
            let is_same = injection.ending == golden.ending();
            let Some(SiteAnalysis { next_use: Some(next_use), before: Some(before), .. }) =
                planned.analysis
            else {
                panic!("{}: no value", planned.site)
            };
            assert_eq!(injection.struck.before, before, "{}", planned.site);
            match next_use {
                NextUse::Dead => dead += 1,
                NextUse::Overwritten => overwritten += 1,
                NextUse::Read if is_same => {}
                NextUse::Read => read += 1,
            }
            assert!(is_same || next_use == NextUse::Read, "{}: {next_use:?}", planned.site);
        }
    }
    // Negative control: faults in values that are read change results.
    println!("{dead} dead, {overwritten} overwritten, {read} that made a difference");
    assert!(dead > 200 && overwritten > 50 && read > 50, "{dead} {overwritten} {read}");
}

/// Compares the tables of campaigns byte by byte.
#[test]
fn campaigns_have_the_same_results_without_any_acceleration() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, faults) in [
        ("quickstart", "{model: flip_one_bit, count: 60}"),
        ("jacobi", "{model: zero_value, target: register, count: 60}"),
        ("scan", "{model: {flip_random_bits: 3}, target: lds, count: 30}"),
    ] {
        let file = example(name, faults, folder.path());
        let results = |without: &[&str]| {
            let out = folder.path().join("out");
            let mut arguments = vec!["run".as_ref(), file.as_os_str(), "--out".as_ref()];
            arguments.extend([out.as_os_str(), "--force".as_ref()]);
            for way in without {
                arguments.extend(["--without".as_ref(), std::ffi::OsStr::new(way)]);
            }
            flipwave(folder.path(), &arguments, &[]).expect_success();
            std::fs::read(out.join("results.csv")).expect("results.csv")
        };
        let all = results(&[]);
        assert!(all == results(&["dead-values"]), "{name}");
        assert!(all == results(&["saved-states"]), "{name}");
        assert!(all == results(&["convergence"]), "{name}");
        assert!(all == results(&["dead-values", "saved-states", "convergence"]), "{name}");
    }
}
