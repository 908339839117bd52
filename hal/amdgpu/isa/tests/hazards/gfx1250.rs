//! gfx1250 and gfx1251. LLVM inserts as many `v_nop` as are missing, so that their number is compared, too.

use super::llc::{Recognized, assembled, recognized};
use super::{assert_all_reached, without};
use crate::common::isa_with_wave_size;
use flipwave_depth::cases;
use flipwave_isa::hazard::{Hazard, preceding, violations};
use flipwave_isa::{Inst, Isa, Rules};
use std::collections::HashSet;

const POOL: &[&str] = &[
    "$vgpr0 = V_MOV_B32_e32 $vgpr4, implicit $exec",
    "$vgpr4 = V_ADD_F32_e32 $vgpr0, $vgpr1, implicit $mode, implicit $exec",
    "$vgpr100 = V_ADD_F32_e32 $vgpr140, $vgpr141, implicit $mode, implicit $exec",
    "$vgpr20 = V_MOV_B32_e32 $vgpr100, implicit $exec",
    "$vgpr0 = V_RCP_F32_e32 $vgpr4, implicit $mode, implicit $exec",
    "$vgpr4 = V_EXP_F32_e32 $vgpr0, implicit $mode, implicit $exec",
    "$vgpr21 = V_EXP_F32_e32 $vgpr101, implicit $mode, implicit $exec",
    "$vgpr8 = V_MOV_B32_dpp $vgpr8, $vgpr0, 0, 15, 15, 0, implicit $exec",
    "$vgpr100, $vgpr5 = V_DUAL_MOV_B32_e32_X_MOV_B32_e32_gfx1250 $vgpr6, $vgpr7, implicit $exec, implicit $exec, implicit $exec, implicit $exec",
    "$vgpr8, $vgpr9 = V_DUAL_MOV_B32_e32_X_MOV_B32_e32_gfx1250 $vgpr100, $vgpr4, implicit $exec, implicit $exec, implicit $exec, implicit $exec",
    "V_NOP_e32 implicit $exec",
    "$vgpr1 = V_PERMLANE16_B32_e64 0, $vgpr0, 0, $sgpr1, 0, $sgpr2, $vgpr1, 0, implicit $exec",
    "V_CMPX_LT_F32_nosdst_e32 $vgpr0, $vgpr4, implicit-def $exec, implicit $mode, implicit $exec",
    "$sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec",
    "$sgpr102 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec",
    "$sgpr4 = S_MOV_B32 0",
    "$sgpr102 = S_MOV_B32 0",
    "$sgpr103 = S_MOV_B32 0",
    "$vgpr0 = V_MOV_B32_e32 $src_flat_scratch_base_lo, implicit $exec",
    "$sgpr6 = S_MOV_B32 $src_flat_scratch_base_hi",
    "$sgpr6_sgpr7 = S_MOV_B64 $src_flat_scratch_base",
    "$sgpr4 = S_LOAD_DWORD_IMM $sgpr4_sgpr5, 0, 0",
    "$vgpr0 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr4, 0, 0, implicit $exec",
    "$vgpr0 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr100, 0, 0, implicit $exec",
    "$vgpr0 = DS_READ_B32_gfx9 $vgpr4, 0, 0, implicit $exec",
    "DS_ATOMIC_ASYNC_BARRIER_ARRIVE_B64 $vgpr0, 0, 0, implicit-def $asynccnt, implicit $asynccnt, implicit $exec",
    "S_WAITCNT_DEPCTR 0",
    "S_WAITCNT_DEPCTR 4095",
    "S_WAITCNT_DEPCTR 61950",
    "S_WAITCNT_DEPCTR 65507",
    "S_SETREG_B32 $sgpr4, 1, implicit-def $mode, implicit $mode",
    "S_SETREG_B32 $sgpr4, 14337, implicit-def $mode, implicit $mode",
    "$sgpr4 = S_GETREG_B32 63490, implicit $mode",
    "$sgpr4 = S_GETREG_B32 63505, implicit $mode",
    "$sgpr4 = S_GETREG_B32 63489, implicit $mode",
    "S_NOP 0",
];

/// Matrix operations with A in v20, B in v60 and D in v100, or with A in v100 and D in v200.
fn matrices() -> Vec<String> {
    let registers = |first: u32, count: u32| {
        let names: Vec<String> = (first..first + count).map(|n| format!("vgpr{n}")).collect();
        format!("${}", names.join("_"))
    };
    let shapes: [(&str, u32, u32, u32, &str); 10] = [
        ("V_WMMA_F32_16X16X32_F16", 8, 8, 8, "8, A, 8, B, 8, D, 0, 0, 0, 0"),
        ("V_WMMA_F16_16X16X32_F16", 8, 8, 4, "8, A, 8, B, 8, D, 0, 0, 0, 0"),
        ("V_WMMA_F32_16X16X64_FP8_FP8", 8, 8, 8, "A, B, 8, D, 0, 0, 0, 0"),
        ("V_WMMA_I32_16X16X64_IU8", 8, 8, 8, "8, A, 8, B, D, 0, 0, 0, 0"),
        ("V_WMMA_F32_16X16X4_F32", 2, 2, 8, "8, A, 8, B, 8, D, 0, 0, 0, 0"),
        ("V_WMMA_F32_16X16X128_F8F6F4_f4_f4", 8, 8, 8, "A, B, 8, D, 4, 4, 0, 0"),
        ("V_WMMA_F32_16X16X128_F8F6F4_f8_f4", 16, 8, 8, "A, B, 8, D, 0, 4, 0, 0"),
        ("V_WMMA_F32_32X16X128_F4", 16, 8, 16, "A, B, 8, D, 0, 0"),
        ("V_SWMMAC_F32_16X16X128_FP8_FP8", 8, 16, 8, "A, B, D, $vgpr250_vgpr251, 0, 0, 0"),
        ("V_SWMMAC_I32_16X16X128_IU8", 8, 16, 8, "8, A, 8, B, D, $vgpr250_vgpr251, 0, 0, 0, 0, 0"),
    ];
    let places = [(100, 20, 60), (200, 100, 60)];
    let one = |(name, a, b, d, operands): (&str, u32, u32, u32, &str), place: (u32, u32, u32)| {
        let to = registers(place.0, d);
        let operands = operands
            .replace('A', &registers(place.1, a))
            .replace('B', &registers(place.2, b))
            .replace('D', &to);
        format!("early-clobber {to} = {name}_w32_twoaddr {operands}, implicit $exec")
    };
    shapes.iter().flat_map(|shape| places.map(|place| one(*shape, place))).collect()
}

fn table(processor: &str) -> (Isa, Rules, Vec<Recognized>) {
    let isa = isa_with_wave_size(processor, 32);
    let rules = Rules::of(isa.target(), 32).expect("rules");
    let matrices = matrices();
    let pool: Vec<&str> = POOL.iter().copied().chain(matrices.iter().map(String::as_str)).collect();
    let mut sequences: Vec<Vec<&str>> = super::pairs_of(&pool);
    // Other vector operations between a matrix operation and its victim, in any number.
    let between = [
        "$vgpr140 = V_MOV_B32_e32 0, implicit $exec",
        "$vgpr143 = V_RCP_F32_e32 $vgpr144, implicit $mode, implicit $exec",
    ];
    for (index, matrix) in matrices.iter().enumerate().step_by(2) {
        for victim in [POOL[2], POOL[3], &matrices[1], &matrices[9]] {
            let count = 1 + index % 5;
            let mut sequence = vec![matrix.as_str()];
            sequence.extend((0..count).map(|at| between[at % 2]));
            sequence.push(victim);
            sequences.push(sequence);
        }
    }
    for count in 8..12 {
        let mut sequence = vec!["$sgpr102 = S_MOV_B32 0"];
        sequence.extend((0..count).map(|at| {
            if at % 3 == 0 {
                "$sgpr4 = V_READFIRSTLANE_B32 $vgpr1, implicit $exec"
            } else {
                "$sgpr5 = S_MOV_B32 0"
            }
        }));
        sequence.push("$vgpr0 = V_MOV_B32_e32 $src_flat_scratch_base_lo, implicit $exec");
        sequences.push(sequence);
    }
    let recognized = recognized(&isa, &[], &sequences);
    (isa, rules, recognized)
}

/// The instructions that rules require before the last instruction: other ones than `v_nop`, and the least
/// number of these.
fn required(isa: &Isa, rules: &Rules, sequence: &Recognized) -> (Vec<String>, usize) {
    let nop = assembled(isa, "v_nop");
    let violated = |nops: usize| -> Vec<(String, &'static Hazard)> {
        let between = std::iter::repeat_n(&nop, nops);
        let before: Vec<&Inst> = sequence.before.iter().chain(between).collect();
        let before = preceding(before.into_iter().rev());
        let families = rules.hazards.iter();
        families
            .flat_map(|family| violations(family, &before, &sequence.last))
            .map(|violation| (violation.needed.text(), violation.hazard))
            .collect()
    };
    let is_nop = |text: &String| text.starts_with("v_nop");
    let others: Vec<String> = violated(0)
        .into_iter()
        .map(|(text, _)| text)
        .filter(|text| !is_nop(text))
        .map(|text| assembled(isa, &text).text.clone())
        .collect();
    let nops = (0..20).find(|nops| !violated(*nops).iter().any(|(text, _)| is_nop(text)));
    (others, nops.expect("few v_nop"))
}

/// Returns `true` if the rules require what LLVM inserts.
fn agrees(isa: &Isa, rules: &Rules, sequence: &Recognized) -> bool {
    let (mut expected, nops) = required(isa, rules, sequence);
    let (inserted_nops, mut inserted): (Vec<String>, Vec<String>) =
        sequence.instructions.iter().cloned().partition(|text| text == "v_nop");
    for texts in [&mut expected, &mut inserted] {
        texts.sort();
        texts.dedup();
    }
    // LLVM also pads what has been padded before.
    let is_padding = |inst: &Inst| matches!(inst.operation.name(), "v_nop" | "s_wait_alu");
    if sequence.before.last().is_some_and(is_padding) || is_padding(&sequence.last) {
        return expected.iter().all(|text| inserted.contains(text)) && nops <= inserted_nops.len();
    }
    // A move of the source of `v_permlane` is a vector operation, too.
    let is_covered = inserted.iter().any(|text| text.starts_with("v_mov"));
    expected == inserted
        && (nops == inserted_nops.len() || is_covered && nops > inserted_nops.len())
}

fn disagreements(isa: &Isa, rules: &Rules, recognized: &[Recognized]) -> Vec<String> {
    let wrong = recognized.iter().filter(|sequence| !agrees(isa, rules, sequence));
    wrong
        .map(|sequence| {
            let before: Vec<&str> = sequence.before.iter().map(|inst| &*inst.text).collect();
            format!(
                "{before:?}, {:?}: LLVM {:?}, table {:?}",
                sequence.last.text,
                sequence.instructions,
                required(isa, rules, sequence)
            )
        })
        .collect()
}

#[test]
fn sequences_match_llvm() {
    for processor in cases(["gfx1250", "gfx1251"], 1) {
        let (isa, rules, recognized) = table(processor);
        let wrong = disagreements(&isa, &rules, &recognized);
        let shown: Vec<&str> = wrong.iter().take(40).map(|line| &**line).collect();
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), recognized.len(), shown.join("\n"));
        let mut reached = HashSet::new();
        for sequence in &recognized {
            let before = preceding(sequence.before.iter().rev());
            let families = rules.hazards.iter();
            let found = families.flat_map(|family| violations(family, &before, &sequence.last));
            reached.extend(found.map(|violation| violation.hazard.name));
        }
        assert_all_reached(&rules, &reached, &[]);
    }
}

/// Negative control: each family of hazards matters.
#[test]
fn table_without_a_family_disagrees_with_llvm() {
    let (isa, rules, recognized) = table("gfx1250");
    for excluded in cases(0..rules.hazards.len(), 3) {
        let excluded = rules.hazards[excluded];
        let hazards = without(&rules, |family| std::ptr::eq(family, excluded));
        let remaining = Rules { hazards, ..rules };
        let is_noticed = recognized.iter().any(|sequence| !agrees(&isa, &remaining, sequence));
        // Hazards of matrix operations that need fewer instructions are covered by others.
        assert!(is_noticed, "{:?} makes no difference", excluded[0].name);
    }
}
