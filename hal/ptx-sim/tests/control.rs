//! Control flow, synchronisation and exchange between lanes, in hand-written PTX.

use crate::common::forms::{Operands, Random, check, execute};
use crate::common::{Bench, arguments, to_words, words};
use flipwave_device::{AccessKind, Dispatch, FaultCause};
use flipwave_machine::Machine;

/// A kernel whose threads store `%x` at their place in `out`.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n{}\n",
        body.replace(
            "ENTRY",
            ".visible .entry k(.param .u64 out)\n{\n.reg .b64 %out, %place; .reg .b32 %x, %t, %lane; \
             .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %d<8>; ld.param.u64 %out, [out]; mov.u32 %t, \
             %tid.x; mov.u32 %lane, %laneid; mad.wide.u32 %place, %t, 4, %out; mov.u32 %x, 0;",
        )
        .replace("STORE", "st.global.u32 [%place], %x;")
    )
}

/// Words that the threads of a workgroup store.
fn run(threads: u32, body: &str) -> Vec<u32> {
    let mut bench = Bench::new(&kernel(body));
    let output = bench.buffer(&vec![0xee; 4 * threads as usize]);
    let dispatch = bench.dispatch("k", threads, threads, &arguments(&[output.0]));
    bench.run(&dispatch);
    to_words(&bench.read(output, 4 * threads as usize))
}

fn fault(body: &str) -> FaultCause {
    let mut bench = Bench::new(&kernel(body));
    let output = bench.buffer(&[0; 512]);
    let dispatch = bench.dispatch("k", 64, 64, &arguments(&[output.0]));
    bench.fault(&Dispatch { instruction_limit: 100_000, ..dispatch })
}

fn each(threads: u32, value: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..threads).map(value).collect()
}

#[test]
fn nested_branches_and_indexed_branches_reconverge() {
    let body = "ENTRY
        t: .branchtargets A, B, C, D;
        and.b32 %r1, %t, 3;
        brx.idx %r1, t;
        A: add.u32 %x, %x, 100; bra E;
        B: setp.gt.u32 %p1, %t, 16; @%p1 bra C; add.u32 %x, %x, 20; bra E;
        C: add.u32 %x, %x, 3; bra E;
        D: @!%p2 bra.uni E;
        E: activemask.b32 %r2; popc.b32 %r2, %r2; mad.lo.u32 %x, %r2, 1000, %x; STORE ret; }";
    let expected = |tid| {
        let own = match tid & 3 {
            0 => 100,
            1 if tid <= 16 => 20,
            1 | 2 => 3,
            _ => 0,
        };
        own + 32_000
    };
    assert_eq!(run(32, body), each(32, expected));
}

#[test]
fn guarded_returns_and_exits_end_some_lanes() {
    let body = ".func (.reg .b32 y) f(.reg .b32 n) { .reg .pred %q; mov.u32 y, 7; setp.lt.u32 %q, n, 8; \
        @%q ret; mov.u32 y, 9; setp.gt.u32 %q, n, 20; @%q exit; ret; }
        ENTRY call (%x), f, (%t); activemask.b32 %r1; popc.b32 %r1, %r1; mad.lo.u32 %x, %r1, 100, %x; \
        STORE ret; }";
    let expected = |tid| match tid {
        0..8 => 2107,
        8..=20 => 2109,
        _ => 0xeeee_eeee,
    };
    assert_eq!(run(32, body), each(32, expected));
}

#[test]
fn barriers_combine_predicates() {
    // 96 threads; 40 predicates are true.
    let body = "ENTRY setp.lt.u32 %p1, %t, 40; bar.red.popc.u32 %x, 0, %p1; bar.red.and.pred %p2, 1, \
        %p1; barrier.cta.red.or.pred %p3, 1, 96, !%p1; selp.u32 %r1, 1000, 0, %p2; selp.u32 %r2, 2000, 0, \
        %p3; add.u32 %x, %x, %r1; add.u32 %x, %x, %r2; STORE ret; }";
    assert_eq!(run(96, body), vec![2040; 96]);
}

#[test]
fn producers_and_consumers_meet_at_counted_barriers() {
    // Wave 0 waits for wave 1, which only arrives; wave 2 takes no part.
    let body = ".shared .u32 s; ENTRY shr.u32 %r1, %t, 5; setp.eq.u32 %p1, %r1, 1; setp.eq.u32 %p2, %r1, \
        2; @%p2 bra END; @%p1 bra PRODUCE; barrier.cta.sync 3, 64; ld.shared.u32 %x, [s]; bra END; PRODUCE: \
        st.shared.u32 [s], 77; bar.arrive 3, 64; END: STORE ret; }";
    assert_eq!(run(96, body), each(96, |tid| if tid < 32 { 77 } else { 0 }));
}

#[test]
fn waves_that_have_ended_do_not_delay_barriers() {
    let body = "ENTRY setp.ge.u32 %p1, %t, 32; @%p1 exit; bar.sync 0; mov.u32 %x, 5; STORE ret; }";
    assert_eq!(run(64, body), each(64, |tid| if tid < 32 { 5 } else { 0xeeee_eeee }));
}

#[test]
fn deadlocks_and_invalid_uses_are_faults() {
    let deadlock =
        "ENTRY setp.ge.u32 %p1, %t, 32; @%p1 bra B; bar.sync 0; bra E; B: bar.sync 1; E: ret; }";
    let cause = fault(deadlock);
    assert!(matches!(cause, FaultCause::Watchdog { executed } if executed < 100), "{cause:?}");
    assert_eq!(
        fault("ENTRY mov.u32 %r1, 16; bar.sync %r1; ret; }"),
        FaultCause::IllegalInstruction { word: 16 }
    );
    let wild = fault("ENTRY mov.u64 %d1, 12345; p: .callprototype _ (); call %d1, p; ret; }");
    assert!(
        matches!(wild, FaultCause::MemoryViolation { access: AccessKind::Fetch, .. }),
        "{wild:?}"
    );
    let endless = ".func f() { call f; ret; } ENTRY call f; ret; }";
    assert!(matches!(
        fault(endless),
        FaultCause::MemoryViolation { access: AccessKind::Write, .. }
    ));
    assert_eq!(fault("ENTRY brkpt; ret; }"), FaultCause::Trap { id: 3 });
    let outside = fault(".shared .u32 s[4]; ENTRY ld.shared.u32 %x, [s+16]; ret; }");
    assert!(
        matches!(outside, FaultCause::MemoryViolation { access: AccessKind::Read, .. }),
        "{outside:?}"
    );
}

/// Instructions that are not implemented are reported with their position, before any lane executes them.
#[test]
fn gaps_name_the_instruction_and_its_position() {
    for (inst, reason) in [
        ("frobnicate.b32 %x, %t", "unknown opcode"),
        ("tcgen05.alloc.cta_group::1.sync.aligned.b32 [%out], 32", "this form is not supported"),
        ("call f", "function `f` has no code in the module"),
    ] {
        let body =
            format!(".extern .func f(); ENTRY st.global.u32 [%out], 1;\n  {inst}; STORE ret; }}");
        let FaultCause::Unimplemented { instruction, reason: found } = fault(&body) else {
            panic!("{inst}")
        };
        assert_eq!(&*instruction, inst);
        assert_eq!(&*found, format!("{reason} (line 7, column 3)"));
    }
}

#[test]
fn lanes_exchange_values() {
    let same = "ENTRY shfl.sync.MODE.b32 %x|%p1, %lane, B, C, -1; selp.u32 %r1, 100, 0, %p1; add.u32 %x, %x, \
                %r1; STORE ret; }";
    let shuffle = |mode: &str, b: &str, c: &str| {
        run(
            32,
            &same
                .replace("MODE", mode)
                .replace("B,", &format!("{b},"))
                .replace("C,", &format!("{c},")),
        )
    };
    assert_eq!(shuffle("up", "3", "0"), each(32, |lane| if lane < 3 { lane } else { 97 + lane }));
    assert_eq!(
        shuffle("down", "1", "31"),
        each(32, |lane| if lane == 31 { 31 } else { 101 + lane })
    );
    assert_eq!(shuffle("bfly", "5", "31"), each(32, |lane| 100 + (lane ^ 5)));
    assert_eq!(shuffle("idx", "9", "31"), vec![109; 32]);
    // Segments of eight lanes.
    assert_eq!(shuffle("idx", "3", "0x181f"), each(32, |lane| 100 + (lane & 24) + 3));
    assert_eq!(
        shuffle("down", "2", "0x1807"),
        each(32, |lane| if lane & 7 < 6 { 102 + lane } else { lane })
    );
}

#[test]
fn votes_count_active_lanes_only() {
    let vote = |mode: &str| {
        let body = format!(
            "ENTRY setp.lt.u32 %p1, %lane, 20; @!%p1 bra END; setp.gt.u32 %p2, %lane, 16; {mode}; END: STORE \
             ret; }}"
        );
        run(32, &body)[..20].to_vec()
    };
    assert_eq!(vote("vote.sync.ballot.b32 %x, %p2, -1"), [0xe_0000; 20]);
    assert_eq!(vote("vote.sync.any.pred %p3, %p2, -1; selp.u32 %x, 1, 0, %p3"), [1; 20]);
    assert_eq!(vote("vote.sync.all.pred %p3, %p2, 0x60000; selp.u32 %x, 1, 0, %p3"), [1; 20]);
    assert_eq!(vote("vote.sync.uni.pred %p3, !%p2, -1; selp.u32 %x, 1, 0, %p3"), [0; 20]);
    assert_eq!(vote("activemask.b32 %x"), [0xf_ffff; 20]);
    let modulo = "rem.u32 %r1, %lane, 3; ";
    let same = |lane: u32| {
        (0..20).filter(|other| other % 3 == lane % 3).fold(0, |mask, bit| mask | 1 << bit)
    };
    assert_eq!(vote(&format!("{modulo}match.any.sync.b32 %x, %r1, -1")), each(20, same));
    assert_eq!(vote(&format!("{modulo}match.all.sync.b32 %x|%p3, %r1, -1")), [0; 20]);
    assert_eq!(vote("redux.sync.add.u32 %x, %lane, -1"), [190; 20]);
    assert_eq!(vote("neg.s32 %r1, %lane; redux.sync.min.s32 %x, %r1, -1"), [-19i32 as u32; 20]);
    assert_eq!(
        vote("elect.sync %x|%p3, -1; selp.u32 %r1, 50, 0, %p3; add.u32 %x, %x, %r1")[..2],
        [50, 0]
    );
}

#[test]
fn special_registers_describe_the_launch() {
    let text = kernel(
        "ENTRY mov.u32 %r1, %tid.y; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ntid.z; mov.u32 %r4, %nctaid.x; \
         mov.u32 %r5, %warpid; mov.u32 %r6, %lanemask_lt; popc.b32 %r6, %r6; mad.lo.u32 %x, %r1, 10, %r2; \
         mad.lo.u32 %x, %x, 10, %r3; mad.lo.u32 %x, %x, 10, %r4; mad.lo.u32 %x, %x, 10, %r5; mad.lo.u32 %x, \
         %x, 100, %r6; mov.u32 %r7, %tid.x; mad.lo.u32 %r7, %r1, 8, %r7; mad.lo.u32 %r7, %r2, 40, %r7; \
         mad.wide.u32 %place, %r7, 4, %out; STORE ret; }",
    );
    let mut bench = Bench::new(&text);
    let output = bench.buffer(&[0; 320]);
    let mut dispatch = bench.dispatch("k", 8, 8, &arguments(&[output.0]));
    (dispatch.grid, dispatch.workgroup) = ([8, 10, 1], [8, 5, 1]);
    bench.run(&dispatch);
    let expected = (0..80u32).map(|item| {
        let (x, y, group) = (item % 8, item / 8 % 5, item / 40);
        let linear = y * 8 + x;
        (((y * 10 + group) * 10 + 1) * 10 + 1) * 1000 + linear / 32 * 100 + linear % 32
    });
    assert_eq!(to_words(&bench.read(output, 320)), expected.collect::<Vec<_>>());
    // Launches that the kernel or the device does not permit.
    for (grid, workgroup) in
        [([9, 1, 1], [8, 1, 1]), ([2048, 1, 1], [2048, 1, 1]), ([8, 0, 1], [8, 1, 1])]
    {
        assert!(bench.gpu.begin(&Dispatch { grid, workgroup, ..dispatch.clone() }).is_err());
    }
}

#[test]
fn atomic_operations_return_the_old_value() {
    let mut random = Random(11);
    let operands: Vec<Operands> =
        (0..200).map(|_| [0; 4].map(|_: u64| random.next() & 0xff)).collect();
    let atomic = |form: &str, new: fn(u32, u32) -> u32| {
        let inst = format!(
            "{{ .reg .b64 %place; add.u64 %place, %address, 0; atom.global.{form} %x, [%place], %b; \
             ld.global.b32 %y, [%place]; }}"
        );
        let results = execute(&inst, "rrrr", &operands);
        for ([a, b, ..], [old, found]) in operands.iter().zip(results) {
            assert_eq!(
                (old as u32, found as u32),
                (*a as u32, new(*a as u32, *b as u32)),
                "{form}"
            );
        }
    };
    atomic("add.u32", u32::wrapping_add);
    atomic("exch.b32", |_, b| b);
    atomic("and.b32", |a, b| a & b);
    atomic("xor.b32", |a, b| a ^ b);
    atomic("min.s32", |a, b| a.min(b));
    atomic("max.u32", |a, b| a.max(b));
    atomic("inc.u32", |a, b| if a >= b { 0 } else { a + 1 });
    atomic("dec.u32", |a, b| if a == 0 || a > b { b } else { a - 1 });
    // Lanes change a word one after the other.
    let body = ".shared .u32 s; ENTRY st.shared.u32 [s], 0; bar.sync 0; atom.shared.add.u32 %r1, [s], 1; bar.sync \
        0; red.shared.max.u32 [s], 50; bar.sync 0; ld.shared.u32 %x, [s]; STORE ret; }";
    assert_eq!(run(64, body), vec![64; 64]);
    check(
        "{ .reg .b32 %n; atom.global.cas.b32 %n, [%address], %b, %c; ld.global.b32 %x, [%address]; }",
        "r-rrr",
        &operands,
        |[a, b, c, _]| {
            if a == b { c } else { a }
        },
    );
}

#[test]
fn elements_of_vectors_change_one_by_one() {
    let one = 1f32.to_bits();
    let operands: Vec<Operands> =
        (0..64u64).map(|n| [0, ((n as f32).to_bits()).into(), one.into(), 7]).collect();
    let inst = "{ .reg .b32 %o, %n; atom.global.add.v2.f32 {%o, %x}, [%address+8], {%c, %c};
        ld.global.v2.b32 {%n, %y}, [%address+8]; add.u32 %y, %y, %n; }";
    // The second element is the upper half of an operand of 64 bits.
    for ([_, b, ..], [x, y]) in operands.iter().zip(execute(inst, "rrrrr", &operands)) {
        let first = f32::from_bits(*b as u32) + 1.0;
        assert_eq!((x, y), (0, u64::from(first.to_bits().wrapping_add(one))), "{b:#x}");
    }
}

#[test]
fn generic_addresses_reach_every_state_space() {
    let body = ".shared .u32 s; .global .u32 g = 40; .const .u32 c = 500;
        ENTRY .local .u32 l;
        mov.u64 %d1, s; cvta.shared.u64 %d1, %d1; mov.u64 %d2, g; cvta.global.u64 %d2, %d2;
        mov.u64 %d3, c; cvta.const.u64 %d3, %d3; mov.u64 %d4, l; cvta.local.u64 %d4, %d4;
        st.u32 [%d1], 3; st.u32 [%d4], %lane; bar.sync 0;
        ld.u32 %r1, [%d1]; ld.u32 %r2, [%d2]; ld.u32 %r3, [%d3]; ld.u32 %r4, [%d4];
        add.u32 %x, %r1, %r2; add.u32 %x, %x, %r3; mad.lo.u32 %x, %r4, 1000, %x;
        isspacep.shared %p1, %d1; isspacep.local %p2, %d4; isspacep.global %p3, %d1; and.pred %p1, %p1, %p2;
        selp.u32 %r5, 100000, 0, %p1; add.u32 %x, %x, %r5; @%p3 mov.u32 %x, 0;
        cvta.to.shared.u64 %d5, %d1; ld.shared.u32 %r6, [%d5]; sub.u32 %r6, %r6, 3; add.u32 %x, %x, %r6;
        STORE ret; }";
    assert_eq!(run(32, body), each(32, |lane| 100_543 + 1000 * lane));
}

#[test]
fn variables_have_their_initial_values() {
    let body = ".global .u32 a[3] = {5, 6}; .global .u64 p = generic(a)+4; .global .u64 q[2] = {0, a};
        .global .v2 .u16 v[2] = {{1, 2}, {3, 4}}; .global .f32 f = 1.5; .global .u8 b[8] = {0xFF(a), 0xFF00(a)};
        ENTRY ld.global.u64 %d1, [p]; ld.global.u32 %x, [%d1]; ld.global.u64 %d2, [q+8]; ld.global.u32 %r1, \
        [%d2]; mad.lo.u32 %x, %x, 10, %r1; ld.global.u16 %r2, [v+6]; mad.lo.u32 %x, %x, 10, %r2; ld.global.u32 \
        %r3, [a+8]; add.u32 %x, %x, %r3; ld.global.f32 %r4, [f]; cvt.rzi.u32.f32 %r4, %r4; mad.lo.u32 %x, %x, \
        10, %r4; mov.u64 %d3, a; ld.global.u8 %r5, [b+1]; cvt.u32.u64 %r6, %d3; bfe.u32 %r6, %r6, 8, 8; \
        sub.u32 %r6, %r6, %r5; add.u32 %x, %x, %r6; STORE ret; }";
    assert_eq!(run(1, body), [6541]);
}

#[test]
fn bytes_are_copied_asynchronously() {
    let body = ".shared .align 16 .u32 s[128]; .global .align 16 .u32 g[4] = {1, 20, 300, 4000};
        ENTRY mov.u64 %d1, s; mad.wide.u32 %d1, %t, 16, %d1; mov.u64 %d2, g; setp.eq.u32 %p1, %t, 1;
        mov.u32 %r1, 16; @%p1 mov.u32 %r1, 8; cvt.u32.u64 %r2, %d1;
        cp.async.cg.shared.global [%r2], [%d2], 16, %r1; cp.async.commit_group; cp.async.wait_group 0;
        ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%d1]; add.u32 %x, %r3, %r4; add.u32 %x, %x, %r5; add.u32 %x, \
        %x, %r6; STORE ret; }";
    assert_eq!(run(32, body), each(32, |tid| if tid == 1 { 21 } else { 4321 }));
}

#[test]
fn matrices_are_loaded_by_rows() {
    // Element (row, column) of matrix m is 64 * m + 8 * row + column.
    let body = ".shared .align 16 .b8 s[512]; ENTRY mad.lo.u32 %r1, %lane, 8, 0; mov.u32 %r2, 0; L: add.u32 %r3, \
        %r1, %r2; mul.lo.u32 %r4, %r3, 2; mov.u64 %d1, s; cvt.u64.u32 %d2, %r4; add.u64 %d1, %d1, %d2; \
        st.shared.u16 [%d1], %r3; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 8; @%p1 bra L; bar.warp.sync -1; \
        mov.u32 %r5, s; mad.lo.u32 %r5, %lane, 16, %r5; \
        ldmatrix.sync.aligned.m8n8.x4TRANS.shared.b16 {%r6, %r7, %r8, %r9}, [%r5]; mov.u32 %x, %r8; STORE ret; }";
    let plain = run(32, &body.replace("TRANS", ""));
    let pair = |low: u32, high: u32| low | high << 16;
    assert_eq!(
        plain,
        each(32, |lane| {
            let first = 128 + 8 * (lane / 4) + 2 * (lane % 4);
            pair(first, first + 1)
        })
    );
    let transposed = run(32, &body.replace("TRANS", ".trans"));
    assert_eq!(
        transposed,
        each(32, |lane| {
            let first = 128 + 8 * (2 * (lane % 4)) + lane / 4;
            pair(first, first + 8)
        })
    );
}

#[test]
fn waves_wait_at_barriers_in_memory() {
    // Wave 1 writes after wave 0 waits; both arrive with all their lanes.
    let body = ".shared .align 8 .u64 m; .shared .u32 s; ENTRY setp.ne.u32 %p1, %t, 0; @%p1 bra A; \
        mbarrier.init.shared.b64 [m], 64; A: bar.sync 0; shr.u32 %r1, %t, 5; setp.eq.u32 %p2, %r1, 1; @!%p2 bra B; \
        st.shared.u32 [s], 9; B: mbarrier.arrive.shared.b64 %d1, [m]; C: mbarrier.test_wait.shared.b64 %p3, [m], \
        %d1; @!%p3 bra C; ld.shared.u32 %x, [s]; mbarrier.try_wait.parity.shared.b64 %p4, [m], 1; selp.u32 %r2, \
        100, 0, %p4; add.u32 %x, %x, %r2; STORE ret; }";
    assert_eq!(run(64, body), vec![9; 64]);
}

/// A checkpoint in the middle continues like the original.
#[test]
fn clones_of_a_dispatch_continue_alike() {
    use flipwave_machine::{Progress, Unobserved};
    let body = ".shared .u32 s; ENTRY mov.u32 %r1, 0; L: atom.shared.add.u32 %r2, [s], %t; add.u32 %r1, %r1, 1; \
        setp.lt.u32 %p1, %r1, 50; @%p1 bra L; bar.sync 0; ld.shared.u32 %x, [s]; STORE ret; }";
    let mut bench = Bench::new(&kernel(body));
    let output = bench.buffer(&words(&[0; 96]));
    let dispatch = bench.dispatch("k", 96, 96, &arguments(&[output.0]));
    let mut execution = bench.gpu.begin(&dispatch).expect("a dispatch");
    let paused = bench.gpu.advance(&mut execution, &mut Unobserved, 333).expect("progress");
    assert_eq!(paused, Progress::Paused);
    let (mut other, mut copy) = (bench.gpu.clone(), execution.clone());
    assert!(copy.continues_like(&execution) && other.is_in_state_of(&bench.gpu));
    let ends = [
        bench.gpu.advance(&mut execution, &mut Unobserved, u64::MAX).expect("an end"),
        other.advance(&mut copy, &mut Unobserved, u64::MAX).expect("an end"),
    ];
    assert_eq!(ends[0], ends[1]);
    assert!(other.is_in_state_of(&bench.gpu));
    assert_eq!(to_words(&bench.read(output, 384)), vec![50 * 95 * 96 / 2; 96]);
}

/// Workgroups of three waves that arrive at the word `out` and wait for all others, and store how many have arrived.
/// Waves with odd numbers take another way to the barrier of their workgroup.
const MEETING: &str =
    "ENTRY mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; setp.ne.u32 %p1, %t, 0; @%p1 bra W;
    atom.global.add.u32 %r3, [%out], 1;
    S: ld.volatile.global.u32 %r3, [%out]; setp.lt.u32 %p2, %r3, %r2; @%p2 bra S;
    W: bar.sync 0; ld.volatile.global.u32 %x, [%out]; mad.lo.u32 %r4, %r1, 96, %t;
    mad.wide.u32 %place, %r4, 4, %out; st.global.u32 [%place+4], %x; ret; }";

/// A cooperative launch of five workgroups that meet.
fn meeting() -> (Bench, Dispatch) {
    let mut bench = Bench::new(&kernel(MEETING));
    let output = bench.buffer(&[0; 4 + 4 * 5 * 96]);
    let dispatch = bench.dispatch("k", 5 * 96, 96, &arguments(&[output.0]));
    (bench, Dispatch { is_cooperative: true, ..dispatch })
}

/// Both tiers, with pauses at which they must be in the same state.
#[test]
fn workgroups_of_cooperative_launches_wait_for_each_other() {
    let (mut bench, dispatch) = meeting();
    let statistics = bench.run(&dispatch);
    assert_eq!(statistics.waves, 15);
    let [address, ..] = bench.gpu.allocations()[..] else { panic!("no memory") };
    assert_eq!(to_words(&bench.read(address.0, 4 * 481)), vec![5; 481]);

    let (mut bench, dispatch) = meeting();
    let alone = Dispatch { is_cooperative: false, ..dispatch.clone() };
    assert!(matches!(bench.fault(&alone), FaultCause::Watchdog { executed: 200_000 }));

    let grid = [96 * 342, 1, 1];
    let error = bench.gpu.begin(&Dispatch { grid, ..dispatch }).err().expect("an error");
    let expected =
        "cannot launch kernel `k`: a cooperative launch of 1026 waves; expected at most 1024";
    assert_eq!(error.to_string(), expected);
}

/// Observers see waves of several workgroups in turns.
#[test]
fn cooperative_launches_are_counted_and_checked() {
    use flipwave_arch::LaneMask;
    use flipwave_machine::{Progress, Unobserved};
    use flipwave_ptx_sim::StrictCheck;
    let (mut bench, dispatch) = meeting();
    let mut execution = bench.gpu.begin(&dispatch).expect("begins");
    let mut survey = bench.gpu.begin_survey(&execution, Some(LaneMask::FULL)).expect("a survey");
    let end = bench.gpu.advance_surveyed(
        &mut execution,
        &mut Unobserved,
        &mut *survey,
        None,
        None,
        u64::MAX,
    );
    let Ok(Progress::Ended(flipwave_device::Completion::Completed(statistics))) = end else {
        panic!("{end:?}")
    };
    let ended = survey.counts().expect("counts").take_ended();
    let counted =
        ended.iter().flat_map(|wave| &wave.instructions).map(|(_, count)| count.executions);
    assert_eq!((ended.len(), counted.sum()), (15, statistics.wave_instructions));

    let (mut bench, dispatch) = meeting();
    let mut execution = bench.gpu.begin(&dispatch).expect("begins");
    let mut check = StrictCheck::default();
    let checked = bench.gpu.advance_checked(&mut execution, &mut check, u64::MAX);
    let Ok(Progress::Ended(flipwave_device::Completion::Completed(strict))) = checked else {
        panic!("{checked:?}")
    };
    assert_eq!((strict, check.into_violations().len()), (statistics, 0));
}
