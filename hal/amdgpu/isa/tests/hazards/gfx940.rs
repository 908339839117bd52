//! gfx940 to gfx942: what gfx90a has in its set, and what is new.

use super::llc::{Recognized, recognized};
use super::{agree, all_reached, each_family_matters, gfx9};
use crate::common::isa;
use flipwave_isa::{Isa, Rules};

/// Beside gfx90a's.
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

/// Names of rows that LLVM does not have.
pub const MANUAL_ALONE: [&str; 1] = ["VALU writes VCC or EXEC, VALU reads VCCZ or EXECZ as data"];

/// A matrix operation's name, the registers of its result, of its first and of its second factor.
pub type Matrix = (&'static str, u8, u8, u8);

/// Those of gfx942.
pub const MATRICES: &[Matrix] = &[
    ("V_MFMA_F32_16X16X16BF16_1K_vgprcd_e64", 4, 2, 2),
    ("V_MFMA_F32_16X16X16F16_vgprcd_e64", 4, 2, 2),
    ("V_MFMA_F32_16X16X1F32_vgprcd_e64", 16, 1, 1),
    ("V_MFMA_F32_16X16X32_BF8_BF8_vgprcd_e64", 4, 2, 2),
    ("V_MFMA_F32_16X16X32_BF8_FP8_vgprcd_e64", 4, 2, 2),
    ("V_MFMA_F32_16X16X32_FP8_BF8_vgprcd_e64", 4, 2, 2),
    ("V_MFMA_F32_16X16X32_FP8_FP8_vgprcd_e64", 4, 2, 2),
    ("V_MFMA_F32_16X16X4BF16_1K_vgprcd_e64", 16, 2, 2),
    ("V_MFMA_F32_16X16X4F16_vgprcd_e64", 16, 2, 2),
    ("V_MFMA_F32_16X16X4F32_vgprcd_e64", 4, 1, 1),
    ("V_MFMA_F32_16X16X8XF32_vgprcd_e64", 4, 2, 2),
    ("V_MFMA_F32_32X32X16_BF8_BF8_vgprcd_e64", 16, 2, 2),
    ("V_MFMA_F32_32X32X16_BF8_FP8_vgprcd_e64", 16, 2, 2),
    ("V_MFMA_F32_32X32X16_FP8_BF8_vgprcd_e64", 16, 2, 2),
    ("V_MFMA_F32_32X32X16_FP8_FP8_vgprcd_e64", 16, 2, 2),
    ("V_MFMA_F32_32X32X1F32_vgprcd_e64", 32, 1, 1),
    ("V_MFMA_F32_32X32X2F32_vgprcd_e64", 16, 1, 1),
    ("V_MFMA_F32_32X32X4BF16_1K_vgprcd_e64", 32, 2, 2),
    ("V_MFMA_F32_32X32X4F16_vgprcd_e64", 32, 2, 2),
    ("V_MFMA_F32_32X32X4XF32_vgprcd_e64", 16, 2, 2),
    ("V_MFMA_F32_32X32X8BF16_1K_vgprcd_e64", 16, 2, 2),
    ("V_MFMA_F32_32X32X8F16_vgprcd_e64", 16, 2, 2),
    ("V_MFMA_F32_4X4X1F32_vgprcd_e64", 4, 1, 1),
    ("V_MFMA_F32_4X4X4BF16_1K_vgprcd_e64", 4, 2, 2),
    ("V_MFMA_F32_4X4X4F16_vgprcd_e64", 4, 2, 2),
    ("V_MFMA_F64_16X16X4F64_vgprcd_e64", 8, 2, 2),
    ("V_MFMA_F64_4X4X4F64_vgprcd_e64", 2, 2, 2),
    ("V_MFMA_I32_16X16X32I8_vgprcd_e64", 4, 2, 2),
    ("V_MFMA_I32_16X16X4I8_vgprcd_e64", 16, 1, 1),
    ("V_MFMA_I32_32X32X16I8_vgprcd_e64", 16, 2, 2),
    ("V_MFMA_I32_32X32X4I8_vgprcd_e64", 32, 1, 1),
    ("V_MFMA_I32_4X4X4I8_vgprcd_e64", 4, 1, 1),
    ("V_SMFMAC_F32_16X16X32_BF16_e64", 4, 2, 4),
    ("V_SMFMAC_F32_16X16X32_F16_e64", 4, 2, 4),
    ("V_SMFMAC_F32_16X16X64_BF8_BF8_e64", 4, 2, 4),
    ("V_SMFMAC_F32_16X16X64_FP8_FP8_e64", 4, 2, 4),
    ("V_SMFMAC_F32_32X32X16_BF16_e64", 16, 2, 4),
    ("V_SMFMAC_F32_32X32X16_F16_e64", 16, 2, 4),
    ("V_SMFMAC_F32_32X32X32_BF8_BF8_e64", 16, 2, 4),
    ("V_SMFMAC_F32_32X32X32_FP8_FP8_e64", 16, 2, 4),
    ("V_SMFMAC_I32_16X16X64_I8_e64", 4, 2, 4),
    ("V_SMFMAC_I32_32X32X32_I8_e64", 16, 2, 4),
];

/// VGPRs in LLVM's machine representation.
fn vgprs(first: u8, count: u8) -> String {
    let names: Vec<String> = (first..first + count).map(|n| format!("vgpr{n}")).collect();
    format!("${}", names.join("_"))
}

/// A processor's table and what LLVM makes of all pairs of gfx90a's and gfx942's instructions and of
/// these.
pub fn table(processor: &str, more: &[&'static str]) -> (Isa, Rules, Vec<Recognized>) {
    // One operation of gfx90a is gone.
    let shared = gfx9::POOL.iter().filter(|line| !line.contains("16X16X16I8"));
    let pool: Vec<&str> = shared.chain(POOL).chain(more).copied().collect();
    super::table(processor, &pool, &[])
}

#[test]
fn every_pair_of_instructions_is_kept_apart_as_llvm_keeps_it() {
    let (isa, rules, recognized) = table("gfx942", &[]);
    let reached = agree(&isa, &rules, &recognized);
    all_reached(&rules, &reached, &MANUAL_ALONE);
}

#[test]
fn a_table_without_one_of_its_families_differs_from_llvm() {
    let (isa, rules, recognized) = table("gfx942", &[]);
    each_family_matters(&isa, &rules, &recognized);
}

#[test]
fn every_matrix_operation_has_the_passes_that_llvm_gives_it() {
    passes_agree("gfx942", MATRICES);
}

/// Each of these, followed by what reads, stores, overwrites and accumulates its registers.
pub fn passes_agree(processor: &str, matrices: &[Matrix]) {
    let isa = isa(processor);
    let rules = Rules::of(isa.target(), 64).expect("rules");
    let mut lines = Vec::new();
    let followers: Vec<String> = vec![
        "$vgpr60 = V_MOV_B32_e32 $vgpr0, implicit $exec".into(),
        "GLOBAL_STORE_DWORD $vgpr60_vgpr61, $vgpr0, 0, 0, implicit $exec".into(),
        "$vgpr0 = V_MOV_B32_e32 $vgpr60, implicit $exec".into(),
        "$vgpr64 = V_MOV_B32_e32 $vgpr60, implicit $exec".into(),
    ];
    let factors = |name: &str, a: u8, b: u8, result: &str, addend: &str| {
        let (a, b) = (vgprs(40, a), vgprs(48, b));
        if name.starts_with("V_SMFMAC") {
            let tail = "implicit $mode, implicit $exec";
            format!("{addend} = {name} {a}, {b}, $vgpr56, 0, 0, {addend}, {tail}")
        } else {
            // Where formats are modifiers there is no third one.
            let more = match name.split_once("F8F6F4") {
                Some((_, formats)) if formats.contains("f4_f4") => "4, 4",
                Some((_, formats)) if formats.contains("f8_f4") => "0, 4",
                Some((_, formats)) if formats.contains("f6_f4") => "2, 4",
                Some(_) => "0, 0",
                None => "0, 0, 0",
            };
            format!("{result} = {name} {a}, {b}, {addend}, {more}, implicit $mode, implicit $exec")
        }
    };
    for (name, result, a, b) in matrices.iter().copied() {
        let (own, other) = (vgprs(0, result), vgprs(64, result));
        for first in [factors(name, a, b, &own, &own), factors(name, a, b, &own, &other)] {
            for second in &followers {
                lines.push([first.clone(), second.clone()]);
            }
            for (follower, result, a, b) in matrices.iter().copied() {
                let addend = vgprs(2, result);
                let second = factors(follower, a, b, &vgprs(96, result), &addend);
                lines.push([first.clone(), second]);
                let second = factors(follower, a, b, &vgprs(96, result), &vgprs(0, result));
                lines.push([first.clone(), second]);
            }
        }
    }
    let sequences: Vec<Vec<&str>> =
        lines.iter().map(|pair| pair.iter().map(String::as_str).collect()).collect();
    agree(&isa, &rules, &recognized(&isa, &["-mattr=-xnack"], &sequences));
}
