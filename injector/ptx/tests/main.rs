//! Comparison of the two injection methods on PTX, inside the simulated GPU and with hooks in rewritten modules:
//! equal struck values, equal ends of the run, and equal numbers of instructions.

mod common;

use common::{GRID, WORDS, planned, site, workload};
use flipwave_arch::{Lane, Pc};
use flipwave_depth::cases;
use flipwave_device::FaultCause;
use flipwave_injector::{
    Action, Duration, Ending, Event, Fault, FaultFunction, FaultModel, FaultTarget, FloatFormat,
    Golden, Injection, InjectionError, Intermittent, Lanes, MeasuredPair, MeasuredValues, Place,
    RelativeError, Results, Scope, Site, When, Workload, inject,
};
use flipwave_injector_amdgpu::read_function;
use flipwave_injector_ptx::{PtxHookInjector, unreached_by_hooks};
use flipwave_ptx::Ptx;
use flipwave_ptx_hooks::PtxHookCompiler;
use flipwave_ptx_sim::PtxGpu;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::sync::Arc;

fn models() -> Vec<FaultModel> {
    vec![
        FaultModel::FlipOneBit,
        FaultModel::FlipRandomBits(2),
        FaultModel::RandomValue,
        FaultModel::ZeroValue,
        FaultModel::StuckAtZero,
        FaultModel::StuckAtOne,
        FaultModel::RelativeError(RelativeError::new(0.25).expect("a number")),
        FaultModel::DrawnValues(Arc::new(measured_values())),
        FaultModel::Function(example("burst.c")),
        FaultModel::Function(example("relative.c")),
    ]
}

/// A fault model of the examples.
fn example(name: &str) -> FaultFunction {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fault_models");
    read_function(&folder.join(name)).expect("a fault model")
}

/// Wrong results for all instructions: numbers and words.
fn measured_values() -> MeasuredValues {
    let pair = |results| MeasuredPair { opcode: None, results, count: 1 };
    let pairs = vec![pair(Results::Numbers([2.0, 5.0])), pair(Results::Words([0x10, 0x101]))];
    let architecture = Ptx::new("sm_80").expect("a target");
    MeasuredValues::new("values.csv", pairs, &architecture).expect("values")
}

fn durations() -> [Duration; 3] {
    let window = NonZeroU64::new(6).expect("six");
    [
        Duration::Transient,
        Duration::Intermittent(Intermittent { window, rate: 1 << 31 }),
        Duration::Permanent(NonZeroU32::new(2).expect("two")),
    ]
}

/// Every supported kind of fault.
fn faults() -> Vec<Fault> {
    let mut all = Vec::new();
    for target in FaultTarget::ALL {
        for model in models() {
            for scope in Scope::ALL {
                for duration in durations() {
                    let fault = Fault { target, model: model.clone(), scope, duration };
                    all.extend(fault.check().is_ok().then_some(fault));
                }
            }
        }
    }
    all
}

/// Comparisons for one target.
#[derive(Default)]
struct Tally {
    compared: u64,
    faulted: u64,
    refused: BTreeMap<String, u64>,
}

fn describe(result: &Result<Injection, InjectionError>) -> String {
    match result {
        Ok(Injection { struck, ending: Ending::Completed { outputs, statistics } }) => {
            let bytes = outputs.iter().flat_map(|output| output.bytes().to_vec());
            let sum: u64 = bytes.map(u64::from).sum();
            format!("{struck:x?}, completed, sum {sum}, {statistics:?}")
        }
        Ok(Injection { struck, ending: Ending::Faulted { dispatch, fault } }) => {
            format!("{struck:x?}, dispatch {dispatch}: {fault}")
        }
        Err(error) => error.to_string(),
    }
}

/// Injects a site with both methods. Returns a description of the differences, if any.
fn compare(
    workload: &Workload,
    golden: &Golden,
    hooks: &mut PtxHookInjector<'_>,
    site: &Site,
    tally: &mut Tally,
) -> Option<String> {
    let limits = golden.instruction_limits();
    let embedded = inject(workload, site, &limits);
    let hooked = hooks.inject(site, &limits);
    match (&embedded, &hooked) {
        (_, Err(InjectionError::Refused { reason, .. })) => {
            let kind = format!("{reason:?}");
            let kind = kind.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
            *tally.refused.entry(kind).or_default() += 1;
            return None;
        }
        (Ok(one), Ok(other)) => {
            tally.compared += 1;
            tally.faulted += u64::from(matches!(one.ending, Ending::Faulted { .. }));
            if is_equal(one, other) {
                return None;
            }
        }
        (Err(InjectionError::NotActivated { .. }), Err(InjectionError::NotActivated { .. })) => {
            return None;
        }
        _ => {}
    }
    Some(format!("{site}\n  {}\n  {}", describe(&embedded), describe(&hooked)))
}

/// Compares everything but the lanes that executed a struck branch.
fn is_equal(one: &Injection, other: &Injection) -> bool {
    let [mut one, mut other] = [one, other].map(Clone::clone);
    for injection in [&mut one, &mut other] {
        if let Ending::Completed { statistics, .. } = &mut injection.ending {
            statistics.iter_mut().for_each(|counts| counts.lane_operations = 0);
        }
    }
    one == other
}

/// Kinds of refusals that are expected.
const KNOWN: [&str; 5] = ["Place", "NoAfter", "Engine", "InactiveLanes", "Backward"];

#[test]
fn methods_agree() {
    let workload = workload();
    let golden = workload.golden().expect("a golden run");
    let compiler = PtxHookCompiler::default();
    let mut hooks = PtxHookInjector::new(&workload, &compiler);
    let mut tallies: BTreeMap<FaultTarget, Tally> = BTreeMap::new();
    let mut differences = Vec::new();
    for (seed, fault) in cases((1..).zip(faults()), 3) {
        let tally = tallies.entry(fault.target).or_default();
        for planned in planned(&workload, &fault, seed, 6) {
            let found = compare(&workload, &golden, &mut hooks, &planned.site, tally);
            differences.extend(found.map(|difference| format!("{fault}: {difference}")));
        }
    }
    for (target, Tally { compared, faulted, refused }) in &tallies {
        println!("  {target:22} {compared:5} compared, {faulted:4} faulted, refused: {refused:?}");
    }
    let all: u64 = tallies.values().map(|tally| tally.compared).sum();
    println!("  {all} in all, {} differ", differences.len());
    let shown: Vec<&str> = differences.iter().take(12).map(String::as_str).collect();
    assert!(differences.is_empty(), "{}", shown.join("\n"));
    for tally in tallies.values() {
        assert!(
            tally.refused.keys().all(|kind| KNOWN.contains(&kind.as_str())),
            "{:?}",
            tally.refused
        );
    }
}
