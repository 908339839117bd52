//! Liveness compared with a search through all paths, and with expected sets.

pub(crate) mod search;

use super::{Live, Liveness, RegisterUse, initialised};
use crate::flow::tests::assembled::{assemble, descriptor, program, text};
use crate::flow::{BlockIndex, Disassembly};
use crate::registers::Allocation;
use flipwave_isa::{Register, RegisterSet};

const CALL: &str = "
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, second@rel32@lo+4
    s_addc_u32 s5, s5, second@rel32@hi+12
    s_swappc_b64 s[30:31], s[4:5]
";

fn register(name: &str) -> Register {
    name.parse().expect("a register")
}

fn has(set: RegisterSet, names: &[&str]) -> bool {
    names.iter().all(|name| set.contains(register(name)))
}

fn has_none(set: RegisterSet, names: &[&str]) -> bool {
    names.iter().all(|name| !set.contains(register(name)))
}

/// Registers that are live before the first instruction whose assembly contains `text`.
fn before(program: &Disassembly, text: &str) -> Live {
    Liveness::new(program).before(program.find(text))
}

#[test]
fn kernarg_pointer_is_live_until_its_last_load() {
    for processor in ["gfx90a", "gfx1100"] {
        let body = "s_nop 3
            s_load_dwordx2 s[6:7], s[0:1], 0x0
            s_waitcnt lgkmcnt(0)
            s_load_dword s8, s[6:7], 0x0
            s_endpgm";
        let program = program(processor, &[("kernel", body)], "");
        assert!(has(before(&program, "s_nop 3").active, &["s0", "s1"]), "{processor}");
        assert!(has_none(before(&program, "s_waitcnt").active, &["s0", "s1"]), "{processor}");
        assert!(has(before(&program, "s_waitcnt").active, &["s6", "s7"]), "{processor}");
    }
}

#[test]
fn registers_live_across_a_call_are_live_in_the_callee() {
    let kernel =
        format!("{CALL} global_store_dword v[2:3], v0, off\n v_mov_b32 v7, s9\n {CALL} s_endpgm");
    let second = "v_add_u32 v0, v1, v0\n v_mov_b32 v6, 0\n s_setpc_b64 s[30:31]";
    let program = program("gfx90a", &[("kernel", &kernel), ("second", second)], "");
    let entry = Liveness::new(&program).entry(BlockIndex(0)).any();
    // v0 and v1 are arguments, v2, v3 and s9 are read afterwards.
    assert!(has(entry, &["v0", "v1", "v2", "v3", "s9"]), "{entry}");
    assert!(has_none(entry, &["v6", "v7", "s30", "s4", "s0"]), "{entry}");
    let inside = before(&program, "v_mov_b32 v6, 0").any();
    assert!(has(inside, &["v0", "v2", "v3", "s9", "s30", "s31"]), "{inside}");
    let back = Liveness::new(&program).after(program.find("s_swappc_b64"));
    assert!(has(back.any(), &["v0", "v2", "v3", "s9"]) && has_none(back.any(), &["s30", "s31"]));
}

#[test]
fn everything_is_live_at_calls_of_unknown_pointers() {
    let kernel = "s_load_dwordx2 s[4:5], s[0:1], 0x0
        s_waitcnt lgkmcnt(0)
        s_swappc_b64 s[30:31], s[4:5]
        s_endpgm";
    let functions =
        [("kernel", kernel), ("second", "v_mov_b32 v3, 0\n s_nop 5\n s_setpc_b64 s[30:31]")];
    let program = program("gfx90a", &functions, ".data\n.quad second\n");
    let live = before(&program, "s_waitcnt");
    assert!(has(live.active, &["vcc_lo", "exec_hi", "m0", "scc"]));
    assert!(has_none(live.masked, &["s0"]));
    // Only the loaded pair is overwritten before the call.
    let entry = Liveness::new(&program).entry(BlockIndex(0)).any();
    assert!(has_none(entry, &["s4", "s5"]));
    // Everything is live after a function whose address is taken.
    let inside = before(&program, "s_nop 5");
    assert!(has(inside.masked, &["v3"]));
    let entered = before(&program, "v_mov_b32 v3, 0");
    assert!(has_none(entered.active, &["v3"]) && has(entered.masked, &["v3"]));
}

#[test]
fn tail_call_returns_to_the_original_caller() {
    let kernel = format!("{CALL} global_store_dword v[2:3], v0, off\n s_endpgm");
    let jump = CALL.replace("s_swappc_b64 s[30:31],", "s_setpc_b64").replace("second", "third");
    let third = "v_mov_b32 v9, 0\n s_setpc_b64 s[30:31]";
    let functions = [("kernel", &kernel[..]), ("second", &jump), ("third", third)];
    let program = program("gfx90a", &functions, "");
    let inside = before(&program, "v_mov_b32 v9, 0").any();
    assert!(has(inside, &["v0", "v2", "v3", "s30"]) && has_none(inside, &["v9", "v1"]), "{inside}");
}

#[test]
fn unknown_index_may_access_all_registers_and_kills_none() {
    let body = "v_mov_b32 v9, 0
        s_set_gpr_idx_on s3, gpr_idx(DST)
        v_mov_b32 v1, v2
        s_set_gpr_idx_off
        v_mov_b32 v2, 0
        global_store_dword v[4:5], v1, off
        s_endpgm";
    let indexed = program("gfx90a", &[("kernel", body)], "");
    let live = before(&indexed, "s_set_gpr_idx_on").any();
    assert!(has(live, &["v0", "v1", "v63", "s3"]) && has_none(live, &["v64", "v77"]), "{live}");
    // Negative control.
    let plain = body
        .replace("s_set_gpr_idx_on s3, gpr_idx(DST)", "s_nop 1")
        .replace("s_set_gpr_idx_off", "s_nop 2");
    let plain = program("gfx90a", &[("kernel", &plain)], "");
    assert!(has_none(before(&plain, "s_nop 1").any(), &["v1", "v63"]));
    let moved =
        program("gfx1030", &[("kernel", "v_movreld_b32 v1, v2\n v_mov_b32 v3, 0\n s_endpgm")], "");
    let live = before(&moved, "v_movreld_b32").any();
    assert!(has(live, &["v0", "v1", "v63", "m0"]) && has_none(live, &["v64", "v77"]), "{live}");
}

#[test]
fn known_bits_limit_the_accessible_registers() {
    let mode = "s_and_b32 s3, s3, 7
        s_cbranch_scc1 more
        s_mov_b32 s3, 2
        more: s_set_gpr_idx_on s3, gpr_idx(SRC0)
        v_mov_b32 v20, v4
        s_set_gpr_idx_off
        global_store_dword v[30:31], v20, off
        s_endpgm";
    let live = |processor, body: &str, at| before(&program(processor, &[("kernel", body)], ""), at);
    let known = live("gfx90a", mode, "s_set_gpr_idx_on").any();
    assert!(has(known, &["v4", "v11"]) && has_none(known, &["v0", "v3", "v12"]), "{known}");
    // An unknown index is still an unsigned byte.
    let unknown = mode.replace("s_and_b32 s3, s3, 7", "s_nop 1");
    let unknown = live("gfx90a", &unknown, "s_set_gpr_idx_on").any();
    assert!(has(unknown, &["v0", "v4", "v63"]) && has_none(unknown, &["v3", "v64"]), "{unknown}");
    let moved = "s_and_b32 m0, s3, 3
        v_movrels_b32 v20, v4
        global_store_dword v[30:31], v20, off
        s_endpgm";
    for processor in ["gfx1030", "gfx1100", "gfx1201"] {
        let known = live(processor, moved, "v_movrels_b32").any();
        assert!(has(known, &["v4", "v7"]) && has_none(known, &["v3", "v8"]), "{known}");
        // A loop that increments the index.
        let grows = moved
            .replace("s_and_b32 m0, s3, 3", "s_mov_b32 m0, 0\n again: s_nop 1")
            .replace("s_endpgm", "s_add_u32 m0, m0, 1\n s_cbranch_scc0 again\n s_endpgm");
        let grown = live(processor, &grows, "v_movrels_b32").any();
        assert!(has(grown, &["v3", "v63"]), "{grown}");
    }
    let scalar = "s_and_b32 m0, s3, 3\n s_movrels_b32 s5, s10\n s_store_dword s5, s[0:1], 0x0\n \
                  s_endpgm";
    let known = live("gfx90a", scalar, "s_movrels_b32").any();
    assert!(has(known, &["s10", "s13"]) && has_none(known, &["s9", "s14"]), "{known}");
}

/// Registers that another kernel indexes are irrelevant, because kernels are not called.
#[test]
fn indirect_call_reads_only_registers_used_by_its_possible_callees() {
    let calling = "v_mov_b32 v0, 0
        s_load_dwordx2 s[4:5], s[0:1], 0x0
        s_waitcnt lgkmcnt(0)
        s_swappc_b64 s[30:31], s[4:5]
        s_endpgm";
    let indexing = "s_set_gpr_idx_on s3, gpr_idx(SRC0)
        v_mov_b32 v20, v4
        s_set_gpr_idx_off
        global_store_dword v[30:31], v20, off
        s_endpgm";
    let callee = "v_add_u32 v1, v1, v2\n s_setpc_b64 s[30:31]";
    let functions = [("calling", calling), ("indexing", indexing), ("callee", callee)];
    let more = descriptor("gfx90a", "indexing") + ".data\n.quad callee\n.quad indexing\n";
    let program = program("gfx90a", &functions, &more);
    let live = before(&program, "s_swappc_b64").any();
    assert!(has(live, &["v1", "v2"]) && has_none(live, &["v4", "v20", "v30", "v63"]), "{live}");
    assert!(!program.named("indexing").address_taken && program.named("callee").address_taken);
    // Negative control: the callee uses the same indices.
    let inside = indexing.replace("s_endpgm", "s_setpc_b64 s[30:31]");
    let functions = [("calling", calling), ("callee", &inside)];
    let program =
        crate::flow::tests::assembled::program("gfx90a", &functions, ".data\n.quad callee\n");
    let live = before(&program, "s_swappc_b64").any();
    assert!(has(live, &["v4", "v20", "v63"]), "{live}");
}

#[test]
fn flags_derived_from_a_mask_read_the_mask() {
    let body = "s_nop 1\n s_mov_b32 s4, src_vccz\n s_store_dword s4, s[0:1], 0x0\n s_endpgm";
    let program = program("gfx90a", &[("kernel", body)], "");
    assert!(has(before(&program, "s_nop 1").active, &["vcc_lo", "vcc_hi"]));
}

#[test]
fn writing_a_lane_does_not_make_the_register_live() {
    let body = "v_writelane_b32 v1, s4, 0\n v_readlane_b32 s5, v1, 0\n s_store_dword s5, s[0:1], 0x0\n s_endpgm";
    let program = program("gfx90a", &[("kernel", body)], "");
    // The other instruction may read any lane of v1.
    assert!(has(before(&program, "v_writelane_b32").masked, &["v1"]));
    let body = "v_writelane_b32 v1, s4, 0\n s_nop 1\n s_endpgm";
    let unread = self::program("gfx90a", &[("kernel", body)], "");
    assert!(has_none(before(&unread, "v_writelane_b32").any(), &["v1"]));
}

#[test]
fn globally_and_locally_free_registers() {
    let body = "v_mov_b32 v5, s0
 v_mov_b32 v6, v5
 global_store_dword v[2:3], v6, off
 s_endpgm";
    let text = text(&[("kernel", body)]) + &descriptor("gfx90a", "kernel");
    let object = assemble("gfx90a", &text);
    let program = Disassembly::read(&object).unwrap_or_else(|error| panic!("{error}"));
    let liveness = Liveness::new(&program);
    let kernel = &object.kernels()[0];
    let allocation = Allocation::of(kernel, object.target());
    assert_eq!(allocation, Allocation { vgprs: 64, acc_vgprs: 0, sgprs: 102 });
    let index = program.kernel(0).expect("the kernel");
    let used = RegisterUse::of(&liveness, index, allocation);
    assert_eq!(
        Allocation::count(used.globally_free),
        Allocation { vgprs: 60, acc_vgprs: 0, sgprs: 101 }
    );
    assert!(has_none(used.globally_free, &["v2", "v3", "v5", "v6", "s0"]));
    assert_eq!(used.persistent.to_string(), "v[2:3]");
    let free = used.locally_free(&before(&program, "v_mov_b32 v6, v5"));
    assert!(has(free, &["v6", "v0", "s0"]) && has_none(free, &["v5", "v2"]));
    let most = RegisterUse::of(&liveness, index, Allocation::maximal(object.target()));
    assert_eq!(
        Allocation::count(most.globally_free),
        Allocation { vgprs: 252, acc_vgprs: 256, sgprs: 101 }
    );
    let set = initialised(kernel, object.target());
    assert!(
        has(set, &["s0", "s1", "v0", "exec_lo", "exec_hi"]) && has_none(set, &["v1", "vcc_lo"])
    );
}

#[test]
fn index_only_accesses_its_own_register_file() {
    let globally_free = |processor, body| {
        let program = program(processor, &[("kernel", body)], "");
        let function = program.kernel(0).expect("the kernel");
        let all = Allocation { vgprs: 64, acc_vgprs: 0, sgprs: 100 };
        RegisterUse::of(&Liveness::new(&program), function, all).globally_free
    };
    let mode =
        "s_set_gpr_idx_on s3, gpr_idx(DST)\n v_mov_b32 v1, v2\n s_set_gpr_idx_off\n s_endpgm";
    for (processor, body) in [("gfx90a", mode), ("gfx1030", "v_movreld_b32 v1, v2\n s_endpgm")] {
        let free = globally_free(processor, body);
        assert!(has(free, &["s77"]) && has_none(free, &["v9"]), "{processor}: {free}");
    }
    let free = globally_free("gfx90a", "s_movreld_b32 s1, s2\n s_endpgm");
    assert!(has(free, &["v9"]) && has_none(free, &["s77"]), "{free}");
    assert!(has(globally_free("gfx90a", "s_endpgm"), &["v9", "s77"]));
}

#[test]
fn mode_is_always_live() {
    let program = program(
        "gfx90a",
        &[("kernel", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3\n s_endpgm")],
        "",
    );
    for (index, _) in program.insts() {
        assert!(has(Liveness::new(&program).before(index).active, &["mode"]));
    }
}
