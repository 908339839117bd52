//! The strict level: for each rule, kernels that break it and kernels that differ in little and do not.

use crate::common::{Bench, arguments};
use flipwave_device::Completion;
use flipwave_machine::{Machine, Progress};
use flipwave_ptx_sim::{PtxRule, PtxViolation, StrictCheck};

/// Violations of a kernel with 64 threads. The body starts with `%t`, the thread's number, `%out`, the address of a
/// word per thread, and `shared`, 8192 bytes of shared memory.
fn check_threads(threads: u32, body: &str) -> Vec<PtxViolation> {
    let text = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.shared .align 128 .b8 shared[8192];\n\
         .visible .entry k(.param .u64 out)\n{{\n.reg .b64 %out, %rd<9>; .reg .b32 %t, %r<99>; .reg .b16 %h<9>; \
         .reg .pred %p<9>;\nld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %out, %t, 4, %out;\n\
         {body}\nret;\n}}\n"
    );
    let mut bench = Bench::new(&text);
    let output = bench.buffer(&vec![0xee; 4 * 1024]);
    let dispatch = bench.dispatch("k", threads, threads, &arguments(&[output.0]));
    let mut execution = bench.gpu.begin(&dispatch).expect("begins");
    let mut check = StrictCheck::default();
    let end = bench.gpu.advance_checked(&mut execution, &mut check, u64::MAX);
    let Ok(Progress::Ended(Completion::Completed(statistics))) = end else { panic!("{end:?}") };
    // The strict level changes neither results nor counts.
    let strict = bench.read(output, 4 * 1024);
    bench.gpu.write(output, &vec![0xee; 4 * 1024]).expect("written");
    assert_eq!(bench.run(&dispatch), statistics);
    assert_eq!(bench.read(output, 4 * 1024), strict);
    check.into_violations()
}

fn check(body: &str) -> Vec<PtxViolation> {
    check_threads(64, body)
}

fn rules(found: &[PtxViolation]) -> Vec<PtxRule> {
    found.iter().map(|violation| violation.rule).collect()
}

/// Asserts that a body breaks one rule, at the instruction that begins with `text`, in a number of lanes, and returns
/// the report.
#[track_caller]
fn breaks(body: &str, rule: PtxRule, text: &str, lanes: u32) -> String {
    let found = check(body);
    let [violation] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((violation.rule, violation.lanes.count()), (rule, lanes), "{violation}");
    assert!(violation.text.starts_with(text), "{violation}");
    assert_eq!(violation.function, "k");
    violation.to_string()
}

#[track_caller]
fn is_clean(body: &str) {
    let found = check(body);
    assert_eq!(rules(&found), [], "{found:#?}");
}

const STORE: &str = "st.global.u32 [%out], %r1;";

#[test]
fn undefined_values_are_reported_where_they_decide_something() {
    let rule = PtxRule::UndefinedValue;
    let report = breaks("setp.eq.u32 %p1, %r7, 1; @%p1 bra L; L:", rule, "@%p1 bra", 32);
    assert!(report.contains("%p1 decides which lanes"), "{report}");
    assert!(report.contains("occurrences: 2"), "{report}");
    let report = breaks("ld.shared.u32 %r1, [%r7];", rule, "ld.shared", 32);
    assert!(report.contains("%r7 is used as an address"), "{report}");
    is_clean("mov.u32 %r7, shared; ld.shared.u32 %r1, [%r7];");
}

#[test]
fn undefined_values_are_tracked_by_lane_and_word() {
    let rule = PtxRule::UndefinedValue;
    // One lane writes the register.
    let one_lane =
        "setp.eq.u32 %p1, %t, 3; @%p1 mov.u32 %r1, 0; setp.eq.u32 %p2, %r1, 5; @%p2 bra L; L:";
    let found = check(one_lane);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].rule, found[0].lanes.count(), found[0].count), (rule, 31, 2));
    // Both words of a pair.
    is_clean(
        "mov.u32 %r1, 0; mov.b64 %rd1, {%r1, %r2}; cvt.u32.u64 %r3, %rd1; setp.eq.u32 %p1, %r3, 5; @%p1 bra L; L:",
    );
    breaks(
        "mov.u32 %r1, 0; mov.b64 %rd1, {%r1, %r2}; setp.eq.u64 %p1, %rd1, 5; @%p1 bra L; L:",
        rule,
        "@%p1 bra",
        32,
    );
    // Storing, selecting another value, and operations that ignore the operand.
    is_clean("st.global.u32 [%out], %r1;");
    is_clean(
        "setp.ge.u32 %p1, %t, 0; selp.u32 %r1, %t, %r2, %p1; setp.eq.u32 %p2, %r1, 5; @%p2 bra L; L:",
    );
    is_clean("xor.b32 %r1, %r2, %r2; setp.eq.u32 %p2, %r1, 5; @%p2 bra L; L:");
    // Through shared memory.
    let through = |store: &str| {
        format!(
            "shl.b32 %r1, %t, 2; mov.u32 %r2, shared; add.u32 %r2, %r2, %r1; {store}; bar.sync 0; \
             ld.shared.u32 %r3, [%r2]; setp.eq.u32 %p1, %r3, 5; @%p1 bra L; L:"
        )
    };
    is_clean(&through("st.shared.u32 [%r2], %t"));
    breaks(&through("st.shared.u32 [%r2], %r9"), rule, "@%p1 bra", 32);
    breaks(&through("mov.u32 %r9, 0"), rule, "@%p1 bra", 32);
    // From other lanes.
    is_clean(
        "mov.u32 %r1, 1; shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; setp.eq.u32 %p1, %r2, 5; @%p1 bra L; L:",
    );
    breaks(
        "setp.ne.u32 %p3, %t, 0; @%p3 mov.u32 %r1, 1; shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; \
         setp.eq.u32 %p1, %r2, 5; @%p1 bra L; L:",
        rule,
        "@%p1 bra",
        32,
    );
}

#[test]
fn barriers_in_divergent_code_are_reported() {
    let divergent = |barrier: &str| {
        format!("and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; {barrier}; L:")
    };
    for barrier in ["bar.sync 0", "barrier.sync.aligned 0", "bar.red.popc.u32 %r2, 0, %p1"] {
        let report = breaks(&divergent(barrier), PtxRule::Aligned, &barrier[..7], 16);
        assert!(report.contains("lanes 0x55555555 of the wave do not execute"), "{report}");
        is_clean(&format!("setp.eq.u32 %p1, %t, 0; {barrier};"));
    }
    // Without `.aligned`, and after lanes have ended.
    is_clean(&divergent("barrier.sync 0"));
    is_clean("and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 exit; bar.sync 0;");
}

#[test]
fn matrix_products_need_all_lanes_of_the_wave() {
    let product = "mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0; \
        mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r5}, \
        {%r1, %r2, %r3, %r4};";
    is_clean(product);
    let found = check_threads(48, product);
    assert_eq!(rules(&found), [PtxRule::Aligned]);
    assert_eq!((found[0].wave.wave, found[0].lanes.count()), (1, 16));
    assert!(found[0].found.contains("0xffff0000"), "{}", found[0]);
}

#[test]
fn masks_that_do_not_fit_the_lanes_are_reported() {
    let rule = PtxRule::SyncMask;
    let vote = |mask: &str| {
        format!(
            "and.b32 %r1, %t, 31; setp.lt.u32 %p1, %r1, 16; @!%p1 bra L; vote.sync.ballot.b32 %r2, %p1, {mask}; L:"
        )
    };
    is_clean(&vote("0xffff"));
    let report = breaks(&vote("-1"), rule, "vote.sync", 16);
    assert!(report.contains("names lanes 0xffff0000, which do not execute"), "{report}");
    let report = breaks(&vote("0xff"), rule, "vote.sync", 8);
    assert!(report.contains("0x000000ff does not contain lanes 0x0000ff00"), "{report}");
    // Lanes that have ended do not count.
    is_clean(
        "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 exit; vote.sync.any.pred %p2, %p1, -1;",
    );
    is_clean("bar.warp.sync -1;");
    breaks(
        "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bar.warp.sync -1;",
        rule,
        "@%p1 bar",
        16,
    );
    breaks("redux.sync.add.u32 %r1, %t, 1;", rule, "redux", 31);
    breaks("mov.u32 %r2, 6; match.any.sync.b32 %r1, %t, %r2;", rule, "match", 30);
}

#[test]
fn shuffles_from_lanes_that_do_not_take_part_are_reported() {
    let shuffle = |source: u32| {
        format!(
            "and.b32 %r1, %t, 31; setp.lt.u32 %p1, %r1, 16; @!%p1 bra L; \
             shfl.sync.idx.b32 %r2, %r1, {source}, 31, 0xffff; L:"
        )
    };
    is_clean(&shuffle(15));
    let report = breaks(&shuffle(16), PtxRule::LaneSource, "shfl", 16);
    assert!(report.contains("lane 0 reads lane 16"), "{report}");
    // Out of range, a lane reads itself.
    is_clean("shfl.sync.up.b32 %r2, %t, 1, 0, -1;");
    is_clean("shfl.sync.bfly.b32 %r2, %t, 16, 31, -1;");
    // A partial wave.
    let found = check_threads(48, "shfl.sync.down.b32 %r2, %t, 1, 31, -1;");
    assert_eq!(rules(&found), [PtxRule::LaneSource]);
    assert_eq!((found[0].wave.wave, found[0].lanes.0), (1, 1 << 15));
}

#[test]
fn numbers_of_threads_at_barriers_are_checked() {
    is_clean("bar.sync 0, 64;");
    let report = breaks("bar.sync 0, 48;", PtxRule::BarrierCount, "bar.sync", 32);
    assert!(report.contains("48 threads"), "{report}");
}

/// Copies 16 bytes per thread from global to shared memory, and reads them after `wait`.
fn copy(wait: &str) -> String {
    format!(
        "and.b32 %r1, %t, 63; shl.b32 %r1, %r1, 4; mov.u32 %r2, shared; add.u32 %r2, %r2, %r1; \
         mov.u32 %r6, 12; mul.wide.u32 %rd2, %t, 12; add.u64 %rd3, %out, %rd2; \
         cp.async.cg.shared.global [%r2], [%rd3], 16; {wait} ld.shared.u32 %r3, [%r2]; st.global.u32 [%out], %r3;"
    )
}

#[test]
fn asynchronous_copies_must_be_waited_for() {
    let rule = PtxRule::AsyncCopy;
    is_clean(&copy("cp.async.wait_all;"));
    is_clean(&copy("cp.async.commit_group; cp.async.wait_group 0;"));
    let report = breaks(&copy(""), rule, "ld.shared", 1);
    assert!(
        report.contains("`cp.async.cg.shared.global [%r2], [%rd3], 16` of wave 0, lane 0"),
        "{report}"
    );
    assert!(report.contains("occurrences: 64"), "{report}");
    breaks(&copy("cp.async.commit_group;"), rule, "ld.shared", 1);
    breaks(&copy("cp.async.commit_group; cp.async.wait_group 1;"), rule, "ld.shared", 1);
    // The copy is in no group yet.
    breaks(&copy("cp.async.wait_group 0;"), rule, "ld.shared", 1);
    // A later group may be pending.
    is_clean(&copy("cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1;"));
    // Another thread waits.
    breaks(&copy("setp.ne.u32 %p1, %t, 5; @%p1 cp.async.wait_all;"), rule, "ld.shared", 1);
}

/// A product of a warpgroup, with text before, between and after.
fn product(before: &str, after: &str) -> Vec<PtxViolation> {
    let registers: Vec<String> = (1..=4).map(|number| format!("%r{number}")).collect();
    let zero: String = (1..=4).map(|number| format!("mov.b32 %r{number}, 0; ")).collect();
    let list = registers.join(", ");
    check_threads(
        128,
        &format!(
            "{zero} mov.u64 %rd1, 0x1000080000; setp.eq.u32 %p1, %t, 1000; {before} \
             wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{list}}}, %rd1, %rd1, %p1, 1, 1, 0, 0; {after}"
        ),
    )
}

#[test]
fn asynchronous_products_need_fences_and_waits() {
    let fence = "wgmma.fence.sync.aligned;";
    let wait = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;";
    let found = product(fence, &format!("{wait} {STORE}"));
    assert_eq!(rules(&found), [], "{found:#?}");
    let found = product("", &format!("{wait} {STORE}"));
    assert_eq!(rules(&found), [PtxRule::WarpgroupFence]);
    let found = product(&format!("{fence} mov.b32 %r3, 1;"), &format!("{wait} {STORE}"));
    assert_eq!(rules(&found), [PtxRule::WarpgroupFence]);
    assert!(found[0].found.starts_with("%r3 was accessed"), "{}", found[0]);
    let late = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;";
    for after in [STORE.to_owned(), format!("{late} {STORE}"), "mov.b32 %r2, 0;".to_owned()] {
        let found = product(fence, &after);
        assert_eq!(rules(&found), [PtxRule::WarpgroupWait], "{after}");
        assert_eq!(found[0].lanes.count(), 32);
    }
    // Other registers.
    let found = product(fence, &format!("mov.b32 %r8, 0; {wait} {STORE}"));
    assert_eq!(rules(&found), [], "{found:#?}");
}

/// One thread uses an mbarrier object.
fn object(body: &str) -> String {
    format!(
        "mov.u32 %r1, shared; setp.ne.u32 %p1, %t, 0; @%p1 bra L; {body} L: st.global.u32 [%out], %t;"
    )
}

#[test]
fn mbarrier_objects_must_be_used_as_such() {
    let rule = PtxRule::PhaseBarrier;
    let init = "mbarrier.init.shared.b64 [%r1], 2;";
    let arrive = "mbarrier.arrive.shared.b64 %rd1, [%r1];";
    is_clean(&object(&format!(
        "{init} {arrive} {arrive} mbarrier.test_wait.shared.b64 %p2, [%r1], %rd1;"
    )));
    is_clean(&object(&format!("{init} mbarrier.inval.shared.b64 [%r1]; {init} {arrive}")));
    is_clean(&object(&format!(
        "{init} mbarrier.inval.shared.b64 [%r1]; ld.shared.u32 %r2, [%r1];"
    )));
    let cases = [
        (arrive.to_owned(), "mbarrier.arrive", "no valid mbarrier object"),
        (format!("{init} {init}"), "mbarrier.init", "in use by the valid mbarrier object"),
        ("mbarrier.init.shared.b64 [%r1], 0;".to_owned(), "mbarrier.init", "a count of 0"),
        (
            format!("{init} mbarrier.arrive.shared.b64 %rd1, [%r1], 3;"),
            "mbarrier.arrive",
            "gets 3 arrivals, but its phase needs 2 more",
        ),
        (format!("{init} ld.shared.u32 %r2, [%r1+4];"), "ld.shared", "is a valid mbarrier object"),
        (format!("{init} st.shared.u8 [%r1+7], %r1;"), "st.shared", "is a valid mbarrier object"),
        (
            format!("{init} mbarrier.inval.shared.b64 [%r1]; {arrive}"),
            "mbarrier.arrive",
            "no valid mbarrier object",
        ),
    ];
    for (body, text, found) in cases {
        let report = breaks(&object(&body), rule, text, 1);
        assert!(report.contains(found), "{report}");
    }
}

#[test]
fn divisions_by_zero_are_reported() {
    let divide = |divisor: &str| format!("{divisor} div.u32 %r1, %t, %r2; {STORE}");
    is_clean(&divide("or.b32 %r2, %t, 1;"));
    breaks(&divide("and.b32 %r2, %t, 1;"), PtxRule::DivisionByZero, "div.u32", 16);
    is_clean("mov.b32 %r2, 0; div.rn.f32 %r1, %r2, %r2; st.global.u32 [%out], %r1;");
}

/// Reports name the kernel, the instruction, the line and the lanes.
#[test]
fn reports_name_the_place() {
    let found = check("bar.sync 0, 40;");
    let text = found[0].to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("barrier-count at 0x") && lines[0].ends_with("bar.sync 0, 40"),
        "{text}"
    );
    assert!(lines[1].contains("`k`"), "{text}");
    assert!(lines[3].contains("wave 0, 32 lanes starting at lane 0; occurrences: 2"), "{text}");
    let names: Vec<String> = PtxRule::ALL.iter().map(|rule| rule.to_string()).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
}
