//! The table of manual hazards against LLVM's hazard recognizer: for every ordered pair of a set
//! of instructions, the wait states that `llc` inserts between the two are those of the table.

mod common;

use common::isa;
use flipwave_isa::hazard::{Hazard, Preceding, breaches, hazards, wait_states};
use flipwave_isa::{Inst, Isa, Pc};
use std::collections::HashSet;
use std::process::Command;

/// Instructions in LLVM's machine representation, on few registers so that they meet often.
const POOL: &[&str] = &[
    "$vgpr0 = V_MOV_B32_e32 $vgpr4, implicit $exec",
    "$vgpr4 = V_MOV_B32_e32 $vgpr0, implicit $exec",
    "$vgpr8 = V_MOV_B32_e32 0, implicit $exec",
    "$vgpr0_vgpr1 = V_FMA_F64_e64 0, $vgpr2_vgpr3, 0, $vgpr4_vgpr5, 0, $vgpr8_vgpr9, 0, 0, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1 = V_FMAC_F64_e32 $vgpr2_vgpr3, $vgpr4_vgpr5, $vgpr0_vgpr1, implicit $mode, implicit $exec",
    "$vgpr0_vgpr1 = V_ADD_F64_e64 0, $vgpr2_vgpr3, 0, $vgpr4_vgpr5, 0, 0, implicit $mode, implicit $exec",
    "$agpr0 = V_ACCVGPR_WRITE_B32_e64 $vgpr0, implicit $exec",
    "$vgpr0 = V_ACCVGPR_READ_B32_e64 $agpr0, implicit $exec",
    "$sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec",
    "$m0 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec",
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
    "$vgpr0 = V_DOT4_I32_I8 8, $vgpr4, 8, $vgpr8, 8, $vgpr0, 0, 0, 0, 0, 0, implicit $exec",
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

/// Sequences of three: what must lie between the trigger and the victim.
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

/// Names of rows that LLVM does not know: its code generator never reads the flags as data.
const MANUAL_ALONE: [&str; 1] = ["VALU writes VCC or EXEC, VALU reads VCCZ or EXECZ as data"];

/// What LLVM makes of each sequence: its instructions and the wait states before the last one.
fn recognized(isa: &Isa, sequences: &[Vec<&str>]) -> Vec<(Vec<Inst>, u8)> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sequences.mir");
    let mut text = String::new();
    for (number, sequence) in sequences.iter().enumerate() {
        let body: String = sequence.iter().map(|line| format!("    {line}\n")).collect();
        text += &format!("---\nname: f{number}\nbody: |\n  bb.0:\n{body}    S_ENDPGM 0\n...\n");
    }
    std::fs::write(&file, text).expect("the sequences written");
    let output = Command::new("llc-19")
        .args(["-mtriple=amdgcn", "-mcpu=gfx90a", "-mattr=-xnack"])
        .args(["-start-before=post-RA-hazard-rec", "-o", "-"])
        .arg(&file)
        .output()
        .expect("llc-19 (Debian's package llvm-19)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("assembly");
    let mut functions = Vec::new();
    for line in text.lines() {
        if line.starts_with('f') && line.contains(':') {
            functions.push((Vec::new(), 0));
        }
        let code = line.split(';').next().unwrap_or_default();
        if !code.starts_with('\t') || code.trim_start().starts_with('.') {
            continue;
        }
        let Some((insts, nops)) = functions.last_mut() else { continue };
        let bytes = isa.assemble(code).unwrap_or_else(|error| panic!("{code}: {error}"));
        let inst = isa.decode(&bytes, Pc(0)).unwrap_or_else(|error| panic!("{code}: {error}"));
        match inst.operation.name() {
            "s_nop" => *nops += wait_states(&inst),
            "s_endpgm" => {}
            _ => insts.push(inst),
        }
    }
    assert_eq!(functions.len(), sequences.len());
    functions
}

/// Wait states missing before the last instruction, by a table; the rows that say so.
fn missing(families: &[&'static [Hazard]], insts: &[Inst]) -> (u8, Vec<&'static str>) {
    let Some((last, rest)) = insts.split_last() else { return (0, Vec::new()) };
    let before: Vec<Preceding<'_>> = rest
        .iter()
        .rev()
        .enumerate()
        .map(|(distance, inst)| Preceding { inst, distance: distance as u8 })
        .collect();
    let mut most = 0;
    let mut names = Vec::new();
    for breach in families.iter().flat_map(|family| breaches(family, &before, last)) {
        most = most.max(breach.hazard.wait_states - before[breach.trigger].distance);
        names.push(breach.hazard.name);
    }
    (most, names)
}

/// Every ordered pair of the pool, and the sequences of three.
fn sequences() -> Vec<Vec<&'static str>> {
    let pairs = POOL.iter().flat_map(|first| POOL.iter().map(move |second| vec![*first, *second]));
    pairs.chain(TRIPLES.iter().map(|triple| triple.to_vec())).collect()
}

#[test]
fn every_pair_of_instructions_is_kept_apart_as_llvm_keeps_it() {
    let isa = isa("gfx90a");
    let families = hazards(isa.target());
    let sequences = sequences();
    let mut reached = HashSet::new();
    let mut wrong = Vec::new();
    for ((insts, nops), sequence) in recognized(&isa, &sequences).iter().zip(&sequences) {
        let (needed, names) = missing(families, insts);
        if needed != *nops {
            wrong.push(format!("{sequence:#?}: LLVM {nops}, table {needed}: {names:?}"));
        }
        reached.extend(names);
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), sequences.len(), wrong.join("\n"));
    let rows = families.iter().flat_map(|family| family.iter().map(|hazard| hazard.name));
    let unreached: Vec<_> =
        rows.filter(|name| !reached.contains(name) && !MANUAL_ALONE.contains(name)).collect();
    assert!(unreached.is_empty(), "rows that no pair reaches: {unreached:#?}");
}

/// The negative control of the comparison.
#[test]
fn a_table_without_one_of_its_families_differs_from_llvm() {
    let isa = isa("gfx90a");
    let families = hazards(isa.target());
    let recognized = recognized(&isa, &sequences());
    for left_out in 0..families.len() {
        let mut rest = families.to_vec();
        rest.remove(left_out);
        let differs = recognized.iter().any(|(insts, nops)| missing(&rest, insts).0 != *nops);
        assert!(differs, "family {left_out} makes no difference");
    }
}
