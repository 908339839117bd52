//! gfx940 to gfx942: instructions shared with gfx90a, and new ones.

use super::llc::{Recognized, recognized};
use super::{assert_agreement, assert_all_reached, assert_each_family_matters, gfx9};
use crate::common::isa;
use flipwave_isa::{Isa, Rules};

/// Instructions in addition to those of gfx90a.
pub const POOL: &[&str] = &[
    "$vgpr0 = V_RCP_F32_e32 $vgpr4, implicit $mode, implicit $exec",
    "$vgpr4 = V_EXP_F32_e32 $vgpr0, implicit $mode, implicit $exec",
    "$vgpr0 = V_SQRT_F16_e32 $vgpr4, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1 = V_RSQ_F64_e32 $vgpr4_vgpr5, implicit $mode, implicit $exec",
    "$vgpr4 = V_CNDMASK_B32_e32 $vgpr0, $vgpr8, implicit $vcc, implicit $exec",
    "$vgpr4 = V_CNDMASK_B32_e64 0, $vgpr0, 0, $vgpr8, $sgpr4_sgpr5, implicit $exec",
    "$vgpr4 = V_MOV_B32_e32 $sgpr4, implicit $exec",
    "$vgpr4 = V_MOV_B32_e32 $m0, implicit $exec",
    "$vgpr0 = V_MOV_B32_sdwa 0, $vgpr4, 0, 1, 2, 4, implicit $exec, implicit $vgpr0(tied-def 0)",
    "$vgpr0 = V_ADD_F16_sdwa 0, $vgpr4, 0, $vgpr8, 0, 0, 5, 0, 4, 4, implicit $mode, implicit $exec",
    "$vgpr0 = V_ADD_F16_sdwa 0, $vgpr4, 0, $vgpr8, 0, 0, 6, 0, 4, 4, implicit $mode, implicit $exec",
    "$vgpr0 = V_MAD_U16_gfx9_e64 8, $vgpr4, 0, $vgpr8, 0, $vgpr9, 0, 0, implicit $exec",
    "$vgpr4 = V_MAD_U16_gfx9_e64 0, $vgpr0, 0, $vgpr8, 0, $vgpr9, 0, 0, implicit $exec",
    "$vgpr0_vgpr1_vgpr2_vgpr3 = V_MFMA_F32_4X4X4F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr8_vgpr9, $vgpr0_vgpr1_vgpr2_vgpr3, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr20_vgpr21_vgpr22_vgpr23 = V_MFMA_F32_4X4X4F16_vgprcd_e64 $vgpr0_vgpr1, $vgpr8_vgpr9, $vgpr2_vgpr3_vgpr4_vgpr5, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1_vgpr2_vgpr3 = V_MFMA_F32_16X16X16F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr8_vgpr9, $vgpr0_vgpr1_vgpr2_vgpr3, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr20_vgpr21_vgpr22_vgpr23 = V_MFMA_I32_16X16X32I8_vgprcd_e64 $vgpr0_vgpr1, $vgpr8_vgpr9, $vgpr2_vgpr3_vgpr4_vgpr5, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1_vgpr2_vgpr3 = V_SMFMAC_F32_16X16X32_F16_e64 $vgpr4_vgpr5, $vgpr8_vgpr9_vgpr10_vgpr11, $vgpr12, 0, 0, $vgpr0_vgpr1_vgpr2_vgpr3, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1_vgpr2_vgpr3_vgpr4_vgpr5_vgpr6_vgpr7_vgpr8_vgpr9_vgpr10_vgpr11_vgpr12_vgpr13_vgpr14_vgpr15 = V_MFMA_F32_32X32X8F16_vgprcd_e64 $vgpr16_vgpr17, $vgpr18_vgpr19, $vgpr0_vgpr1_vgpr2_vgpr3_vgpr4_vgpr5_vgpr6_vgpr7_vgpr8_vgpr9_vgpr10_vgpr11_vgpr12_vgpr13_vgpr14_vgpr15, 0, 0, 0, implicit $mode, implicit $exec",
];

/// Names of hazards that LLVM does not have.
pub const NOT_IN_LLVM: [&str; 1] = ["VALU writes VCC or EXEC, VALU reads VCCZ or EXECZ as data"];

/// A matrix operation with the sizes of its operands in registers.
#[derive(Clone, Copy)]
pub struct Matrix {
    pub name: &'static str,
    /// Registers of the result and of SrcC.
    pub result: u8,
    /// Registers of SrcA.
    pub a: u8,
    /// Registers of SrcB.
    pub b: u8,
}

/// A matrix operation with `[result, a, b]` registers.
pub const fn matrix(name: &'static str, [result, a, b]: [u8; 3]) -> Matrix {
    Matrix { name, result, a, b }
}

/// The matrix operations of gfx942.
pub const MATRICES: &[Matrix] = &[
    matrix("V_MFMA_F32_16X16X16BF16_1K_vgprcd_e64", [4, 2, 2]),
    matrix("V_MFMA_F32_16X16X16F16_vgprcd_e64", [4, 2, 2]),
    matrix("V_MFMA_F32_16X16X1F32_vgprcd_e64", [16, 1, 1]),
    matrix("V_MFMA_F32_16X16X32_BF8_BF8_vgprcd_e64", [4, 2, 2]),
    matrix("V_MFMA_F32_16X16X32_BF8_FP8_vgprcd_e64", [4, 2, 2]),
    matrix("V_MFMA_F32_16X16X32_FP8_BF8_vgprcd_e64", [4, 2, 2]),
    matrix("V_MFMA_F32_16X16X32_FP8_FP8_vgprcd_e64", [4, 2, 2]),
    matrix("V_MFMA_F32_16X16X4BF16_1K_vgprcd_e64", [16, 2, 2]),
    matrix("V_MFMA_F32_16X16X4F16_vgprcd_e64", [16, 2, 2]),
    matrix("V_MFMA_F32_16X16X4F32_vgprcd_e64", [4, 1, 1]),
    matrix("V_MFMA_F32_16X16X8XF32_vgprcd_e64", [4, 2, 2]),
    matrix("V_MFMA_F32_32X32X16_BF8_BF8_vgprcd_e64", [16, 2, 2]),
    matrix("V_MFMA_F32_32X32X16_BF8_FP8_vgprcd_e64", [16, 2, 2]),
    matrix("V_MFMA_F32_32X32X16_FP8_BF8_vgprcd_e64", [16, 2, 2]),
    matrix("V_MFMA_F32_32X32X16_FP8_FP8_vgprcd_e64", [16, 2, 2]),
    matrix("V_MFMA_F32_32X32X1F32_vgprcd_e64", [32, 1, 1]),
    matrix("V_MFMA_F32_32X32X2F32_vgprcd_e64", [16, 1, 1]),
    matrix("V_MFMA_F32_32X32X4BF16_1K_vgprcd_e64", [32, 2, 2]),
    matrix("V_MFMA_F32_32X32X4F16_vgprcd_e64", [32, 2, 2]),
    matrix("V_MFMA_F32_32X32X4XF32_vgprcd_e64", [16, 2, 2]),
    matrix("V_MFMA_F32_32X32X8BF16_1K_vgprcd_e64", [16, 2, 2]),
    matrix("V_MFMA_F32_32X32X8F16_vgprcd_e64", [16, 2, 2]),
    matrix("V_MFMA_F32_4X4X1F32_vgprcd_e64", [4, 1, 1]),
    matrix("V_MFMA_F32_4X4X4BF16_1K_vgprcd_e64", [4, 2, 2]),
    matrix("V_MFMA_F32_4X4X4F16_vgprcd_e64", [4, 2, 2]),
    matrix("V_MFMA_F64_16X16X4F64_vgprcd_e64", [8, 2, 2]),
    matrix("V_MFMA_F64_4X4X4F64_vgprcd_e64", [2, 2, 2]),
    matrix("V_MFMA_I32_16X16X32I8_vgprcd_e64", [4, 2, 2]),
    matrix("V_MFMA_I32_16X16X4I8_vgprcd_e64", [16, 1, 1]),
    matrix("V_MFMA_I32_32X32X16I8_vgprcd_e64", [16, 2, 2]),
    matrix("V_MFMA_I32_32X32X4I8_vgprcd_e64", [32, 1, 1]),
    matrix("V_MFMA_I32_4X4X4I8_vgprcd_e64", [4, 1, 1]),
    matrix("V_SMFMAC_F32_16X16X32_BF16_e64", [4, 2, 4]),
    matrix("V_SMFMAC_F32_16X16X32_F16_e64", [4, 2, 4]),
    matrix("V_SMFMAC_F32_16X16X64_BF8_BF8_e64", [4, 2, 4]),
    matrix("V_SMFMAC_F32_16X16X64_FP8_FP8_e64", [4, 2, 4]),
    matrix("V_SMFMAC_F32_32X32X16_BF16_e64", [16, 2, 4]),
    matrix("V_SMFMAC_F32_32X32X16_F16_e64", [16, 2, 4]),
    matrix("V_SMFMAC_F32_32X32X32_BF8_BF8_e64", [16, 2, 4]),
    matrix("V_SMFMAC_F32_32X32X32_FP8_FP8_e64", [16, 2, 4]),
    matrix("V_SMFMAC_I32_16X16X64_I8_e64", [4, 2, 4]),
    matrix("V_SMFMAC_I32_32X32X32_I8_e64", [16, 2, 4]),
];

/// VGPRs in LLVM's machine IR.
fn vgprs(first: u8, count: u8) -> String {
    let names: Vec<String> = (first..first + count).map(|n| format!("vgpr{n}")).collect();
    format!("${}", names.join("_"))
}

/// A processor's rules, with LLVM's results for all pairs of instructions of gfx90a, gfx942 and `further`.
pub fn table(processor: &str, further: &[&'static str]) -> (Isa, Rules, Vec<Recognized>) {
    // gfx940 lacks one operation of gfx90a.
    let shared = gfx9::POOL.iter().filter(|line| !line.contains("16X16X16I8"));
    let pool: Vec<&str> = shared.chain(POOL).chain(further).copied().collect();
    super::table(processor, &pool, &[])
}

#[test]
fn pairs_match_llvm() {
    let (isa, rules, recognized) = table("gfx942", &[]);
    let reached = assert_agreement(&isa, &rules, &recognized);
    assert_all_reached(&rules, &reached, &NOT_IN_LLVM);
}

#[test]
fn table_without_a_family_disagrees_with_llvm() {
    let (isa, rules, recognized) = table("gfx942", &[]);
    assert_each_family_matters(&isa, &rules, &recognized);
}

#[test]
fn passes_of_matrix_operations_match_llvm() {
    assert_passes_agree("gfx942", MATRICES);
}

/// Asserts agreement with LLVM on each matrix operation followed by instructions that read, store, overwrite
/// and accumulate into its registers.
pub fn assert_passes_agree(processor: &str, matrices: &[Matrix]) {
    let isa = isa(processor);
    let rules = Rules::of(isa.target(), 64).expect("rules");
    let mut lines = Vec::new();
    let followers = [
        "$vgpr60 = V_MOV_B32_e32 $vgpr0, implicit $exec",
        "GLOBAL_STORE_DWORD $vgpr60_vgpr61, $vgpr0, 0, 0, implicit $exec",
        "$vgpr0 = V_MOV_B32_e32 $vgpr60, implicit $exec",
        "$vgpr64 = V_MOV_B32_e32 $vgpr60, implicit $exec",
    ];
    for matrix in matrices {
        let (result, separate) = (vgprs(0, matrix.result), vgprs(64, matrix.result));
        for first in [line(matrix, &result, &result), line(matrix, &result, &separate)] {
            for second in followers {
                lines.push([first.clone(), second.to_owned()]);
            }
            for follower in matrices {
                let follower_result = vgprs(96, follower.result);
                for src_c in [vgprs(2, follower.result), vgprs(0, follower.result)] {
                    lines.push([first.clone(), line(follower, &follower_result, &src_c)]);
                }
            }
        }
    }
    let sequences: Vec<Vec<&str>> =
        lines.iter().map(|pair| pair.iter().map(String::as_str).collect()).collect();
    assert_agreement(&isa, &rules, &recognized(&isa, &["-mattr=-xnack"], &sequences));
}

/// A matrix operation in LLVM's machine IR. Sparse operations accumulate into `src_c`.
fn line(matrix: &Matrix, result: &str, src_c: &str) -> String {
    let name = matrix.name;
    let (a, b) = (vgprs(40, matrix.a), vgprs(48, matrix.b));
    if name.starts_with("V_SMFMAC") {
        let implicit = "implicit $mode, implicit $exec";
        return format!("{src_c} = {name} {a}, {b}, $vgpr56, 0, 0, {src_c}, {implicit}");
    }
    // Operations with selectable formats have two modifiers instead of three.
    let modifiers = match name.split_once("F8F6F4") {
        Some((_, formats)) if formats.contains("f4_f4") => "4, 4",
        Some((_, formats)) if formats.contains("f8_f4") => "0, 4",
        Some((_, formats)) if formats.contains("f6_f4") => "2, 4",
        Some(_) => "0, 0",
        None => "0, 0, 0",
    };
    format!("{result} = {name} {a}, {b}, {src_c}, {modifiers}, implicit $mode, implicit $exec")
}
