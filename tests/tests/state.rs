//! Checkpoints: a dispatch restored from any instruction ends in the same state.

use flipwave_campaigns::{Campaign, prepare};
use flipwave_device::{Completion, Device, Dispatch, Statistics, WaveId};
use flipwave_injector::{Buffer, Workload};
use flipwave_isa::{Lane, Register, Vgpr};
use flipwave_sim::{EmbeddedGpu, Executed, Execution, Observer, Progress, Watch, WaveState};
use flipwave_tests::{TestProgram, compile, examples, gpu};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Checkpoints per dispatch.
const POINTS: usize = 6;

/// Hash of all executed instructions, in order, with a vector register.
#[derive(Clone, Default)]
struct Trace(DefaultHasher);

impl Observer for Trace {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        let register = state.read(Register::Vgpr(Vgpr(0)), Lane(0));
        (executed.inst.pc, executed.wave.workgroup, executed.wave.wave, executed.lanes.0, register)
            .hash(&mut self.0);
        Watch::On
    }
}

/// Final state of a run.
#[derive(Debug, PartialEq)]
struct End {
    completion: Completion,
    outputs: Vec<Vec<u8>>,
    trace: u64,
}

/// Runs a dispatch to its end, in steps of a given number of instructions.
fn finish(
    mut device: EmbeddedGpu,
    mut execution: Execution,
    mut trace: Trace,
    outputs: &[Buffer],
    step: u64,
) -> End {
    let completion = loop {
        let until = execution.statistics().wave_instructions.saturating_add(step);
        let progress = device.advance(&mut execution, &mut trace, until).expect("a dispatch");
        if let Progress::Ended(completion) = progress {
            break completion;
        }
    };
    let read = |output: &Buffer| {
        let mut bytes = vec![0; output.bytes];
        device.read(output.address, &mut bytes).expect("an output");
        bytes
    };
    End { completion, outputs: outputs.iter().map(read).collect(), trace: trace.0.finish() }
}

/// Executes the first `until` instructions of a dispatch.
fn part(device: &EmbeddedGpu, dispatch: &Dispatch, until: u64) -> (EmbeddedGpu, Execution, Trace) {
    let (mut device, mut trace) = (device.clone(), Trace::default());
    let mut execution = device.begin(dispatch).expect("a dispatch");
    let progress = device.advance(&mut execution, &mut trace, until).expect("a dispatch");
    assert_eq!(progress, Progress::Paused);
    assert_eq!(execution.statistics().wave_instructions, until);
    (device, execution, trace)
}

fn executed(end: &End) -> Statistics {
    match &end.completion {
        Completion::Completed(statistics) => *statistics,
        Completion::Faulted(fault) => panic!("{fault}"),
    }
}

/// Saves each dispatch of a workload at random instructions, and asserts that the restored dispatch ends
/// in the same state.
fn assert_restorable(workload: &Workload, name: &str, random: &mut ChaCha8Rng) {
    let mut device = gpu(&workload.device).clone();
    for dispatch in &workload.program.dispatches {
        let begun = part(&device, dispatch, 0);
        let whole = finish(begun.0, begun.1, begun.2, &workload.program.outputs, u64::MAX);
        let instructions = executed(&whole).wave_instructions;
        for _ in 0..POINTS {
            let at = random.next_u64() % instructions;
            let (device, execution, trace) = part(&device, dispatch, at);
            let saved = (device.clone(), execution.clone(), trace.clone());
            let original = finish(device, execution, trace, &workload.program.outputs, u64::MAX);
            assert!(original == whole, "{name}: paused at {at} of {instructions}");
            let step = 1 + random.next_u64() % instructions;
            let restored = finish(saved.0, saved.1, saved.2, &workload.program.outputs, step);
            assert!(restored == whole, "{name}: restored at {at} of {instructions}");
        }
        device.dispatch(dispatch).expect("a dispatch");
    }
}

#[test]
fn examples_restored_at_random_instructions_end_equally() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for file in examples() {
        let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
        assert_restorable(&prepared.workload, &file.display().to_string(), &mut random);
    }
}

/// Waves that wait for each other and record the order of execution.
fn order() -> TestProgram {
    let mut program = TestProgram::new(&compile("waiting.cl", &["-O0"]));
    let next = program.input(&[0u32]);
    let places = program.output(&[0u32; 1000]);
    let clocks = program.output(&[0u64; 2]);
    program.launch("sees_order", [128, 1, 1], [128, 1, 1], &[next, places, clocks]);
    let done = program.input(&[0u32; 8]);
    let out = program.output(&[0u32; 8]);
    program.launch("waits_for_workgroup", [8 * 64, 1, 1], [64, 1, 1], &[done, out]);
    program
}

#[test]
fn checkpoints_include_the_schedule() {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    assert_restorable(&order().workload(), "waiting.cl", &mut random);
}

#[test]
fn single_stepped_dispatch_ends_as_an_uninterrupted_one() {
    let workload = order().workload();
    let [first, _] = &workload.program.dispatches[..] else { panic!("two dispatches") };
    let begin = || part(gpu(&workload.device), first, 0);
    let [whole, stepped] = [u64::MAX, 1].map(|step| {
        let (device, execution, trace) = begin();
        finish(device, execution, trace, &workload.program.outputs, step)
    });
    assert!(whole == stepped);
}

#[test]
fn the_watchdog_counts_across_pauses() {
    let mut workload = order().workload();
    let dispatch = &mut workload.program.dispatches[0];
    dispatch.instruction_limit = 1500;
    let (device, execution, trace) = part(gpu(&workload.device), dispatch, 700);
    let end = finish(device, execution, trace, &workload.program.outputs, 300);
    assert!(matches!(end.completion, Completion::Faulted(_)), "{:?}", end.completion);
}

/// Negative control: the comparison detects differences in memory, registers and turns.
#[test]
fn partially_restored_state_is_detected() {
    let workload = order().workload();
    let dispatch = &workload.program.dispatches[0];
    let (device, execution, trace) = part(gpu(&workload.device), dispatch, 2000);
    let earlier = part(gpu(&workload.device), dispatch, 1000);
    let outputs = &workload.program.outputs;
    let whole = finish(device.clone(), execution.clone(), trace.clone(), outputs, u64::MAX);
    let old_memory = finish(earlier.0, execution.clone(), trace.clone(), outputs, u64::MAX);
    assert!(old_memory != whole);
    let old_waves = finish(device.clone(), earlier.1, trace.clone(), outputs, u64::MAX);
    assert!(old_waves != whole);
    let again = finish(device, execution, trace, outputs, u64::MAX);
    assert!(again == whole);
}
