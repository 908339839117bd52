//! Faults planted in kernels of a few instructions, with outcomes worked out by hand. Each kernel has its
//! lane in v0, the offset of the lane's dword in v1 and the buffer's address in s[2:3].

use flipwave_analysis::Outcome;
use flipwave_campaigns::{
    Classifier, CompletedRun, Difference, DueCause, ElementType, MaskedCause, OutputFormat,
    OutputRole, Tolerance, Verdict,
};
use flipwave_device::{AccessKind, Address, ArgumentValue, DeviceFault, FaultCause};
use flipwave_injector::{Ending, Injection, analyze_site, inject};
use flipwave_isa::{Lane, Pc};
use flipwave_tests::{Assembly, Element, TestProgram, assemble, site, to_bytes, to_values};

/// An assembled kernel, its buffer of 64 elements, and their golden values.
struct Planted<T> {
    kernel: Assembly,
    program: TestProgram,
    buffer: Address,
    golden: Vec<T>,
}

/// Effect of a fault on a kernel.
struct Struck<T> {
    injection: Injection,
    verdict: Verdict,
    /// Final content of the buffer; empty if the run did not complete.
    elements: Vec<T>,
}

impl<T: Element> Planted<T> {
    /// Assembles `instructions` and launches them on a buffer filled with `initial`.
    fn new(initial: T, instructions: &str) -> Planted<T> {
        let kernel = assemble(instructions);
        let mut program = TestProgram::new(&kernel.code_object);
        let argument = program.output(&[initial; 64]);
        let ArgumentValue::Buffer(buffer) = argument else { unreachable!("a buffer") };
        program.launch("planted", [64, 1, 1], [64, 1, 1], &[argument]);
        let golden = to_values(&program.outputs()[0]);
        Planted { kernel, program, buffer, golden }
    }

    /// Injects the fault `what` (`register=... flip=...`) after the first execution of the instruction at
    /// `label`.
    fn strike(&self, label: &str, what: &str) -> Struck<T> {
        let pc = self.kernel.label(label);
        let site = site(&format!("dispatch=0 workgroup=0,0,0 wave=0 pc={pc} occurrence=0 {what}"));
        let workload = self.program.workload();
        let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
        let injection = inject(&workload, &site, &golden.instruction_limits())
            .unwrap_or_else(|error| panic!("{error}"));
        let element = match size_of::<T>() {
            4 => ElementType::I32,
            _ => ElementType::F64,
        };
        let role = OutputRole::Result(Tolerance::default());
        let formats = [OutputFormat { element, extents: None, role }];
        let classifier = Classifier { golden: &golden, timing_threshold: 0.0 };
        let analysis = analyze_site(&workload, &site).unwrap_or_else(|error| panic!("{error}"));
        let next_use = analysis.and_then(|analysis| analysis.next_use);
        let verdict = classifier.classify(injection.clone(), &formats, next_use);
        let elements = match &injection.ending {
            Ending::Completed { outputs, .. } => to_values(&outputs[0].bytes()),
            Ending::Faulted { .. } => Vec::new(),
        };
        Struck { injection, verdict, elements }
    }
}

impl<T> Struck<T> {
    /// The device fault that ended the run. Asserts that the verdict is DUE with its cause.
    #[track_caller]
    fn fault(&self) -> &DeviceFault {
        let Ending::Faulted { fault, .. } = &self.injection.ending else {
            panic!("the run completed");
        };
        assert_eq!(self.verdict, Verdict::Due { cause: DueCause::Device(fault.cause.kind()) });
        fault
    }
}

/// A run with the instruction count and outputs of the golden run.
fn same_length() -> CompletedRun {
    CompletedRun { instructions: Some(0), timing_changed: Some(false), ..CompletedRun::default() }
}

/// A buffer with an element for each lane.
fn by_lane(element: impl Fn(i32) -> i32) -> Vec<i32> {
    (0..64).map(element).collect()
}

const STORE_LANE: &str = "
    global_store_dword v1, v0, s[2:3]
";

#[test]
fn a_flip_in_a_dead_register_is_masked() {
    let planted = Planted::new(-1, &format!("dead: v_mov_b32 v5, 7\n{STORE_LANE}"));
    let struck = planted.strike("dead", "lane=13 register=v5 flip=0x00000100");
    assert_eq!((struck.injection.struck.before, struck.injection.struck.after), (7, 0x107));
    let (cause, run) = (MaskedCause::Dead, same_length());
    assert_eq!(struck.verdict, Verdict::Masked { cause, run });
    assert_eq!(struck.elements, by_lane(|lane| lane));
}

#[test]
fn flip_in_an_overwritten_value_is_masked() {
    let body =
        format!("value: v_mov_b32 v5, 7\nv_mov_b32 v5, 8\nv_add_u32 v0, v0, v5\n{STORE_LANE}");
    let planted = Planted::new(-1, &body);
    let struck = planted.strike("value", "lane=13 register=v5 flip=0x80000000");
    let outcome = (struck.verdict.outcome(), struck.verdict.cause());
    assert_eq!(outcome, (Outcome::Masked, Some("overwritten")));
    assert_eq!(struck.elements, by_lane(|lane| lane + 8));
}

/// The address of each lane's dword in v[2:3].
const LANE_ADDRESS: &str = "
    v_mov_b32 v3, s3
    v_add_co_u32 v2, vcc, s2, v1
address:
    v_addc_co_u32 v3, vcc, 0, v3, vcc
";

#[test]
fn a_flip_in_the_upper_half_of_an_address_violates_memory() {
    let body = format!("{LANE_ADDRESS}\nstore: global_store_dword v[2:3], v0, off");
    let planted = Planted::new(-1, &body);
    assert_eq!(planted.golden, by_lane(|lane| lane));
    for bit in [4, 15, 20, 31] {
        let what = format!("lane=13 register=v3 flip={:#010x}", 1u32 << bit);
        let struck = planted.strike("address", &what);
        let fault = struck.fault();
        assert_eq!(fault.place.pc, planted.kernel.label("store"));
        let address = Address((planted.buffer.0 + 13 * 4) ^ (1 << (32 + bit)));
        let (access, lane) = (AccessKind::Write, Some(Lane(13)));
        assert_eq!(fault.cause, FaultCause::MemoryViolation { address, access, lane });
    }
}

#[test]
fn a_flip_in_the_lower_half_of_an_address_moves_the_access() {
    let body = format!("{LANE_ADDRESS}\nglobal_store_dword v[2:3], v0, off");
    let planted = Planted::new(-1, &body);
    // Lanes 12 and 13 write the same address; the higher lane writes last.
    let struck = planted.strike("address", "lane=13 register=v2 flip=0x00000004");
    let expected = by_lane(|lane| match lane {
        12 => 13,
        13 => -1,
        _ => lane,
    });
    assert_eq!(struck.elements, expected);
    assert_eq!(struck.verdict.difference().map(|difference| difference.elements_wrong), Some(2));
}

#[test]
fn a_write_into_code_violates_memory() {
    // s[4:5] is the buffer's address; the flip selects the address of the code instead.
    let body = "
        s_getpc_b64 s[4:5]
        s_mov_b32 s6, 0
    choose:
        s_cmp_eq_u32 s6, 0
        s_cselect_b64 s[4:5], s[2:3], s[4:5]
    store:
        global_store_dword v1, v0, s[4:5]
    ";
    let planted = Planted::new(-1, body);
    let fault = planted.strike("choose", "register=scc flip=0x00000001").fault().clone();
    assert_eq!(fault.place.pc, planted.kernel.label("store"));
    let FaultCause::MemoryViolation { access, lane, .. } = fault.cause else { panic!("{fault}") };
    assert_eq!((access, lane), (AccessKind::Write, Some(Lane(0))));
}

#[test]
fn a_flip_in_a_loop_counter_hits_the_watchdog() {
    let body = format!(
        "
        s_mov_b32 s4, 10
    loop:
        s_sub_u32 s4, s4, 1
        s_cmp_lg_u32 s4, 0
        s_cbranch_scc1 loop
        {STORE_LANE}"
    );
    let planted = Planted::new(-1, &body);
    let struck = planted.strike("loop", "register=s4 flip=0x80000000");
    assert_eq!((struck.injection.struck.before, struck.injection.struck.after), (9, 0x8000_0009));
    let fault = struck.fault();
    // The golden run executes 3 instructions, 1 before the loop, 10 iterations of 3, the store, and the
    // end. The limit is ten times this number plus 10,000.
    assert_eq!(fault.cause, FaultCause::Watchdog { executed: 10 * 36 + 10_000 });
    let rounds = planted.kernel.label("loop").0..planted.kernel.label("end").0;
    assert!(rounds.contains(&fault.place.pc.0), "{fault}");
}

#[test]
fn flip_in_the_low_bit_of_a_loop_counter_adds_iterations() {
    let body = format!(
        "
        s_mov_b32 s4, 10
    loop:
        s_sub_u32 s4, s4, 1
        v_add_u32 v0, v0, 1
        s_cmp_lg_u32 s4, 0
        s_cbranch_scc1 loop
        {STORE_LANE}"
    );
    let planted = Planted::new(-1, &body);
    assert_eq!(planted.golden, by_lane(|lane| lane + 10));
    // 9 becomes 11.
    let struck = planted.strike("loop", "register=s4 flip=0x00000002");
    assert_eq!(struck.elements, by_lane(|lane| lane + 12));
    let Verdict::Sdc { run: CompletedRun { difference, .. }, .. } = struck.verdict else {
        panic!("{:?}", struck.verdict)
    };
    assert_eq!((difference.elements_wrong, difference.max_abs_error), (64, 2.0));
    assert_eq!(difference.max_rel_error, 2.0 / 10.0);
}

#[test]
fn flip_that_reaches_a_trap_is_due() {
    let body = format!(
        "
    check:
        s_cmp_eq_u32 s2, s2
        s_cbranch_scc1 passed
    trap:
        s_trap 2
    passed:
        {STORE_LANE}"
    );
    let planted = Planted::new(-1, &body);
    let struck = planted.strike("check", "register=scc flip=0x00000001");
    assert_eq!((struck.injection.struck.before, struck.injection.struck.after), (1, 0));
    let fault = struck.fault();
    assert_eq!(fault.cause, FaultCause::Trap { id: 2 });
    assert_eq!(fault.place.pc, planted.kernel.label("trap"));
}

#[test]
fn flip_in_a_stored_value_makes_one_element_wrong() {
    let planted = Planted::new(-1, &format!("value: v_add_u32 v0, v0, 3\n{STORE_LANE}"));
    let struck = planted.strike("value", "lane=9 register=v0 flip=0x00000400");
    let expected = by_lane(|lane| if lane == 9 { 12 + 1024 } else { lane + 3 });
    assert_eq!(struck.elements, expected);
    let (max_abs_error, max_rel_error) = (1024.0, 1024.0 / 12.0);
    let difference =
        Difference { elements_wrong: 1, max_abs_error, max_rel_error, ..Difference::default() };
    let run = CompletedRun { difference, ..same_length() };
    assert_eq!(struck.verdict, Verdict::Sdc { run, judgement: None });
}

#[test]
fn flip_in_the_high_half_of_a_double_changes_its_sign() {
    let body = "
        v_cvt_f64_u32 v[2:3], v0
    value:
        v_add_f64 v[4:5], v[2:3], 0.5
        v_lshlrev_b32 v1, 3, v0
        global_store_dwordx2 v1, v[4:5], s[2:3]
    ";
    let planted = Planted::new(0.0f64, body);
    let golden: Vec<f64> = (0..64).map(|lane| f64::from(lane) + 0.5).collect();
    assert_eq!(planted.golden, golden);
    let struck = planted.strike("value", "lane=40 register=v5 flip=0x80000000");
    let mut expected = golden;
    expected[40] = -40.5;
    assert_eq!(struck.elements, expected);
    let (max_abs_error, max_rel_error) = (81.0, 2.0);
    let difference =
        Difference { elements_wrong: 1, max_abs_error, max_rel_error, ..Difference::default() };
    let run = CompletedRun { difference, ..same_length() };
    assert_eq!(struck.verdict, Verdict::Sdc { run, judgement: None });

    // The lowest bit of the low half: 40.5 has 47 fractional bits.
    let struck = planted.strike("value", "lane=40 register=v4 flip=0x00000001");
    let difference = struck.verdict.difference().map(|difference| difference.max_abs_error);
    assert_eq!(difference, Some(2f64.powi(-47)));
}

/// A jump through s[4:5] to `good`. 64 bytes after `good`, at an address that differs only in bit 6, is
/// an invalid instruction.
const JUMP: &str = "
    s_getpc_b64 s[4:5]
here:
    s_add_u32 s4, s4, good-here
address:
    s_addc_u32 s5, s5, 0
jump:
    s_setpc_b64 s[4:5]
    .p2align 7
good:
    global_store_dword v1, v0, s[2:3]
    s_endpgm
    .p2align 6
bad:
    .long 0xffffffff
    .long 0xffffffff
";

#[test]
fn flip_in_a_jump_target_reaches_an_illegal_instruction() {
    let planted = Planted::new(-1, JUMP);
    assert_eq!(planted.golden, by_lane(|lane| lane));
    let struck = planted.strike("address", "register=s4 flip=0x00000040");
    let fault = struck.fault();
    assert_eq!(fault.cause, FaultCause::IllegalInstruction { word: 0xffff_ffff });
    assert_eq!(fault.place.pc, planted.kernel.label("bad"));
}

#[test]
fn flip_in_a_jump_target_outside_code_violates_memory() {
    let planted = Planted::new(-1, JUMP);
    let struck = planted.strike("address", "register=s5 flip=0x00000100");
    let fault = struck.fault();
    let FaultCause::MemoryViolation { address, access, lane } = fault.cause else {
        panic!("{fault}");
    };
    assert_eq!((access, lane), (AccessKind::Fetch, None));
    assert_eq!(fault.place.pc, Pc(address.0), "outside code a PC is a device address");
    let low = struck.injection.struck.after;
    assert_eq!(address.0 >> 32, low);
}

#[test]
fn a_flip_that_misaligns_an_atomic_is_due() {
    let body = format!("{LANE_ADDRESS}\natomic: global_atomic_add v[2:3], v0, off");
    let planted = Planted::new(100, &body);
    assert_eq!(planted.golden, by_lane(|lane| 100 + lane));
    for (flip, alignment) in [(1, 4), (2, 4)] {
        let what = format!("lane=7 register=v2 flip={flip:#010x}");
        let struck = planted.strike("address", &what);
        let fault = struck.fault();
        let address = Address(planted.buffer.0 + 28 + flip);
        assert_eq!(fault.cause, FaultCause::Misaligned { address, alignment, lane: Some(Lane(7)) });
        assert_eq!(fault.place.pc, planted.kernel.label("atomic"));
    }
}

#[test]
fn flip_in_scc_selects_the_other_value() {
    let body = format!(
        "
    compare:
        s_cmp_lt_u32 2, 1
        s_cselect_b32 s4, 10, 20
        v_add_u32 v0, s4, v0
        {STORE_LANE}"
    );
    let planted = Planted::new(-1, &body);
    assert_eq!(planted.golden, by_lane(|lane| lane + 20));
    let struck = planted.strike("compare", "register=scc flip=0x00000001");
    assert_eq!(struck.elements, by_lane(|lane| lane + 10));
}

#[test]
fn flip_in_vcc_selects_the_other_value_in_one_lane() {
    let body = format!(
        "
    compare:
        v_cmp_lt_u32 vcc, 31, v0
        v_mov_b32 v4, 2
        v_cndmask_b32 v0, 1, v4, vcc
        {STORE_LANE}"
    );
    let planted = Planted::new(-1, &body);
    let golden = |lane| if lane > 31 { 2 } else { 1 };
    assert_eq!(planted.golden, by_lane(golden));
    for (half, flip, struck_lane) in [("lo", 1u32 << 5, 5), ("hi", 1 << 31, 63)] {
        let struck = planted.strike("compare", &format!("register=vcc_{half} flip={flip:#010x}"));
        let expected =
            by_lane(|lane| if lane == struck_lane { 3 - golden(lane) } else { golden(lane) });
        assert_eq!(struck.elements, expected);
    }
}

#[test]
fn flip_in_exec_deactivates_a_lane() {
    let body = format!("mask: s_mov_b64 exec, -1\n{STORE_LANE}");
    let planted = Planted::new(-1, &body);
    let struck = planted.strike("mask", "register=exec_hi flip=0x00000008");
    assert_eq!(struck.elements, by_lane(|lane| if lane == 35 { -1 } else { lane }));

    // All 32 lower lanes at once.
    let struck = planted.strike("mask", "register=exec_lo set=0x00000000");
    assert_eq!(struck.elements, by_lane(|lane| if lane < 32 { -1 } else { lane }));
}

#[test]
fn flip_in_m0_indexes_another_register() {
    let body = format!(
        "
        s_mov_b32 s8, 10
        s_mov_b32 s9, 11
        s_mov_b32 s10, 12
        s_mov_b32 s11, 13
    index:
        s_mov_b32 m0, 2
        s_movrels_b32 s4, s8
        v_mov_b32 v0, s4
        {STORE_LANE}"
    );
    let planted = Planted::new(-1, &body);
    assert_eq!(planted.golden, by_lane(|_| 12));
    let struck = planted.strike("index", "register=m0 flip=0x00000001");
    assert_eq!(struck.elements, by_lane(|_| 13));
}

#[test]
fn flip_in_an_accvgpr_is_read_back() {
    let body = format!(
        "
    write:
        v_accvgpr_write_b32 a3, v0
        s_nop 7
        v_accvgpr_read_b32 v0, a3
        {STORE_LANE}"
    );
    let planted = Planted::new(-1, &body);
    assert_eq!(planted.golden, by_lane(|lane| lane));
    let struck = planted.strike("write", "lane=63 register=a3 flip=0x00010000");
    assert_eq!(struck.elements, by_lane(|lane| if lane == 63 { 63 + 0x10000 } else { lane }));
}

#[test]
fn flip_in_a_scalar_register_affects_every_lane() {
    let body = format!("value: s_mov_b32 s4, 5\nv_add_u32 v0, s4, v0\n{STORE_LANE}");
    let planted = Planted::new(-1, &body);
    let struck = planted.strike("value", "register=s4 flip=0x00000008");
    assert_eq!(struck.elements, by_lane(|lane| lane + 13));
    let Verdict::Sdc { run: CompletedRun { difference, .. }, .. } = struck.verdict else {
        panic!("{:?}", struck.verdict)
    };
    assert_eq!((difference.elements_wrong, difference.max_abs_error), (64, 8.0));
}

/// Negative control of the tests above: a fault that sets the existing value changes nothing.
#[test]
fn fault_that_sets_the_existing_value_is_masked() {
    let planted = Planted::new(-1, &format!("value: v_mov_b32 v0, 5\n{STORE_LANE}"));
    let struck = planted.strike("value", "lane=9 register=v0 set=0x00000005");
    assert_eq!(struck.injection.struck.mask(), 0);
    let cause = MaskedCause::Unchanged;
    assert_eq!(struck.verdict, Verdict::Masked { cause, run: same_length() });
    assert_eq!(to_bytes(&struck.elements), to_bytes(&by_lane(|_| 5)));
}
