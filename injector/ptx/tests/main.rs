//! Comparison of the two injection methods on PTX, inside the simulated GPU and with hooks in rewritten modules:
//! equal struck values, equal ends of the run, and equal numbers of instructions.

mod common;

use common::{WORDS, planned, site, workload};
use flipwave_arch::{Lane, Pc};
use flipwave_depth::cases;
use flipwave_injector::{
    Action, Duration, Ending, Event, Fault, FaultFunction, FaultModel, FaultTarget, FloatFormat,
    Golden, Injection, InjectionError, Intermittent, Lanes, MeasuredPair, MeasuredValues,
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
    for (seed, fault) in cases((1..).zip(faults()), 9) {
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

/// Sites of a fault.
fn sites(workload: &Workload, fault: &Fault, seed: u64, count: u64) -> Vec<Site> {
    planned(workload, fault, seed, count).into_iter().map(|planned| planned.site).collect()
}

/// Negative control of the comparison: mistakes in when, where and what a fault strikes are noticed.
#[test]
fn comparison_detects_planted_mistakes() {
    let workload = workload();
    let golden = workload.golden().expect("a golden run");
    let compiler = PtxHookCompiler::default();
    let mut hooks = PtxHookInjector::new(&workload, &compiler);
    let limits = golden.instruction_limits();
    let fault = Fault::transient(FaultModel::FlipOneBit);
    type Mistake = fn(Site, Event) -> Site;
    let mistakes: [(&str, Mistake); 4] = [
        ("one execution late", |site, event| {
            let late = Event { occurrence: event.occurrence + 1, ..event };
            Site { when: When::At(late), ..site }
        }),
        ("another workgroup", |site, event| {
            let [x, y, z] = event.workgroup;
            let other = Event { workgroup: [1 - x, y, z], ..event };
            Site { when: When::At(other), ..site }
        }),
        ("another lane", |site, _| {
            let Some(Lanes::One(lane)) = site.lanes else { return site };
            Site { lanes: Some(Lanes::One(Lane(lane.0 ^ 1))), ..site }
        }),
        ("another bit", |site, _| {
            let Action::Flip(mask) = site.action else { return site };
            let bits = site.place.bits();
            let other = if mask.rotate_left(1) >> (bits - 1) > 1 { 1 } else { mask.rotate_left(1) };
            Site { action: Action::Flip(if bits == 1 { mask } else { other }), ..site }
        }),
    ];
    for (name, mistake) in mistakes {
        let (mut noticed, mut tried) = (0, 0);
        for site in sites(&workload, &fault, 1, 40) {
            let When::At(event) = site.when else { continue };
            let wrong = mistake(site, event);
            if wrong == site {
                continue;
            }
            tried += 1;
            let embedded = inject(&workload, &site, &limits).expect("struck");
            noticed += match hooks.inject(&wrong, &limits) {
                Ok(hooked) => u32::from(!is_equal(&embedded, &hooked)),
                Err(InjectionError::NotActivated { .. } | InjectionError::Refused { .. }) => 1,
                Err(error) => panic!("{wrong}: {error}"),
            };
        }
        println!("{name}: {noticed} of {tried}");
        // Faults in a value that is not read any more are equal in many places.
        assert!(tried > 20 && 3 * noticed > 2 * tried, "{name}: {noticed} of {tried}");
    }
}

/// Numbers that break arithmetic, in every format: zeros, denormals, the largest numbers, infinities and NaN, of both
/// signs, and their neighbours.
fn numbers() -> Vec<u32> {
    let halves = [0u32, 1, 0x3ff, 0x400, 0x3c00, 0x7bff, 0x7c00, 0x7e00, 0x7f7f, 0x7f80, 0x7fc0];
    let singles = [0u32, 1, 0x7f_ffff, 0x80_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000];
    let both = |half: u32| half | (half ^ 0x8001) << 16;
    let words = halves.into_iter().map(both).chain(singles);
    let near = |word: u32| [word, word.wrapping_add(1), word ^ 0x8000_0000, word.wrapping_sub(1)];
    words.flat_map(near).collect()
}

#[test]
fn relative_errors_are_bit_identical_in_all_formats() {
    let mut workload = workload();
    let words: Vec<u8> =
        numbers().into_iter().cycle().take(WORDS).flat_map(u32::to_le_bytes).collect();
    workload.device.write(workload.program.buffers[0].address, &words).expect("the buffer");
    let golden = workload.golden().expect("a golden run");
    let compiler = PtxHookCompiler::default();
    let mut hooks = PtxHookInjector::new(&workload, &compiler);
    let load = instruction(&workload, "ld.global");
    let at = format!("dispatch=0 workgroup=0,0,0 wave=0 pc={} occurrence=0", load.pc);
    let word = load.accesses().destinations[0];
    let site = site(&workload, &format!("{at} lane=0 register={word} flip=0x1"));
    let mut tally = Tally::default();
    for format in [
        FloatFormat::F16,
        FloatFormat::F16High,
        FloatFormat::Bf16,
        FloatFormat::Bf16High,
        FloatFormat::F32,
        FloatFormat::F64,
    ] {
        for error in [0.25, -1.0, -2.5, 1e-3, 0.000_488_281_250_000_888_2, 1e300, 1e-300] {
            let error = RelativeError::new(error).expect("a number");
            for lane in (0..32).step_by(3) {
                let lanes = Some(Lanes::One(Lane(lane)));
                let site = Site { lanes, action: Action::Relative(format, error), ..site };
                let found = compare(&workload, &golden, &mut hooks, &site, &mut tally);
                assert_eq!(found, None);
            }
        }
    }
    assert_eq!(tally.compared, 6 * 7 * 11);
}

/// The first instruction whose text begins with `text`.
fn instruction(workload: &Workload, text: &str) -> flipwave_ptx::Inst {
    let gpu = workload.device.downcast::<PtxGpu>().expect("a GPU");
    let program = gpu.program(workload.program.dispatches[0].module).expect("code");
    let mut all = program.code.instructions.iter();
    all.find(|inst| inst.text().starts_with(text)).expect(text).clone()
}

/// Sites that hooks do not support are errors with a reason, not outcomes.
#[test]
fn refused_sites_have_no_outcome() {
    let workload = workload();
    let limits = workload.golden().expect("a golden run").instruction_limits();
    let compiler = PtxHookCompiler::default();
    let mut hooks = PtxHookInjector::new(&workload, &compiler);
    let other = instruction(&workload, "st.local").accesses().values[0];
    for (text, what, expected) in [
        ("bar.", "program_counter=0 flip=0x10", "hooks cannot strike program_counter=0"),
        ("bar.", "branch=decision flip=0x1", "is not a conditional branch"),
        ("bar.", "lane=0 register=%w9999 flip=0x1", "%w9999 is no register of function `mix`"),
        ("bar.", &format!("lane=0 register={other} flip=0x1"), "of function `mix`"),
        ("bar.", "lds=0x8000 flip=0x1", "lds=0x8000 does not exist"),
        ("bar.", "buffer=9 offset=0x0 flip=0x1", "buffer=9 offset=0x0 does not exist"),
        ("bar.", "lane=40 register=%w0 flip=0x1", "the waves have 32 lanes"),
        ("call", "lane=0 scratch=0x0 flip=0x1", "right after `call.uni"),
        ("st.shared", "lane=0 scratch=0x8000 flip=0x1", "scratch=0x8000 does not exist"),
    ] {
        let pc = instruction(&workload, text).pc;
        let when = format!("dispatch=0 workgroup=0,0,0 wave=0 pc={pc} occurrence=0");
        let site = site(&workload, &format!("{when} {what}"));
        let error = hooks.inject(&site, &limits).map(|found| found.struck);
        let error = error.expect_err(what).to_string();
        assert!(error.contains(expected), "{site}: {error}");
    }
}

/// Sites of a plan that knows what hooks reach are not refused because of the place.
#[test]
fn plans_leave_out_what_hooks_cannot_reach() {
    let workload = workload();
    let limits = workload.golden().expect("a golden run").instruction_limits();
    let compiler = PtxHookCompiler::default();
    let mut hooks = PtxHookInjector::new(&workload, &compiler);
    for target in [FaultTarget::Register, FaultTarget::Branch, FaultTarget::SourceOperand] {
        let fault = Fault { target, ..Fault::transient(FaultModel::FlipOneBit) };
        let all = flipwave_injector::Selection::default();
        let unreached = unreached_by_hooks(&workload, &fault, &all).expect("code");
        let selection = flipwave_injector::Selection { unreached, ..all };
        for planned in common::planned_in(&workload, &fault, &selection, 7, 60) {
            let injected = hooks.inject(&planned.site, &limits);
            injected.unwrap_or_else(|error| panic!("{}: {error}", planned.site));
        }
    }
}

/// Neither method reports an unreached site as a masked fault.
#[test]
fn unreached_sites_are_errors_with_both_methods() {
    let workload = workload();
    let limits = workload.golden().expect("a golden run").instruction_limits();
    let compiler = PtxHookCompiler::default();
    let mut hooks = PtxHookInjector::new(&workload, &compiler);
    let fault = Fault::transient(FaultModel::FlipOneBit);
    let reached = sites(&workload, &fault, 3, 1)[0];
    let When::At(event) = reached.when else { panic!("{reached}") };
    for unreached in [
        Event { occurrence: 1_000_000, ..event },
        Event { workgroup: [0, 9, 0], ..event },
        Event { wave: Some(7), ..event },
        Event { pc: Pc(1), ..event },
        Event { dispatch: 1, ..event },
    ] {
        let site = Site { when: When::At(unreached), ..reached };
        for error in [inject(&workload, &site, &limits), hooks.inject(&site, &limits)] {
            let error = error.map(|found| found.struck).expect_err("not reached");
            assert!(matches!(error, InjectionError::NotActivated { .. }), "{site}: {error}");
        }
    }
}
