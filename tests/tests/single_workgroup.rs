//! An independent workgroup behaves the same alone as within its dispatch, and memory footprints of
//! workgroups are exact to the byte.

use flipwave_campaigns::{Campaign, prepare};
use flipwave_device::{Address, ArgumentValue, Completion, Device, Dispatch, Statistics, WaveId};
use flipwave_injector::Workload;
use flipwave_isa::{Lane, Register, Vgpr};
use flipwave_sim::{
    ByteSet, Compiling, EmbeddedGpu, Executed, Execution, FaultDetail, Footprints, Leads, Observer,
    Policy, Progress, Stalls, Unobserved, Watch, WaveState,
};
use flipwave_tests::{MACHINES, TestProgram, assemble, assemble_for, compile, examples, gpu};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Hashes of the instructions that each workgroup executes, in order, with a vector register.
#[derive(Clone, Default)]
struct Traces(BTreeMap<[u32; 3], DefaultHasher>);

impl Observer for Traces {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        let register = state.read(Register::Vgpr(Vgpr(0)), Lane(0));
        let trace = self.0.entry(executed.wave.workgroup).or_default();
        (executed.inst.pc, executed.wave.wave, executed.lanes.0, register).hash(trace);
        Watch::On
    }
}

impl Traces {
    fn of(&self, workgroup: [u32; 3]) -> Option<u64> {
        self.0.get(&workgroup).map(Hasher::finish)
    }
}

/// A complete dispatch, executed with recorded footprints.
struct Whole {
    completion: Completion,
    device: EmbeddedGpu,
    footprints: Footprints,
    traces: Traces,
}

impl Whole {
    fn new(device: &EmbeddedGpu, dispatch: &Dispatch) -> Whole {
        let (mut device, mut traces) = (device.clone(), Traces::default());
        let mut footprints = Footprints::default();
        let mut execution = device.begin(dispatch).expect("a dispatch");
        let completion = loop {
            // Advance in parts, whose footprints accumulate.
            let until = execution.statistics().wave_instructions + 12_345;
            let progress =
                device.advance_recorded(&mut execution, &mut traces, &mut footprints, until);
            if let Progress::Ended(completion) = progress.expect("a dispatch") {
                break completion;
            }
        };
        Whole { completion, device, footprints, traces }
    }

    fn statistics(&self) -> Statistics {
        match &self.completion {
            Completion::Completed(statistics) => *statistics,
            Completion::Faulted(fault) => panic!("{fault}"),
        }
    }
}

fn memory(device: &EmbeddedGpu) -> Vec<(Address, Vec<u8>)> {
    let read = |(address, bytes): (Address, u64)| {
        let mut content = vec![0; bytes as usize];
        device.read(address, &mut content).expect("an allocation");
        (address, content)
    };
    device.allocations().map(read).collect()
}

fn bytes(device: &EmbeddedGpu, set: &ByteSet) -> Vec<Vec<u8>> {
    let read = |(address, bytes): (Address, u64)| {
        let mut content = vec![0; bytes as usize];
        device.read(address, &mut content).expect("what the workgroup wrote");
        content
    };
    set.runs().into_iter().map(read).collect()
}

/// Runs an execution to its end.
fn finish(
    device: &mut EmbeddedGpu,
    execution: &mut Execution,
    observer: &mut dyn Observer,
) -> Completion {
    match device.advance(execution, observer, u64::MAX).expect("a dispatch") {
        Progress::Ended(completion) => completion,
        Progress::Paused => panic!("paused without a limit"),
    }
}

/// Runs a workgroup alone and returns the first difference from its behaviour in the dispatch. `traces`
/// holds the instructions executed before. Returns `None` for a workgroup that has ended.
fn difference(
    whole: &Whole,
    mut device: EmbeddedGpu,
    execution: &Execution,
    mut traces: Traces,
    workgroup: [u32; 3],
) -> Option<&'static str> {
    let footprint = whole.footprints.get(workgroup).expect("a workgroup of the dispatch");
    let mut alone = execution.alone(workgroup, footprint.slot)?;
    let before = memory(&device);
    let completion = finish(&mut device, &mut alone, &mut traces);
    if completion != Completion::Completed(footprint.statistics) {
        return Some("counters");
    }
    if traces.of(workgroup) != whole.traces.of(workgroup) {
        return Some("executed instructions");
    }
    if bytes(&device, &footprint.written) != bytes(&whole.device, &footprint.written) {
        return Some("written bytes");
    }
    // No other bytes may be written.
    let mut written = 0;
    for (address, content) in memory(&device) {
        let old = before.iter().find(|(start, _)| *start == address).expect("no new allocation");
        for (at, (new, old)) in (address.0..).zip(content.iter().zip(&old.1)) {
            let is_in_footprint = footprint.written.contains(Address(at));
            written += u64::from(is_in_footprint);
            if new != old && !is_in_footprint {
                return Some("other written bytes");
            }
        }
    }
    assert_eq!(written, footprint.written.len(), "bytes outside of every allocation");
    None
}

/// Asserts that every workgroup behaves the same alone, from the start and from random points. Returns
/// the number of comparisons.
fn assert_alone(device: &EmbeddedGpu, dispatch: &Dispatch, name: &str) -> usize {
    let whole = Whole::new(device, dispatch);
    assert_eq!(whole.footprints.dependent(), Vec::<[u32; 3]>::new(), "{name}");
    let instructions = whole.statistics().wave_instructions;
    let mut random = ChaCha8Rng::seed_from_u64(instructions);
    let mut points = vec![0; 4];
    points[1..].fill_with(|| random.next_u64() % instructions);
    let mut compared = 0;
    for at in points {
        let (mut device, mut traces) = (device.clone(), Traces::default());
        let mut execution = device.begin(dispatch).expect("a dispatch");
        if at > 0 {
            let progress = device.advance(&mut execution, &mut traces, at).expect("a dispatch");
            assert_eq!(progress, Progress::Paused);
        }
        for (workgroup, footprint) in whole.footprints.iter() {
            if execution.alone(workgroup, footprint.slot).is_none() {
                continue;
            }
            let found = difference(&whole, device.clone(), &execution, traces.clone(), workgroup);
            assert_eq!(found, None, "{name}: {workgroup:?} from {at} of {instructions}");
            compared += 1;
        }
    }
    compared
}

/// Short turns: many workgroups run at once, with their waves at arbitrary points.
const TAKES_TURNS: Policy = Policy {
    private_bytes: 0,
    wave_turn: 17,
    first_turn: Some(5),
    leads: Leads { write: 3, read: 11 },
    workgroup_turn: 2,
    resident_workgroups: 0,
    stalls: Stalls::Ignore,
    fault_detail: FaultDetail::Cause,
    compiling: Compiling::WhenHot,
};

/// The dispatches of a workload, each with the device before it.
fn dispatches(workload: &Workload) -> Vec<(EmbeddedGpu, Dispatch)> {
    let mut device = gpu(&workload.device).clone();
    let each = workload.program.dispatches.iter().map(|dispatch| {
        let before = device.clone();
        device.dispatch(dispatch).expect("a dispatch");
        (before, dispatch.clone())
    });
    each.collect()
}

fn example(name: &str) -> Workload {
    let files = examples();
    let file = files.iter().find(|file| file.ends_with(format!("{name}.yaml"))).expect(name);
    let campaign = Campaign::read(file).unwrap_or_else(|error| panic!("{error}"));
    prepare(&campaign).unwrap_or_else(|error| panic!("{error}")).workload
}

#[test]
fn single_workgroup_behaves_as_within_its_dispatch() {
    for name in ["matmul", "vector_add", "stencil", "saxpy"] {
        for (mut device, dispatch) in dispatches(&example(name)) {
            for policy in [Policy::default(), TAKES_TURNS] {
                device.set_policy(policy);
                let compared = assert_alone(&device, &dispatch, name);
                assert!(compared > 4, "{name}: {compared} comparisons");
            }
        }
    }
}

/// Two waves in each of twenty workgroups, with LDS, barriers, and private memory that several
/// workgroups use in turn.
#[test]
fn single_workgroup_keeps_its_private_memory_and_lds() {
    let mut program = TestProgram::new(&compile("private.cl", &["-O0"]));
    let out = program.output(&[0u32; 20 * 128]);
    program.launch("keeps", [20 * 128, 1, 1], [128, 1, 1], &[out]);
    let workload = program.workload();
    let whole = Whole::new(gpu(&workload.device), &workload.program.dispatches[0]);
    assert!(whole.footprints.iter().all(|(_, footprint)| footprint.private.len() >= 128 * 8 * 4));
    let used: ByteSet = whole.footprints.iter().map(|(_, footprint)| &footprint.private).collect();
    let each: u64 = whole.footprints.iter().map(|(_, footprint)| footprint.private.len()).sum();
    assert!(used.len() < each, "no private memory is reused, so the test is void");
    let mut device = gpu(&workload.device).clone();
    for policy in [Policy::default(), TAKES_TURNS] {
        device.set_policy(policy);
        assert!(assert_alone(&device, &workload.program.dispatches[0], "private.cl") >= 20);
    }
}

#[test]
fn recording_footprints_changes_no_result() {
    let mut workloads: Vec<(String, Workload)> = ["reduction", "scan", "jacobi", "matmul"]
        .map(|name| (name.to_owned(), example(name)))
        .into();
    let mut program = TestProgram::new(&compile("waiting.cl", &["-O0"]));
    let done = program.input(&[0u32; 8]);
    let out = program.output(&[0u32; 8]);
    program.launch("waits_for_workgroup", [8 * 64, 1, 1], [64, 1, 1], &[done, out]);
    workloads.push(("waiting".to_owned(), program.workload()));
    // Lanes access addresses beyond the buffer's last page, with all kinds of addressing. Some words are
    // accessed before the fault.
    for body in [
        "v_lshlrev_b32 v2, 5, v1\n global_store_dwordx4 v2, v[4:7], s[2:3]",
        "v_lshlrev_b32 v2, 5, v1\n global_load_dwordx4 v[4:7], v2, s[2:3] offset:1",
        "v_lshlrev_b32 v2, 5, v1\n global_atomic_add v2, v0, s[2:3]",
        "v_lshlrev_b32 v2, 5, v1\n global_store_short v2, v0, s[2:3] offset:3",
        "global_store_dwordx2 v0, v[0:1], s[2:3]\n global_store_dword v1, v0, s[0:1] offset:4088",
    ] {
        let mut program = TestProgram::new(&assemble(body).code_object);
        let out = program.output(&[0u32; 64]);
        program.launch("planted", [64, 1, 1], [64, 1, 1], &[out]);
        workloads.push((body.to_owned(), program.workload()));
    }
    let mut faults = 0;
    for (name, workload) in &workloads {
        let mut device = gpu(&workload.device).clone();
        for dispatch in &workload.program.dispatches {
            let whole = Whole::new(&device, dispatch);
            let mut traces = Traces::default();
            let completion = device.dispatch_observed(dispatch, &mut traces).expect("a dispatch");
            assert_eq!(whole.completion, completion, "{name}");
            assert!(memory(&whole.device) == memory(&device), "{name}: memory");
            for (workgroup, _) in whole.footprints.iter() {
                assert_eq!(whole.traces.of(workgroup), traces.of(workgroup), "{name}");
            }
            faults += usize::from(matches!(completion, Completion::Faulted(_)));
        }
    }
    assert_eq!(faults, 5);
}

#[test]
fn footprints_are_exact_to_the_byte() {
    let mut program = TestProgram::new(
        &assemble(
            "global_load_ubyte v2, v0, s[2:3] offset:3
             v_cmp_gt_u32 vcc, 8, v0
             s_and_b64 exec, exec, vcc
             global_store_short v1, v2, s[2:3] offset:256
             global_atomic_add v1, v2, s[2:3] offset:512
             s_load_dword s5, s[2:3], 0x400",
        )
        .code_object,
    );
    let out = program.output(&[0u32; 1024]);
    let ArgumentValue::Buffer(Address(buffer)) = out else { panic!("a buffer") };
    program.launch("planted", [64, 1, 1], [64, 1, 1], &[out]);
    let workload = program.workload();
    let whole = Whole::new(gpu(&workload.device), &workload.program.dispatches[0]);
    let footprint = whole.footprints.get([0; 3]).expect("the workgroup");
    let lanes = |offset: u64, bytes| (0..8).map(move |lane| (buffer + offset + 4 * lane, bytes));
    let set = |ranges: Vec<(u64, u64)>| {
        ByteSet::of_runs(ranges.into_iter().map(|(start, bytes)| (Address(start), bytes)))
    };
    assert_eq!(footprint.written, set(lanes(256, 2).chain(lanes(512, 4)).collect()));
    let read =
        set([(buffer + 3, 64), (buffer + 1024, 4)].into_iter().chain(lanes(512, 4)).collect());
    // The kernel arguments are in another allocation.
    let runs = footprint.read.runs();
    let arguments: Vec<_> =
        runs.iter().filter(|(start, _)| !(buffer..buffer + 4096).contains(&start.0)).collect();
    let [(arguments, 8)] = arguments[..] else { panic!("{arguments:?}") };
    let arguments = ByteSet::of_runs([(*arguments, 8)]);
    assert_eq!(footprint.read, [&read, &arguments].into_iter().collect());
    assert!(footprint.private.is_empty());
}

/// Negative control: these workgroups depend on each other.
#[test]
fn workgroups_with_a_common_counter_are_dependent() {
    let mut program = TestProgram::new(&compile("counter.cl", &["-O3"]));
    let next = program.output(&[0u32]);
    let out = program.output(&[0u32; 4]);
    program.launch("tickets", [256, 1, 1], [64, 1, 1], &[next, out]);
    let workload = program.workload();
    let (device, dispatch) = (gpu(&workload.device), &workload.program.dispatches[0]);
    let whole = Whole::new(device, dispatch);
    let all: Vec<[u32; 3]> = (0..4).map(|x| [x, 0, 0]).collect();
    assert_eq!(whole.footprints.dependent(), all);
    let differences: Vec<_> = all
        .iter()
        .map(|workgroup| {
            let mut device = device.clone();
            let execution = device.begin(dispatch).expect("a dispatch");
            difference(&whole, device, &execution, Traces::default(), *workgroup)
        })
        .collect();
    // The first workgroup draws the same ticket, but the counter differs afterwards.
    let executed = Some("executed instructions");
    assert_eq!(differences, [Some("written bytes"), executed, executed, executed]);
}

#[test]
fn single_workgroup_has_a_separate_limit_and_frees_its_memory() {
    let workload = example("matmul");
    let (mut device, dispatch) = (gpu(&workload.device).clone(), &workload.program.dispatches[0]);
    let before: Vec<_> = device.allocations().collect();
    let mut execution = device.begin(dispatch).expect("a dispatch");
    device.advance(&mut execution, &mut Unobserved, 1000).expect("a dispatch");
    let state = (device.clone(), execution.alone([0; 3], 0).expect("a running workgroup"));
    let counted = state.1.statistics().wave_instructions;
    assert_eq!(counted, 1000);
    assert_eq!(execution.alone([0, 0, 1], 0).map(|_| ()), None, "no such workgroup");
    assert_eq!(execution.alone([1, 1, 0], usize::MAX).map(|_| ()), None, "no such place");
    for (limit, ends) in [(counted + 10, false), (u64::MAX, true)] {
        let (mut device, mut alone) = state.clone();
        alone.set_limit(limit);
        let completion = finish(&mut device, &mut alone, &mut Unobserved);
        assert_eq!(matches!(completion, Completion::Completed(_)), ends, "{completion:?}");
        assert_eq!(device.allocations().collect::<Vec<_>>(), before);
        assert_eq!(alone.alone([0; 3], 0).map(|_| ()), None, "it has ended");
    }
    // The original execution is not affected.
    let completion = finish(&mut device, &mut execution, &mut Unobserved);
    assert!(matches!(completion, Completion::Completed(_)));
    assert_eq!(device.allocations().collect::<Vec<_>>(), before);
    // The state of a single workgroup can be extracted again.
    let (mut device, alone) = state;
    let mut again = alone.alone([0; 3], 0).expect("a running workgroup");
    assert!(matches!(finish(&mut device, &mut again, &mut Unobserved), Completion::Completed(_)));
}

/// Footprints of twelve workgroups that execute `instructions` on gfx942.
fn footprints(instructions: &str) -> Footprints {
    let machine = MACHINES.into_iter().find(|machine| machine.target().processor() == "gfx942");
    let kernel = assemble_for(machine.expect("gfx942"), instructions);
    let mut program = TestProgram::new(&kernel.code_object);
    let out = program.output(&[0u32; 64]);
    program.launch("planted", [12 * 64, 1, 1], [64, 1, 1], &[out]);
    let workload = program.workload();
    Whole::new(gpu(&workload.device), &workload.program.dispatches[0]).footprints
}

#[test]
fn reading_uninitialised_private_memory_makes_workgroups_dependent() {
    let load = "scratch_load_dword v2, off, off offset:4";
    let store = "scratch_store_dword off, v0, off offset:4";
    let private = ".set private_bytes, 64";
    let written_first = footprints(&format!("{private}\n{store}\n{load}"));
    assert!(written_first.independent());
    let footprint = written_first.get([3, 0, 0]).expect("a workgroup");
    assert_eq!(
        (footprint.private.len(), footprint.read.len(), footprint.written.len()),
        (256, 8, 0)
    );
    let read_first = footprints(&format!("{private}\n{load}\n{store}"));
    assert_eq!(read_first.dependent().len(), 12);
}

#[test]
fn workgroups_that_use_global_wave_sync_are_dependent() {
    let sync = "s_mov_b32 m0, 0\n v_mov_b32 v2, 1\n ds_gws_init v2 offset:2 gds\n";
    assert_eq!(footprints(sync).dependent().len(), 12);
    assert!(footprints(&format!("s_branch end\n{sync}")).independent());
}
