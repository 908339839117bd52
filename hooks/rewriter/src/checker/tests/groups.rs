//! Tests of rule 6.

use super::Pair;
use crate::checker::CheckRule;

const CLAUSE: &str = "
    s_clause 0x1
    global_load_b32 v10, v1, s[2:3]
    global_load_b32 v11, v1, s[2:3] offset:4
    s_waitcnt vmcnt(0)";

#[test]
fn checker_rejects_split_clause() {
    Pair::for_target("gfx1100", CLAUSE).assert_proven();
    let split = CLAUSE.replace("    global_load_b32 v11", "    + s_nop 0\n    global_load_b32 v11");
    assert_ne!(split, CLAUSE);
    Pair::for_target("gfx1100", &split)
        .assert_violates(CheckRule::Groups, "clause for 2 instructions is split");
    Pair::for_target("gfx1100", &split.replace("s_clause 0x1", "- s_clause 0x1")).assert_proven();
}

#[test]
fn checker_rejects_instruction_inserted_behind_delay_hint() {
    let text = "
        v_exp_f32 v10, v0
        s_delay_alu instid0(TRANS32_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_1)
        v_add_f32 v11, v10, v10
        v_add_f32 v12, v11, v10";
    Pair::for_target("gfx1100", text).assert_proven();
    let split = text.replace("        v_add_f32 v12", "        + s_nop 0\n        v_add_f32 v12");
    Pair::for_target("gfx1100", &split)
        .assert_violates(CheckRule::Groups, "delay hint for 2 instructions is split");
}
