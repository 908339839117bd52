//! Tests of rules 1 and 2.

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
fn branches_may_reach_code_inserted_before_their_targets() {
    Pair::new(LOOP).assert_proven();
}

#[test]
fn checker_rejects_branch_to_another_instruction() {
    let wrong = "s_mov_b32 s0, 3
        - loop:
        s_sub_u32 s0, s0, 1
        + loop:
        s_cbranch_scc0 loop
        s_mov_b32 s1, s0";
    Pair::new(wrong).assert_violates(CheckRule::Control, "reaches the wrong original instruction");
}

#[test]
fn checker_rejects_branch_into_an_instruction() {
    // The unchanged distance of two words back now ends in a literal.
    let text = "s_mov_b32 s0, 3
        s_sub_u32 s0, s0, 1
        + s_mov_b32 s10, 0x12345
        s_cbranch_scc0 65534
        s_mov_b32 s1, s0";
    Pair::new(text).assert_violates(CheckRule::Control, "unclaimed code");
    Pair::new(&text.replace("+ s_mov_b32 s10, 0x12345", "")).assert_proven();
}

#[test]
fn replaced_instruction_needs_a_claim() {
    let text = "s_mov_b32 s0, 3
        - s_mov_b32 s1, s0
        + s_mov_b32 s1, s2";
    // The new instruction in both versions.
    let claimed = text.replace("+ s_mov", "s_mov").replace("- s_mov_b32 s1, s0", "");
    let pair = Pair::new(&claimed);
    pair.assert_proven();
    Pair::new(text).live("s0").assert_proven();
    Pair::new(text).changes("s1").assert_proven();
}

#[test]
fn checker_rejects_inserted_endpgm_and_barrier() {
    let text = |line: &str| format!("s_mov_b32 s0, 3\n+ {line}\ns_mov_b32 s1, s0");
    Pair::new(&text("s_endpgm")).assert_violates(CheckRule::Control, "ends the wave");
    Pair::new(&text("s_barrier")).assert_violates(CheckRule::Control, "barrier");
    Pair::new(&text("s_setpc_b64 s[10:11]")).assert_violates(CheckRule::Control, "unknown address");
    Pair::new(&text("s_nop 3")).assert_proven();
}

#[test]
fn checker_rejects_skipped_instruction() {
    let text = "s_mov_b32 s0, 3
        + s_branch 9f
        s_mov_b32 s1, s0
        + 9:
        s_mov_b32 s2, s0";
    Pair::new(text).assert_violates(CheckRule::Control, "reaches the wrong original instruction");
}

#[test]
fn pc_relative_addresses_are_adjusted() {
    let text = "s_getpc_b64 s[2:3]
        s_add_u32 s2, s2, label-k-4
        s_addc_u32 s3, s3, 0
        + s_nop 0
        s_setpc_b64 s[2:3]
        s_mov_b32 s0, 3
        label:
        s_mov_b32 s1, 3";
    Pair::new(text).assert_proven();
    let wrong = text.replace("label-k-4", "label-k-8");
    Pair::new(&wrong).assert_proven();
    let shifted = text.replace("+ s_nop 0", "").replace("s_getpc_b64", "+ s_nop 0\ns_getpc_b64");
    Pair::new(&shifted).assert_violates(CheckRule::Control, "reaches");
}

#[test]
fn checker_follows_calls_of_routines() {
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
    Pair::new(text).assert_proven();
    Pair::new(&text.replace("s2, s14", "s2, s13")).assert_violates(CheckRule::Registers, "s2");
    Pair::new(&text.replace("s_setpc_b64 s[12:13]", "s_setpc_b64 s[10:11]"))
        .assert_violates(CheckRule::Control, "never returns");
}

#[test]
fn checker_follows_computed_jumps() {
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
    Pair::new(text).assert_proven();
    Pair::new(&text.replace("+ s_cmp_lg_u32 s15, 0", ""))
        .assert_violates(CheckRule::Registers, "scc");
}
