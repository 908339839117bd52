//! Rule 5.

use super::Pair;
use crate::checker::CheckRule;

#[test]
fn wait_states_that_are_left_out_are_found() {
    let text = "v_readfirstlane_b32 s10, v0
        + v_readfirstlane_b32 s11, v1
        + s_nop 3
        + v_readlane_b32 s12, v1, s11
        v_add_u32 v0, v0, v1";
    Pair::new(text).holds();
    Pair::new(&text.replace("s_nop 3", "s_nop 2")).breaks(CheckRule::Hazards, "v_readlane_b32");
}

#[test]
fn both_seams_are_looked_at() {
    let before = "v_readfirstlane_b32 s10, v0
        + global_load_dword v20, v1, s[10:11]
        + s_waitcnt vmcnt(0)
        v_add_u32 v0, v0, v1";
    Pair::new(before).breaks(CheckRule::Hazards, "VMEM");
    Pair::new(&before.replace("+ global", "+ s_nop 4\n+ global")).holds();
    let behind = "v_add_u32 v0, v0, v1
        + v_readfirstlane_b32 s10, v0
        global_load_dword v20, v1, s[10:11]
        s_waitcnt vmcnt(0)";
    Pair::new(behind).breaks(CheckRule::Hazards, "VMEM");
    Pair::new(&behind.replace("s10, v0", "s10, v0\n+ s_nop 4")).holds();
}

#[test]
fn hazards_are_found_across_a_branch() {
    let text = "loop:
        + v_readlane_b32 s12, v1, s11
        v_add_u32 v0, v0, v1
        v_readfirstlane_b32 s11, v1
        s_cbranch_scc0 loop
        s_mov_b32 s1, s0";
    Pair::new(text).breaks(CheckRule::Hazards, "v_readlane");
    Pair::new(&text.replace("+ v_readlane", "+ s_nop 3\n+ v_readlane")).holds();
}

#[test]
fn results_of_matrices_are_far_away() {
    let text = "v_mfma_f32_16x16x4f32 a[0:3], v0, v1, a[0:3]
        + s_nop 10
        + v_accvgpr_read_b32 v20, a0
        s_nop 15
        s_mov_b32 s1, s0";
    Pair::new(text).holds();
    Pair::new(&text.replace("s_nop 10", "s_nop 9")).breaks(CheckRule::Hazards, "MFMA");
}

#[test]
fn what_inserted_code_completes_between_two_of_the_program_s_own_is_found() {
    let text = "ds_read_b32 v0, v1
        + s_cbranch_scc0 next
        + s_nop 0
        next:
        global_load_dword v10, v1, s[2:3]
        s_waitcnt vmcnt(0) lgkmcnt(0)";
    Pair::of("gfx1010", text).breaks(CheckRule::Hazards, "a branch");
    let wait = "next:\n+ s_waitcnt_vscnt null, 0x0";
    Pair::of("gfx1010", &text.replace("next:", wait)).holds();
    // A branch of the program's own has completed it before.
    Pair::of("gfx1010", &text.replace("+ s_cbranch", "s_cbranch")).holds();
}

#[test]
fn scalar_registers_that_inserted_code_reads_late_are_found_on_gfx12() {
    let holds = |text: &str| Pair::of("gfx1201", text).holds();
    let breaks = |text: &str| {
        Pair::of("gfx1201", text).breaks(CheckRule::Hazards, "s_wait_alu");
    };
    // The original reads what inserted code writes.
    let text = "v_mov_b32 v0, s10
        s_mov_b32 s10, 1
        + v_mov_b32 v20, s10
        s_mov_b32 s1, s0";
    breaks(text);
    holds(&text.replace("+ v_mov", "+ s_wait_alu depctr_sa_sdst(0)\n+ v_mov"));
    // Inserted code reads a register that only the program writes and reads afterwards.
    let text = "s_mov_b32 s10, s0
        + v_mov_b32 v20, s10
        s_mov_b32 s10, s1
        s_mov_b32 s1, s10";
    breaks(text);
    holds(&text.replace("s_mov_b32 s1, s10", "+ s_wait_alu depctr_sa_sdst(0)\ns_mov_b32 s1, s10"));
    holds(&text.replace("+ v_mov_b32 v20, s10", "+ v_mov_b32 v20, v1"));
    // What is read long before counts, and by a loop also what is read behind.
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
fn masks_that_inserted_code_has_overwritten_late_are_found_on_gfx11() {
    let holds = |text: &str| Pair::of("gfx1100", text).of_64_lanes().holds();
    let breaks = |text: &str, wait: &str| {
        Pair::of("gfx1100", text).of_64_lanes().breaks(CheckRule::Hazards, wait);
    };
    let far = "s_mov_b32 s6, s7\n".repeat(200);
    for (mask, write, read, wait) in [
        ("s[10:11]", "s_mov_b64 s[10:11], 0", "s_mov_b32 s12, s11", "depctr_sa_sdst(0)"),
        ("s[10:11]", "v_readfirstlane_b32 s10, v1", "v_mov_b32 v20, s10", "depctr_va_sdst(0)"),
        ("vcc", "v_cmp_eq_u32 vcc, v0, v1", "s_mov_b32 s12, vcc_lo", "depctr_va_vcc(0)"),
    ] {
        // However far apart.
        let text = |mark: &str, between: &str| {
            format!(
                "v_cndmask_b32 v21, v0, v1, {mask}\n{far}{mark} {write}\n{far}{between}\n+ {read}\n\
                 s_mov_b32 s1, s0"
            )
        };
        for mark in ["+", ""].into_iter().filter(|mark| mask != "vcc" || mark.is_empty()) {
            breaks(&text(mark, ""), wait);
            holds(&text(mark, &format!("+ s_waitcnt_depctr {wait}")));
            // Something else is waited for.
            breaks(&text(mark, "+ s_waitcnt_depctr depctr_va_vdst(0)"), wait);
            // Another register was the mask.
            holds(&text(mark, "").replace(&format!("v0, v1, {mask}\n"), "v0, v1, s[14:15]\n"));
        }
    }
}

#[test]
fn what_may_have_begun_further_back_than_is_looked_counts() {
    let far = "s_mov_b32 s6, s7\n".repeat(200);
    let text = |first: &str, between: &str| {
        format!("{first}\n{between}\n{far}\n+ v_permlane16_b32 v20, v0, s0, s0\ns_mov_b32 s1, s0")
    };
    let compare = "v_cmpx_gt_u32 v1, v0";
    Pair::of("gfx1100", &text(compare, "")).breaks(CheckRule::Hazards, "v_cmpx");
    Pair::of("gfx1100", &text(compare, "v_mov_b32 v2, v0")).breaks(CheckRule::Hazards, "v_cmpx");
    let near = text(compare, "").replace("+ v_perm", "v_mov_b32 v2, v0\n+ v_perm");
    Pair::of("gfx1100", &near).holds();
    // Nothing sets it up anywhere.
    Pair::of("gfx1100", &text("v_mov_b32 v2, v0", "")).holds();
    // The program's own are kept by its compiler.
    Pair::of("gfx1100", &text(compare, "").replace("+ v_perm", "v_perm")).holds();
}

/// What a program does by itself is its compiler's business.
#[test]
fn scalar_registers_that_the_program_reads_late_are_not_the_rewriters() {
    let text = "v_mov_b32 v0, s10
        s_mov_b32 s10, 1
        + v_mov_b32 v20, v1
        v_mov_b32 v1, s10
        s_mov_b32 s1, s0";
    Pair::of("gfx1201", text).holds();
}
