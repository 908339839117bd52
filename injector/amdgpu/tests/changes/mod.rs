//! Memory changes between dispatches happen in every run: with each injection method, and in traces.

mod chain;

use crate::common::planned;
use chain::{FIRST, NOTE, THIRD, WORDS, bytes, without, words, workload};
use flipwave_hooks::hook::HookCompiler;
use flipwave_injector::{
    Accelerations, Ending, Fault, FaultModel, FaultTarget, Golden, Gone, Injection, Injector,
    Output, Place, Planned, Site, StruckWorkgroups, TraceEnding, What, When, Workload, inject,
    landmarks, trace,
};
use flipwave_sim::strict::StrictOptions;

use flipwave_injector_amdgpu::{HookInjector, golden_strict};

/// The computation of the kernel.
fn step(input: &[u32], more: &[u32]) -> Vec<u32> {
    let result_at = |at: usize| {
        let first = input[at].wrapping_add(more[at]);
        (0..8).fold(first, |value, _| {
            value.wrapping_mul(0x9e37_79b1).wrapping_add(value >> 7).wrapping_add(input[at ^ 1])
        })
    };
    (0..WORDS).map(result_at).collect()
}

fn faults() -> Vec<Fault> {
    let one_bit = Fault::transient(FaultModel::FlipOneBit);
    [
        FaultTarget::DestinationRegister,
        FaultTarget::Register,
        FaultTarget::GlobalMemory,
        FaultTarget::ProgramCounter,
    ]
    .map(|target| Fault { target, ..one_bit.clone() })
    .into()
}

/// Sites of all kinds.
fn plan(workload: &Workload, count: u64) -> Vec<Planned> {
    faults().iter().flat_map(|fault| planned(workload, fault, 7, count)).collect()
}

/// A site that flips a bit of a word of a buffer at the beginning of a dispatch.
fn struck(workload: &Workload, dispatch: u32, buffer: usize, word: usize) -> Site {
    let first = landmarks(workload).expect("a golden run").expect("an instruction").first;
    let event = format!("dispatch={dispatch} workgroup=5,0,0 wave=0 pc={} occurrence=0", first.pc);
    let site = format!("{event} buffer={buffer} offset={:#x} flip=0x100", 4 * word);
    crate::common::site(workload, &site)
}

fn injector<'a>(
    workload: &'a Workload,
    golden: &'a Golden,
    plan: &[Planned],
    accelerations: Accelerations,
) -> Injector<'a> {
    Injector::new(workload, golden, StruckWorkgroups::of(plan), accelerations).expect("states")
}

fn accelerated(workload: &Workload, golden: &Golden, site: Site) -> Injection {
    let any = planned(workload, &Fault::transient(FaultModel::FlipOneBit), 1, 1).remove(0);
    let planned = [Planned { site, analysis: None, ..any }];
    let injector = injector(workload, golden, &planned, Accelerations::ALL);
    injector.inject(&planned[0]).unwrap_or_else(|error| panic!("{site}: {error}"))
}

fn outputs(ending: &Ending) -> Option<&[Output]> {
    match ending {
        Ending::Completed { outputs, .. } => Some(outputs),
        Ending::Faulted { .. } => None,
    }
}

#[test]
fn every_change_happens_once_in_order() {
    let mut input = words(2, WORDS);
    let overlapping = input[..64].to_vec();
    input[32..96].copy_from_slice(&overlapping);
    let first = step(&input, &input);
    let mut mapped = first.clone();
    mapped[..64].copy_from_slice(&words(1, 64));
    mapped[700] = mapped[700] & !0xff00 | 0x100;
    mapped[701] = mapped[701] & !0xff00_0000 | 0x200_0000;
    mapped[702] = mapped[702] & !0xff | 3;
    let third = step(&mapped, &input);
    let mut mapped = vec![0; WORDS];
    mapped[128..192].copy_from_slice(&words(3, 64));
    let mut out = step(&third, &mapped);
    out[300..302].copy_from_slice(&words(5, 2));
    let mut kept = first[64..].to_vec();
    kept.resize(WORDS, 0);

    let workload = workload();
    let golden = workload.golden().expect("a golden run");
    assert!(
        golden.outputs == [&out, &kept, &words(4, WORDS)].map(|words| Output::from(bytes(words)))
    );
    let (strict, violations) =
        golden_strict(&workload, StrictOptions::default()).expect("a golden run");
    assert!(strict == golden && violations.is_empty());
    // Negative control: each change matters.
    for left_out in 0..12 {
        let incomplete = without(&workload, left_out).golden();
        assert!(
            incomplete.is_err() || incomplete.expect("a run").outputs != golden.outputs,
            "{left_out}"
        );
    }
}

#[test]
fn complete_and_accelerated_runs_agree() {
    let workload = workload();
    let golden = workload.golden().expect("a golden run");
    let plan = plan(&workload, 250);
    let slow = injector(&workload, &golden, &plan, Accelerations::NONE);
    let fast = injector(&workload, &golden, &plan, Accelerations::ALL);
    let mut endings = Vec::new();
    for planned in &plan {
        let [slow, fast] = [&slow, &fast].map(|injector| {
            injector.inject(planned).unwrap_or_else(|error| panic!("{}: {error}", planned.site))
        });
        assert!(slow == fast, "{}\n{slow:?}\n{fast:?}", planned.site);
        endings.push(slow.ending);
    }
    let wrong =
        |ending: &&Ending| outputs(ending).is_some_and(|outputs| *outputs != golden.outputs);
    let faulted = |ending: &&Ending| outputs(ending).is_none();
    let (wrong, faulted) =
        (endings.iter().filter(wrong).count(), endings.iter().filter(faulted).count());
    println!("{} sites, {wrong} with wrong outputs, {faulted} stopped", plan.len());
    assert!(plan.len() == 1000 && wrong > 150 && faulted > 50, "{wrong} {faulted}");
    // Negative control: without one of the changes that can be omitted without an error, faulty runs
    // end differently.
    for left_out in [0, 1, 3, 4, 5, 8, 9, 10, 11] {
        let incomplete = without(&workload, left_out);
        let fast = injector(&incomplete, &golden, &plan, Accelerations::ALL);
        let mut pairs = plan.iter().zip(&endings);
        let differs = pairs.any(|(planned, ending)| {
            fast.inject(planned).map_or(true, |injection| injection.ending != *ending)
        });
        assert!(differs, "{left_out}");
    }
}

#[test]
fn hooks_and_the_embedded_gpu_agree() {
    let workload = workload();
    let limits = workload.golden().expect("a golden run").instruction_limits();
    let compiler = HookCompiler::find().expect("clang");
    let mut hooks = HookInjector::new(&workload, &compiler);
    let mut compared = 0;
    for Planned { site, .. } in plan(&workload, 60) {
        let Ok(hooked) = hooks.inject(&site, &limits) else { continue };
        let embedded = inject(&workload, &site, &limits).expect("an injection");
        assert_eq!(embedded.struck, hooked.struck, "{site}");
        assert!(outputs(&embedded.ending) == outputs(&hooked.ending), "{site}");
        compared += 1;
    }
    assert!(compared > 120, "{compared}");
}

/// Flips a bit of a word.
fn flip(output: &mut Output, word: usize) {
    let mut bytes = output.bytes().into_owned();
    bytes[4 * word + 1] ^= 1;
    *output = Output::from(bytes);
}

/// Checks that all injection methods give these outputs.
fn assert_outputs(workload: &Workload, site: Site, expected: &[Output]) {
    let golden = workload.golden().expect("a golden run");
    let limits = golden.instruction_limits();
    let compiler = HookCompiler::find().expect("clang");
    let hooked = HookInjector::new(workload, &compiler).inject(&site, &limits).expect("a hook");
    let whole = inject(workload, &site, &limits).expect("an injection");
    for injection in [whole, accelerated(workload, &golden, site), hooked] {
        assert!(outputs(&injection.ending).is_some_and(|outputs| outputs == expected), "{site}");
    }
}

#[test]
fn copies_propagate_faults_to_outputs() {
    let workload = workload();
    let golden = workload.golden().expect("a golden run");
    let mut expected = golden.outputs.clone();
    // Word 100 of the first buffer is copied to word 36 of the other.
    flip(&mut expected[1], 36);
    let site = struck(&workload, 1, FIRST, 100);
    assert_outputs(&workload, site, &expected);
    let found = trace(&workload, &site, &golden.instruction_limits()).expect("a trace");
    let TraceEnding::Escaped(wrong) = found.ending else { panic!("{:?}", found.ending) };
    let [wrong] = wrong[..] else { panic!("{wrong:?}") };
    assert_eq!((wrong.output, wrong.bytes, wrong.first), (1, 1, 4 * 36 + 1));
    assert!(found.events.iter().any(|event| matches!(event.what, What::Output { output: 1, .. })));
}

#[test]
fn overwriting_changes_mask_faults() {
    let workload = workload();
    let golden = workload.golden().expect("a golden run");
    let limits = golden.instruction_limits();
    // The host overwrites the first buffer, a copy the second.
    for (dispatch, buffer) in [(0, NOTE), (1, NOTE), (0, THIRD), (1, THIRD)] {
        let site = struck(&workload, dispatch, buffer, 77);
        assert_outputs(&workload, site, &golden.outputs);
        let found = trace(&workload, &site, &limits).expect("a trace");
        assert_eq!(found.ending, TraceEnding::Died, "{site}");
        let last = found.events.last().map(|event| event.what);
        assert_eq!(last, Some(What::Gone(Gone::Changed)), "{site}");
    }
    // Negative control: nothing overwrites the buffer later.
    let mut expected = golden.outputs.clone();
    flip(&mut expected[2], 77);
    assert_outputs(&workload, struck(&workload, 2, NOTE, 77), &expected);
}

/// The host overwrites the values stored by the first workgroup of the first dispatch in the copy that
/// is read, and no output contains them.
#[test]
fn overwritten_wrong_values_are_masked() {
    let workload = workload();
    let golden = workload.golden().expect("a golden run");
    let limits = golden.instruction_limits();
    let fault = Fault::transient(FaultModel::RandomValue);
    let (mut masked, mut wrong) = (0, 0);
    for Planned { site, .. } in planned(&workload, &fault, 3, 1500) {
        let When::At(event) = site.when else { panic!("{site}") };
        if event.dispatch > 0
            || !matches!(site.place, Place::Register(register) if register.is_per_lane())
        {
            continue;
        }
        let injection = inject(&workload, &site, &limits).expect("an injection");
        let Some(faulty_outputs) = outputs(&injection.ending) else { continue };
        if event.workgroup == [0; 3] {
            assert!(*faulty_outputs == golden.outputs, "{site}");
            masked += 1;
        } else {
            wrong += u32::from(*faulty_outputs != golden.outputs);
        }
    }
    assert!(masked > 15 && wrong > 100, "{masked} {wrong}");
}

#[test]
fn traces_end_like_the_runs() {
    let workload = workload();
    let golden = workload.golden().expect("a golden run");
    let limits = golden.instruction_limits();
    let mut escaped = 0;
    for Planned { site, .. } in plan(&workload, 30) {
        let injection = inject(&workload, &site, &limits).expect("an injection");
        let found = trace(&workload, &site, &limits).expect("a trace");
        assert_eq!(found.struck, injection.struck, "{site}");
        let wrong: Vec<(usize, u64)> = match outputs(&injection.ending) {
            None => {
                assert!(matches!(found.ending, TraceEnding::Faulted { .. }), "{site}");
                continue;
            }
            Some(outputs) => (0..)
                .zip(outputs.iter().zip(&golden.outputs))
                .filter_map(|(output, (faulty, golden))| count(output, faulty, golden))
                .collect(),
        };
        let escapes: Vec<(usize, u64)> = match &found.ending {
            TraceEnding::Escaped(all) => {
                all.iter().map(|output| (output.output, output.bytes)).collect()
            }
            TraceEnding::Died | TraceEnding::Contained { .. } => Vec::new(),
            TraceEnding::Faulted { .. } => panic!("{site}"),
        };
        escaped += u32::from(!escapes.is_empty());
        assert_eq!(escapes, wrong, "{site}");
    }
    assert!(escaped > 20, "{escaped}");
}

/// Number of bytes of an output that differ, if any.
fn count(output: usize, faulty: &Output, golden: &Output) -> Option<(usize, u64)> {
    let (faulty, golden) = (faulty.bytes(), golden.bytes());
    let differing = faulty.iter().zip(&*golden).filter(|(faulty, golden)| faulty != golden).count();
    (differing > 0).then_some((output, differing as u64))
}
