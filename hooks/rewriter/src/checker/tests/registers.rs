//! Tests of rule 3.

use super::Pair;
use crate::checker::CheckRule;

/// Inserted code that saves the registers it uses in dead registers and restores them.
const SAVED: &str = "
    v_add_u32 v0, v0, v1
    + s_cselect_b32 s10, 1, 0
    + s_mov_b64 s[12:13], vcc
    + s_mov_b64 s[14:15], exec
    + s_mov_b64 exec, -1
    + v_mov_b32 v20, v0
    + s_mov_b64 exec, s[14:15]
    + v_cmp_gt_u32 vcc, 5, v0
    + s_and_saveexec_b64 s[16:17], vcc
    + v_add_u32 v0, 1, v0
    + s_or_b64 exec, exec, s[16:17]
    + s_add_u32 s11, s11, 1
    + s_mov_b64 exec, -1
    + v_mov_b32 v0, v20
    + s_mov_b64 exec, s[14:15]
    + s_mov_b64 vcc, s[12:13]
    + s_cmp_lg_u32 s10, 0
    v_add_u32 v1, v0, v1";

/// The pair without the first line that contains `line`.
fn without(text: &str, line: &str) -> Pair {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.remove(lines.iter().position(|candidate| candidate.contains(line)).expect(line));
    Pair::new(&lines.join("\n"))
}

#[test]
fn checker_proves_saved_and_restored_registers() {
    let proof = Pair::new(SAVED).assert_proven();
    assert_eq!((proof.originals, proof.inserted, proof.splices), (3, 16, 2));
}

#[test]
fn checker_rejects_missing_restore() {
    without(SAVED, "s_mov_b64 vcc, s[12:13]").assert_violates(CheckRule::Registers, "vcc_lo");
    without(SAVED, "v_mov_b32 v0, v20")
        .assert_violates(CheckRule::Registers, "v0: value not preserved in active lanes");
    without(SAVED, "s_cmp_lg_u32 s10, 0").assert_violates(CheckRule::Registers, "scc");
}

#[test]
fn checker_rejects_missing_save() {
    without(SAVED, "s_cselect_b32 s10, 1, 0").assert_violates(CheckRule::Registers, "scc");
    without(SAVED, "s_mov_b64 s[12:13], vcc").assert_violates(CheckRule::Registers, "vcc_hi");
    without(SAVED, "v_mov_b32 v20, v0").assert_violates(CheckRule::Registers, "v0");
}

#[test]
fn checker_rejects_missing_restore_of_exec() {
    let restore = "v_mov_b32 v0, v20\n    + s_mov_b64 exec, s[14:15]";
    let text = SAVED.replace(restore, "v_mov_b32 v0, v20");
    assert_ne!(text, SAVED);
    Pair::new(&text).assert_violates(CheckRule::Registers, "exec_lo");
}

#[test]
fn save_under_exec_does_not_preserve_masked_lanes() {
    // Only active lanes are saved, but all lanes are overwritten.
    Pair::new(
        "v_add_u32 v0, v0, v1
        + v_mov_b32 v20, v0
        + s_mov_b64 s[14:15], exec
        + s_mov_b64 exec, -1
        + v_mov_b32 v0, 0
        + v_mov_b32 v0, v20
        + s_mov_b64 exec, s[14:15]
        v_add_u32 v1, v0, v1",
    )
    .assert_violates(CheckRule::Registers, "v0: value not preserved in masked lanes");
    // Under the original EXEC, masked lanes are not overwritten.
    Pair::new(
        "v_add_u32 v0, v0, v1
        + v_mov_b32 v20, v0
        + v_mov_b32 v0, 0
        + v_mov_b32 v0, v20
        v_add_u32 v1, v0, v1",
    )
    .assert_proven();
}

#[test]
fn masked_lanes_can_be_saved_separately() {
    Pair::new(
        "v_add_u32 v0, v0, v1
        + s_cselect_b32 s10, 1, 0
        + s_xor_saveexec_b64 s[14:15], -1
        + v_mov_b32 v20, v0
        + v_mov_b32 v0, 7
        + v_mov_b32 v0, v20
        + s_mov_b64 exec, s[14:15]
        + s_cmp_lg_u32 s10, 0
        v_add_u32 v1, v0, v1",
    )
    .assert_proven();
}

#[test]
fn scalars_can_be_saved_in_lanes() {
    let text = "v_add_u32 v0, v0, v1
        + v_writelane_b32 v20, s2, 3
        + v_writelane_b32 v20, s3, 4
        + s_mov_b32 s2, 0
        + s_mov_b32 s3, 0
        + v_readlane_b32 s2, v20, 3
        + v_readlane_b32 s3, v20, 4
        v_add_u32 v1, v0, v1";
    Pair::new(text).assert_proven();
    Pair::new(&text.replace("s2, v20, 3", "s2, v20, 4"))
        .assert_violates(CheckRule::Registers, "s2");
    // The lanes belong to a live register.
    Pair::new(&text.replace("v20", "v1")).assert_violates(CheckRule::Registers, "v1");
    // A write of the complete register overwrites the lanes.
    let text = text.replace("+ s_mov_b32 s2, 0", "+ v_mov_b32 v20, 0");
    Pair::new(&text).assert_violates(CheckRule::Registers, "s3");
}

#[test]
fn vectors_can_be_saved_in_accumulation_registers() {
    let text = "v_add_u32 v0, v0, v1
        + s_mov_b64 s[14:15], exec
        + s_mov_b64 exec, -1
        + v_accvgpr_write_b32 a1, v0
        + v_mov_b32 v0, 1
        + v_accvgpr_read_b32 v0, a1
        + s_mov_b64 exec, s[14:15]
        v_add_u32 v1, v0, v1";
    Pair::new(text).assert_proven();
    Pair::new(&text.replace("a1", "a0")).assert_violates(CheckRule::Registers, "a0");
}

#[test]
fn vectors_can_be_saved_in_scratch() {
    const SIZE: &str = ".amdhsa_private_segment_fixed_size 16\n";
    for (target, enable, store, load) in [
        (
            "gfx942",
            "enable_private_segment",
            "scratch_store_dword off, v0, off offset:8",
            "scratch_load_dword v0, off, off offset:8",
        ),
        (
            "gfx90a",
            "system_sgpr_private_segment_wavefront_offset",
            "buffer_store_dword v0, off, s[0:3], s11 offset:8",
            "buffer_load_dword v0, off, s[0:3], s11 offset:8",
        ),
    ] {
        let text = format!(
            "v_add_u32 v0, v0, v1
            + s_mov_b64 s[14:15], exec
            + s_mov_b64 exec, -1
            + {store}
            + v_mov_b32 v0, 1
            + {load}
            + s_waitcnt vmcnt(0)
            + s_mov_b64 exec, s[14:15]
            v_add_u32 v1, v0, v1"
        );
        let descriptor = format!("{SIZE}.amdhsa_{enable} 1");
        let pair =
            |text: &str| Pair::for_target(target, text).live("v0 v1 exec").descriptor(&descriptor);
        pair(&text).assert_proven();
        pair(&text.replacen("offset:8", "offset:12", 1))
            .assert_violates(CheckRule::Registers, "v0");
        pair(&text.replace("+ s_mov_b64 exec, -1", "")).assert_proven();
        let narrow = text.replace("+ v_mov_b32 v0, 1", "+ s_mov_b64 exec, s[14:15]");
        pair(&narrow).assert_proven();
    }
}

#[test]
fn fields_of_mode_can_be_saved() {
    let text = "v_add_u32 v0, v0, v1
        + s_getreg_b32 s10, hwreg(HW_REG_MODE, 0, 8)
        + s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xf0
        + v_add_f32 v20, v0, v0
        + s_nop 0
        + s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s10
        v_add_u32 v1, v0, v1";
    Pair::new(text).assert_proven();
    Pair::new(&text.replacen("MODE, 0, 8", "MODE, 0, 4", 1))
        .assert_violates(CheckRule::Registers, "mode");
    without(text, "s_setreg_b32").assert_violates(CheckRule::Registers, "mode");
}

#[test]
fn requested_changes_are_accepted() {
    let text = "v_add_u32 v0, v0, v1
        + v_mov_b32 v0, 1
        v_add_u32 v1, v0, v1";
    Pair::new(text).changes("v0").assert_proven();
    Pair::new(text).changes("v1").assert_violates(CheckRule::Registers, "v0");
}

#[test]
fn changed_exec_requires_all_lanes_to_be_preserved() {
    let text = "v_add_u32 v0, v0, v1
        + s_mov_b64 exec, s[10:11]
        v_add_u32 v1, v0, v1";
    Pair::new(text).changes("exec").assert_proven();
    Pair::new(text).assert_violates(CheckRule::Registers, "exec_lo");
    let text = "v_add_u32 v0, v0, v1
        + v_mov_b32 v0, 1
        + s_mov_b64 exec, s[10:11]
        v_add_u32 v1, v0, v1";
    Pair::new(text).changes("exec").assert_violates(CheckRule::Registers, "v0");
}

#[test]
fn dead_registers_may_be_overwritten() {
    let text = "v_add_u32 v0, v0, v1
        + v_mov_b32 v1, 1
        + s_mov_b32 s3, 1
        v_add_u32 v1, v0, v0";
    Pair::new(text).live("v0").assert_proven();
    Pair::new(text).live("v0 s3").assert_violates(CheckRule::Registers, "s3");
}

#[test]
fn both_paths_of_a_branch_must_restore() {
    let text = "v_add_u32 v0, v0, v1
        + s_mov_b32 s10, s2
        + s_cbranch_scc1 9f
        + s_mov_b32 s2, 0
        + s_mov_b32 s2, s10
        + 9:
        v_add_u32 v1, v0, v1";
    Pair::new(text).assert_proven();
    Pair::new(&text.replace("+ s_mov_b32 s2, s10", "")).assert_violates(CheckRule::Registers, "s2");
}

#[test]
fn loops_of_inserted_code_are_executed_to_a_fixed_point() {
    let text = "v_add_u32 v0, v0, v1
        + s_cselect_b32 s12, 1, 0
        + s_mov_b32 s10, s2
        + 8:
        + s_add_u32 s2, s2, s11
        + s_cbranch_scc1 8b
        + s_mov_b32 s2, s10
        + s_cmp_lg_u32 s12, 0
        v_add_u32 v1, v0, v1";
    Pair::new(text).assert_proven();
    // In the second iteration, the copy has the value computed by the loop.
    let moved = text.replace("+ s_mov_b32 s10, s2\n        + 8:", "+ 8:\n + s_mov_b32 s10, s2");
    assert_ne!(text, moved);
    Pair::new(&moved).assert_violates(CheckRule::Registers, "s2");
}

#[test]
fn replacement_may_write_the_registers_of_the_instruction() {
    let text = "v_mov_b32 v1, v0
        - v_add_u32 v0, v0, v1
        + v_mov_b32 v0, 1
        v_add_u32 v1, v0, v1";
    Pair::new(text).assert_proven();
    let text = "v_mov_b32 v1, v0
        - v_add_u32 v0, v0, v1
        + v_mov_b32 v1, 1
        v_add_u32 v1, v0, v1";
    Pair::new(text).assert_violates(CheckRule::Registers, "v1");
}

/// Other hardware registers have bits with the same number.
#[test]
fn writes_of_other_hardware_registers_do_not_enable_gpr_index_mode() {
    let text = "s_setreg_b32 hwreg(HW_REG_TRAPSTS), s0
        v_mov_b32 v0, v1
        + v_mov_b32 v9, v1
        v_mov_b32 v1, v0";
    Pair::new(text).assert_proven();
    Pair::new(&text.replace("TRAPSTS", "MODE"))
        .assert_violates(CheckRule::Control, "GPR-index mode");
}

#[test]
fn checker_rejects_vector_code_in_gpr_index_mode() {
    let text = "s_set_gpr_idx_on s0, gpr_idx(SRC0)
        + v_mov_b32 v20, 1
        v_mov_b32 v0, v1
        s_set_gpr_idx_off
        + v_mov_b32 v20, 1
        v_mov_b32 v0, v1";
    Pair::new(text).assert_violates(CheckRule::Control, "GPR-index mode");
    without(text, "+ v_mov_b32 v20, 1").assert_proven();
}

#[test]
fn gpr_index_mode_can_be_disabled_and_restored() {
    let text = "s_set_gpr_idx_on s0, gpr_idx(SRC0)
        + s_set_gpr_idx_off
        + v_mov_b32 v20, 1
        + s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1
        v_mov_b32 v0, v1
        s_set_gpr_idx_off
        v_mov_b32 v0, v1";
    Pair::new(text).assert_proven();
    without(text, "+ s_setreg_imm32_b32").assert_violates(CheckRule::Registers, "mode");
    let enabled = "+ s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1\n+ v_mov_b32 v20, 1\n";
    let on = text.replace("+ s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1", enabled);
    Pair::new(&on).assert_violates(CheckRule::Control, "GPR-index mode");
    // The mode must not be switched on if it was off, and cannot be restored if it was unknown.
    Pair::new(&text.replace("gpr_idx(SRC0)\n", "gpr_idx(SRC0)\n s_set_gpr_idx_off\n"))
        .assert_violates(CheckRule::Registers, "mode");
    Pair::new(&format!("s_cbranch_scc0 L\n{}", text.replacen("+", "L:\n+", 1)))
        .assert_violates(CheckRule::Registers, "mode");
}

#[test]
fn initial_registers_may_move_if_the_kernel_restores_them() {
    let text = "+ s_mov_b64 s[0:1], s[2:3]
        v_add_u32 v0, v0, v1";
    let pointer = ".amdhsa_user_sgpr_dispatch_ptr 1";
    // The new kernel has the dispatch packet's address before that of the arguments.
    Pair::new(text).live("s0 s1").descriptor(pointer).assert_proven();
    Pair::new(text).live("s0 s1").assert_violates(CheckRule::Registers, "s0");
    Pair::new("v_add_u32 v0, v0, v1")
        .live("s0 s1")
        .descriptor(pointer)
        .assert_violates(CheckRule::Registers, "s0");
}
