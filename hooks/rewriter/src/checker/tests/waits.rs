//! Rule 4.

use super::Pair;
use crate::checker::CheckRule;

#[test]
fn a_wait_that_is_left_out_is_found() {
    let text = "global_load_dword v0, v1, s[2:3]
        + s_waitcnt vmcnt(0)
        + v_mov_b32 v20, v0
        s_waitcnt vmcnt(0)
        v_add_u32 v0, v0, v1";
    Pair::new(text).holds();
    let wrong = text.replacen("+ s_waitcnt vmcnt(0)", "", 1);
    Pair::new(&wrong).breaks(CheckRule::Waits, "v0");
    Pair::new(&wrong.replace("v20, v0", "v20, v1")).holds();
}

#[test]
fn an_inserted_load_must_have_come_back_before_the_guest_goes_on_with_its_register() {
    let text = "v_add_u32 v0, v0, v1
        + global_load_dword v20, v1, s[2:3]
        + s_waitcnt vmcnt(0)
        v_mov_b32 v20, v0
        v_mov_b32 v1, v20";
    Pair::new(text).holds();
    Pair::new(&text.replace("+ s_waitcnt vmcnt(0)", "")).breaks(CheckRule::Waits, "v20");
}

#[test]
fn younger_operations_of_an_ordered_queue_count() {
    let text = "global_load_dword v0, v1, s[2:3]
        global_load_dword v10, v1, s[2:3]
        + s_waitcnt vmcnt(1)
        + v_mov_b32 v20, v0
        s_waitcnt vmcnt(0)
        v_add_u32 v0, v0, v1";
    Pair::new(text).holds();
    Pair::new(&text.replace("vmcnt(1)", "vmcnt(2)")).breaks(CheckRule::Waits, "v0");
    Pair::new(&text.replace("v20, v0", "v20, v10")).breaks(CheckRule::Waits, "v10");
    // Scalar loads come back in any order.
    let scalar = "s_load_dword s10, s[2:3], 0x0
        s_load_dword s11, s[2:3], 0x4
        + s_waitcnt lgkmcnt(1)
        + s_mov_b32 s12, s10
        s_waitcnt lgkmcnt(0)
        v_add_u32 v0, v0, v1";
    Pair::new(scalar).breaks(CheckRule::Waits, "s10");
    Pair::new(&scalar.replace("lgkmcnt(1)", "lgkmcnt(0)")).holds();
}

#[test]
fn loads_are_followed_round_a_loop() {
    let text = "s_mov_b32 s0, 3
        loop:
        + v_mov_b32 v20, v10
        global_load_dword v10, v1, s[2:3]
        s_sub_u32 s0, s0, 1
        s_cbranch_scc0 loop
        s_waitcnt vmcnt(0)
        v_add_u32 v0, v10, v1";
    Pair::new(text).breaks(CheckRule::Waits, "v10");
    Pair::new(&text.replace("+ v_mov", "+ s_waitcnt vmcnt(0)\n+ v_mov")).holds();
}

#[test]
fn stores_of_gfx11_have_their_own_counter() {
    let text = "global_load_b32 v0, v1, s[2:3]
        global_store_b32 v1, v1, s[2:3]
        + s_waitcnt vmcnt(1)
        + v_mov_b32 v20, v0
        s_waitcnt vmcnt(0)
        v_add_nc_u32 v0, v0, v1";
    Pair::of("gfx1100", text).breaks(CheckRule::Waits, "v0");
    Pair::of("gfx1100", &text.replace("vmcnt(1)", "vmcnt(0)")).holds();
}

#[test]
fn loads_of_gfx12_have_their_own_counter_and_do_not_write_in_order() {
    let text = "global_load_b32 v0, v1, s[2:3]
        ds_load_b32 v10, v1
        + s_wait_dscnt 0x0
        + v_mov_b32 v20, v0
        s_wait_loadcnt_dscnt 0x0
        v_add_nc_u32 v0, v0, v10";
    Pair::of("gfx1201", text).breaks(CheckRule::Waits, "v0");
    Pair::of("gfx1201", &text.replace("s_wait_dscnt", "s_wait_loadcnt")).holds();
    let text = "s_mov_b32 s1, s0
        + global_load_b32 v0, v1, s[2:3]
        global_load_b32 v0, v1, s[2:3]
        s_wait_loadcnt 0x0";
    Pair::of("gfx1201", text)
        .wanted("v1 s0 s1 s2 s3 scc vcc m0 mode exec")
        .breaks(CheckRule::Waits, "v0");
}

#[test]
fn after_a_call_inserted_code_touches_only_what_the_program_reads_next() {
    let text = "s_swappc_b64 s[30:31], s[4:5]
        + v_mov_b32 v12, v12
        v_add_u32 v0, v12, v1";
    let pair = |text: &str| Pair::new(text).wanted("s0 s1 s2 s3 scc vcc m0 mode exec");
    pair(text).holds();
    pair(&text.replace("v0, v12", "v0, v13")).breaks(CheckRule::Waits, "v12");
    pair(&text.replace("+ v_mov", "+ s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)\n+ v_mov")).holds();
    // What is between may be a wait of the program's own.
    let waits = "\ns_waitcnt vmcnt(0)\nv_add";
    pair(&text.replacen("\n        v_add", waits, 1)).breaks(CheckRule::Waits, "v12");
    // Another load into the register, of its other half, may be on its way.
    let half = "global_load_short_d16 v12, v1, s[2:3]\nv_add";
    pair(&text.replacen("v_add", half, 1)).breaks(CheckRule::Waits, "v12");
    // Where there are two ways nothing is claimed.
    let ways = "+ v_mov_b32 v12, v12\n+ s_cbranch_scc0 next\n+ s_nop 0\nnext:";
    pair(&text.replace("+ v_mov_b32 v12, v12", ways)).breaks(CheckRule::Waits, "v12");
}

/// v_mov_b16 of halves, as numbers, since the assembler has no names for halves: v20.l, v10.l.
#[test]
fn inserted_code_that_names_the_other_half_of_a_register_must_wait() {
    let text = "global_load_d16_hi_b16 v10, v1, s[2:3]
        + s_waitcnt vmcnt(0)
        + v_mov_b16 v20.l, v10.l
        s_waitcnt vmcnt(0)
        v_mov_b32 v0, v1";
    let text = text.replace("v_mov_b16 v20.l, v10.l", ".long 0x7e28390a");
    Pair::of("gfx1100", &text).holds();
    let wrong = text.replacen("+ s_waitcnt vmcnt(0)", "", 1);
    Pair::of("gfx1100", &wrong).breaks(CheckRule::Waits, "v10");
}
