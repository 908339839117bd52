//! Comparison of the two injection methods, inside the embedded GPU and with hooks in rewritten code:
//! equal struck values and equal ends of the run.

use crate::common::{WORDS, code_object, planned, site};
use flipwave_depth::cases;
use flipwave_device::FaultCause;
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::HookCompiler;
use flipwave_injector::{
    Action, Allocation, Counting, Duration, Ending, Event, Fault, FaultFunction, FaultModel,
    FaultTarget, FloatFormat, Golden, Injection, InjectionError, Intermittent, Lanes, MeasuredPair,
    MeasuredValues, Plan, RelativeError, Results, Sampling, Scope, Selection, Site, Stratification,
    When, Workload, inject, profile,
};
use flipwave_injector_amdgpu::{HookInjector, read_function};
use flipwave_isa::Lane;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::sync::Arc;

/// A processor, and the compiler options for its code.
struct Machine {
    processor: &'static str,
    options: &'static [&'static str],
}

const GFX90A: Machine = Machine { processor: "gfx90a", options: &["-DACC_VGPRS"] };
const GFX942: Machine = Machine { processor: "gfx942", options: &["-DACC_VGPRS"] };
const PRELOADING: [&str; 2] = ["-mllvm", "-amdgpu-kernarg-preload-count=16"];
const GFX90A_PRELOADING: Machine = Machine { processor: "gfx90a", options: &PRELOADING };
const GFX942_PRELOADING: Machine = Machine { processor: "gfx942", options: &PRELOADING };
const GFX1100: Machine = Machine { processor: "gfx1100", options: &[] };

fn workload(machine: &Machine) -> Workload {
    let object = crate::common::compile("paths.cl", machine.processor, machine.options);
    crate::common::paths(&object, machine.processor)
}

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
    let architecture = flipwave_sim::Amdgpu::new("gfx90a".parse().expect("a target"));
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

/// This many sites of a fault; none if it has no site in the workload.
fn sites(workload: &Workload, fault: &Fault, seed: u64, count: u64) -> Vec<Site> {
    planned(workload, fault, seed, count).into_iter().map(|planned| planned.site).collect()
}

/// Removes the parts of a result that may differ between the methods: hooks execute instructions, so
/// instruction counts differ, and an endless loop is stopped at a different point.
fn essence(mut injection: Injection) -> Injection {
    let struck = &mut injection.struck;
    let ending = match injection.ending {
        Ending::Completed { outputs, .. } => Ending::Completed { outputs, statistics: Vec::new() },
        Ending::Faulted { dispatch, mut fault } => {
            if fault.cause.is_hang() {
                fault.cause = FaultCause::Watchdog { executed: 0 };
                struck.words = struck.words.min(1);
                fault.place.pc = flipwave_isa::Pc(0);
                fault.place.wave = flipwave_device::WaveId { workgroup: [0; 3], wave: 0 };
            }
            Ending::Faulted { dispatch, fault }
        }
    };
    Injection { ending, ..injection }
}

/// Comparisons for one target.
#[derive(Default)]
struct Tally {
    compared: u64,
    faulted: u64,
    refused: BTreeMap<String, u64>,
}

/// Injects a site with both methods. Returns a description of the differences, if any.
fn compare(
    workload: &Workload,
    golden: &Golden,
    hooks: &mut HookInjector<'_>,
    site: &Site,
    tally: &mut Tally,
) -> Option<String> {
    let limits = golden.instruction_limits();
    let embedded = inject(workload, site, &limits);
    let hooked = hooks.inject(site, &limits);
    match (embedded, hooked) {
        (_, Err(InjectionError::Refused { reason, .. })) => {
            let kind = format!("{reason:?}");
            let kind = kind.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
            *tally.refused.entry(kind).or_default() += 1;
            None
        }
        (Ok(embedded), Ok(hooked)) => {
            let [embedded, hooked] = [essence(embedded), essence(hooked)];
            tally.compared += 1;
            tally.faulted += u64::from(matches!(embedded.ending, Ending::Faulted { .. }));
            let describe = |injection: &Injection| match &injection.ending {
                Ending::Completed { outputs, .. } => {
                    let words: u64 = outputs
                        .iter()
                        .map(|output| {
                            output.bytes().iter().map(|byte| u64::from(*byte)).sum::<u64>()
                        })
                        .sum();
                    format!("{:x?}, completed, sum {words}", injection.struck)
                }
                Ending::Faulted { dispatch, fault } => {
                    format!("{:x?}, dispatch {dispatch}: {fault}", injection.struck)
                }
            };
            (embedded != hooked)
                .then(|| format!("{site}\n  {}\n  {}", describe(&embedded), describe(&hooked)))
        }
        (Err(InjectionError::NotActivated { .. }), Err(InjectionError::NotActivated { .. })) => {
            None
        }
        (embedded, hooked) => {
            let text = |result: Result<Injection, InjectionError>| match result {
                Ok(injection) => format!("{:x?}", injection.struck),
                Err(error) => error.to_string(),
            };
            Some(format!("{site}\n  {}\n  {}", text(embedded), text(hooked)))
        }
    }
}

/// Kinds of refusals that are expected.
const KNOWN: [&str; 4] = ["Place", "OwnLanes", "NoAfter", "CodeAddress"];

fn assert_methods_agree(machine: &Machine, per_fault: u64) {
    let workload = workload(machine);
    let golden = workload.golden().expect("a golden run");
    let compiler = HookCompiler::find().expect("clang");
    let mut hooks = HookInjector::new(&workload, &compiler);
    let mut tallies: BTreeMap<FaultTarget, Tally> = BTreeMap::new();
    let mut differences = Vec::new();
    for (seed, fault) in cases((1..).zip(faults()), 5) {
        let tally = tallies.entry(fault.target).or_default();
        for site in sites(&workload, &fault, seed, per_fault) {
            let found = compare(&workload, &golden, &mut hooks, &site, tally);
            differences.extend(found.map(|difference| format!("{fault}: {difference}")));
        }
    }
    println!("{}: {} pieces of code", machine.processor, hooks.rewritten());
    for (target, Tally { compared, faulted, refused }) in &tallies {
        println!("  {target:22} {compared:5} compared, {faulted:4} faulted, refused: {refused:?}");
    }
    let all: u64 = tallies.values().map(|tally| tally.compared).sum();
    println!("  {all} in all, {} differ", differences.len());
    let shown: Vec<&str> = differences.iter().take(12).map(String::as_str).collect();
    assert!(differences.is_empty(), "{}", shown.join("\n"));
    for tally in tallies.values() {
        assert!(tally.refused.keys().all(|kind| KNOWN.contains(&kind.as_str())));
    }
}

#[test]
fn methods_agree_on_gfx90a() {
    assert_methods_agree(&GFX90A, 8);
}

#[test]
fn methods_agree_on_gfx942() {
    assert_methods_agree(&GFX942, 5);
}

#[test]
fn methods_agree_with_wave32() {
    assert_methods_agree(&GFX1100, 5);
}

#[test]
fn methods_agree_with_preloaded_arguments() {
    for machine in [GFX90A_PRELOADING, GFX942_PRELOADING] {
        let workload = workload(&machine);
        let object = code_object(&workload, workload.program.dispatches[0].module).expect("code");
        assert!(object.kernels().iter().all(|kernel| kernel.start().0 == kernel.entry().0 + 256));
        assert_methods_agree(&machine, 2);
    }
}

/// Negative control of the comparison: one execution later is a different fault.
#[test]
fn comparison_detects_fault_one_execution_late() {
    let workload = workload(&GFX90A);
    let golden = workload.golden().expect("a golden run");
    let compiler = HookCompiler::find().expect("clang");
    let mut hooks = HookInjector::new(&workload, &compiler);
    let limits = golden.instruction_limits();
    let fault = Fault::transient(FaultModel::FlipOneBit);
    let (mut noticed, mut tried) = (0, 0);
    for site in sites(&workload, &fault, 1, 60) {
        let When::At(event) = site.when else { continue };
        let late = Event { occurrence: event.occurrence + 1, ..event };
        let late = Site { when: When::At(late), ..site };
        let embedded = inject(&workload, &site, &limits).map(essence);
        let hooked = hooks.inject(&late, &limits).map(essence);
        tried += 1;
        noticed += match (embedded, hooked) {
            (Ok(embedded), Ok(hooked)) => u32::from(embedded != hooked),
            (Ok(_), Err(InjectionError::NotActivated { .. })) => 1,
            (embedded, hooked) => panic!("{site}: {embedded:?}, {hooked:?}"),
        };
    }
    // Faults in a value that is not read any more are equal for all executions.
    assert!(tried == 60 && noticed > 40, "{noticed} of {tried}");
}

/// Numbers that break arithmetic, in every format: zeros, denormals, the largest numbers, infinities
/// and NaN, of both signs, and their neighbours.
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
    let mut workload = workload(&GFX90A);
    let words: Vec<u8> =
        numbers().into_iter().cycle().take(WORDS).flat_map(u32::to_le_bytes).collect();
    workload.device.write(workload.program.buffers[0].address, &words).expect("the buffer");
    let golden = workload.golden().expect("a golden run");
    let compiler = HookCompiler::find().expect("clang");
    let mut hooks = HookInjector::new(&workload, &compiler);
    let fault = Fault::transient(FaultModel::FlipOneBit);
    let loads = Selection {
        kernels: vec!["mix".into()],
        opcodes: vec!["global_load_dword".into()],
        ..Selection::default()
    };
    let whole = Stratification::default();
    let profile = profile(&workload, &fault, &loads, whole, Counting::Exact).expect("a load");
    let sampling = Sampling::random(1, Allocation::default());
    let plan = Plan::new(&workload, &profile, 1, &sampling).expect("a plan");
    let site = plan.faults([0]).expect("a fault")[0].site;
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
            for lane in 0..64 {
                let lanes = Some(Lanes::One(Lane(lane)));
                let site = Site { lanes, action: Action::Relative(format, error), ..site };
                let found = compare(&workload, &golden, &mut hooks, &site, &mut tally);
                assert_eq!(found, None);
            }
        }
    }
    assert_eq!(tally.compared, 6 * 7 * 64);
}

/// Sites that hooks do not support are errors with a reason, not outcomes.
#[test]
fn refused_sites_have_no_outcome() {
    let at = |workload: &Workload, name: &str| {
        let object = code_object(workload, workload.program.dispatches[0].module).expect("code");
        let program = Disassembly::read(object).expect("a program");
        let found = program.insts().find(|(_, inst)| inst.operation.name() == name);
        found.map(|(_, inst)| inst.pc).expect("the instruction")
    };
    for (machine, instruction, what, expected) in [
        (&GFX90A, "s_endpgm", "encoding=0 flip=0x1", "hooks cannot strike encoding=0"),
        (&GFX90A, "s_endpgm", "lane=0 scratch=0x0 flip=0x1", "hooks cannot strike scratch=0x0"),
        (&GFX90A, "s_endpgm", "source=s4 flip=0x1", "a hook after `s_endpgm` would not run"),
        (&GFX90A, "s_barrier", "branch=decision flip=0x1", "`s_barrier` is not a branch"),
        (&GFX90A, "s_barrier", "lane=0 register=v250 flip=0x1", "no register v250"),
        (&GFX90A, "s_barrier", "lds=0x8000 flip=0x1", "lds=0x8000 does not exist"),
        (
            &GFX90A,
            "s_barrier",
            "buffer=9 offset=0x0 flip=0x1",
            "buffer=9 offset=0x0 does not exist",
        ),
        (&GFX90A, "s_barrier", "register=s4 relative_f64=0.5", "only in vector registers"),
        (&GFX1100, "s_barrier", "lane=40 register=v0 flip=0x1", "the waves have 32 lanes"),
        (&GFX1100, "s_barrier", "register=exec_hi flip=0x1", "the waves have 32 lanes"),
    ] {
        let workload = workload(machine);
        let limits = workload.golden().expect("a golden run").instruction_limits();
        let compiler = HookCompiler::find().expect("clang");
        let pc = at(&workload, instruction);
        let when = format!("dispatch=0 workgroup=0,0,0 wave=0 pc={pc} occurrence=0");
        let site = site(&workload, &format!("{when} {what}"));
        let error = HookInjector::new(&workload, &compiler).inject(&site, &limits);
        let error = error.map(essence).expect_err(what).to_string();
        assert!(error.contains(expected), "{site}: {error}");
    }
}

/// The dword after an instruction belongs to the next instruction and is not struck.
#[test]
fn missing_dwords_of_instructions_are_errors() {
    let workload = workload(&GFX90A);
    let limits = workload.golden().expect("a golden run").instruction_limits();
    let object = code_object(&workload, workload.program.dispatches[0].module).expect("code");
    let program = Disassembly::read(object).expect("a program");
    let with = |size: u8| {
        let found = program.insts().find(|(_, inst)| inst.size == size);
        found.map(|(_, inst)| inst.pc).expect("an instruction of that size")
    };
    let inject = |pc, word: u32| {
        let when = format!("dispatch=0 workgroup=0,0,0 wave=0 pc={pc} occurrence=0");
        // The action changes nothing, so that only the place can be invalid.
        let site = site(&workload, &format!("{when} encoding={word} stuck_at_one=0x0"));
        inject(&workload, &site, &limits).map(essence)
    };
    for dwords in [1, 2] {
        let pc = with(4 * dwords as u8);
        inject(pc, dwords - 1).unwrap_or_else(|error| panic!("the last dword: {error}"));
        for word in [dwords, 7, 255] {
            let error = inject(pc, word).expect_err("no such dword").to_string();
            let expected =
                format!("has {dwords} dword(s); expected `encoding` from 0 to {}", dwords - 1);
            assert!(
                error.contains(&expected) && error.contains(&format!("encoding={word} ")),
                "{error}"
            );
        }
    }
}

/// Neither method reports an unreached site as a masked fault.
#[test]
fn unreached_sites_are_errors_with_both_methods() {
    let workload = workload(&GFX90A);
    let limits = workload.golden().expect("a golden run").instruction_limits();
    let compiler = HookCompiler::find().expect("clang");
    let mut hooks = HookInjector::new(&workload, &compiler);
    let fault = Fault::transient(FaultModel::FlipOneBit);
    let reached = sites(&workload, &fault, 3, 1)[0];
    let When::At(event) = reached.when else { panic!("{reached}") };
    for unreached in [
        Event { occurrence: 1_000_000, ..event },
        Event { workgroup: [0, 9, 0], ..event },
        Event { wave: Some(7), ..event },
        Event { pc: flipwave_isa::Pc(1), ..event },
        Event { dispatch: 1, ..event },
    ] {
        let site = Site { when: When::At(unreached), ..reached };
        let errors = [inject(&workload, &site, &limits), hooks.inject(&site, &limits)];
        for error in errors {
            let error = error.map(essence).expect_err("not reached");
            assert!(matches!(error, InjectionError::NotActivated { .. }), "{site}: {error}");
        }
    }
}
