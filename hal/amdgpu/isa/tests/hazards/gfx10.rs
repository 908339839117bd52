//! gfx1010, which has many hazards that instructions mitigate, and gfx1030, which has few.

use super::llc::{Recognized, recognized};
use super::{assert_agreement, assert_all_reached, assert_each_family_matters, pairs};
use crate::common::isa;
use flipwave_isa::{Isa, Rules};

const POOL: &[&str] = &[
    "$vgpr0 = V_MOV_B32_e32 $vgpr4, implicit $exec",
    "$vgpr4 = V_MOV_B32_e32 $sgpr4, implicit $exec",
    "$vgpr0 = V_RCP_F32_e32 $vgpr4, implicit $mode, implicit $exec",
    "V_NOP_e32 implicit $exec",
    "$vgpr1 = V_PERMLANE16_B32_e64 0, $vgpr0, 0, $sgpr1, 0, $sgpr2, $vgpr1, 0, implicit $exec",
    "$vgpr1 = V_PERMLANEX16_B32_e64 0, $vgpr8, 0, $sgpr1, 0, $sgpr2, $vgpr1, 0, implicit $exec",
    "V_CMPX_LT_F32_nosdst_e32 $vgpr0, $vgpr4, implicit-def $exec, implicit $mode, implicit $exec",
    "V_CMP_LT_F32_e32 $vgpr0, $vgpr4, implicit-def $vcc, implicit $mode, implicit $exec",
    "$sgpr4 = V_CMP_LT_F32_e64 0, $vgpr0, 0, $vgpr4, 0, implicit $mode, implicit $exec",
    "$sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec",
    "$sgpr5 = V_READLANE_B32 $vgpr0, $sgpr4",
    "$sgpr4 = S_MOV_B32 0",
    "$sgpr4_sgpr5 = S_MOV_B64 0",
    "$sgpr6 = S_MOV_B32 $sgpr4",
    "$sgpr6 = S_MOV_B32 $exec_lo",
    "$exec_lo = S_MOV_B32 $sgpr6",
    "$sgpr6 = S_AND_SAVEEXEC_B32 $sgpr7, implicit-def $exec, implicit-def $scc, implicit $exec",
    "S_CMP_EQ_U32 $sgpr4, 0, implicit-def $scc",
    "$sgpr4 = S_MOVK_I32 7",
    "$m0 = S_MOV_B32 1",
    "$sgpr4 = S_GETREG_B32 2049, implicit-def $mode, implicit $mode",
    "$sgpr4 = S_LOAD_DWORD_IMM $sgpr4_sgpr5, 0, 0",
    "$sgpr8 = S_LOAD_DWORD_IMM $sgpr4_sgpr5, 0, 0",
    "$vgpr0 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr4, 0, 0, implicit $exec",
    "$vgpr4 = GLOBAL_LOAD_DWORD $vgpr0_vgpr1, 0, 0, implicit $exec",
    "$vgpr8 = BUFFER_LOAD_DWORD_OFFEN $vgpr0, $sgpr4_sgpr5_sgpr6_sgpr7, 0, 0, 0, 0, implicit $exec",
    "FLAT_STORE_DWORD $vgpr8_vgpr9, $vgpr0, 0, 0, implicit $exec, implicit $flat_scr",
    "$vgpr0 = DS_READ_B32_gfx9 $vgpr4, 0, 0, implicit $exec",
    "DS_WRITE_B32_gfx9 $vgpr4, $vgpr0, 0, 0, implicit $exec",
    "GLOBAL_ATOMIC_FMAX_SADDR $vgpr0, $vgpr1, $sgpr2_sgpr3, 0, 0, implicit $exec",
    "GLOBAL_ATOMIC_FCMPSWAP_SADDR $vgpr0, $vgpr2_vgpr3, $sgpr2_sgpr3, 0, 0, implicit $exec",
    "GLOBAL_ATOMIC_ADD_SADDR $vgpr0, $vgpr1, $sgpr2_sgpr3, 0, 0, implicit $exec",
    "S_DENORM_MODE 7, implicit-def $mode, implicit $mode",
    "S_WAITCNT 0",
    "S_WAITCNT 49279",
    "S_WAITCNT_VSCNT undef $sgpr_null, 0",
    "S_WAITCNT_LGKMCNT undef $sgpr_null, 0",
    "S_WAITCNT_DEPCTR 65507",
    "S_WAITCNT_DEPCTR 65534",
    "S_NOP 0",
];

/// Instructions that resolve a hazard of gfx1010 or do not, for the middle of sequences of three.
const MIDDLE: [&str; 9] = [
    "$vgpr9 = V_MOV_B32_e32 $vgpr8, implicit $exec",
    "V_NOP_e32 implicit $exec",
    "$sgpr9 = S_MOV_B32 0",
    "$sgpr9 = V_CMP_LT_F32_e64 0, $vgpr0, 0, $vgpr4, 0, implicit $mode, implicit $exec",
    "S_WAITCNT 0",
    "S_WAITCNT 49279",
    "S_WAITCNT_VSCNT undef $sgpr_null, 0",
    "S_WAITCNT_DEPCTR 65507",
    "S_WAITCNT_DEPCTR 65534",
];

/// Substrings of triggers.
const TRIGGERS: [&str; 6] = ["V_CMPX", "S_LOAD", "GLOBAL_LOAD", "DS_READ", "FMAX", "exec_lo"];
/// Substrings of victims.
const VICTIMS: [&str; 7] =
    ["V_PERMLANE16", "$sgpr4 =", "$sgpr4_sgpr5 =", "$exec_lo =", "V_CMPX", "V_READ", "DENORM"];

/// LDS and vector memory accesses on both sides of a branch.
fn around_branches() -> Vec<Vec<&'static str>> {
    let accesses = [
        "$vgpr0 = DS_READ_B32_gfx9 $vgpr4, 0, 0, implicit $exec",
        "$vgpr0 = GLOBAL_LOAD_DWORD $vgpr4_vgpr5, 0, 0, implicit $exec",
        "$vgpr0 = FLAT_LOAD_DWORD $vgpr4_vgpr5, 0, 0, implicit $exec, implicit $flat_scr",
        "S_WAITCNT_VSCNT undef $sgpr_null, 0",
        "S_NOP 0",
    ];
    let mut sequences = Vec::new();
    for first in accesses {
        for second in accesses {
            for third in accesses {
                for last in accesses {
                    sequences.push(vec![first, second, "S_BRANCH %bb.1", "bb.1:", third, last]);
                }
            }
        }
    }
    sequences
}

/// Images with non-sequential addresses, of four words and of three, followed by buffer accesses with several
/// offsets.
fn buffers_after_images() -> Vec<Vec<&'static str>> {
    let images = [
        "$vgpr0 = IMAGE_SAMPLE_D_V1_V6_nsa_gfx10 $vgpr3, $vgpr5, $vgpr7, $vgpr9, $vgpr11, $vgpr13, \
         $sgpr0_sgpr1_sgpr2_sgpr3_sgpr4_sgpr5_sgpr6_sgpr7, $sgpr8_sgpr9_sgpr10_sgpr11, 1, 1, -1, 0, 0, \
         0, 0, 0, 0, implicit $exec :: (load (s128))",
        "$vgpr0 = IMAGE_SAMPLE_V1_V3_nsa_gfx10 $vgpr3, $vgpr5, $vgpr7, \
         $sgpr0_sgpr1_sgpr2_sgpr3_sgpr4_sgpr5_sgpr6_sgpr7, $sgpr8_sgpr9_sgpr10_sgpr11, 1, 2, -1, 0, 0, \
         0, 0, 0, 0, implicit $exec :: (load (s128))",
    ];
    let buffers = [
        "$vgpr1 = BUFFER_LOAD_DWORD_OFFEN $vgpr4, $sgpr4_sgpr5_sgpr6_sgpr7, 0, 6, 0, 0, implicit $exec",
        "$vgpr1 = BUFFER_LOAD_DWORD_OFFEN $vgpr4, $sgpr4_sgpr5_sgpr6_sgpr7, 0, 4, 0, 0, implicit $exec",
        "$vgpr1 = BUFFER_LOAD_DWORD_OFFEN $vgpr4, $sgpr4_sgpr5_sgpr6_sgpr7, 0, 8, 0, 0, implicit $exec",
    ];
    let mut sequences = Vec::new();
    for image in images {
        for buffer in buffers {
            sequences.push(vec![image, buffer]);
            sequences.push(vec![image, "S_NOP 0", buffer]);
        }
    }
    sequences
}

fn table(processor: &str) -> (Isa, Rules, Vec<Recognized>) {
    let isa = isa(processor);
    let rules = Rules::of(isa.target(), 32).expect("rules");
    let mut sequences = pairs(POOL);
    for trigger in POOL.iter().filter(|line| TRIGGERS.iter().any(|part| line.contains(part))) {
        for middle in MIDDLE {
            let victims = POOL.iter().filter(|line| VICTIMS.iter().any(|part| line.contains(part)));
            sequences.extend(victims.map(|victim| vec![*trigger, middle, *victim]));
        }
    }
    sequences.extend(around_branches());
    if processor == "gfx1010" {
        sequences.extend(buffers_after_images());
    }
    // XNACK (page-fault replay) adds other hazards.
    let options: &[&str] = if processor == "gfx1010" { &["-mattr=-xnack"] } else { &[] };
    let recognized = recognized(&isa, options, &sequences);
    (isa, rules, recognized)
}

#[test]
fn sequences_match_llvm() {
    for processor in ["gfx1010", "gfx1030"] {
        println!("{processor}");
        let (isa, rules, recognized) = table(processor);
        let reached = assert_agreement(&isa, &rules, &recognized);
        assert_all_reached(&rules, &reached, &[]);
    }
}

#[test]
fn table_without_a_family_disagrees_with_llvm() {
    let (isa, rules, recognized) = table("gfx1010");
    assert_each_family_matters(&isa, &rules, &recognized);
}
