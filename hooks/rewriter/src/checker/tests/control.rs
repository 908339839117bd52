//! Rules 1 and 2.

use super::Pair;
use crate::checker::CheckRule;

const LOOP: &str = "
    s_mov_b32 s0, 3
    loop:
    + s_nop 0
    s_sub_u32 s0, s0, 1
    s_cbranch_scc0 loop
    s_mov_b32 s1, s0";

#[test]
fn branches_come_to_what_is_before_their_target() {
    Pair::new(LOOP).holds();
}

#[test]
fn a_branch_to_another_instruction_is_found() {
    let wrong = "s_mov_b32 s0, 3
        - loop:
        s_sub_u32 s0, s0, 1
        + loop:
        s_cbranch_scc0 loop
        s_mov_b32 s1, s0";
    Pair::new(wrong).breaks(CheckRule::Control, "comes to the original instruction");
}

#[test]
fn a_branch_into_the_middle_of_an_instruction_is_found() {
    // The distance stays what it was, two words back, and leads into a literal.
    let text = "s_mov_b32 s0, 3
        s_sub_u32 s0, s0, 1
        + s_mov_b32 s10, 0x12345
        s_cbranch_scc0 65534
        s_mov_b32 s1, s0";
    Pair::new(text).breaks(CheckRule::Control, "no claimed code");
    Pair::new(&text.replace("+ s_mov_b32 s10, 0x12345", "")).holds();
}

#[test]
fn a_changed_instruction_is_found() {
    let text = "s_mov_b32 s0, 3
        - s_mov_b32 s1, s0
        + s_mov_b32 s1, s2";
    // Claimed as if it were the original.
    let claimed = text.replace("+ s_mov", "s_mov").replace("- s_mov_b32 s1, s0", "");
    let pair = Pair::new(&claimed);
    pair.holds();
    Pair::new(text).wanted("s0").holds();
    Pair::new(text).changes("s1").holds();
}

#[test]
fn inserted_code_neither_ends_the_wave_nor_meets_a_barrier() {
    let text = |line: &str| format!("s_mov_b32 s0, 3\n+ {line}\ns_mov_b32 s1, s0");
    Pair::new(&text("s_endpgm")).breaks(CheckRule::Control, "ends the wave");
    Pair::new(&text("s_barrier")).breaks(CheckRule::Control, "barrier");
    Pair::new(&text("s_setpc_b64 s[10:11]")).breaks(CheckRule::Control, "not known");
    Pair::new(&text("s_nop 3")).holds();
}

#[test]
fn inserted_code_must_not_skip_an_instruction() {
    let text = "s_mov_b32 s0, 3
        + s_branch 9f
        s_mov_b32 s1, s0
        + 9:
        s_mov_b32 s2, s0";
    Pair::new(text).breaks(CheckRule::Control, "comes to the original instruction");
}

#[test]
fn addresses_follow_the_code() {
    let text = "s_getpc_b64 s[2:3]
        s_add_u32 s2, s2, label-k-4
        s_addc_u32 s3, s3, 0
        + s_nop 0
        s_setpc_b64 s[2:3]
        s_mov_b32 s0, 3
        label:
        s_mov_b32 s1, 3";
    Pair::new(text).holds();
    let wrong = text.replace("label-k-4", "label-k-8");
    Pair::new(&wrong).holds();
    let shifted = text.replace("+ s_nop 0", "").replace("s_getpc_b64", "+ s_nop 0\ns_getpc_b64");
    Pair::new(&shifted).breaks(CheckRule::Control, "comes to");
}

#[test]
fn routines_are_followed_and_come_back() {
    let text = "s_mov_b32 s0, 3
        + s_cselect_b32 s15, 1, 0
        + s_getpc_b64 s[10:11]
        + 7:
        + s_add_u32 s10, s10, routine-7b
        + s_addc_u32 s11, s11, 0
        + s_swappc_b64 s[12:13], s[10:11]
        + s_cmp_lg_u32 s15, 0
        s_mov_b32 s1, s0
        s_branch end
        + routine:
        + s_mov_b32 s14, s2
        + s_mov_b32 s2, 5
        + s_mov_b32 s2, s14
        + s_setpc_b64 s[12:13]
        end:
        s_mov_b32 s2, s0";
    Pair::new(text).holds();
    Pair::new(&text.replace("s2, s14", "s2, s13")).breaks(CheckRule::Registers, "s2");
    Pair::new(&text.replace("s_setpc_b64 s[12:13]", "s_setpc_b64 s[10:11]"))
        .breaks(CheckRule::Control, "never comes");
}

#[test]
fn far_jumps_are_followed() {
    let text = "s_mov_b32 s0, 3
        + s_cselect_b32 s15, 1, 0
        + s_getpc_b64 s[10:11]
        + 7:
        + s_add_u32 s10, s10, far-7b
        + s_addc_u32 s11, s11, 0
        + s_setpc_b64 s[10:11]
        + back:
        s_mov_b32 s1, s0
        s_branch end
        + far:
        + s_cmp_lg_u32 s15, 0
        + s_branch back
        end:
        s_mov_b32 s2, s0";
    Pair::new(text).holds();
    Pair::new(&text.replace("+ s_cmp_lg_u32 s15, 0", "")).breaks(CheckRule::Registers, "scc");
}
