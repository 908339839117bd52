//! Rule 8.

use super::Pair;
use crate::checker::CheckRule;

#[test]
fn an_inserted_instruction_that_triggers_a_bug_is_found() {
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
        Pair::of(target, &text(right)).holds();
        Pair::of(target, &text(wrong)).breaks(CheckRule::ChipBugs, what);
        // The program's own are not the rewriter's.
        Pair::of(target, &format!("v_mov_b32 v10, v0\n{wrong}\n+ s_nop 0\nv_mov_b32 v11, v0"))
            .holds();
    }
}
