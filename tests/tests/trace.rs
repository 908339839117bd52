//! Traces of fault propagation: through kernels of a few instructions, with every step worked out by
//! hand, and through examples, where a trace must end as the injection does. Each kernel has its lane
//! in v0, the offset of the lane's dword in v1 and the buffer's address in s[2:3].

use flipwave_analysis::PropagationRow;
use flipwave_campaigns::Campaign;
use flipwave_device::{AccessKind, Address, ArgumentValue, FaultCause};
use flipwave_injector::{
    Ending, Fault, FaultModel, FaultTarget, Gone, Group, Lanes, Place, Site, Spread, Trace,
    TraceEnding, TraceError, TraceEvent, What, Workload, Wrong, WrongOutput, inject, trace,
};
use flipwave_isa::{Lane, Pc, Register};
use flipwave_tests::{
    Assembly, MACHINES, Machine, TestProgram, assemble, emulated_examples, examples_folder,
    flipwave, plan_of, profile_of, workload,
};
use std::time::Duration;

/// An assembled kernel with a buffer of one dword per work-item, and its launch.
struct Planted {
    kernel: Assembly,
    workload: Workload,
    buffer: Address,
}

impl Planted {
    /// Launches one wave.
    fn new(body: &str) -> Planted {
        Planted::with_grid(body, 64, 64)
    }

    fn with_grid(body: &str, grid: u32, workgroup: u32) -> Planted {
        let kernel = assemble(body);
        let mut program = TestProgram::new(&kernel.code_object);
        let argument = program.output(&vec![-1; grid as usize]);
        let ArgumentValue::Buffer(buffer) = argument else { unreachable!("a buffer") };
        program.launch("planted", [grid, 1, 1], [workgroup, 1, 1], &[argument]);
        Planted { kernel, workload: program.workload(), buffer }
    }

    fn site(&self, label: &str, what: &str) -> Site {
        let pc = self.kernel.label(label);
        let site = format!("dispatch=0 workgroup=0,0,0 wave=0 pc={pc} occurrence=0 {what}");
        flipwave_tests::site(&site)
    }

    /// The trace of a fault after the first execution of the instruction at `label`.
    fn trace(&self, label: &str, what: &str) -> Trace {
        followed(&self.workload, &self.site(label, what))
    }

    fn label(&self, name: &str) -> Pc {
        self.kernel.label(name)
    }
}

/// Traces a fault, and asserts that the trace ends as the injection does.
#[track_caller]
fn followed(workload: &Workload, site: &Site) -> Trace {
    let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
    let limits = golden.instruction_limits();
    let injection = inject(workload, site, &limits).unwrap_or_else(|error| panic!("{error}"));
    let trace = trace(workload, site, &limits).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(trace.struck, injection.struck, "{site}");
    match (&trace.ending, &injection.ending) {
        (
            TraceEnding::Faulted { dispatch, fault },
            Ending::Faulted { dispatch: injected_dispatch, fault: injected_fault },
        ) => assert_eq!((dispatch, fault), (injected_dispatch, injected_fault), "{site}"),
        (TraceEnding::Escaped(wrong), Ending::Completed { outputs, .. }) => {
            let wanted: Vec<WrongOutput> = (0..)
                .zip(golden.outputs.iter().zip(outputs))
                .filter_map(|(output, (golden, faulty))| {
                    wrong_output(output, &golden.bytes(), &faulty.bytes())
                })
                .collect();
            assert_eq!(*wrong, wanted, "{site}");
        }
        (TraceEnding::Died | TraceEnding::Contained { .. }, Ending::Completed { outputs, .. }) => {
            assert_eq!(*outputs, golden.outputs, "{site}");
        }
        (ending, wanted) => panic!("{site}: {ending:?}, injected: {wanted:?}"),
    }
    trace
}

fn wrong_output(output: usize, golden: &[u8], faulty: &[u8]) -> Option<WrongOutput> {
    let pairs = golden.iter().zip(faulty).enumerate();
    let mut wrong = pairs.filter(|(_, (golden, faulty))| golden != faulty);
    let (first, (golden, faulty)) = wrong.next()?;
    let (first, bytes) = (first as u64, 1 + wrong.count() as u64);
    Some(WrongOutput { output, bytes, first, golden: *golden, faulty: *faulty })
}

/// Time, program counter and kind of each event.
fn events(trace: &Trace) -> Vec<(u64, Pc, What)> {
    let event = |event: &TraceEvent| (event.step.time, event.step.pc, event.what);
    trace.events.iter().map(event).collect()
}

fn register(name: &str, lane: Option<u8>, golden: u32, faulty: u32) -> Wrong {
    let register: Register = name.parse().unwrap_or_else(|error| panic!("{error}"));
    Wrong::Register { register: register.into(), lane: lane.map(Lane), golden, faulty }
}

/// A spread in registers only: numbers of words, registers, lanes, waves and workgroups that differ.
fn registers(words: u64, registers: u64, lanes: u64, waves: u64, workgroups: u64) -> Spread {
    Spread { words, registers, lanes, waves, workgroups, ..Spread::default() }
}

const STORE_LANE: &str = "store: global_store_dword v1, v0, s[2:3]\n";

#[test]
fn overwritten_value_dies_at_the_overwrite() {
    let body = format!("value: v_mov_b32 v5, 7\ns_nop 0\nover: v_mov_b32 v5, 8\n{STORE_LANE}");
    let planted = Planted::new(&body);
    let trace = planted.trace("value", "lane=13 register=v5 flip=0x80000000");
    let fault = What::Fault(Some(register("v5", Some(13), 7, 0x8000_0007)));
    assert_eq!(
        events(&trace),
        [
            (0, planted.label("value"), fault),
            (2, planted.label("over"), What::Gone(Gone::Overwritten)),
        ]
    );
    assert_eq!(trace.ending, TraceEnding::Died);
    assert_eq!((trace.peak, trace.masked), (registers(1, 1, 1, 1, 1), 0));
    let spread: Vec<(u64, u64)> =
        trace.samples.iter().map(|sample| (sample.step.time, sample.spread.words)).collect();
    assert_eq!(spread, [(0, 1), (2, 0)]);
}

#[test]
fn value_masked_by_logic_is_not_reported_as_overwritten() {
    let body = format!("value: v_mov_b32 v5, 7\nlogic: v_and_b32 v5, 0, v5\n{STORE_LANE}");
    let planted = Planted::new(&body);
    let trace = planted.trace("value", "lane=13 register=v5 flip=0x80000000");
    assert_eq!(
        events(&trace)[1..],
        [
            (1, planted.label("logic"), What::Masked),
            (1, planted.label("logic"), What::Gone(Gone::Masked)),
        ]
    );
    assert_eq!((trace.masked, &trace.ending), (1, &TraceEnding::Died));
}

#[test]
fn unread_value_dies_at_the_end_of_its_wave() {
    let planted = Planted::new(&format!("dead: v_mov_b32 v5, 7\n{STORE_LANE}"));
    let trace = planted.trace("dead", "lanes=all register=v5 flip=0x1");
    assert_eq!(trace.peak, registers(64, 1, 64, 1, 1));
    assert_eq!(events(&trace)[1..], [(2, planted.label("end"), What::Gone(Gone::Ended))]);
}

/// Negative control of all other tests.
#[test]
fn fault_that_sets_the_existing_value_has_no_trace_events() {
    let planted = Planted::new(&format!("value: v_mov_b32 v0, 7\n{STORE_LANE}"));
    let trace = planted.trace("value", "lanes=all register=v0 set=0x7");
    assert_eq!(events(&trace), [(0, planted.label("value"), What::Fault(None))]);
    assert_eq!((trace.peak, &trace.ending), (Spread::default(), &TraceEnding::Died));
    assert_eq!(trace.samples, []);
}

/// The faulty run leaves its loop immediately; the golden run would take minutes.
#[test]
fn cancellation_stops_a_golden_run_that_outlasts_the_faulty_run() {
    let body = format!(
        "s_mov_b32 s8, 0\nloop: s_add_u32 s8, s8, 1\ns_cmp_lg_u32 s8, -1\ns_cbranch_scc1 loop\n\
         {STORE_LANE}"
    );
    let planted = Planted::new(&body);
    let site = planted.site("loop", "register=s8 set=0xffffffff");
    planted.workload.cancellation.stop();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(trace(&planted.workload, &site, &[u64::MAX]).err()));
    let error = receiver.recv_timeout(Duration::from_secs(60)).expect("an end");
    assert!(matches!(error, Some(TraceError::Stopped)), "{error:?}");
}

#[test]
fn a_wrong_value_escapes_at_its_store() {
    let planted = Planted::new(&format!("value: v_add_u32 v0, v0, 3\ns_nop 0\n{STORE_LANE}"));
    let trace = planted.trace("value", "lane=9 register=v0 flip=0x00000400");
    let address = Address(planted.buffer.0 + 9 * 4 + 1);
    let wrong = Wrong::Memory { address, golden: 0, faulty: 4 };
    let store = planted.label("store");
    assert_eq!(
        events(&trace)[1..],
        [
            (2, store, What::Value(wrong)),
            (2, store, What::Escape { wrong, bytes: 1 }),
            (2, store, What::Output { output: 0, offset: 37 }),
        ]
    );
    let wrong = WrongOutput { output: 0, bytes: 1, first: 37, golden: 0, faulty: 4 };
    assert_eq!(trace.ending, TraceEnding::Escaped(vec![wrong]));
    let last = trace.samples.last().map(|sample| sample.spread);
    assert_eq!(last, Some(Spread { memory_bytes: 1, ..Spread::default() }));
}

/// Number of wrong words at each time at which the spread changed.
fn words_over_time(trace: &Trace) -> Vec<(u64, u64)> {
    trace.samples.iter().map(|sample| (sample.step.time, sample.spread.words)).collect()
}

#[test]
fn a_wrong_lane_spreads_to_all_by_readfirstlane() {
    let body = format!(
        "
    value: v_mov_b32 v5, 7
    first: v_readfirstlane_b32 s4, v5
    all: v_mov_b32 v6, s4
        v_mov_b32 v6, 0
        s_mov_b32 s4, 0
        v_mov_b32 v5, 0
        {STORE_LANE}"
    );
    let planted = Planted::new(&body);
    let trace = planted.trace("value", "lane=0 register=v5 flip=0x8");
    let wrong = register("s4", None, 7, 15);
    assert_eq!(events(&trace)[1], (1, planted.label("first"), What::Value(wrong)));
    assert_eq!(words_over_time(&trace), [(0, 1), (1, 2), (2, 66), (3, 2), (4, 1), (5, 0)]);
    assert_eq!(trace.peak, registers(66, 3, 64, 1, 1));
    // A fault in another lane than the first does not propagate.
    let trace = planted.trace("value", "lane=1 register=v5 flip=0x8");
    assert_eq!(words_over_time(&trace), [(0, 1), (5, 0)]);
    assert_eq!(events(&trace)[1], (1, planted.label("first"), What::Masked));
}

#[test]
fn a_wrong_lane_spreads_to_its_neighbour_by_dpp_and_to_any_by_bpermute() {
    let body = format!(
        "
        v_mov_b32 v6, 0
        v_mov_b32 v7, 0x50
    value: v_mov_b32 v5, 7
        s_nop 1
    dpp: v_mov_b32_dpp v6, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
    permute: ds_bpermute_b32 v8, v7, v5
        s_waitcnt lgkmcnt(0)
        {STORE_LANE}"
    );
    let planted = Planted::new(&body);
    // The DPP instruction reads lane 20 from its neighbour, and the permutation (byte 0x50) from all lanes.
    let trace = planted.trace("value", "lane=20 register=v5 flip=0x8");
    let wrong = register("v6", Some(21), 7, 15);
    assert_eq!(events(&trace)[1], (2, planted.label("dpp"), What::Value(wrong)));
    assert_eq!(words_over_time(&trace), [(0, 1), (2, 2), (3, 66), (6, 0)]);
    assert_eq!(trace.peak, registers(66, 3, 64, 1, 1));
}

/// Four waves write LDS; after the barrier, all read words that wave 0 wrote.
const SHARED: &str = "
    .set lds_bytes, 1024
    s_mov_b32 m0, -1
    v_lshrrev_b32 v7, 6, v0
    v_lshlrev_b32 v7, 2, v7
value: v_mov_b32 v5, 7
    s_nop 0
write: ds_write_b32 v1, v5
    s_waitcnt lgkmcnt(0)
    s_barrier
read: ds_read_b32 v6, v7
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v6, 0
    v_mov_b32 v5, 0
    s_barrier
done: ds_write_b32 v1, v5
    s_waitcnt lgkmcnt(0)
store: global_store_dword v1, v0, s[2:3]
";

#[test]
fn a_wrong_lane_spreads_to_another_wave_by_lds() {
    let planted = Planted::with_grid(SHARED, 256, 256);
    // Wave n reads word n, which wave 0 has written.
    let trace = planted.trace("value", "lane=3 register=v5 flip=0x100");
    let found = events(&trace);
    let byte = Wrong::Lds { offset: 13, golden: 0, faulty: 1 };
    // Times are not compared, because they depend on the schedule of the other waves.
    let places: Vec<_> = found[1..3].iter().map(|(_, pc, what)| (*pc, *what)).collect();
    let write = planted.label("write");
    assert_eq!(places, [(write, What::Value(byte)), (write, What::Lds(byte))]);
    let reads: Vec<_> = trace.events.iter().filter(|event| event.what == What::Wave).collect();
    assert_eq!(reads.len(), 1);
    assert_eq!((reads[0].step.pc, reads[0].step.wave.wave), (planted.label("read"), 3));
    assert_eq!(reads[0].spread, Spread { lds_bytes: 1, ..registers(64, 1, 64, 1, 1) });
    let gone = found.last().map(|(_, pc, what)| (*pc, *what));
    assert_eq!(gone, Some((planted.label("done"), What::Gone(Gone::Overwritten))));
}

#[test]
fn wrong_value_propagates_to_the_next_dispatch() {
    // Each work-item adds its lane to its element of the buffer.
    let body = "
        global_load_dword v5, v1, s[2:3]
        s_waitcnt vmcnt(0)
    value: v_add_u32 v5, v5, v0
    store: global_store_dword v1, v5, s[2:3]
    ";
    let mut planted = Planted::with_grid(body, 128, 128);
    let again = planted.workload.program.dispatches[0].clone();
    planted.workload.program.dispatches.push(again);
    let trace = planted.trace("value", "lane=5 register=v5 flip=0x100");
    let wave: Vec<_> = trace.events.iter().filter(|event| event.what == What::Wave).collect();
    assert_eq!(wave.len(), 1, "one wave reads the wrong element");
    assert_eq!((wave[0].step.dispatch, wave[0].step.wave.workgroup), (1, [0, 0, 0]));
    let wrong = WrongOutput { output: 0, bytes: 1, first: 21, golden: 0, faulty: 1 };
    assert_eq!(trace.ending, TraceEnding::Escaped(vec![wrong]));
    assert_eq!(trace.peak, Spread { memory_bytes: 1, ..registers(1, 1, 1, 1, 1) });
}

#[test]
fn divergence_and_missing_stores_are_reported() {
    let body = format!(
        "
    check: s_cmp_eq_u32 s2, s2
    branch: s_cbranch_scc0 other
        {STORE_LANE}
        s_branch end
    other:
        s_nop 0"
    );
    let planted = Planted::new(&body);
    let trace = planted.trace("check", "register=scc flip=0x1");
    let store = Pc(planted.label("branch").0 + 4);
    assert_eq!(store, planted.label("store"));
    let path = What::Path { golden: store, faulty: planted.label("other") };
    assert_eq!(events(&trace)[1], (1, planted.label("branch"), path));
    let missing = trace.events.iter().find(|event| matches!(event.what, What::Missing(_)));
    let Some(What::Missing(Wrong::Memory { address, .. })) = missing.map(|event| event.what) else {
        panic!("{:?}", trace.events)
    };
    assert_eq!(address, planted.buffer);
    assert_eq!(trace.peak.waves_on_other_path, 1);
    let TraceEnding::Escaped(wrong) = &trace.ending else { panic!("{:?}", trace.ending) };
    assert_eq!((wrong[0].first, wrong[0].bytes), (0, 256));
    // A fault in the branch decision diverges at the branch itself.
    let trace = planted.trace("branch", "branch=decision flip=0x1");
    assert_eq!(
        events(&trace)[..2],
        [(0, planted.label("branch"), What::Fault(None)), (0, planted.label("branch"), path),]
    );
}

#[test]
fn divergence_that_changes_nothing_ends_the_trace() {
    let body = format!(
        "
    check: s_cmp_eq_u32 s2, s2
        s_cbranch_scc0 other
        s_nop 0
    other:
        {STORE_LANE}"
    );
    let planted = Planted::new(&body);
    let trace = planted.trace("check", "register=scc flip=0x1");
    assert_eq!(trace.ending, TraceEnding::Died);
    let gone = trace.events.last().map(|event| (event.step.pc, event.what));
    assert_eq!(gone, Some((planted.label("end"), What::Gone(Gone::Ended))));
}

#[test]
fn wrong_address_ends_the_trace_with_a_device_fault() {
    let body = "
        v_mov_b32 v3, s3
        v_add_co_u32 v2, vcc, s2, v1
    address: v_addc_co_u32 v3, vcc, 0, v3, vcc
    store: global_store_dword v[2:3], v0, off
    ";
    let planted = Planted::new(body);
    let trace = planted.trace("address", "lane=13 register=v3 flip=0x00010000");
    let TraceEnding::Faulted { dispatch: 0, fault } = &trace.ending else {
        panic!("{:?}", trace.ending)
    };
    assert_eq!(fault.place.pc, planted.label("store"));
    let address = Address((planted.buffer.0 + 13 * 4) ^ (1 << 48));
    let (access, lane) = (AccessKind::Write, Some(Lane(13)));
    assert_eq!(fault.cause, FaultCause::MemoryViolation { address, access, lane });
}

/// Events distinguish a fault in a source operand, an instruction or memory from the wrong results that
/// follow.
#[test]
fn faults_in_operands_instructions_and_memory_are_traced() {
    let planted = Planted::new(&format!("value: v_add_u32 v5, v0, v0\n{STORE_LANE}"));
    let value = planted.label("value");
    let trace = planted.trace("value", "lane=4 source=v0 flip=0x10");
    let wrong = What::Value(register("v5", Some(4), 8, 40));
    assert_eq!(events(&trace)[..2], [(0, value, What::Fault(None)), (0, value, wrong)]);
    // VOP2 has its destination in bits 17 to 24: v5 becomes v7.
    let trace = planted.trace("value", "encoding=0 flip=0x00040000");
    let wrong = What::Value(register("v5", Some(1), 2, 0));
    assert_eq!(events(&trace)[..2], [(0, value, What::Fault(None)), (0, value, wrong)]);
    assert_eq!(trace.peak, registers(126, 2, 63, 1, 1));
    // Bits 25 to 30 of the word are the operation. 63 selects VOP1, and the encoding is then invalid.
    let trace = planted.trace("value", "encoding=0 stuck_at_one=0x7e000000");
    assert_eq!(events(&trace), [(0, value, What::Fault(None))]);
    let TraceEnding::Faulted { fault, .. } = &trace.ending else { panic!("{:?}", trace.ending) };
    assert_eq!(fault.place.pc, value);
    let mut planted = planted;
    planted.workload.program.buffers = planted.workload.program.outputs.clone();
    let trace = planted.trace("value", "buffer=0 offset=0x8 flip=0x4");
    let address = Address(planted.buffer.0 + 8);
    let wrong = Wrong::Memory { address, golden: 0xff, faulty: 0xfb };
    assert_eq!(events(&trace)[0], (0, value, What::Fault(Some(wrong))));
    let gone = trace.events.last().map(|event| (event.step.pc, event.what));
    assert_eq!(gone, Some((planted.label("store"), What::Gone(Gone::Overwritten))));
}

/// A wave that skips a barrier shows no difference until it reads memory that the other wave has not yet
/// written.
#[test]
fn trace_continues_after_a_skipped_barrier() {
    let planted = Planted::with_grid(
        "
        v_readfirstlane_b32 s6, v0
        s_cmp_lt_u32 s6, 64
        s_cbranch_scc1 barrier
        s_movk_i32 s7, 0x2000
    long:
        s_sub_u32 s7, s7, 1
        s_cmp_lg_u32 s7, 0
        s_cbranch_scc1 long
        global_store_dword v1, v0, s[2:3]
        s_waitcnt vmcnt(0)
    barrier: s_barrier
        s_cmp_lt_u32 s6, 64
        s_cbranch_scc0 end
        s_movk_i32 s7, 0x1000
    short:
        s_sub_u32 s7, s7, 1
        s_cmp_lg_u32 s7, 0
        s_cbranch_scc1 short
    read: global_load_dword v2, v1, s[2:3] offset:256
        s_waitcnt vmcnt(0)
        global_store_dword v1, v2, s[2:3]",
        128,
        128,
    );
    // The barrier becomes s_nop.
    let trace = planted.trace("barrier", "encoding=0 flip=0x000a0000");
    let TraceEnding::Escaped(wrong) = &trace.ending else { panic!("{:?}", trace.ending) };
    assert_eq!((wrong[0].first, wrong[0].bytes), (0, 256));
    assert!(events(&trace).iter().any(|(_, pc, _)| *pc == planted.label("read")));
}

#[test]
fn permanent_fault_strikes_again_after_its_difference_is_gone() {
    let body = format!(
        "
    one: v_add_u32 v5, v0, v0
        v_mov_b32 v5, 0
    two: v_add_u32 v6, v0, v0
    over: v_mov_b32 v6, 0
        {STORE_LANE}"
    );
    let planted = Planted::new(&body);
    let site = "opcode=v_add_u32 units=1 unit=0 simd=0 slot=2 destination=0 flip=0x1";
    let trace = followed(&planted.workload, &flipwave_tests::site(site));
    // Lanes 2, 18, 34 and 50 run in the slot.
    assert_eq!(words_over_time(&trace), [(0, 4), (1, 0), (2, 4), (3, 0)]);
    assert_eq!((trace.struck.words, &trace.ending), (8, &TraceEnding::Died));
    let gone = trace.events.last().map(|event| (event.step.pc, event.what));
    assert_eq!(gone, Some((planted.label("over"), What::Gone(Gone::Overwritten))));
}

#[test]
fn unreached_site_has_no_trace() {
    let planted = Planted::new(&format!("value: v_mov_b32 v5, 7\n{STORE_LANE}"));
    let mut site = planted.site("value", "lane=13 register=v5 flip=0x1").to_string();
    site = site.replace("occurrence=0", "occurrence=1");
    let limits = planted.workload.golden().expect("a golden run").instruction_limits();
    let error = trace(&planted.workload, &flipwave_tests::site(&site), &limits).unwrap_err();
    assert!(matches!(error, TraceError::Injection(_)), "{error}");
}

/// Programs with emulated instructions are refused, because their hooks use additional registers.
#[test]
fn emulated_instructions_are_not_traced() {
    let file = emulated_examples().into_iter().next().expect("an example");
    let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
    let text = "dispatch=0 workgroup=0,0,0 wave=0 pc=0x0 occurrence=0 register=scc flip=0x1";
    let error = flipwave_campaigns::trace(&campaign, &flipwave_tests::site(text)).unwrap_err();
    assert!(error.to_string().contains("emulated instructions"), "{error}");
}

#[test]
fn trace_table_and_plot_agree_with_the_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = examples_folder().join("quickstart.yaml");
    let site = "dispatch=0 workgroup=15,0,0 wave=3 pc=0x1a38 occurrence=0 lane=16 register=v1 \
                flip=0x00000040";
    let arguments = ["trace", &file.display().to_string(), "--site", site, "--out", "out"];
    let printed = flipwave(folder.path(), &arguments, &[]).expect_success().stdout;
    let read = |name: &str| std::fs::read_to_string(folder.path().join("out").join(name));
    let table = read("trace.csv").expect("trace.csv");
    let mut rows = csv::Reader::from_reader(table.as_bytes());
    let rows: Vec<PropagationRow> =
        rows.deserialize().collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}"));
    let events: Vec<&str> = rows.iter().map(|row| row.event.as_str()).collect();
    let recorded: Vec<&&str> = events.iter().filter(|event| !event.is_empty()).collect();
    assert_eq!(recorded[..4], [&"fault", &"value", &"masked", &"missing"]);
    assert_eq!(recorded.last(), Some(&&"escaped"));
    assert!(rows.windows(2).all(|pair| pair[0].time <= pair[1].time), "rows out of order");
    let last = rows.last().expect("a row");
    assert!(printed.contains("escaped: 205 bytes of `product` wrong"), "{printed}");
    // Plus three bytes of the sum and the missing store.
    assert_eq!(last.wrong_memory_bytes, 205 + 3 + 4);
    let plot = read("trace.svg").expect("trace.svg");
    assert!(plot.starts_with("<svg") && plot.contains(">first missing store<"), "{plot}");
}

/// Traces faults of each target, drawn from an example. Asserts that each trace ends as the injection
/// does, and that its first event is at the fault site.
fn assert_consistent(machine: Machine, name: &str, targets: &[FaultTarget], count: u64) {
    let file = examples_folder().join(format!("{name}.yaml"));
    let workload = workload(machine, &file, &[]);
    let limits = workload.golden().unwrap_or_else(|error| panic!("{error}")).instruction_limits();
    let mut endings = [0; 3];
    for target in targets {
        let fault = Fault { target: *target, ..Fault::transient(FaultModel::FlipOneBit) };
        let profile = profile_of(&workload, &fault, &[Group::All]);
        for planned in plan_of(&workload, &profile, 5, count) {
            let site = planned.site;
            if inject(&workload, &site, &limits).is_err() {
                assert!(trace(&workload, &site, &limits).is_err(), "{site}");
                continue;
            }
            let trace = followed(&workload, &site);
            endings[match &trace.ending {
                TraceEnding::Died | TraceEnding::Contained { .. } => 0,
                TraceEnding::Escaped(_) => 1,
                TraceEnding::Faulted { .. } => 2,
            }] += 1;
            assert_first_event_is_at_site(&site, &trace);
            assert_memory_was_tracked(&site, &trace);
        }
    }
    assert!(endings.iter().all(|count| *count > 0), "{name}: {endings:?}");
}

/// Asserts that the first event is the fault, and that the first wrong value is at the site.
fn assert_first_event_is_at_site(site: &Site, trace: &Trace) {
    let first = trace.events.first().unwrap_or_else(|| panic!("{site}: no event"));
    let What::Fault(wrong) = first.what else { panic!("{site}: {first:?}") };
    let event = site.event().expect("an event");
    assert_eq!((first.step.time, first.step.pc), (0, event.pc), "{site}");
    assert!(event.strikes_wave(first.step.wave), "{site}");
    match (site.place, wrong) {
        (Place::Register(register), Some(Wrong::Register { register: found, lane, .. })) => {
            assert_eq!(found, register, "{site}");
            assert_eq!(lane.map(Lanes::One), site.lanes, "{site}");
        }
        (Place::Lds(offset), Some(Wrong::Lds { offset: found, .. })) => {
            assert_eq!(found & !3, offset, "{site}");
        }
        (Place::Memory { .. }, Some(Wrong::Memory { .. })) => {}
        (Place::Register(_) | Place::Lds(_) | Place::Memory { .. }, _) => {
            panic!("{site}: {first:?}")
        }
        (_, wrong) => assert_eq!(wrong, None, "{site}"),
    }
}

/// Asserts that tracking by stores found the final differences in memory, unless control flow diverged.
/// Otherwise, the comparison at the end of a dispatch adds a second sample with the same time.
fn assert_memory_was_tracked(site: &Site, trace: &Trace) {
    if trace.events.iter().any(|event| matches!(event.what, What::Path { .. })) {
        return;
    }
    for pair in trace.samples.windows(2) {
        assert!(pair[0].step.time < pair[1].step.time, "{site}: {pair:?}");
    }
}

#[test]
fn traces_with_lds_and_atomics_agree_with_injections() {
    use FaultTarget::{DestinationRegister, GlobalMemory, Instruction, Lds, SourceOperand};
    let targets = [DestinationRegister, SourceOperand, Lds, GlobalMemory, Instruction];
    assert_consistent(MACHINES[0], "reduction", &targets, 40);
    assert_consistent(Machine::new("gfx1201", 32), "reduction", &targets, 20);
}

#[test]
fn traces_of_three_dispatches_agree_with_injections() {
    use FaultTarget::{Branch, DestinationRegister, ProgramCounter, StoreValue};
    assert_consistent(
        MACHINES[0],
        "quickstart",
        &[DestinationRegister, StoreValue, Branch, ProgramCounter],
        40,
    );
}
