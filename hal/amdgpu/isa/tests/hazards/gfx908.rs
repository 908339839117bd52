//! gfx908: matrix operations on AccVGPRs in a separate file.

use super::llc::Recognized;
use super::{assert_agreement, assert_all_reached, assert_each_family_matters, gfx9};
use flipwave_isa::{Isa, Rules};

/// Instructions in addition to those shared with gfx90a.
const POOL: &[&str] = &[
    "$agpr4 = V_ACCVGPR_WRITE_B32_e64 $vgpr4, implicit $exec",
    "$agpr0 = V_ACCVGPR_WRITE_B32_e64 7, implicit $exec",
    "$vgpr4 = V_ACCVGPR_READ_B32_e64 $agpr0, implicit $exec",
    "$vgpr0 = V_ACCVGPR_READ_B32_e64 $agpr4, implicit $exec",
    "$agpr0_agpr1_agpr2_agpr3 = V_MFMA_F32_4X4X1F32_e64 $vgpr4, $vgpr8, $agpr0_agpr1_agpr2_agpr3, 0, 0, 0, implicit $mode, implicit $exec",
    "$agpr0_agpr1_agpr2_agpr3 = V_MFMA_F32_4X4X1F32_e64 $vgpr0, $vgpr8, $agpr4_agpr5_agpr6_agpr7, 0, 0, 0, implicit $mode, implicit $exec",
    "$agpr4_agpr5_agpr6_agpr7 = V_MFMA_F32_4X4X1F32_e64 $agpr0, $vgpr8, $agpr2_agpr3_agpr4_agpr5, 0, 0, 0, implicit $mode, implicit $exec",
    "$agpr8_agpr9_agpr10_agpr11 = V_MFMA_F32_4X4X4F16_e64 $agpr0_agpr1, $agpr4_agpr5, $agpr8_agpr9_agpr10_agpr11, 0, 0, 0, implicit $mode, implicit $exec",
    "$agpr0_agpr1_agpr2_agpr3 = V_MFMA_I32_16X16X16I8_e64 $vgpr4, $agpr8, $agpr0_agpr1_agpr2_agpr3, 0, 0, 0, implicit $mode, implicit $exec",
    "$agpr4_agpr5_agpr6_agpr7 = V_MFMA_F32_16X16X4F32_e64 $agpr0, $vgpr8, $agpr2_agpr3_agpr4_agpr5, 0, 0, 0, implicit $mode, implicit $exec",
    "$agpr0_agpr1_agpr2_agpr3_agpr4_agpr5_agpr6_agpr7_agpr8_agpr9_agpr10_agpr11_agpr12_agpr13_agpr14_agpr15 = V_MFMA_F32_32X32X2F32_e64 $vgpr16, $vgpr17, $agpr0_agpr1_agpr2_agpr3_agpr4_agpr5_agpr6_agpr7_agpr8_agpr9_agpr10_agpr11_agpr12_agpr13_agpr14_agpr15, 0, 0, 0, implicit $mode, implicit $exec",
    "$agpr32_agpr33_agpr34_agpr35_agpr36_agpr37_agpr38_agpr39_agpr40_agpr41_agpr42_agpr43_agpr44_agpr45_agpr46_agpr47 = V_MFMA_F32_32X32X4BF16_e64 $agpr0, $vgpr17, $agpr2_agpr3_agpr4_agpr5_agpr6_agpr7_agpr8_agpr9_agpr10_agpr11_agpr12_agpr13_agpr14_agpr15_agpr16_agpr17, 0, 0, 0, implicit $mode, implicit $exec",
    "$agpr0_agpr1_agpr2_agpr3_agpr4_agpr5_agpr6_agpr7_agpr8_agpr9_agpr10_agpr11_agpr12_agpr13_agpr14_agpr15_agpr16_agpr17_agpr18_agpr19_agpr20_agpr21_agpr22_agpr23_agpr24_agpr25_agpr26_agpr27_agpr28_agpr29_agpr30_agpr31 = V_MFMA_F32_32X32X1F32_e64 $vgpr4, $vgpr8, $agpr0_agpr1_agpr2_agpr3_agpr4_agpr5_agpr6_agpr7_agpr8_agpr9_agpr10_agpr11_agpr12_agpr13_agpr14_agpr15_agpr16_agpr17_agpr18_agpr19_agpr20_agpr21_agpr22_agpr23_agpr24_agpr25_agpr26_agpr27_agpr28_agpr29_agpr30_agpr31, 0, 0, 0, implicit $mode, implicit $exec",
];

/// A VGPR is written and, after a move of an AccVGPR, read by memory.
const TRIPLES: &[[&str; 3]] = &[
    [
        "$vgpr20 = V_MOV_B32_e32 0, implicit $exec",
        "$agpr0 = V_ACCVGPR_WRITE_B32_e64 $vgpr4, implicit $exec",
        "GLOBAL_STORE_DWORD $vgpr22_vgpr23, $vgpr20, 0, 0, implicit $exec",
    ],
    [
        "$vgpr20 = V_MOV_B32_e32 0, implicit $exec",
        "$vgpr4 = V_ACCVGPR_READ_B32_e64 $agpr0, implicit $exec",
        "$vgpr0 = DS_READ_B32_gfx9 $vgpr20, 0, 0, implicit $exec",
    ],
    [
        "$vgpr20 = V_MOV_B32_e32 0, implicit $exec",
        "$vgpr21 = V_MOV_B32_e32 0, implicit $exec",
        "GLOBAL_STORE_DWORD $vgpr22_vgpr23, $vgpr20, 0, 0, implicit $exec",
    ],
];

/// Names of hazards that LLVM does not have.
const NOT_IN_LLVM: [&str; 1] = ["VALU writes VCC or EXEC, VALU reads VCCZ or EXECZ as data"];

fn table() -> (Isa, Rules, Vec<Recognized>) {
    // gfx90a introduced matrix operations on VGPRs and in double precision.
    let shared = gfx9::POOL.iter().filter(|line| {
        !["vgprcd", "FMAC_F64", "V_MFMA_F32_16X16X4F32_e64"].iter().any(|name| line.contains(name))
    });
    let pool: Vec<&str> = shared.chain(POOL).copied().collect();
    super::table("gfx908", &pool, TRIPLES)
}

#[test]
fn pairs_match_llvm() {
    let (isa, rules, recognized) = table();
    let reached = assert_agreement(&isa, &rules, &recognized);
    assert_all_reached(&rules, &reached, &NOT_IN_LLVM);
}

#[test]
fn table_without_a_family_disagrees_with_llvm() {
    let (isa, rules, recognized) = table();
    assert_each_family_matters(&isa, &rules, &recognized);
}
