use super::*;
use crate::testing::inst;

fn groups(text: &str) -> String {
    let inst = inst("gfx90a", text);
    let names: Vec<&str> =
        Group::ALL.into_iter().filter(|group| inst.is_in(*group)).map(Group::name).collect();
    format!("{}: {}", inst.primary_group(), names[1..].join(" "))
}

#[test]
fn instructions_are_in_the_documented_groups() {
    for (text, expected) in [
        ("v_add_f32_e32 v1, v2, v3", "valu: valu fp32 vector_register"),
        ("v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]", "valu: valu fp64 vector_register"),
        ("v_pk_add_f16 v0, v1, v2", "valu: valu fp16 vector_register"),
        ("v_lshlrev_b32_e32 v0, 2, v0", "valu: valu integer vector_register"),
        ("v_add_co_u32_e32 v1, vcc, v2, v3", "valu: valu integer vector_register scalar_register"),
        ("v_cmp_gt_f32_e32 vcc, v2, v3", "valu: valu fp32 compare scalar_register"),
        ("v_cmp_gt_i32_e64 s[4:5], v2, v3", "valu: valu integer compare scalar_register"),
        ("v_readfirstlane_b32 s3, v0", "valu: valu integer scalar_register"),
        ("v_mfma_f32_4x4x1f32 a[0:3], v0, v1, a[0:3]", "matrix: matrix fp32 vector_register"),
        ("v_accvgpr_read_b32 v0, a0", "valu: valu integer vector_register"),
        ("s_add_u32 s0, s1, s2", "salu: salu integer scalar_register"),
        ("s_cmp_eq_u32 s0, s1", "salu: salu integer compare scalar_register"),
        ("s_or_b64 exec, exec, s[0:1]", "salu: salu integer compare scalar_register"),
        ("s_and_saveexec_b64 s[0:1], vcc", "salu: salu integer scalar_register"),
        ("s_load_dwordx2 s[4:5], s[0:1], 0x0", "smem: smem load scalar_register"),
        ("global_load_dword v0, v[2:3], off", "vmem: vmem load vector_register"),
        ("buffer_load_dword v0, off, s[0:3], 0", "vmem: vmem load vector_register"),
        ("global_atomic_add v1, v[2:3], v4, off glc", "atomic: vmem atomic vector_register"),
        ("global_atomic_add_f64 v[2:3], v[4:5], off", "atomic: vmem atomic fp64"),
        ("global_store_dword v[0:1], v2, off", "vmem: vmem"),
        ("ds_read_b64 v[0:1], v2", "lds: lds load vector_register"),
        ("ds_add_rtn_u32 v0, v1, v2", "atomic: lds atomic vector_register"),
        ("s_barrier", "salu: salu integer"),
    ] {
        assert_eq!(groups(text), expected, "{text}");
    }
}
