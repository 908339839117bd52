//! Tests of rule 4.

use super::Pair;
use crate::checker::CheckRule;

#[test]
fn checker_rejects_missing_wait() {
    let text = "global_load_dword v0, v1, s[2:3]
        + s_waitcnt vmcnt(0)
        + v_mov_b32 v20, v0
        s_waitcnt vmcnt(0)
        v_add_u32 v0, v0, v1";
    Pair::new(text).assert_proven();
    let wrong = text.replacen("+ s_waitcnt vmcnt(0)", "", 1);
    Pair::new(&wrong).assert_violates(CheckRule::Waits, "v0");
    Pair::new(&wrong.replace("v20, v0", "v20, v1")).assert_proven();
}

#[test]
fn checker_rejects_outstanding_inserted_load() {
    let text = "v_add_u32 v0, v0, v1
        + global_load_dword v20, v1, s[2:3]
        + s_waitcnt vmcnt(0)
        v_mov_b32 v20, v0
        v_mov_b32 v1, v20";
    Pair::new(text).assert_proven();
    Pair::new(&text.replace("+ s_waitcnt vmcnt(0)", "")).assert_violates(CheckRule::Waits, "v20");
}

#[test]
fn waits_count_younger_operations_of_ordered_queues() {
    let text = "global_load_dword v0, v1, s[2:3]
        global_load_dword v10, v1, s[2:3]
        + s_waitcnt vmcnt(1)
        + v_mov_b32 v20, v0
        s_waitcnt vmcnt(0)
        v_add_u32 v0, v0, v1";
    Pair::new(text).assert_proven();
    Pair::new(&text.replace("vmcnt(1)", "vmcnt(2)")).assert_violates(CheckRule::Waits, "v0");
    Pair::new(&text.replace("v20, v0", "v20, v10")).assert_violates(CheckRule::Waits, "v10");
    // Scalar loads complete in any order.
    let scalar = "s_load_dword s10, s[2:3], 0x0
        s_load_dword s11, s[2:3], 0x4
        + s_waitcnt lgkmcnt(1)
        + s_mov_b32 s12, s10
        s_waitcnt lgkmcnt(0)
        v_add_u32 v0, v0, v1";
    Pair::new(scalar).assert_violates(CheckRule::Waits, "s10");
    Pair::new(&scalar.replace("lgkmcnt(1)", "lgkmcnt(0)")).assert_proven();
}

#[test]
fn checker_finds_outstanding_loads_of_earlier_iterations() {
    let text = "s_mov_b32 s0, 3
        loop:
        + v_mov_b32 v20, v10
        global_load_dword v10, v1, s[2:3]
        s_sub_u32 s0, s0, 1
        s_cbranch_scc0 loop
        s_waitcnt vmcnt(0)
        v_add_u32 v0, v10, v1";
    Pair::new(text).assert_violates(CheckRule::Waits, "v10");
    Pair::new(&text.replace("+ v_mov", "+ s_waitcnt vmcnt(0)\n+ v_mov")).assert_proven();
}

#[test]
fn stores_of_gfx11_have_a_separate_counter() {
    let text = "global_load_b32 v0, v1, s[2:3]
        global_store_b32 v1, v1, s[2:3]
        + s_waitcnt vmcnt(1)
        + v_mov_b32 v20, v0
        s_waitcnt vmcnt(0)
        v_add_nc_u32 v0, v0, v1";
    Pair::for_target("gfx1100", text).assert_violates(CheckRule::Waits, "v0");
    Pair::for_target("gfx1100", &text.replace("vmcnt(1)", "vmcnt(0)")).assert_proven();
}

#[test]
fn loads_of_gfx12_have_a_separate_counter_and_complete_out_of_order() {
    let text = "global_load_b32 v0, v1, s[2:3]
        ds_load_b32 v10, v1
        + s_wait_dscnt 0x0
        + v_mov_b32 v20, v0
        s_wait_loadcnt_dscnt 0x0
        v_add_nc_u32 v0, v0, v10";
    Pair::for_target("gfx1201", text).assert_violates(CheckRule::Waits, "v0");
    Pair::for_target("gfx1201", &text.replace("s_wait_dscnt", "s_wait_loadcnt")).assert_proven();
    let text = "s_mov_b32 s1, s0
        + global_load_b32 v0, v1, s[2:3]
        global_load_b32 v0, v1, s[2:3]
        s_wait_loadcnt 0x0";
    Pair::for_target("gfx1201", text)
        .live("v1 s0 s1 s2 s3 scc vcc m0 mode exec")
        .assert_violates(CheckRule::Waits, "v0");
}

/// On gfx1250, memory instructions may read their registers until they have translated their addresses.
#[test]
fn sources_of_gfx1250_are_overwritten_after_their_translation() {
    let pair = |text: &str, live: &str| {
        Pair::for_target("gfx1250", text).live(&format!("{live} s0 s1 scc vcc m0 mode exec"))
    };
    let load = "global_load_b32 v0, v1, s[2:3]
        + v_mov_b32 v1, 0
        s_wait_loadcnt 0x0
        v_add_nc_u32 v0, v0, v0";
    pair(load, "v0 s2 s3").assert_violates(CheckRule::Waits, "v1");
    pair(&load.replace("+ v_mov", "+ s_wait_xcnt 0x0\n+ v_mov"), "v0 s2 s3").assert_proven();
    let scalar = load.replace("v_mov_b32 v1", "s_mov_b32 s2");
    pair(&scalar, "v0 v1").assert_violates(CheckRule::Waits, "s2");
    // Scalar memory is issued after the translation of vector memory.
    let after =
        scalar.replace("+ s_mov", "+ s_load_b32 s4, s[0:1], 0x0\n+ s_wait_kmcnt 0x0\n+ s_mov");
    pair(&after, "v0 v1").assert_proven();
    // Waiting for the data is no wait for the translation of others.
    let store = "global_store_b32 v2, v1, s[2:3]
        + s_wait_loadcnt 0x0
        + v_mov_b32 v1, 0
        v_mov_b32 v0, 0";
    pair(store, "v0 s2 s3").assert_violates(CheckRule::Waits, "v1");
}

#[test]
fn after_a_call_only_registers_read_next_are_available() {
    let text = "s_swappc_b64 s[30:31], s[4:5]
        + v_mov_b32 v12, v12
        v_add_u32 v0, v12, v1";
    let pair = |text: &str| Pair::new(text).live("s0 s1 s2 s3 scc vcc m0 mode exec");
    pair(text).assert_proven();
    pair(&text.replace("v0, v12", "v0, v13")).assert_violates(CheckRule::Waits, "v12");
    pair(&text.replace("+ v_mov", "+ s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)\n+ v_mov"))
        .assert_proven();
    // The original may wait for the register in between.
    let waits = "\ns_waitcnt vmcnt(0)\nv_add";
    pair(&text.replacen("\n        v_add", waits, 1)).assert_violates(CheckRule::Waits, "v12");
    // A load into the other half of the register may be outstanding.
    let half = "global_load_short_d16 v12, v1, s[2:3]\nv_add";
    pair(&text.replacen("v_add", half, 1)).assert_violates(CheckRule::Waits, "v12");
    // No register is assumed to be available before a branch.
    let ways = "+ v_mov_b32 v12, v12\n+ s_cbranch_scc0 next\n+ s_nop 0\nnext:";
    pair(&text.replace("+ v_mov_b32 v12, v12", ways)).assert_violates(CheckRule::Waits, "v12");
}

/// The encoding of `v_mov_b16 v20.l, v10.l` is written as a number because the assembler does not accept
/// names of halves.
#[test]
fn checker_rejects_access_to_other_half_of_a_loading_register() {
    let text = "global_load_d16_hi_b16 v10, v1, s[2:3]
        + s_waitcnt vmcnt(0)
        + v_mov_b16 v20.l, v10.l
        s_waitcnt vmcnt(0)
        v_mov_b32 v0, v1";
    let text = text.replace("v_mov_b16 v20.l, v10.l", ".long 0x7e28390a");
    Pair::for_target("gfx1100", &text).assert_proven();
    let wrong = text.replacen("+ s_waitcnt vmcnt(0)", "", 1);
    Pair::for_target("gfx1100", &wrong).assert_violates(CheckRule::Waits, "v10");
}
