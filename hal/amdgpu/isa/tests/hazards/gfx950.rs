//! gfx950: the instructions of gfx942 except XF32 (19-bit floats), and new ones.

use super::gfx940::{MATRICES, Matrix, NOT_IN_LLVM, assert_passes_agree, matrix, table};
use super::{assert_agreement, assert_all_reached, assert_each_family_matters};

/// Instructions in addition to those of gfx942.
const POOL: &[&str] = &[
    "$vgpr0, $vgpr4 = V_PERMLANE16_SWAP_B32_e32 $vgpr0(tied-def 0), $vgpr4(tied-def 1), implicit $exec",
    "$vgpr8, $vgpr4 = V_PERMLANE32_SWAP_B32_e32 $vgpr8(tied-def 0), $vgpr4(tied-def 1), implicit $exec",
    "$vgpr0 = V_CVT_SR_FP8_F32_e64 0, $vgpr4, 0, $vgpr8, 0, $vgpr0, 0, implicit $mode, implicit $exec",
    "$vgpr0 = V_CVT_SR_FP8_F32_e64 8, $vgpr4, 0, $vgpr8, 0, $vgpr0, 0, implicit $mode, implicit $exec",
    "$vgpr0 = V_CVT_SCALEF32_PK_FP4_F32_e64 0, $vgpr4, 0, $vgpr8, 4, $vgpr9, $vgpr0, 0, implicit $mode, implicit $exec",
    "$vgpr0 = V_CVT_SCALEF32_PK_FP4_F32_e64 0, $vgpr4, 0, $vgpr8, 0, $vgpr9, $vgpr0, 0, implicit $mode, implicit $exec",
    "$vgpr0 = V_CVT_SCALEF32_SR_PK_FP4_F16_e64 0, $vgpr4, 0, $vgpr8, 0, $vgpr9, $vgpr0, 0, implicit $mode, implicit $exec",
    "$vgpr0 = V_PRNG_B32_e32 $vgpr4, implicit $exec",
    "$vgpr4 = V_BITOP3_B32_e64 $vgpr0, $vgpr8, $vgpr9, 15, implicit $exec",
    "$vgpr0_vgpr1_vgpr2_vgpr3 = V_MFMA_F32_16X16X32_F16_vgprcd_e64 $vgpr4_vgpr5_vgpr6_vgpr7, $vgpr8_vgpr9_vgpr10_vgpr11, $vgpr0_vgpr1_vgpr2_vgpr3, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr20_vgpr21_vgpr22_vgpr23 = V_MFMA_F32_16X16X128_F8F6F4_f4_f4_vgprcd_e64 $vgpr0_vgpr1_vgpr2_vgpr3, $vgpr8_vgpr9_vgpr10_vgpr11, $vgpr2_vgpr3_vgpr4_vgpr5, 4, 4, implicit $mode, implicit $exec",
];

/// Matrix operations in addition to those of gfx942.
const NEW: [Matrix; 17] = [
    matrix("V_MFMA_F32_16X16X32_F16_vgprcd_e64", [4, 4, 4]),
    matrix("V_MFMA_F32_32X32X16_F16_vgprcd_e64", [16, 4, 4]),
    matrix("V_MFMA_F32_16X16X32_BF16_vgprcd_e64", [4, 4, 4]),
    matrix("V_MFMA_F32_32X32X16_BF16_vgprcd_e64", [16, 4, 4]),
    matrix("V_MFMA_I32_16X16X64_I8_vgprcd_e64", [4, 4, 4]),
    matrix("V_MFMA_I32_32X32X32_I8_vgprcd_e64", [16, 4, 4]),
    matrix("V_MFMA_F32_16X16X128_F8F6F4_f8_f8_vgprcd_e64", [4, 8, 8]),
    matrix("V_MFMA_F32_16X16X128_F8F6F4_f8_f4_vgprcd_e64", [4, 8, 4]),
    matrix("V_MFMA_F32_16X16X128_F8F6F4_f6_f4_vgprcd_e64", [4, 6, 4]),
    matrix("V_MFMA_F32_16X16X128_F8F6F4_f4_f4_vgprcd_e64", [4, 4, 4]),
    matrix("V_MFMA_F32_32X32X64_F8F6F4_f8_f8_vgprcd_e64", [16, 8, 8]),
    matrix("V_MFMA_F32_32X32X64_F8F6F4_f4_f4_vgprcd_e64", [16, 4, 4]),
    matrix("V_SMFMAC_F32_16X16X64_F16_e64", [4, 4, 8]),
    matrix("V_SMFMAC_F32_32X32X32_BF16_e64", [16, 4, 8]),
    matrix("V_SMFMAC_I32_16X16X128_I8_e64", [4, 4, 8]),
    matrix("V_SMFMAC_F32_16X16X128_FP8_FP8_e64", [4, 4, 8]),
    matrix("V_SMFMAC_F32_32X32X64_BF8_BF8_e64", [16, 4, 8]),
];

#[test]
fn pairs_match_llvm() {
    let (isa, rules, recognized) = table("gfx950", POOL);
    let reached = assert_agreement(&isa, &rules, &recognized);
    assert_all_reached(&rules, &reached, &NOT_IN_LLVM);
}

#[test]
fn table_without_a_family_disagrees_with_llvm() {
    let (isa, rules, recognized) = table("gfx950", POOL);
    assert_each_family_matters(&isa, &rules, &recognized);
}

#[test]
fn passes_of_matrix_operations_match_llvm() {
    let shared = MATRICES.iter().copied().filter(|matrix| !matrix.name.contains("XF32"));
    assert_passes_agree("gfx950", &shared.chain(NEW).collect::<Vec<_>>());
}
