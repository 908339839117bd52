//! gfx1200 and gfx1201, wave32 and wave64.

use super::llc::{FunctionKind, Recognized, assembled, compiled_as, recognized};
use super::{assert_agreement, assert_all_reached, assert_each_family_matters, pairs, without};
use crate::common::isa_with_wave_size;
use flipwave_depth::cases;
use flipwave_isa::hazard::{SgprHazardState, SgprWait};
use flipwave_isa::{Inst, Isa, Rules};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Instructions for both wave sizes.
const POOL: &[&str] = &[
    "$vgpr0 = V_MOV_B32_e32 $vgpr4, implicit $exec",
    "$vgpr4 = V_ADD_F32_e32 $vgpr0, $vgpr1, implicit $mode, implicit $exec",
    "$vgpr0 = V_RCP_F32_e32 $vgpr4, implicit $mode, implicit $exec",
    "$vgpr4 = V_EXP_F32_e32 $vgpr0, implicit $mode, implicit $exec",
    "$vgpr8 = V_MOV_B32_dpp $vgpr8, $vgpr0, 0, 15, 15, 0, implicit $exec",
    "V_NOP_e32 implicit $exec",
    "$vgpr1 = V_PERMLANE16_B32_e64 0, $vgpr0, 0, $sgpr1, 0, $sgpr2, $vgpr1, 0, implicit $exec",
    "$vgpr1 = V_PERMLANEX16_B32_e64 0, $vgpr8, 0, $sgpr1, 0, $sgpr2, $vgpr1, 0, implicit $exec",
    "$vgpr1 = V_PERMLANE16_VAR_B32_e64 0, $vgpr0, 0, $vgpr8, $vgpr1, 0, implicit $exec",
    "$vgpr1 = V_PERMLANE64_B32 $vgpr0, implicit $exec",
    "V_CMPX_LT_F32_nosdst_e32 $vgpr0, $vgpr4, implicit-def $exec, implicit $mode, implicit $exec",
    "V_CMPX_LT_F32_nosdst_e64 0, $vgpr0, 0, $vgpr4, 0, implicit-def $exec, implicit $mode, implicit $exec",
    "$sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec",
    "$sgpr4 = S_MOV_B32 0",
    "$sgpr6 = S_MOV_B32 $sgpr4",
    "$sgpr4 = S_LOAD_DWORD_IMM $sgpr4_sgpr5, 0, 0",
    "$vgpr0 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr4, 0, 0, implicit $exec",
    "$vgpr0 = DS_READ_B32_gfx9 $vgpr4, 0, 0, implicit $exec",
    "S_DENORM_MODE 7, implicit-def $mode, implicit $mode",
    "S_WAITCNT_DEPCTR 4095",
    "S_WAITCNT_DEPCTR 65534",
    "$m0 = S_MOV_B32 1",
];

/// The second operation reads the result of the first as A or B, the third as its index.
const WMMA_WAVE32: &[&str] = &[
    "early-clobber $vgpr16_vgpr17_vgpr18_vgpr19_vgpr20_vgpr21_vgpr22_vgpr23 = V_WMMA_F32_16X16X16_F16_w32_twoaddr 8, $vgpr0_vgpr1_vgpr2_vgpr3, 8, $vgpr8_vgpr9_vgpr10_vgpr11, 8, $vgpr16_vgpr17_vgpr18_vgpr19_vgpr20_vgpr21_vgpr22_vgpr23, 0, 0, implicit $exec",
    "early-clobber $vgpr24_vgpr25_vgpr26_vgpr27_vgpr28_vgpr29_vgpr30_vgpr31 = V_WMMA_F32_16X16X16_F16_w32_twoaddr 8, $vgpr16_vgpr17_vgpr18_vgpr19, 8, $vgpr8_vgpr9_vgpr10_vgpr11, 8, $vgpr24_vgpr25_vgpr26_vgpr27_vgpr28_vgpr29_vgpr30_vgpr31, 0, 0, implicit $exec",
    "early-clobber $vgpr40_vgpr41_vgpr42_vgpr43_vgpr44_vgpr45_vgpr46_vgpr47 = V_SWMMAC_F32_16X16X32_F16_w32_twoaddr 8, $vgpr0_vgpr1_vgpr2_vgpr3, 8, $vgpr4_vgpr5_vgpr6_vgpr7_vgpr8_vgpr9_vgpr10_vgpr11, $vgpr40_vgpr41_vgpr42_vgpr43_vgpr44_vgpr45_vgpr46_vgpr47, $vgpr16, 0, 0, 0, implicit $exec",
];

const WMMA_WAVE64: &[&str] = &[
    "early-clobber $vgpr16_vgpr17_vgpr18_vgpr19 = V_WMMA_F32_16X16X16_F16_w64_twoaddr 8, $vgpr0_vgpr1, 8, $vgpr8_vgpr9, 8, $vgpr16_vgpr17_vgpr18_vgpr19, 0, 0, implicit $exec",
    "early-clobber $vgpr24_vgpr25_vgpr26_vgpr27 = V_WMMA_F32_16X16X16_F16_w64_twoaddr 8, $vgpr16_vgpr17, 8, $vgpr8_vgpr9, 8, $vgpr24_vgpr25_vgpr26_vgpr27, 0, 0, implicit $exec",
    "early-clobber $vgpr40_vgpr41_vgpr42_vgpr43 = V_SWMMAC_F32_16X16X32_F16_w64_twoaddr 8, $vgpr0_vgpr1, 8, $vgpr4_vgpr5_vgpr6_vgpr7, $vgpr40_vgpr41_vgpr42_vgpr43, $vgpr16, 0, 0, 0, implicit $exec",
];

fn table(processor: &str, wave_size: u8) -> (Isa, Rules, Vec<Recognized>) {
    let isa = isa_with_wave_size(processor, wave_size);
    // SGPR hazards are compared separately.
    let rules = Rules::of(isa.target(), wave_size).expect("rules");
    let rules = Rules { sgpr_hazards: None, ..rules };
    let pool: Vec<&str> = POOL
        .iter()
        .chain(if wave_size == 32 { WMMA_WAVE32 } else { WMMA_WAVE64 })
        .copied()
        .collect();
    let attribute = format!("-mattr=+wavefrontsize{wave_size}");
    let options = [&*attribute, "-amdgpu-sgpr-hazard-wait=0"];
    let recognized = recognized(&isa, &options, &pairs(&pool));
    (isa, rules, recognized)
}

/// Hazards that LLVM handles in `SIInsertWaitcnts` instead of the hazard recognizer.
const NOT_IN_RECOGNIZER: [&str; 1] = ["an instruction, s_sendmsg MSG_DEALLOC_VGPRS follows"];

const MACHINES: [(&str, u8); 4] =
    [("gfx1200", 32), ("gfx1200", 64), ("gfx1201", 32), ("gfx1201", 64)];

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
    let (isa, mut rules, recognized) = table("gfx1201", 64);
    rules.hazards = without(&rules, |family| NOT_IN_RECOGNIZER.contains(&family[0].name));
    assert_each_family_matters(&isa, &rules, &recognized);
}

/// Instructions that read or write scalar registers, for both wave sizes.
const SCALARS: &[&str] = &[
    "$vgpr0 = V_MOV_B32_e32 $sgpr4, implicit $exec",
    "$vgpr0 = V_MOV_B32_e32 $sgpr7, implicit $exec",
    "$vgpr0 = V_ADD_F32_e32 $sgpr8, $vgpr1, implicit $mode, implicit $exec",
    "$vgpr0 = V_MOV_B32_e32 $vcc_lo, implicit $exec",
    "$vgpr0 = V_MOV_B32_e32 $ttmp9, implicit $exec",
    "$vgpr0 = V_MOV_B32_e32 $m0, implicit $exec",
    "$vgpr0 = V_MOV_B32_e32 $exec_lo, implicit $exec",
    "$vgpr0 = V_MOV_B32_e32 $vgpr1, implicit $exec",
    "$vgpr0 = V_WRITELANE_B32 $sgpr4, $sgpr8, $vgpr0",
    "$sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec",
    "$sgpr7 = V_READLANE_B32 $vgpr0, $sgpr8",
    "$sgpr4 = S_MOV_B32 $sgpr5",
    "$sgpr5 = S_MOV_B32 0",
    "$sgpr8 = S_MOV_B32 $sgpr6",
    "$sgpr6_sgpr7 = S_MOV_B64 $sgpr4_sgpr5",
    "$sgpr4_sgpr5 = S_MOV_B64 -1",
    "$vcc_lo = S_MOV_B32 $sgpr4",
    "$vcc = S_MOV_B64 $sgpr6_sgpr7",
    "$sgpr4_sgpr5 = S_MOV_B64 $vcc",
    "$exec_lo = S_MOV_B32 $sgpr4",
    "$m0 = S_MOV_B32 $sgpr8",
    "$ttmp9 = S_MOV_B32 $sgpr4",
    "$sgpr4 = S_ADD_F32 $sgpr5, $sgpr8, implicit $mode",
    "$sgpr6_sgpr7 = S_GETPC_B64",
    "$sgpr4 = S_LOAD_DWORD_IMM $sgpr6_sgpr7, 0, 0",
    "$vgpr0 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr4, 0, 0, implicit $exec",
    "$vgpr0 = BUFFER_LOAD_DWORD_VBUFFER_OFFSET $sgpr4_sgpr5_sgpr6_sgpr7, $sgpr_null, 0, 0, 0, implicit $exec",
    "$vgpr0 = DS_READ_B32_gfx9 $vgpr4, 0, 0, implicit $exec",
    "DS_NOP implicit $m0, implicit $exec",
    "S_WAITCNT_DEPCTR 65438",
    "S_WAITCNT_DEPCTR 61849",
    "S_WAITCNT_DEPCTR 65437",
    "S_NOP 0",
];

/// Instructions that read or write lane masks.
const MASKS_WAVE32: &[&str] = &[
    "$vgpr0 = V_CNDMASK_B32_e64 0, $vgpr1, 0, $vgpr2, $sgpr4, implicit $exec",
    "$vgpr0 = V_CNDMASK_B32_e32 $vgpr1, $vgpr2, implicit $vcc, implicit $exec",
    "$sgpr4 = V_CMP_LT_F32_e64 0, $vgpr0, 0, $vgpr4, 0, implicit $mode, implicit $exec",
    "V_CMP_LT_F32_e32 $vgpr0, $vgpr4, implicit-def $vcc, implicit $mode, implicit $exec",
    "$vgpr0, $sgpr6 = V_ADDC_U32_e64 $vgpr4, $vgpr8, $sgpr4, 0, implicit $exec",
    "$sgpr4 = S_AND_SAVEEXEC_B32 $vcc_lo, implicit-def $exec, implicit-def $scc, implicit $exec",
];

const MASKS_WAVE64: &[&str] = &[
    "$vgpr0 = V_CNDMASK_B32_e64 0, $vgpr1, 0, $vgpr2, $sgpr4_sgpr5, implicit $exec",
    "$vgpr0 = V_CNDMASK_B32_e32 $vgpr1, $vgpr2, implicit $vcc, implicit $exec",
    "$sgpr4_sgpr5 = V_CMP_LT_F32_e64 0, $vgpr0, 0, $vgpr4, 0, implicit $mode, implicit $exec",
    "V_CMP_LT_F32_e32 $vgpr0, $vgpr4, implicit-def $vcc, implicit $mode, implicit $exec",
    "$vgpr0, $sgpr6_sgpr7 = V_ADDC_U32_e64 $vgpr4, $vgpr8, $sgpr4_sgpr5, 0, implicit $exec",
    "$sgpr4_sgpr5 = S_AND_SAVEEXEC_B64 $vcc, implicit-def $exec, implicit-def $scc, implicit $exec",
];

/// Random sequences with occasional repetitions of an instruction.
fn random(pool: &[&'static str], count: usize) -> Vec<Vec<&'static str>> {
    let mut random = ChaCha8Rng::seed_from_u64(12);
    let mut below = |bound: usize| random.next_u32() as usize % bound;
    let sequence = |_| {
        let mut sequence = Vec::new();
        while sequence.len() < 24 {
            let times = if below(8) == 0 { 1 + below(9) } else { 1 };
            sequence.extend(vec![pool[below(pool.len())]; times]);
        }
        sequence
    };
    (0..count).map(sequence).collect()
}

/// The texts of a sequence with consecutive waits merged into one text of their fields.
fn merged(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut merged: Vec<String> = Vec::new();
    let mut fields: Vec<String> = Vec::new();
    for text in texts.into_iter().chain([String::new()]) {
        if let Some(wait) = text.strip_prefix("s_wait_alu ") {
            fields.extend(wait.split(' ').map(str::to_owned));
            continue;
        }
        fields.sort();
        fields.dedup();
        if !fields.is_empty() {
            merged.push(fields.join(" "));
        }
        fields.clear();
        merged.push(text);
    }
    merged
}

/// The texts of a sequence with the waits that the rules require, filtered by `filter`.
fn with_waits(
    isa: &Isa,
    initial: SgprHazardState,
    sequence: &[Inst],
    filter: fn(SgprWait) -> SgprWait,
) -> Vec<String> {
    let mut state = initial;
    let mut texts = Vec::new();
    for inst in sequence {
        let wait = filter(state.required_wait(inst));
        if !wait.is_empty() {
            texts.push(assembled(isa, &state.mitigation(wait).text()).text.clone());
        }
        state = state.after_wait(wait);
        state.execute(inst);
        texts.push(inst.text.clone());
    }
    texts
}

/// A comparison of required waits with LLVM's.
struct Comparison {
    /// Descriptions of the sequences whose waits differ.
    differing: Vec<String>,
    /// Number of sequences into which LLVM inserts waits.
    with_waits: usize,
}

/// Compares the required waits, filtered by `filter`, with those that LLVM inserts.
fn compare_waits(
    processor: &str,
    wave_size: u8,
    kind: FunctionKind,
    filter: fn(SgprWait) -> SgprWait,
) -> Comparison {
    let isa = isa_with_wave_size(processor, wave_size);
    let initial = Rules::of(isa.target(), wave_size).and_then(|rules| rules.sgpr_hazards);
    let initial = initial.expect("gfx12 has SGPR hazards");
    let initial = if kind == FunctionKind::Kernel { initial } else { initial.called() };
    let masks = if wave_size == 32 { MASKS_WAVE32 } else { MASKS_WAVE64 };
    let pool: Vec<&str> = SCALARS.iter().chain(masks).copied().collect();
    let sequences = random(&pool, 2000);
    let attribute = format!("-mattr=+wavefrontsize{wave_size}");
    let compiled = |option: &str| compiled_as(kind, &isa, &[option, &attribute], &sequences);
    let mitigated = compiled("-start-before=amdgpu-wait-sgpr-hazards");
    let original = compiled("-start-after=amdgpu-wait-sgpr-hazards");
    let mut comparison = Comparison { differing: Vec::new(), with_waits: 0 };
    for (mitigated, original) in mitigated.iter().zip(&original) {
        comparison.with_waits += usize::from(mitigated.len() > original.len());
        let expected = merged(with_waits(&isa, initial, original, filter));
        let llvm = merged(mitigated.iter().map(|inst| inst.text.clone()));
        if expected != llvm {
            comparison.differing.push(format!("rules {expected:#?}\nLLVM {llvm:#?}"));
        }
    }
    comparison
}

#[test]
fn sgpr_waits_match_llvm() {
    for (processor, wave_size) in cases(MACHINES, 3) {
        for kind in [FunctionKind::Kernel, FunctionKind::Callee] {
            let Comparison { differing, with_waits } =
                compare_waits(processor, wave_size, kind, |wait| wait);
            assert!(with_waits > 800, "{with_waits}");
            let first = differing.first();
            assert!(
                differing.is_empty(),
                "{processor} {wave_size}: {}, {first:?}",
                differing.len()
            );
        }
    }
}

#[test]
fn missing_sgpr_waits_disagree_with_llvm() {
    let Comparison { differing, with_waits } =
        compare_waits("gfx1201", 32, FunctionKind::Kernel, |_| SgprWait::default());
    assert!(differing.len() + 10 > with_waits && with_waits > 0);
}
