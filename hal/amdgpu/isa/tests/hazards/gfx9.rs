//! gfx90a.

use super::llc::{Recognized, compiled};
use super::{assert_agreement, assert_all_reached, assert_each_family_matters};
use crate::common::isa;
use flipwave_isa::hazard::shift64_high_reg_bug;
use flipwave_isa::{Isa, Rules};

/// Instructions in LLVM's machine IR (MIR), on few registers so that they often overlap.
pub const POOL: &[&str] = &[
    "$vgpr0 = V_MOV_B32_e32 $vgpr4, implicit $exec",
    "$vgpr4 = V_MOV_B32_e32 $vgpr0, implicit $exec",
    "$vgpr8 = V_MOV_B32_e32 0, implicit $exec",
    "$vgpr0_vgpr1 = V_FMA_F64_e64 0, $vgpr2_vgpr3, 0, $vgpr4_vgpr5, 0, $vgpr8_vgpr9, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1 = V_FMAC_F64_e32 $vgpr2_vgpr3, $vgpr4_vgpr5, $vgpr0_vgpr1, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1 = V_ADD_F64_e64 0, $vgpr2_vgpr3, 0, $vgpr4_vgpr5, 0, 0, implicit $mode, implicit $exec",
    "$agpr0 = V_ACCVGPR_WRITE_B32_e64 $vgpr0, implicit $exec",
    "$vgpr0 = V_ACCVGPR_READ_B32_e64 $agpr0, implicit $exec",
    "$sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec",
    "$sgpr5 = V_READLANE_B32 $vgpr0, $sgpr4",
    "$sgpr5 = V_READLANE_B32 $vgpr0, 3",
    "$vgpr0 = V_WRITELANE_B32 7, $sgpr4, $vgpr0",
    "V_CMP_LT_F32_e32 $vgpr0, $vgpr4, implicit-def $vcc, implicit $mode, implicit $exec",
    "$sgpr4_sgpr5 = V_CMP_LT_F32_e64 0, $vgpr0, 0, $vgpr4, 0, implicit $mode, implicit $exec",
    "V_CMPX_LT_F32_e32 $vgpr0, $vgpr4, implicit-def $exec, implicit-def $vcc, implicit $mode, implicit $exec",
    "$vgpr0 = V_DIV_FMAS_F32_e64 0, $vgpr4, 0, $vgpr8, 0, $vgpr9, 0, 0, implicit $mode, implicit $vcc, implicit $exec",
    "$vgpr0 = V_MOV_B32_dpp $vgpr0, $vgpr4, 0, 15, 15, 0, implicit $exec",
    "$vgpr8 = V_MOV_B32_dpp $vgpr8, $vgpr0, 0, 15, 15, 0, implicit $exec",
    "$vgpr0 = V_DOT2_F32_F16 8, $vgpr4, 8, $vgpr8, 8, $vgpr0, 0, 0, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0 = V_DOT4_I32_I8 8, $vgpr4, 8, $vgpr8, 8, $vgpr0, 0, 0, 0, implicit $exec",
    "$vgpr4 = V_DOT2_F32_F16 8, $vgpr0, 8, $vgpr8, 8, $vgpr4, 0, 0, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0 = V_DOT2C_F32_F16_e32 $vgpr4, $vgpr8, $vgpr0, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1_vgpr2_vgpr3 = V_MFMA_F32_4X4X1F32_vgprcd_e64 $vgpr4, $vgpr8, $vgpr0_vgpr1_vgpr2_vgpr3, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr20_vgpr21_vgpr22_vgpr23 = V_MFMA_F32_4X4X1F32_vgprcd_e64 $vgpr0, $vgpr8, $vgpr2_vgpr3_vgpr4_vgpr5, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1_vgpr2_vgpr3 = V_MFMA_F32_16X16X4F32_vgprcd_e64 $vgpr4, $vgpr8, $vgpr0_vgpr1_vgpr2_vgpr3, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr20_vgpr21_vgpr22_vgpr23 = V_MFMA_F32_16X16X4F32_vgprcd_e64 $vgpr0, $vgpr8, $vgpr2_vgpr3_vgpr4_vgpr5, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1_vgpr2_vgpr3 = V_MFMA_I32_16X16X16I8_vgprcd_e64 $vgpr4, $vgpr8, $vgpr0_vgpr1_vgpr2_vgpr3, 0, 0, 0, implicit $mode, implicit $exec",
    "$agpr0_agpr1_agpr2_agpr3 = V_MFMA_F32_16X16X4F32_e64 $vgpr4, $vgpr8, $agpr0_agpr1_agpr2_agpr3, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1_vgpr2_vgpr3_vgpr4_vgpr5_vgpr6_vgpr7_vgpr8_vgpr9_vgpr10_vgpr11_vgpr12_vgpr13_vgpr14_vgpr15 = V_MFMA_F32_32X32X2F32_vgprcd_e64 $vgpr16, $vgpr17, $vgpr0_vgpr1_vgpr2_vgpr3_vgpr4_vgpr5_vgpr6_vgpr7_vgpr8_vgpr9_vgpr10_vgpr11_vgpr12_vgpr13_vgpr14_vgpr15, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1 = V_MFMA_F64_4X4X4F64_vgprcd_e64 $vgpr4_vgpr5, $vgpr8_vgpr9, $vgpr0_vgpr1, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr2_vgpr3 = V_MFMA_F64_4X4X4F64_vgprcd_e64 $vgpr0_vgpr1, $vgpr8_vgpr9, $vgpr2_vgpr3, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1_vgpr2_vgpr3_vgpr4_vgpr5_vgpr6_vgpr7 = V_MFMA_F64_16X16X4F64_vgprcd_e64 $vgpr8_vgpr9, $vgpr10_vgpr11, $vgpr0_vgpr1_vgpr2_vgpr3_vgpr4_vgpr5_vgpr6_vgpr7, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr16_vgpr17_vgpr18_vgpr19_vgpr20_vgpr21_vgpr22_vgpr23 = V_MFMA_F64_16X16X4F64_vgprcd_e64 $vgpr0_vgpr1, $vgpr4_vgpr5, $vgpr2_vgpr3_vgpr4_vgpr5_vgpr6_vgpr7_vgpr8_vgpr9, 0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr4, 0, 0, implicit $exec",
    "$vgpr4 = GLOBAL_LOAD_DWORD $vgpr0_vgpr1, 0, 0, implicit $exec",
    "$vgpr8 = BUFFER_LOAD_DWORD_OFFEN $vgpr0, $sgpr4_sgpr5_sgpr6_sgpr7, 0, 0, 0, 0, implicit $exec",
    "GLOBAL_STORE_DWORDX4 $vgpr8_vgpr9, $vgpr0_vgpr1_vgpr2_vgpr3, 0, 0, implicit $exec",
    "GLOBAL_STORE_DWORDX2 $vgpr8_vgpr9, $vgpr0_vgpr1, 0, 0, implicit $exec",
    "FLAT_STORE_DWORDX3 $vgpr8_vgpr9, $vgpr0_vgpr1_vgpr2, 0, 0, implicit $exec, implicit $flat_scr",
    "BUFFER_STORE_DWORDX4_OFFEN $vgpr0_vgpr1_vgpr2_vgpr3, $vgpr8, $sgpr4_sgpr5_sgpr6_sgpr7, 0, 0, 0, 0, implicit $exec",
    "BUFFER_STORE_DWORDX4_OFFEN $vgpr0_vgpr1_vgpr2_vgpr3, $vgpr8, $sgpr4_sgpr5_sgpr6_sgpr7, $sgpr8, 0, 0, 0, implicit $exec",
    "GLOBAL_ATOMIC_CMPSWAP_X2 $vgpr8_vgpr9, $vgpr0_vgpr1_vgpr2_vgpr3, 0, 0, implicit $exec",
    "$vgpr0 = DS_READ_B32_gfx9 $vgpr4, 0, 0, implicit $exec",
    "DS_WRITE_B128_gfx9 $vgpr4, $vgpr0_vgpr1_vgpr2_vgpr3, 0, 0, implicit $exec",
    "$m0 = S_MOV_B32 1",
    "$sgpr4 = S_MOV_B32 1",
    "S_SENDMSG 3, implicit $exec, implicit $m0",
    "$sgpr4 = S_MOVRELS_B32 $sgpr0, implicit $m0",
    "S_SETREG_B32 $sgpr4, 2049, implicit-def $mode, implicit $mode",
    "S_SETREG_IMM32_B32 7, 2051, implicit-def $mode, implicit $mode",
    "$sgpr4 = S_GETREG_B32 2049, implicit-def $mode, implicit $mode",
    "$sgpr4 = S_LOAD_DWORD_IMM $sgpr4_sgpr5, 0, 0",
    "S_WAITCNT 0",
];

/// Sequences of a trigger, an intervening or unrelated instruction, and a victim.
const TRIPLES: &[[&str; 3]] = &[
    [
        "$vgpr20 = V_MOV_B32_e32 0, implicit $exec",
        "$vgpr0_vgpr1 = V_MFMA_F64_4X4X4F64_vgprcd_e64 $vgpr4_vgpr5, $vgpr8_vgpr9, $vgpr0_vgpr1, 0, 0, 0, implicit $mode, implicit $exec",
        "GLOBAL_STORE_DWORD $vgpr22_vgpr23, $vgpr20, 0, 0, implicit $exec",
    ],
    [
        "$vgpr20 = V_MOV_B32_e32 0, implicit $exec",
        "$vgpr21 = V_MOV_B32_e32 0, implicit $exec",
        "GLOBAL_STORE_DWORD $vgpr22_vgpr23, $vgpr20, 0, 0, implicit $exec",
    ],
];

/// Names of hazards that LLVM does not have: its code generator never reads the flags as data.
const NOT_IN_LLVM: [&str; 1] = ["VALU writes VCC or EXEC, VALU reads VCCZ or EXECZ as data"];

fn table() -> (Isa, Rules, Vec<Recognized>) {
    super::table("gfx90a", POOL, TRIPLES)
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

/// LLVM moves the shift amount to another register if the next register is unused.
#[test]
fn shift64_bug_registers_match_llvm() {
    let isa = isa("gfx90a");
    let mut lines = Vec::new();
    for amount in [6, 7, 8, 15, 254, 255] {
        for operation in ["V_LSHLREV_B64_e64", "V_LSHRREV_B64_e64", "V_ASHRREV_I64_e64"] {
            let shift = "$vgpr0_vgpr1 = OPERATION $vgprAMOUNT, $vgpr2_vgpr3, implicit $exec";
            let shift = shift.replace("OPERATION", operation);
            lines.push(shift.replace("AMOUNT", &amount.to_string()));
        }
        lines.push(format!("$vgpr0 = V_LSHLREV_B32_e32 $vgpr{amount}, $vgpr2, implicit $exec"));
    }
    let sequences: Vec<Vec<&str>> = lines.iter().map(|line| vec![line.as_str()]).collect();
    let plain = compiled(&isa, &["-start-after=post-RA-hazard-rec"], &sequences);
    let mitigated = compiled(&isa, &["-start-before=post-RA-hazard-rec"], &sequences);
    for (plain, mitigated) in plain.into_iter().flatten().zip(mitigated) {
        let is_moved = mitigated.len() > 1;
        assert_eq!(shift64_high_reg_bug(isa.target(), &plain).is_some(), is_moved, "{plain}");
    }
}
