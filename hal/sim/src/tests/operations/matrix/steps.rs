//! Single elements summed step by step, checked against the whole product.

use super::levels::random_wave;
use super::wide::prepared;
use super::{C, D, Random};
use crate::execute::matrix_sum::Steps;
use crate::execute::operations::whole_wave_operations;
use crate::instruction::Op;
use crate::wave::{Level, Machine, Row, RowIndex};
use flipwave_arch::{MatrixElement, ProductShape, SumPart};

const MACHINES: [(&str, u8); 9] = [
    ("gfx908", 64),
    ("gfx90a", 64),
    ("gfx942", 64),
    ("gfx950", 64),
    ("gfx1100", 32),
    ("gfx1100", 64),
    ("gfx1201", 32),
    ("gfx1201", 64),
    ("gfx1250", 32),
];

fn elements(shape: ProductShape) -> impl Iterator<Item = MatrixElement> {
    let ProductShape { blocks, rows, columns, .. } = shape;
    (0..blocks).flat_map(move |block| {
        (0..rows).flat_map(move |row| {
            (0..columns).map(move |column| MatrixElement { block, row, column })
        })
    })
}

/// Returns `true` if a processor has an operation. The RDNA tables hold the operations of all its
/// generations.
fn has_operation(processor: &str, name: &str) -> bool {
    let is_newest = ["x4_f32", "x64_", "x128_", "16x16x32_f16", "16x16x32_bf16"]
        .iter()
        .any(|excluded| name.contains(excluded));
    match processor {
        "gfx1250" => name.starts_with("v_wmma") && is_newest && !name.ends_with("iu4"),
        "gfx1201" if name.starts_with("v_swmmac") => true,
        "gfx1100" | "gfx1201" => name.starts_with("v_wmma") && !is_newest,
        _ => name.starts_with("v_mfma") || name.starts_with("v_smfmac"),
    }
}

/// Sets modifiers that have an effect on the operation.
fn modify(op: &mut Op, name: &str, random: &mut Random) {
    let below = |random: &mut Random, end: u64| (random.next() % end) as u8;
    let modifiers = &mut op.inst_mut().modifiers;
    if name.contains("f8f6f4") {
        (modifiers.cbsz, modifiers.blgp) = (below(random, 5), below(random, 5));
        modifiers.op_sel = Some(below(random, 4));
        modifiers.op_sel_hi = Some(below(random, 4));
    } else if name.starts_with("v_smfmac") {
        modifiers.abid = below(random, 4);
    } else if name.starts_with("v_mfma") && name.contains("f64") {
        modifiers.negated_sources = below(random, 8);
    } else if name.starts_with("v_mfma") {
        (modifiers.cbsz, modifiers.abid) = (below(random, 4), below(random, 8));
        modifiers.blgp = below(random, 8);
    } else {
        modifiers.neg_lo = below(random, 8);
        modifiers.neg_hi = below(random, 8);
        modifiers.clamp = below(random, 2) == 1;
        modifiers.index_key = below(random, 2);
        modifiers.op_sel = Some(below(random, 2) << 2);
    }
}

/// Without changes, the elements have the bits of the whole product and together cover all of it.
/// Each element goes through the steps of the shape.
#[test]
fn stepwise_elements_match_the_product() {
    let mut random = Random(17);
    let mut names = std::collections::HashSet::new();
    for (processor, lanes) in MACHINES {
        let machine = Machine::new(&processor.parse().expect("a target"), lanes);
        let operations = whole_wave_operations(machine)
            .filter(|operation| has_operation(processor, operation.name));
        for name in operations
            .filter(|operation| operation.matrix.is_some())
            .map(|operation| operation.name)
        {
            names.insert(name);
            for round in 0..6 {
                let mut before = random_wave(machine, &mut random);
                before.level = Level::Plain;
                for row in D..D + 32 {
                    let old = Row(std::array::from_fn(|_| random.next() as u32));
                    *before.row_mut(RowIndex(row)) = old;
                }
                let (mut op, operation) = prepared(name, &before, |_| {});
                modify(&mut op, name, &mut random);
                let product = operation.matrix.expect("a product");
                let mut whole = before.clone();
                (operation.function)(&mut whole, &op);
                let mut apart = before.clone();
                let elements = elements(product.shape);
                let step = if round == 0 { 1 } else { 37 };
                for element in elements.skip(round * 5).step_by(step) {
                    let mut seen = Vec::new();
                    let mut touch = |part, step, bits| {
                        seen.push((part, step));
                        bits
                    };
                    let mut steps = Steps::new(&mut touch);
                    let summed = (product.sum)(&before, &op, element, &mut steps);
                    let summed = summed.unwrap_or_else(|| panic!("{name} {element:?}"));
                    summed.write(&mut apart);
                    let mut again = whole.clone();
                    assert!(
                        !summed.write(&mut again),
                        "{processor} {name} {element:?}: {summed:x?}"
                    );
                    for part in [SumPart::Accumulator, SumPart::Product, SumPart::PartialSum] {
                        let steps_seen =
                            seen.iter().filter(|step| step.0 == part).map(|step| step.1);
                        let expected: Vec<u8> = product.shape.steps(part).collect();
                        assert_eq!(steps_seen.collect::<Vec<_>>(), expected, "{name} {part:?}");
                    }
                }
                if round == 0 {
                    for row in D..D + 32 {
                        let [one, other] = [&whole, &apart].map(|wave| wave.row(RowIndex(row)).0);
                        assert!(one == other, "{processor} {name}: register {}", row - D);
                    }
                }
            }
        }
    }
    for (processor, lanes) in MACHINES {
        let machine = Machine::new(&processor.parse().expect("a target"), lanes);
        for operation in
            whole_wave_operations(machine).filter(|operation| operation.matrix.is_some())
        {
            assert!(names.contains(operation.name), "{} on no machine", operation.name);
        }
    }
}

/// Negative control and effect of the parts of a sum: adding a whole number to C, to a product or
/// to the last partial sum adds it to the element.
#[test]
fn changed_part_changes_its_element() {
    let machine = Machine::new(&"gfx90a".parse().expect("a target"), 64);
    let mut wave = super::wide::wave("gfx90a");
    wave.machine = machine;
    // A and B are all ones, C is 3.
    for row in 0..16 {
        *wave.row_mut(RowIndex(row)) = Row::splat(0x3c00_3c00);
    }
    for row in C..C + 32 {
        *wave.row_mut(RowIndex(row)) = Row::splat(3f32.to_bits());
    }
    let (op, operation) = prepared("v_mfma_f32_32x32x8f16", &wave, |_| {});
    let product = operation.matrix.expect("a product");
    let element = MatrixElement { block: 0, row: 9, column: 30 };
    for (struck, value) in [
        (None, 11.0),
        (Some((SumPart::Accumulator, 0)), 8.0 + 64.0),
        (Some((SumPart::Product, 5)), 10.0 + 64.0),
        (Some((SumPart::PartialSum, 3)), 4.0 + 64.0),
        (Some((SumPart::PartialSum, 7)), 64.0),
        // The last of four steps has no partial sum.
        (Some((SumPart::PartialSum, 5)), 11.0),
    ] {
        let mut touch = |part, step, bits| {
            if struck == Some((part, step)) { 64f32.to_bits().into() } else { bits }
        };
        let summed = (product.sum)(&wave, &op, element, &mut Steps::new(&mut touch));
        let bits = summed.expect("an element").value as u32;
        assert_eq!(f32::from_bits(bits), value, "{struck:?}");
    }
}
