//! Time of each matrix operation per multiply-add, by kind of values.

use super::wide::prepared;
use super::{A, B, C, D, Random};
use crate::execute::operations::whole_wave_operations;
use crate::wave::{Level, Machine, Row, RowIndex, Wave};
use std::time::Instant;

/// Kinds of values of A and B, by width.
const KINDS: [&str; 5] = ["near", "any", "tiny", "zeros", "finite"];

fn word(kind: &str, bits: usize, random: &mut Random) -> u32 {
    let word = random.next() as u32;
    match (kind, bits) {
        // Halves of 0.125 to 2 and of both signs.
        ("near", 16) => word & 0x8fff_8fff | 0x3000_3000,
        ("near", 17) => word & 0x81ff_81ff | 0x3e00_3e00,
        ("near", 8) => word & 0x8f8f_8f8f | 0x3030_3030,
        ("near", 32) => word & 0x81ff_ffff | 0x3e00_0000,
        // Magnitudes from the least to nearly the greatest.
        ("finite", 16) => word & 0xbfff_bfff,
        ("finite", 17) => word & 0xbfff_bfff,
        ("finite", 8) => word & 0xbfbf_bfbf,
        ("finite", 32) => word & 0xbfff_ffff,
        // Denormals.
        ("tiny", 16) => word & 0x83ff_83ff,
        ("tiny", 17) => word & 0x807f_807f,
        ("tiny", 8) => word & 0x8383_8383,
        ("tiny", 32) => word & 0x807f_ffff,
        ("zeros", _) => {
            if random.next() % 2 == 0 {
                0
            } else {
                self::word("near", bits, random)
            }
        }
        _ => word,
    }
}

#[test]
#[ignore = "a measurement"]
fn costs_of_matrix_operations() {
    let mut random = Random(7);
    let mut unit = 0.0;
    for (processor, lanes) in [
        ("gfx90a", 64),
        ("gfx942", 64),
        ("gfx950", 64),
        ("gfx1100", 32),
        ("gfx1201", 32),
        ("gfx1250", 32),
    ] {
        let machine = Machine::new(&processor.parse().expect("a target"), lanes);
        for operation in whole_wave_operations(machine) {
            let name = operation.name;
            if !(name.starts_with("v_mfma") || name.starts_with("v_wmma") || name.contains("mac_"))
                || name.contains("ld_scale")
                || name.contains("f64")
            {
                continue;
            }
            let older = |name: &str| {
                name.contains("16x16x16_")
                    || name.ends_with("16x16x32_iu4")
                    || name.contains("swmmac")
            };
            if lanes == 32 && (processor == "gfx1250") == older(name) {
                continue;
            }
            let shape = operation.matrix.as_ref().expect("a product").shape;
            let macs = f64::from(shape.rows)
                * f64::from(shape.columns)
                * f64::from(shape.products)
                * f64::from(shape.blocks);
            let bits = if name.contains("bf16") {
                17
            } else if name.ends_with("f16") {
                16
            } else if name.contains("xf32") || name.ends_with("f32") {
                32
            } else {
                8
            };
            let mut line = format!("{processor} {name:<36}");
            for kind in KINDS {
                if name.contains("i32") && kind != "near" && kind != "any" {
                    continue;
                }
                let mut wave = Wave::new(Level::detect());
                wave.machine = machine;
                for first in [A, B] {
                    for row in first..first + 16 {
                        *wave.row_mut(RowIndex(row)) =
                            Row(std::array::from_fn(|_| word(kind, bits, &mut random)));
                    }
                }
                for row in C..C + 32 {
                    *wave.row_mut(RowIndex(row)) =
                        Row(std::array::from_fn(|_| word("near", 32, &mut random)));
                }
                let (op, operation) = prepared(name, &wave, |_| ());
                let _ = D;
                let mut best = f64::MAX;
                for _ in 0..3 {
                    let mut count = 0;
                    let start = Instant::now();
                    while start.elapsed().as_micros() < 1000 {
                        for _ in 0..4 {
                            (operation.function)(&mut wave, &op);
                        }
                        count += 4;
                    }
                    best = best.min(start.elapsed().as_secs_f64() / f64::from(count));
                }
                if name == "v_mfma_f32_16x16x16f16" && processor == "gfx90a" && kind == "near" {
                    unit = best / macs;
                }
                line +=
                    &format!(" {kind} {:7.2}us {:6.2}x", best * 1e6, best / macs / unit.max(1e-30));
            }
            println!("{line}");
        }
    }
    println!("unit {:.3} ns", unit * 1e9);
}
