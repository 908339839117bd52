//! Tests of rule 5.

use super::Pair;
use crate::checker::CheckRule;

#[test]
fn checker_rejects_missing_wait_states() {
    let text = "v_readfirstlane_b32 s10, v0
        + v_readfirstlane_b32 s11, v1
        + s_nop 3
        + v_readlane_b32 s12, v1, s11
        v_add_u32 v0, v0, v1";
    Pair::new(text).assert_proven();
    Pair::new(&text.replace("s_nop 3", "s_nop 2"))
        .assert_violates(CheckRule::Hazards, "v_readlane_b32");
}

#[test]
fn checker_finds_hazards_before_and_after_inserted_code() {
    let before = "v_readfirstlane_b32 s10, v0
        + global_load_dword v20, v1, s[10:11]
        + s_waitcnt vmcnt(0)
        v_add_u32 v0, v0, v1";
    Pair::new(before).assert_violates(CheckRule::Hazards, "VMEM");
    Pair::new(&before.replace("+ global", "+ s_nop 4\n+ global")).assert_proven();
    let after = "v_add_u32 v0, v0, v1
        + v_readfirstlane_b32 s10, v0
        global_load_dword v20, v1, s[10:11]
        s_waitcnt vmcnt(0)";
    Pair::new(after).assert_violates(CheckRule::Hazards, "VMEM");
    Pair::new(&after.replace("s10, v0", "s10, v0\n+ s_nop 4")).assert_proven();
}

#[test]
fn checker_finds_hazards_across_branches() {
    let text = "loop:
        + v_readlane_b32 s12, v1, s11
        v_add_u32 v0, v0, v1
        v_readfirstlane_b32 s11, v1
        s_cbranch_scc0 loop
        s_mov_b32 s1, s0";
    Pair::new(text).assert_violates(CheckRule::Hazards, "v_readlane");
    Pair::new(&text.replace("+ v_readlane", "+ s_nop 3\n+ v_readlane")).assert_proven();
}

#[test]
fn checker_finds_hazards_of_matrix_results() {
    let text = "v_mfma_f32_16x16x4f32 a[0:3], v0, v1, a[0:3]
        + s_nop 10
        + v_accvgpr_read_b32 v20, a0
        s_nop 15
        s_mov_b32 s1, s0";
    Pair::new(text).assert_proven();
    Pair::new(&text.replace("s_nop 10", "s_nop 9")).assert_violates(CheckRule::Hazards, "MFMA");
}

#[test]
fn checker_finds_hazards_completed_by_inserted_code() {
    let text = "ds_read_b32 v0, v1
        + s_cbranch_scc0 next
        + s_nop 0
        next:
        global_load_dword v10, v1, s[2:3]
        s_waitcnt vmcnt(0) lgkmcnt(0)";
    Pair::for_target("gfx1010", text).assert_violates(CheckRule::Hazards, "a branch");
    let wait = "next:\n+ s_waitcnt_vscnt null, 0x0";
    Pair::for_target("gfx1010", &text.replace("next:", wait)).assert_proven();
    // The original branch already completed the hazard.
    Pair::for_target("gfx1010", &text.replace("+ s_cbranch", "s_cbranch")).assert_proven();
}

#[test]
fn checker_rejects_missing_wait_for_scalar_reads_on_gfx12() {
    let holds = |text: &str| Pair::for_target("gfx1201", text).assert_proven();
    let breaks = |text: &str| {
        Pair::for_target("gfx1201", text).assert_violates(CheckRule::Hazards, "s_wait_alu");
    };
    // The original reads what inserted code writes.
    let text = "v_mov_b32 v0, s10
        s_mov_b32 s10, 1
        + v_mov_b32 v20, s10
        s_mov_b32 s1, s0";
    breaks(text);
    holds(&text.replace("+ v_mov", "+ s_wait_alu depctr_sa_sdst(0)\n+ v_mov"));
    // Inserted code reads a register that only the original writes and reads afterwards.
    let text = "s_mov_b32 s10, s0
        + v_mov_b32 v20, s10
        s_mov_b32 s10, s1
        s_mov_b32 s1, s10";
    breaks(text);
    holds(&text.replace("s_mov_b32 s1, s10", "+ s_wait_alu depctr_sa_sdst(0)\ns_mov_b32 s1, s10"));
    holds(&text.replace("+ v_mov_b32 v20, s10", "+ v_mov_b32 v20, v1"));
    // Reads far before the write count, including those behind it in a loop.
    let text = "loop:
        + s_mov_b32 s12, 1
        + v_readlane_b32 s11, v1, s12
        v_add_nc_u32 v0, v0, v1
        s_cbranch_scc0 loop
        s_mov_b32 s1, s0";
    breaks(text);
    holds(&text.replace("+ v_readlane", "+ s_wait_alu depctr_sa_sdst(0)\n+ v_readlane"));
}

#[test]
fn checker_rejects_missing_wait_for_overwritten_masks_on_gfx11() {
    let holds = |text: &str| Pair::for_target("gfx1100", text).with_64_lanes().assert_proven();
    let breaks = |text: &str, wait: &str| {
        Pair::for_target("gfx1100", text).with_64_lanes().assert_violates(CheckRule::Hazards, wait);
    };
    let far = "s_mov_b32 s6, s7\n".repeat(200);
    for (mask, write, read, wait) in [
        ("s[10:11]", "s_mov_b64 s[10:11], 0", "s_mov_b32 s12, s11", "depctr_sa_sdst(0)"),
        ("s[10:11]", "v_readfirstlane_b32 s10, v1", "v_mov_b32 v20, s10", "depctr_va_sdst(0)"),
        ("vcc", "v_cmp_eq_u32 vcc, v0, v1", "s_mov_b32 s12, vcc_lo", "depctr_va_vcc(0)"),
    ] {
        // The distance does not matter.
        let text = |mark: &str, between: &str| {
            format!(
                "v_cndmask_b32 v21, v0, v1, {mask}\n{far}{mark} {write}\n{far}{between}\n+ {read}\n\
                 s_mov_b32 s1, s0"
            )
        };
        for mark in ["+", ""].into_iter().filter(|mark| mask != "vcc" || mark.is_empty()) {
            breaks(&text(mark, ""), wait);
            holds(&text(mark, &format!("+ s_waitcnt_depctr {wait}")));
            // A wait for something else.
            breaks(&text(mark, "+ s_waitcnt_depctr depctr_va_vdst(0)"), wait);
            // A mask in another register.
            holds(&text(mark, "").replace(&format!("v0, v1, {mask}\n"), "v0, v1, s[14:15]\n"));
        }
    }
}

#[test]
fn checker_finds_hazards_beyond_its_search_limit() {
    let far = "s_mov_b32 s6, s7\n".repeat(200);
    let text = |first: &str, between: &str| {
        format!("{first}\n{between}\n{far}\n+ v_permlane16_b32 v20, v0, s0, s0\ns_mov_b32 s1, s0")
    };
    let compare = "v_cmpx_gt_u32 v1, v0";
    Pair::for_target("gfx1100", &text(compare, "")).assert_violates(CheckRule::Hazards, "v_cmpx");
    Pair::for_target("gfx1100", &text(compare, "v_mov_b32 v2, v0"))
        .assert_violates(CheckRule::Hazards, "v_cmpx");
    let near = text(compare, "").replace("+ v_perm", "v_mov_b32 v2, v0\n+ v_perm");
    Pair::for_target("gfx1100", &near).assert_proven();
    // No instruction of the program triggers the hazard.
    Pair::for_target("gfx1100", &text("v_mov_b32 v2, v0", "")).assert_proven();
    // Hazards between original instructions are not reported.
    Pair::for_target("gfx1100", &text(compare, "").replace("+ v_perm", "v_perm")).assert_proven();
}

#[test]
fn checker_accepts_missing_waits_of_the_original() {
    let text = "v_mov_b32 v0, s10
        s_mov_b32 s10, 1
        + v_mov_b32 v20, v1
        v_mov_b32 v1, s10
        s_mov_b32 s1, s0";
    Pair::for_target("gfx1201", text).assert_proven();
}
