//! gfx1100 and gfx1150, wave32 and wave64.

use super::llc::{Recognized, recognized};
use super::{
    agrees, assert_agreement, assert_all_reached, assert_each_family_matters, pairs, without,
};
use crate::common::isa_with_wave_size;
use flipwave_depth::cases;
use flipwave_isa::{Isa, Rules};

/// Instructions for both wave sizes.
const POOL: &[&str] = &[
    "$vgpr0 = V_MOV_B32_e32 $vgpr4, implicit $exec",
    "$vgpr4 = V_ADD_F32_e32 $vgpr0, $vgpr1, implicit $mode, implicit $exec",
    "$vgpr4 = V_FMA_F32_e64 0, $vgpr1, 0, $vgpr8, 0, $vgpr0, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0 = V_FMAC_F32_e32 $vgpr4, $vgpr8, $vgpr0, implicit $mode, implicit $exec",
    "$vgpr0 = V_RCP_F32_e32 $vgpr4, implicit $mode, implicit $exec",
    "$vgpr4 = V_EXP_F32_e32 $vgpr0, implicit $mode, implicit $exec",
    "$vgpr0 = V_LOG_F32_e32 $vgpr4, implicit $mode, implicit $exec",
    "$vgpr0 = V_SIN_F32_e32 $vgpr4, implicit $mode, implicit $exec",
    "$vgpr0 = V_COS_F32_e64 0, $vgpr4, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0 = V_SQRT_F32_e32 $vgpr4, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1 = V_RSQ_F64_e32 $vgpr4_vgpr5, implicit $mode, implicit $exec",
    "$vgpr0 = V_ADD_F16_fake16_e64 0, $vgpr4, 0, $vgpr8, 0, 0, implicit $mode, implicit $exec",
    "$vgpr8 = V_MOV_B32_dpp $vgpr8, $vgpr0, 0, 15, 15, 0, implicit $exec",
    // Halves of registers.
    "$vgpr0_hi16 = V_RCP_F16_t16_e32 $vgpr4_lo16, implicit $mode, implicit $exec",
    "$vgpr0_lo16 = V_SQRT_F16_t16_e32 $vgpr4_hi16, implicit $mode, implicit $exec",
    "$vgpr8 = V_CVT_F32_F16_t16_e32 $vgpr0_lo16, implicit $mode, implicit $exec",
    "$vgpr8 = V_CVT_F32_F16_t16_e32 $vgpr0_hi16, implicit $mode, implicit $exec",
    "$vgpr4_hi16 = V_ADD_F16_t16_e32 $vgpr0_lo16, $vgpr0_hi16, implicit $mode, implicit $exec",
    "$vgpr4_lo16 = V_MUL_F16_t16_e32 $vgpr0_lo16, $vgpr8_hi16, implicit $mode, implicit $exec",
    "V_NOP_e32 implicit $exec",
    "$vgpr1 = V_PERMLANE16_B32_e64 0, $vgpr0, 0, $sgpr1, 0, $sgpr2, $vgpr1, 0, implicit $exec",
    "$vgpr1 = V_PERMLANEX16_B32_e64 0, $vgpr8, 0, $sgpr1, 0, $sgpr2, $vgpr1, 0, implicit $exec",
    "$vgpr1 = V_PERMLANE64_B32 $vgpr0, implicit $exec",
    "V_CMPX_LT_F32_nosdst_e32 $vgpr0, $vgpr4, implicit-def $exec, implicit $mode, implicit $exec",
    "V_CMPX_LT_F32_nosdst_e64 0, $vgpr0, 0, $vgpr4, 0, implicit-def $exec, implicit $mode, implicit $exec",
    "$sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec",
    "$sgpr4 = S_MOV_B32 0",
    "$sgpr6 = S_MOV_B32 $sgpr4",
    "$sgpr4 = S_LOAD_DWORD_IMM $sgpr4_sgpr5, 0, 0",
    "$vgpr0 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr4, 0, 0, implicit $exec",
    "$vgpr0 = DS_READ_B32_gfx9 $vgpr4, 0, 0, implicit $exec",
    "GLOBAL_ATOMIC_ADD_F32_SADDR $vgpr0, $vgpr1, $sgpr2_sgpr3, 0, 0, implicit $exec",
    "S_DENORM_MODE 7, implicit-def $mode, implicit $mode",
    "S_WAITCNT 0",
    "S_WAITCNT_DEPCTR 4095",
    "S_WAITCNT_DEPCTR 65534",
    "$m0 = S_MOV_B32 1",
];

const WMMA_WAVE32: &[&str] = &[
    "early-clobber $vgpr16_vgpr17_vgpr18_vgpr19_vgpr20_vgpr21_vgpr22_vgpr23 = V_WMMA_F32_16X16X16_F16_twoaddr_w32 8, $vgpr0_vgpr1_vgpr2_vgpr3_vgpr4_vgpr5_vgpr6_vgpr7, 8, $vgpr8_vgpr9_vgpr10_vgpr11_vgpr12_vgpr13_vgpr14_vgpr15, 8, $vgpr16_vgpr17_vgpr18_vgpr19_vgpr20_vgpr21_vgpr22_vgpr23, 0, 0, implicit $exec",
    "early-clobber $vgpr24_vgpr25_vgpr26_vgpr27_vgpr28_vgpr29_vgpr30_vgpr31 = V_WMMA_F32_16X16X16_F16_twoaddr_w32 8, $vgpr16_vgpr17_vgpr18_vgpr19_vgpr20_vgpr21_vgpr22_vgpr23, 8, $vgpr8_vgpr9_vgpr10_vgpr11_vgpr12_vgpr13_vgpr14_vgpr15, 8, $vgpr24_vgpr25_vgpr26_vgpr27_vgpr28_vgpr29_vgpr30_vgpr31, 0, 0, implicit $exec",
];

const WMMA_WAVE64: &[&str] = &[
    "early-clobber $vgpr16_vgpr17_vgpr18_vgpr19 = V_WMMA_F32_16X16X16_F16_twoaddr_w64 8, $vgpr0_vgpr1_vgpr2_vgpr3_vgpr4_vgpr5_vgpr6_vgpr7, 8, $vgpr8_vgpr9_vgpr10_vgpr11_vgpr12_vgpr13_vgpr14_vgpr15, 8, $vgpr16_vgpr17_vgpr18_vgpr19, 0, 0, implicit $exec",
    "early-clobber $vgpr24_vgpr25_vgpr26_vgpr27 = V_WMMA_F32_16X16X16_F16_twoaddr_w64 8, $vgpr16_vgpr17_vgpr18_vgpr19_vgpr20_vgpr21_vgpr22_vgpr23, 8, $vgpr8_vgpr9_vgpr10_vgpr11_vgpr12_vgpr13_vgpr14_vgpr15, 8, $vgpr24_vgpr25_vgpr26_vgpr27, 0, 0, implicit $exec",
];

/// Instructions that read or write lane masks of wave64.
const MASKS: &[&str] = &[
    "$vgpr4 = V_CNDMASK_B32_e64 0, $vgpr0, 0, $vgpr8, $sgpr4_sgpr5, implicit $exec",
    "$vgpr4 = V_CNDMASK_B32_e64 0, $vgpr0, 0, $vgpr8, $sgpr6_sgpr7, implicit $exec",
    "$vgpr4 = V_CNDMASK_B32_e32 $vgpr0, $vgpr8, implicit $vcc, implicit $exec",
    "$vgpr0 = V_DIV_FMAS_F32_e64 0, $vgpr4, 0, $vgpr8, 0, $vgpr9, 0, 0, implicit $mode, implicit $vcc, implicit $exec",
    "$vgpr0, $vcc = V_ADDC_U32_e64 $vgpr4, $vgpr8, $sgpr4_sgpr5, 0, implicit $exec",
    "$vgpr0 = V_ADDC_U32_e32 $vgpr4, $vgpr8, implicit-def $vcc, implicit $vcc, implicit $exec",
    "$vgpr4 = V_MOV_B32_e32 $sgpr8, implicit $exec",
    "$vgpr4 = V_MOV_B32_e32 1234, implicit $exec",
    "$vgpr4 = V_MOV_B32_e32 12, implicit $exec",
    "$vgpr4 = V_MOV_B32_e32 $exec_lo, implicit $exec",
    "$sgpr4_sgpr5 = S_MOV_B64 -1",
    "$vcc = S_MOV_B64 $sgpr4_sgpr5",
    "$sgpr6_sgpr7 = S_MOV_B64 $vcc",
    "$exec = S_MOV_B64 $sgpr4_sgpr5",
    "$sgpr4_sgpr5 = S_AND_SAVEEXEC_B64 $vcc, implicit-def $exec, implicit-def $scc, implicit $exec",
    "$vgpr0 = V_MOV_B32_e32 $sgpr5, implicit $exec",
];

/// Sequences for partial forwarding, with different distances between the instructions.
fn forwarding() -> Vec<Vec<&'static str>> {
    let unrelated = "$vgpr9 = V_MOV_B32_e32 $vgpr8, implicit $exec";
    let last = "$vgpr4 = V_ADD_F32_e32 $vgpr0, $vgpr1, implicit $mode, implicit $exec";
    let mut sequences = Vec::new();
    for first in 0..4 {
        for second in 0..4 {
            for third in 0..6 {
                for done in ["$sgpr6 = S_MOV_B32 0", "S_WAITCNT_DEPCTR 4095"] {
                    sequences.push(
                        [
                            vec!["$vgpr0 = V_MOV_B32_e32 $vgpr4, implicit $exec"],
                            vec![unrelated; first],
                            vec!["$exec = S_MOV_B64 $sgpr4_sgpr5"],
                            vec![unrelated; second],
                            vec!["$vgpr1 = V_MOV_B32_e32 $vgpr4, implicit $exec", done],
                            vec![unrelated; third],
                            vec![last],
                        ]
                        .concat(),
                    );
                }
            }
        }
    }
    sequences
}

/// A transcendental operation, followed by other instructions and by a read or overwrite of its result.
fn transcendental() -> Vec<Vec<&'static str>> {
    let result = "$vgpr0 = V_RCP_F32_e32 $vgpr4, implicit $mode, implicit $exec";
    let mut sequences = Vec::new();
    for between in [
        "$vgpr9 = V_MOV_B32_e32 $vgpr8, implicit $exec",
        "$vgpr9 = V_EXP_F32_e32 $vgpr8, implicit $mode, implicit $exec",
        "$sgpr4 = S_MOV_B32 0",
        "V_NOP_e32 implicit $exec",
    ] {
        for count in 0..8 {
            for last in [
                "$vgpr5 = V_MOV_B32_e32 $vgpr0, implicit $exec",
                "$vgpr0 = V_MOV_B32_e32 $vgpr5, implicit $exec",
            ] {
                sequences.push([vec![result], vec![between; count], vec![last]].concat());
            }
        }
    }
    sequences
}

/// Writes of lane masks, each with an instruction that reads the written register.
const WRITES: [(&str, &str); 10] = [
    ("$sgpr4_sgpr5 = S_MOV_B64 -1", "$vcc = S_MOV_B64 $sgpr4_sgpr5"),
    ("$sgpr5 = S_MOV_B32 1", "$vgpr0 = V_MOV_B32_e32 $sgpr5, implicit $exec"),
    ("$vcc = S_MOV_B64 $sgpr8_sgpr9", "$sgpr6_sgpr7 = S_MOV_B64 $vcc"),
    (
        "$vcc = S_MOV_B64 0",
        "$vgpr4 = V_CNDMASK_B32_e32 $vgpr0, $vgpr8, implicit $vcc, implicit $exec",
    ),
    ("$exec = S_MOV_B64 $sgpr4_sgpr5", "$sgpr6_sgpr7 = S_MOV_B64 $exec"),
    (
        "$sgpr4_sgpr5 = S_AND_SAVEEXEC_B64 $sgpr8_sgpr9, implicit-def $exec, implicit-def $scc, implicit $exec",
        "$exec = S_MOV_B64 $sgpr4_sgpr5",
    ),
    // VALU writes a register that was read as a mask.
    (
        "$sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec",
        "$vgpr0 = V_MOV_B32_e32 $sgpr4, implicit $exec",
    ),
    ("$sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec", "$sgpr6 = S_MOV_B32 $sgpr4"),
    (
        "$sgpr4_sgpr5 = V_CMP_LT_F32_e64 0, $vgpr0, 0, $vgpr4, 0, implicit $mode, implicit $exec",
        "$vgpr4 = V_CNDMASK_B32_e64 0, $vgpr0, 0, $vgpr8, $sgpr4_sgpr5, implicit $exec",
    ),
    (
        "V_CMP_LT_F32_e32 $vgpr0, $vgpr4, implicit-def $vcc, implicit $mode, implicit $exec",
        "$vgpr4 = V_CNDMASK_B32_e32 $vgpr0, $vgpr8, implicit $vcc, implicit $exec",
    ),
];

/// Sequences of a read of a mask, an instruction in between, a write of the mask and a read of it.
fn masks() -> Vec<Vec<&'static str>> {
    let mut sequences = Vec::new();
    for reader in MASKS {
        for between in MASKS.iter().chain(POOL) {
            for (write, read) in WRITES {
                sequences.push(vec![*reader, *between, write, read]);
            }
        }
    }
    sequences
}

fn table(processor: &str, wave_size: u8) -> (Isa, Rules, Vec<Recognized>) {
    let isa = isa_with_wave_size(processor, wave_size);
    let rules = Rules::of(isa.target(), wave_size).expect("rules");
    let pool: Vec<&str> = POOL
        .iter()
        .chain(if wave_size == 32 { WMMA_WAVE32 } else { WMMA_WAVE64 })
        .copied()
        .collect();
    let mut sequences = [pairs(&pool), transcendental()].concat();
    if wave_size == 64 {
        sequences.extend(forwarding());
        sequences.extend(masks());
    }
    let attribute = format!("-mattr=+wavefrontsize{wave_size}");
    let recognized = recognized(&isa, &[&attribute], &sequences);
    (isa, rules, recognized)
}

/// Hazards that LLVM handles in `SIInsertWaitcnts` instead of the hazard recognizer.
const NOT_IN_RECOGNIZER: [&str; 1] = ["an instruction, s_sendmsg MSG_DEALLOC_VGPRS follows"];

const MACHINES: [(&str, u8); 4] =
    [("gfx1100", 32), ("gfx1100", 64), ("gfx1150", 32), ("gfx1150", 64)];

#[test]
fn sequences_match_llvm() {
    for (processor, wave_size) in cases(MACHINES, 3) {
        println!("{processor} {wave_size}");
        let (isa, rules, recognized) = table(processor, wave_size);
        let reached = assert_agreement(&isa, &rules, &recognized);
        assert_all_reached(&rules, &reached, &NOT_IN_RECOGNIZER);
    }
}

#[test]
fn table_without_a_family_disagrees_with_llvm() {
    let (isa, mut rules, recognized) = table("gfx1100", 64);
    rules.hazards = without(&rules, |family| NOT_IN_RECOGNIZER.contains(&family[0].name));
    assert_each_family_matters(&isa, &rules, &recognized);
}

#[test]
fn rules_without_mask_waits_disagree_with_llvm() {
    let (isa, rules, recognized) = table("gfx1100", 64);
    let rules = Rules { sgpr_hazards: None, ..rules };
    let differing = recognized.iter().filter(|sequence| !agrees(&isa, &rules, sequence)).count();
    assert!(differing > 500, "{differing} of {}", recognized.len());
}
