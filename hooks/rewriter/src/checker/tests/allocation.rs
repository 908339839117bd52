//! Tests of rule 7.

use super::Pair;
use crate::checker::CheckRule;

#[test]
fn checker_rejects_registers_outside_the_allocation() {
    let text = "v_add_u32 v0, v0, v1
        + v_mov_b32 v33, v0
        v_add_u32 v1, v0, v1";
    let grown = ".amdhsa_next_free_vgpr 48\n.amdhsa_accum_offset 40";
    Pair::new(text).assert_violates(CheckRule::Allocation, "v33");
    Pair::new(text).descriptor(grown).assert_proven();
    Pair::new(text)
        .descriptor(".amdhsa_next_free_vgpr 48\n.amdhsa_accum_offset 44")
        .assert_violates(CheckRule::Allocation, "a4");
    let text = "v_add_u32 v0, v0, v1
        + s_mov_b32 s60, s0
        v_add_u32 v1, v0, v1";
    Pair::new(text).assert_violates(CheckRule::Allocation, "s60");
    Pair::new(text).descriptor(".amdhsa_next_free_sgpr 64").assert_proven();
}

#[test]
fn checker_rejects_scratch_outside_the_bytes_of_inserted_code() {
    let text = "v_add_u32 v0, v0, v1
        + scratch_store_dword off, v0, off offset:16
        v_add_u32 v1, v0, v1";
    let size = |bytes: u32| {
        format!(
            ".amdhsa_private_segment_fixed_size {bytes}\n.amdhsa_enable_private_segment {}",
            u32::from(bytes > 0)
        )
    };
    let pair = |old: u32, new: u32| {
        Pair::for_target("gfx942", text).old_descriptor(&size(old)).descriptor(&size(new))
    };
    pair(16, 20).assert_proven();
    pair(0, 20).assert_proven();
    pair(0, 0).assert_violates(CheckRule::Allocation, "no scratch");
    pair(16, 16).assert_violates(CheckRule::Allocation, "outside the bytes 16 to 16");
    pair(20, 32).assert_violates(CheckRule::Allocation, "outside the bytes 20 to 32");
}
