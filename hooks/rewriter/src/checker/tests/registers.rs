//! Rule 3.

use super::Pair;
use crate::checker::CheckRule;

/// A counter in memory, with everything it uses saved in registers that nobody wants.
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
    assert!(text.lines().any(|own| own.contains(line)), "{line}");
    let mut left_out = false;
    let kept = text.lines().filter(|own| {
        let leave = !left_out && own.contains(line);
        left_out |= leave;
        !leave
    });
    Pair::new(&kept.collect::<Vec<_>>().join("\n"))
}

#[test]
fn saved_and_restored_is_as_it_was() {
    let proof = Pair::new(SAVED).holds();
    assert_eq!((proof.originals, proof.inserted, proof.seams), (3, 16, 2));
}

#[test]
fn a_restore_that_is_left_out_is_found() {
    without(SAVED, "s_mov_b64 vcc, s[12:13]").breaks(CheckRule::Registers, "vcc_lo");
    without(SAVED, "v_mov_b32 v0, v20").breaks(CheckRule::Registers, "v0: its active lanes");
    without(SAVED, "s_cmp_lg_u32 s10, 0").breaks(CheckRule::Registers, "scc");
}

#[test]
fn a_save_that_is_left_out_is_found() {
    without(SAVED, "s_cselect_b32 s10, 1, 0").breaks(CheckRule::Registers, "scc");
    without(SAVED, "s_mov_b64 s[12:13], vcc").breaks(CheckRule::Registers, "vcc_hi");
    without(SAVED, "v_mov_b32 v20, v0").breaks(CheckRule::Registers, "v0");
}

#[test]
fn exec_that_is_not_restored_is_found() {
    let restore = "v_mov_b32 v0, v20\n    + s_mov_b64 exec, s[14:15]";
    let text = SAVED.replace(restore, "v_mov_b32 v0, v20");
    assert_ne!(text, SAVED);
    Pair::new(&text).breaks(CheckRule::Registers, "exec_lo");
}

#[test]
fn masked_lanes_that_are_saved_under_exec_are_lost() {
    // The save sees the active lanes alone, and all lanes are overwritten.
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
    .breaks(CheckRule::Registers, "v0: its masked lanes");
    // Under the guest's EXEC they are not touched in the first place.
    Pair::new(
        "v_add_u32 v0, v0, v1
        + v_mov_b32 v20, v0
        + v_mov_b32 v0, 0
        + v_mov_b32 v0, v20
        v_add_u32 v1, v0, v1",
    )
    .holds();
}

#[test]
fn masked_lanes_alone_can_be_saved() {
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
    .holds();
}

#[test]
fn lanes_of_a_vector_register_hold_scalars() {
    let text = "v_add_u32 v0, v0, v1
        + v_writelane_b32 v20, s2, 3
        + v_writelane_b32 v20, s3, 4
        + s_mov_b32 s2, 0
        + s_mov_b32 s3, 0
        + v_readlane_b32 s2, v20, 3
        + v_readlane_b32 s3, v20, 4
        v_add_u32 v1, v0, v1";
    Pair::new(text).holds();
    Pair::new(&text.replace("s2, v20, 3", "s2, v20, 4")).breaks(CheckRule::Registers, "s2");
    // The lane that was written is a wanted register's.
    Pair::new(&text.replace("v20", "v1")).breaks(CheckRule::Registers, "v1");
    // What is written over all of the register takes the lanes with it.
    let text = text.replace("+ s_mov_b32 s2, 0", "+ v_mov_b32 v20, 0");
    Pair::new(&text).breaks(CheckRule::Registers, "s3");
}

#[test]
fn accumulation_registers_hold_vectors() {
    let text = "v_add_u32 v0, v0, v1
        + s_mov_b64 s[14:15], exec
        + s_mov_b64 exec, -1
        + v_accvgpr_write_b32 a1, v0
        + v_mov_b32 v0, 1
        + v_accvgpr_read_b32 v0, a1
        + s_mov_b64 exec, s[14:15]
        v_add_u32 v1, v0, v1";
    Pair::new(text).holds();
    Pair::new(&text.replace("a1", "a0")).breaks(CheckRule::Registers, "a0");
}

#[test]
fn scratch_holds_vectors() {
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
        let pair = |text: &str| Pair::of(target, text).wanted("v0 v1 exec").descriptor(&descriptor);
        pair(&text).holds();
        pair(&text.replacen("offset:8", "offset:12", 1)).breaks(CheckRule::Registers, "v0");
        pair(&text.replace("+ s_mov_b64 exec, -1", "")).holds();
        let narrow = text.replace("+ v_mov_b32 v0, 1", "+ s_mov_b64 exec, s[14:15]");
        pair(&narrow).holds();
    }
}

#[test]
fn mode_is_kept_by_its_fields() {
    let text = "v_add_u32 v0, v0, v1
        + s_getreg_b32 s10, hwreg(HW_REG_MODE, 0, 8)
        + s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xf0
        + v_add_f32 v20, v0, v0
        + s_nop 0
        + s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s10
        v_add_u32 v1, v0, v1";
    Pair::new(text).holds();
    Pair::new(&text.replacen("MODE, 0, 8", "MODE, 0, 4", 1)).breaks(CheckRule::Registers, "mode");
    without(text, "s_setreg_b32").breaks(CheckRule::Registers, "mode");
}

#[test]
fn what_a_hook_is_asked_to_change_may_change_once() {
    let text = "v_add_u32 v0, v0, v1
        + v_mov_b32 v0, 1
        v_add_u32 v1, v0, v1";
    Pair::new(text).changes("v0").holds();
    Pair::new(text).changes("v1").breaks(CheckRule::Registers, "v0");
}

#[test]
fn exec_that_a_hook_changes_changes_what_all_lanes_must_keep() {
    let text = "v_add_u32 v0, v0, v1
        + s_mov_b64 exec, s[10:11]
        v_add_u32 v1, v0, v1";
    Pair::new(text).changes("exec").holds();
    Pair::new(text).breaks(CheckRule::Registers, "exec_lo");
    let text = "v_add_u32 v0, v0, v1
        + v_mov_b32 v0, 1
        + s_mov_b64 exec, s[10:11]
        v_add_u32 v1, v0, v1";
    Pair::new(text).changes("exec").breaks(CheckRule::Registers, "v0");
}

#[test]
fn what_is_wanted_nowhere_is_free() {
    let text = "v_add_u32 v0, v0, v1
        + v_mov_b32 v1, 1
        + s_mov_b32 s3, 1
        v_add_u32 v1, v0, v0";
    Pair::new(text).wanted("v0").holds();
    Pair::new(text).wanted("v0 s3").breaks(CheckRule::Registers, "s3");
}

#[test]
fn both_ways_of_a_branch_restore() {
    let text = "v_add_u32 v0, v0, v1
        + s_mov_b32 s10, s2
        + s_cbranch_scc1 9f
        + s_mov_b32 s2, 0
        + s_mov_b32 s2, s10
        + 9:
        v_add_u32 v1, v0, v1";
    Pair::new(text).holds();
    Pair::new(&text.replace("+ s_mov_b32 s2, s10", "")).breaks(CheckRule::Registers, "s2");
}

#[test]
fn loops_of_inserted_code_are_followed_to_their_fixed_point() {
    let text = "v_add_u32 v0, v0, v1
        + s_cselect_b32 s12, 1, 0
        + s_mov_b32 s10, s2
        + 8:
        + s_add_u32 s2, s2, s11
        + s_cbranch_scc1 8b
        + s_mov_b32 s2, s10
        + s_cmp_lg_u32 s12, 0
        v_add_u32 v1, v0, v1";
    Pair::new(text).holds();
    // The second time round, the copy is of what the loop made.
    let moved = text.replace("+ s_mov_b32 s10, s2\n        + 8:", "+ 8:\n + s_mov_b32 s10, s2");
    assert_ne!(text, moved);
    Pair::new(&moved).breaks(CheckRule::Registers, "s2");
}

#[test]
fn an_instruction_that_is_replaced_writes_what_it_wrote() {
    let text = "v_mov_b32 v1, v0
        - v_add_u32 v0, v0, v1
        + v_mov_b32 v0, 1
        v_add_u32 v1, v0, v1";
    Pair::new(text).holds();
    let text = "v_mov_b32 v1, v0
        - v_add_u32 v0, v0, v1
        + v_mov_b32 v1, 1
        v_add_u32 v1, v0, v1";
    Pair::new(text).breaks(CheckRule::Registers, "v1");
}

/// Other hardware registers have a bit of the same number.
#[test]
fn only_a_write_of_mode_switches_gpr_index_mode_on() {
    let text = "s_setreg_b32 hwreg(HW_REG_TRAPSTS), s0
        v_mov_b32 v0, v1
        + v_mov_b32 v9, v1
        v_mov_b32 v1, v0";
    Pair::new(text).holds();
    Pair::new(&text.replace("TRAPSTS", "MODE")).breaks(CheckRule::Control, "GPR-index mode");
}

#[test]
fn vector_code_in_gpr_index_mode_is_refused() {
    let text = "s_set_gpr_idx_on s0, gpr_idx(SRC0)
        + v_mov_b32 v20, 1
        v_mov_b32 v0, v1
        s_set_gpr_idx_off
        + v_mov_b32 v20, 1
        v_mov_b32 v0, v1";
    Pair::new(text).breaks(CheckRule::Control, "GPR-index mode");
    without(text, "+ v_mov_b32 v20, 1").holds();
}

#[test]
fn gpr_index_mode_is_left_and_entered_again() {
    let text = "s_set_gpr_idx_on s0, gpr_idx(SRC0)
        + s_set_gpr_idx_off
        + v_mov_b32 v20, 1
        + s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1
        v_mov_b32 v0, v1
        s_set_gpr_idx_off
        v_mov_b32 v0, v1";
    Pair::new(text).holds();
    without(text, "+ s_setreg_imm32_b32").breaks(CheckRule::Registers, "mode");
    let behind = "+ s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1\n+ v_mov_b32 v20, 1\n";
    let on = text.replace("+ s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1", behind);
    Pair::new(&on).breaks(CheckRule::Control, "GPR-index mode");
    // Where it was off it must not be on, and where it is not known it cannot be restored.
    Pair::new(&text.replace("gpr_idx(SRC0)\n", "gpr_idx(SRC0)\n s_set_gpr_idx_off\n"))
        .breaks(CheckRule::Registers, "mode");
    Pair::new(&format!("s_cbranch_scc0 L\n{}", text.replacen("+", "L:\n+", 1)))
        .breaks(CheckRule::Registers, "mode");
}

#[test]
fn registers_that_a_kernel_starts_with_may_be_moved() {
    let text = "+ s_mov_b64 s[0:1], s[2:3]
        v_add_u32 v0, v0, v1";
    let pointer = ".amdhsa_user_sgpr_dispatch_ptr 1";
    // The dispatch packet's address is now before that of the arguments.
    Pair::new(text).wanted("s0 s1").descriptor(pointer).holds();
    Pair::new(text).wanted("s0 s1").breaks(CheckRule::Registers, "s0");
    Pair::new("v_add_u32 v0, v0, v1")
        .wanted("s0 s1")
        .descriptor(pointer)
        .breaks(CheckRule::Registers, "s0");
}
