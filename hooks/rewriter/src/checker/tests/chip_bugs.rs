//! Tests of rule 8.

use super::Pair;
use crate::checker::CheckRule;

#[test]
fn checker_rejects_inserted_instructions_that_trigger_bugs() {
    for (target, wrong, right, what) in [
        (
            "gfx1100",
            "v_mad_u64_u32 v[20:21], null, v20, v22, v[24:25]",
            "v_mad_u64_u32 v[20:21], null, v22, v23, v[24:25]",
            "overlaps a source",
        ),
        (
            "gfx942",
            "v_cvt_f32_fp8_e32 v20, v21",
            "v_cvt_f32_fp8_sdwa v20, v21 src0_sel:BYTE_0",
            "VOP1 form",
        ),
        ("gfx1010", "s_inst_prefetch 0x1", "s_nop 0", "hang"),
    ] {
        let text = |inserted: &str| format!("v_mov_b32 v10, v0\n+ {inserted}\nv_mov_b32 v11, v0");
        Pair::for_target(target, &text(right)).assert_proven();
        Pair::for_target(target, &text(wrong)).assert_violates(CheckRule::ChipBugs, what);
        // Bugs triggered by the original program are not reported.
        Pair::for_target(
            target,
            &format!("v_mov_b32 v10, v0\n{wrong}\n+ s_nop 0\nv_mov_b32 v11, v0"),
        )
        .assert_proven();
    }
}
