//! Opcodes that are executed, and opcodes that are gaps: together those of the table.

use flipwave_ptx::{OPCODES, OpcodeFacts, Ptx, parse};
use flipwave_ptx_sim::PtxGpu;
use std::collections::BTreeSet;

/// A form of each row of the table that is executed. Registers: `%h` has 16 bits, `%r` 32, `%d` 64; `%p` are
/// predicates.
const EXECUTED: [&str; 106] = [
    "abs.f32 %r1, %r2",
    "activemask.b32 %r1",
    "add.rz.ftz.f32 %r1, %r2, %r3",
    "addc.cc.u32 %r1, %r2, %r3",
    "and.pred %p1, %p2, %p3",
    "applypriority.global.L2::evict_normal [%d1], 128",
    "atom.shared.add.u32 %r1, [%r2], %r3",
    "bar.sync 0",
    "bar.red.popc.u32 %r1, 0, %p1",
    "bar.cta.red.and.pred %p1, 0, %p2",
    "barrier.cta.sync 0, 64",
    "barrier.cluster.arrive",
    "barrier.red.or.pred %p1, 0, %p2",
    "barrier.cta.red.or.pred %p1, 0, %p2",
    "bfe.u32 %r1, %r2, 3, 4",
    "bfi.b64 %d1, %d2, %d3, 1, 2",
    "bfind.s64 %r1, %d1",
    "bmsk.clamp.b32 %r1, %r2, %r3",
    "bra L",
    "brev.b64 %d1, %d2",
    "brkpt",
    "brx.idx %r1, t",
    "call (%r1), f, (%r2)",
    "clz.b64 %r1, %d1",
    "cnot.b16 %h1, %h2",
    "copysign.f64 %d1, %d2, %d3",
    "cos.approx.f32 %r1, %r2",
    "cp.async.ca.shared.global [%r1], [%d1], 16",
    "createpolicy.fractional.L2::evict_last.b64 %d1",
    "cvt.rn.f16.f32 %h1, %r1",
    "cvta.to.global.u64 %d1, %d2",
    "discard.global.L2 [%d1], 128",
    "div.rn.f64 %d1, %d2, %d3",
    "dp2a.lo.s32.u32 %r1, %r2, %r3, %r1",
    "dp4a.u32.u32 %r1, %r2, %r3, %r1",
    "elect.sync %r1|%p1, -1",
    "ex2.approx.ftz.f16x2 %r1, %r2",
    "exit",
    "fence.proxy.async",
    "fma.rn.bf16x2 %r1, %r2, %r3, %r1",
    "fns.b32 %r1, %r2, 0, 1",
    "getctarank.shared::cluster.u64 %r1, %d1",
    "griddepcontrol.wait",
    "isspacep.shared %p1, %d1",
    "ld.global.v4.f32 {%r1, %r2, %r3, _}, [%d1]",
    "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, [%r3]",
    "ldu.global.u64 %d1, [%d2]",
    "lg2.approx.f32 %r1, %r2",
    "lop3.b32 %r1, %r2, %r3, 7, 0xE8",
    "mad.hi.sat.s32 %r1, %r2, %r3, %r1",
    "mad24.lo.u32 %r1, %r2, %r3, %r1",
    "madc.lo.cc.u32 %r1, %r2, %r3, %r1",
    "mapa.shared::cluster.u64 %d1, %d2, 0",
    "match.all.sync.b64 %r1|%p1, %d1, -1",
    "max.NaN.f16x2 %r1, %r2, %r3",
    "mbarrier.init.shared.b64 [%r1], 1",
    "mbarrier.arrive.shared.b64 %d1, [%r1]",
    "mbarrier.arrive_drop.shared.b64 %d1, [%r1]",
    "mbarrier.test_wait.shared.b64 %p1, [%r1], %d1",
    "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0",
    "membar.gl",
    "min.s64 %d1, %d2, %d3",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r1, %r2, %r3, %r1}, {%r1, %r2, %r3, %r1}, {%r1, %r2}, \
     {%r1, %r2, %r3, %r1}",
    "mov.b64 {%r1, %r2}, %d1",
    "mul.wide.s16 %r1, %h1, %h2",
    "mul24.hi.s32 %r1, %r2, %r3",
    "nanosleep.u32 100",
    "neg.bf16x2 %r1, %r2",
    "not.b64 %d1, %d2",
    "or.b32 %r1, %r2, 0x80000000",
    "pmevent 1",
    "popc.b32 %r1, %r2",
    "prefetch.global.L2 [%d1]",
    "prefetchu.L1 [%d1]",
    "prmt.b32.rc16 %r1, %r2, %r3, %r1",
    "rcp.rm.f64 %d1, %d2",
    "red.global.add.f64 [%d1], %d2",
    "redux.sync.xor.b32 %r1, %r2, -1",
    "rem.s16 %h1, %h2, %h1",
    "ret",
    "rsqrt.approx.f64 %d1, %d2",
    "sad.u32 %r1, %r2, %r3, %r1",
    "selp.f32 %r1, %r2, 0f3F800000, %p1",
    "set.gtu.and.s32.f64 %r1, %d1, %d2, %p1",
    "setmaxnreg.inc.sync.aligned.u32 64",
    "setp.nan.or.f16 %p1|%p2, %h1, %h2, !%p3",
    "shf.r.clamp.b32 %r1, %r2, %r3, 8",
    "shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1",
    "shl.b16 %h1, %h2, %r1",
    "shr.s64 %d1, %d2, %r1",
    "sin.approx.ftz.f32 %r1, %r2",
    "slct.f32.f32 %r1, %r2, %r3, %r1",
    "sqrt.rp.f32 %r1, %r2",
    "st.shared.v2.b64 [%r1], {%d1, %d2}",
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2}",
    "sub.sat.s32 %r1, %r2, %r3",
    "subc.u64 %d1, %d2, %d3",
    "szext.wrap.u32 %r1, %r2, %r3",
    "testp.subnormal.f64 %p1, %d1",
    "tanh.approx.bf16 %h1, %h2",
    "trap",
    "vote.sync.ballot.b32 %r1, %p1, -1",
    "xor.b64 %d1, %d2, %d3",
    "add.f32.bf16 %r1, %h1, %r2",
    "wgmma.fence.sync.aligned",
    "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %d1, %d2, %p1, 1, 1, 0, 0",
];

/// Rows of the table that are gaps, whatever their modifiers.
const GAPS: [&str; 57] = [
    "alloca",
    "clusterlaunchcontrol",
    "clusterlaunchcontrol.query_cancel",
    "istypep",
    "mbarrier.pending_count",
    "movmatrix",
    "multimem.cp",
    "multimem.ld_reduce",
    "multimem.red",
    "multimem.st",
    "stackrestore",
    "stacksave",
    "suld",
    "suq",
    "sured",
    "sust",
    "tcgen05.alloc",
    "tcgen05.commit",
    "tcgen05.cp",
    "tcgen05.dealloc",
    "tcgen05.fence",
    "tcgen05.ld",
    "tcgen05.mma",
    "tcgen05.relinquish_alloc_permit",
    "tcgen05.shift",
    "tcgen05.st",
    "tcgen05.wait",
    "tensormap",
    "tensormap.cp_fenceproxy",
    "tex",
    "tld4",
    "txq",
    "vabsdiff",
    "vabsdiff2",
    "vabsdiff4",
    "vadd",
    "vadd2",
    "vadd4",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmax2",
    "vmax4",
    "vmin",
    "vmin2",
    "vmin4",
    "vset",
    "vset2",
    "vset4",
    "vshl",
    "vshr",
    "vsub",
    "vsub2",
    "vsub4",
    "wmma",
    "wmma.store",
];

/// Reasons for the gaps of a module with this instruction.
fn gaps(inst: &str) -> Vec<String> {
    let text = format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.func (.reg .b32 y) f(.reg .b32 x) {{ ret; }}\n.entry k() \
         {{ .reg .b16 %h<3>; .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p<4>; t: .branchtargets L; L: {inst}; \
         }}"
    );
    let module = parse(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    let mut gpu = PtxGpu::new(Ptx::new("sm_90").expect("a target"));
    let module = gpu.load(&module).unwrap_or_else(|error| panic!("{inst}: {error}"));
    let program = gpu.program(module).expect("a module");
    program.gaps().map(|(_, gap)| gap.reason().to_owned()).collect()
}

#[test]
fn every_opcode_is_executed_or_a_gap() {
    let mut seen = BTreeSet::new();
    for inst in EXECUTED {
        let name = inst.split(' ').next().expect("a name");
        let found = gaps(inst);
        assert!(found.is_empty(), "{inst}: {found:?}");
        seen.insert(OpcodeFacts::of(name).unwrap_or_else(|| panic!("{inst}")).name);
    }
    for name in GAPS {
        assert_eq!(gaps(name).len(), 1, "{name}");
        assert!(seen.insert(name), "{name} is executed");
    }
    let all: BTreeSet<&str> = OPCODES.iter().map(|row| row.name).collect();
    let missing: Vec<_> = all.difference(&seen).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(seen, all);
}
