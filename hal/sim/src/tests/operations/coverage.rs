//! Completeness of the vector operation table: every operation that LLVM decodes has a row, and
//! every row belongs to a target.

use crate::execute::operations::{find, find_whole};
use crate::wave::Machine;
use flipwave_isa::{Encoding, Isa, Pc, Target};
use std::collections::BTreeSet;

/// Base encodings of VOP3 and VOP3P: on gfx9, and two from gfx10.
pub(super) const VOP3: [u32; 3] = [0xd000_0000, 0xd400_0000, 0xcc00_0000];

/// Returns the names of the vector operations that decode from any opcode with fixed operands.
pub(crate) fn decoded(isa: &Isa) -> BTreeSet<&'static str> {
    let vop1 = (0..256).map(|opcode| [0x7e00_0102 | 4 << 17 | opcode << 9, 0]);
    let vop2 = (0..62).map(|opcode| [opcode << 25 | 6 << 17 | 4 << 9 | 0x102, 0x3f80_0000]);
    let vopc = (0..256).map(|opcode| [0x7c00_0102 | opcode << 17 | 4 << 9, 0]);
    // Operations differ in the number of sources, in whether sources are scalars, and in whether
    // they write a lane mask.
    let sources = [
        0x102 | 0x104 << 9 | 0x106 << 18,
        0x102 | 0x104 << 9,
        0x102 | 4 << 9,
        0x102,
        2 | 4 << 9,
        0,
        0x102 | 0x104 << 9 | 0x106 << 18 | 3 << 27,
        0x102 | 0x104 << 9 | 3 << 27,
    ];
    let vop3 = sources.into_iter().flat_map(|sources| {
        let destinations = [6, 6 | 0x6a << 8, 6 | 1 << 14];
        destinations.into_iter().flat_map(move |destination| {
            VOP3.into_iter().flat_map(move |prefix| {
                (0..1024).map(move |opcode| [prefix | opcode << 16 | destination, sources])
            })
        })
    });
    let mut names = BTreeSet::new();
    for words in vop1.chain(vop2).chain(vopc).chain(vop3) {
        let bytes = words.map(u32::to_le_bytes).concat();
        if let Ok(inst) = isa.decode(&bytes, Pc(0))
            && matches!(
                inst.encoding,
                Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc | Encoding::Vop3 | Encoding::Vop3p
            )
        {
            names.insert(inst.operation.name());
        }
    }
    names
}

/// Processors with distinct instruction sets.
pub(super) const DIFFERENT: [&str; 11] = [
    "gfx906", "gfx908", "gfx90a", "gfx940", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1150",
    "gfx1201", "gfx1250",
];

/// Returns `true` for vector operations that are executed without a row in the table.
fn is_executed_elsewhere(name: &str) -> bool {
    name.starts_with("v_cmpx_")
        || ["v_nop", "v_clrexcp", "v_screen_partition_4se_b32"].contains(&name)
}

#[test]
fn every_vector_operation_has_a_row() {
    let target: Target = "gfx90a".parse().expect("a target");
    let isa = Isa::new(&target).expect("LLVM has gfx90a");
    let names = decoded(&isa);
    assert!(names.len() > 500, "only {} operations decode", names.len());
    let missing: Vec<_> = names
        .iter()
        .filter(|name| find(name).is_none() && find_whole(name, Machine::default()).is_none())
        .filter(|name| !is_executed_elsewhere(name))
        .collect();
    assert!(missing.is_empty(), "no row: {missing:?}");
}

#[test]
fn every_row_is_an_operation() {
    let names: BTreeSet<_> = DIFFERENT
        .into_iter()
        .flat_map(|processor| {
            let target: Target = processor.parse().expect("a target");
            decoded(&Isa::new(&target).expect("LLVM has it"))
        })
        .collect();
    // Available only as half of a dual instruction, or with a 64-bit literal.
    let elsewhere = ["v_dot2acc_f32_bf16", "v_bitop2_b32", "v_fmaak_f64", "v_fmamk_f64"];
    let unknown: Vec<_> = crate::execute::operations::TABLES
        .iter()
        .copied()
        .flatten()
        // The text after the name lists the modifiers or formats of the row.
        .map(|row| row.name.split(' ').next().unwrap_or(row.name))
        .filter(|name| !names.contains(name) && !elsewhere.contains(name))
        .collect();
    assert!(unknown.is_empty(), "no such operation: {unknown:?}");
}

#[test]
fn no_name_has_two_rows() {
    let mut seen = BTreeSet::new();
    for row in crate::execute::operations::TABLES.iter().copied().flatten() {
        assert!(seen.insert(row.name), "{} has two rows", row.name);
    }
}
