//! Matrix operations of gfx11 and gfx12, checked against sums over matrix elements. Elements are
//! placed by the formulas of AMD's Matrix Instruction Calculator.

use super::generations::wave;
use crate::tests::operations::Random;
use crate::wave::{RowIndex, Wave};

/// Location of an element.
#[derive(Clone)]
struct Place {
    register: usize,
    /// The lowest bit of the element in the register.
    bit: usize,
    /// The lanes that hold the element.
    lanes: Vec<usize>,
}

/// A matrix operation with 16 rows and columns.
struct Case {
    name: &'static str,
    depth: usize,
    /// Width of an element of A and B in bits.
    bits: usize,
    /// Converts a small integer to an element of A and B, or of C.
    element: fn(i32) -> u32,
    sum: fn(i32) -> u32,
    short: bool,
}

fn half(value: i32) -> u32 {
    half::f16::from_f32(value as f32).to_bits().into()
}

fn brain(value: i32) -> u32 {
    (value as f32).to_bits() >> 16
}

fn single(value: i32) -> u32 {
    (value as f32).to_bits()
}

/// Converts -4 to 4 to E4M3; [`bf8`] to E5M2.
fn fp8(value: i32) -> u32 {
    let bits = [0, 0x38, 0x40, 0x44, 0x48][value.unsigned_abs() as usize];
    bits | if value < 0 { 0x80 } else { 0 }
}

fn bf8(value: i32) -> u32 {
    let bits = [0, 0x3c, 0x40, 0x42, 0x44][value.unsigned_abs() as usize];
    bits | if value < 0 { 0x80 } else { 0 }
}

fn integer(value: i32) -> u32 {
    value as u32
}

const fn case(
    name: &'static str,
    depth: usize,
    bits: usize,
    element: fn(i32) -> u32,
    sum: fn(i32) -> u32,
    short: bool,
) -> Case {
    Case { name, depth, bits, element, sum, short }
}

const DENSE: [Case; 6] = [
    case("v_wmma_f32_16x16x16_f16", 16, 16, half, single, false),
    case("v_wmma_f32_16x16x16_bf16", 16, 16, brain, single, false),
    case("v_wmma_f16_16x16x16_f16", 16, 16, half, half, true),
    case("v_wmma_bf16_16x16x16_bf16", 16, 16, brain, brain, true),
    case("v_wmma_i32_16x16x16_iu8", 16, 8, integer, integer, false),
    case("v_wmma_i32_16x16x16_iu4", 16, 4, integer, integer, false),
];

const DENSE_GFX12: [Case; 3] = [
    case("v_wmma_i32_16x16x32_iu4", 32, 4, integer, integer, false),
    case("v_wmma_f32_16x16x16_fp8_fp8", 16, 8, fp8, single, false),
    case("v_wmma_f32_16x16x16_bf8_bf8", 16, 8, bf8, single, false),
];

const SPARSE: [Case; 9] = [
    case("v_swmmac_f32_16x16x32_f16", 32, 16, half, single, false),
    case("v_swmmac_f32_16x16x32_bf16", 32, 16, brain, single, false),
    case("v_swmmac_f16_16x16x32_f16", 32, 16, half, half, true),
    case("v_swmmac_bf16_16x16x32_bf16", 32, 16, brain, brain, true),
    case("v_swmmac_i32_16x16x32_iu8", 32, 8, integer, integer, false),
    case("v_swmmac_i32_16x16x32_iu4", 32, 4, integer, integer, false),
    case("v_swmmac_i32_16x16x64_iu4", 64, 4, integer, integer, false),
    case("v_swmmac_f32_16x16x32_fp8_fp8", 32, 8, fp8, single, false),
    case("v_swmmac_f32_16x16x32_bf8_bf8", 32, 8, bf8, single, false),
];

/// Location of element k of a row of A, or of a column of B, on gfx11.
fn factor_gfx11(case: &Case, lanes: usize, row: usize, k: usize) -> Place {
    let at = k * case.bits;
    Place { register: at / 32, bit: at % 32, lanes: (row..lanes).step_by(16).collect() }
}

/// Location of element k on gfx12. `sparse` is `true` for the dense factor of a sparse operation.
fn factor_gfx12(case: &Case, lanes: usize, row: usize, k: usize, sparse: bool) -> Place {
    let (wide, deep) = (lanes == 64, case.depth);
    let (register, bit, lane) = match (case.bits, sparse) {
        (16, false) if wide => (k / 2 % 2, 16 * (k % 2), 32 * (k / 8 % 2) + 16 * (k / 4 % 2)),
        (16, false) => (2 * (k / 8) + k / 2 % 2, 16 * (k % 2), 16 * (k / 4 % 2)),
        (16, true) if wide => (k / 2 % 4, 16 * (k % 2), 16 * (k / 8)),
        (16, true) => (4 * (k / 16) + k / 2 % 4, 16 * (k % 2), 16 * (k / 8 % 2)),
        (8, _) if wide => {
            (k / 4 % (deep / 16), 8 * (k % 4), 32 * (k / (deep / 4) % 2) + 16 * (k / (deep / 2)))
        }
        (8, _) => (k / 4 % (deep / 8), 8 * (k % 4), 16 * (k / (deep / 2))),
        (_, _) if deep == 16 => (0, 4 * (k % 8), 16 * (k / 8)),
        (_, _) if wide => {
            (k / 8 % (deep / 32), 4 * (k % 8), 32 * (k / (deep / 4) % 2) + 16 * (k / (deep / 2)))
        }
        _ => (k / 8 % (deep / 16), 4 * (k % 8), 16 * (k / (deep / 2))),
    };
    Place { register, bit, lanes: vec![lane + row] }
}

/// Location of an element of a sparse A that is the `member`-th of its group of four, and of its
/// index bits: register, bit, index bit, lane.
fn compressed(case: &Case, lanes: usize, row: usize, k: usize, member: usize) -> [usize; 4] {
    let (wide, deep, four) = (lanes == 64, case.depth, k / 4);
    let (register, bit, index, lane) = match case.bits {
        16 if wide => (four % 2, 16 * member, 4 * (four % 2), 16 * (k / 8)),
        16 => {
            (2 * (k / 16) + four % 2, 16 * member, 8 * (k / 16) + 4 * (four % 2), 16 * (k / 8 % 2))
        }
        8 if wide => {
            let lane = 32 * (k / 8 % 2) + 16 * (k / 16);
            (0, 16 * (four % 2) + 8 * member, 4 * (four % 2), lane)
        }
        8 => (k / 8 % 2, 16 * (four % 2) + 8 * member, 4 * (four % 4), 16 * (k / 16)),
        _ if deep == 32 => (0, 8 * (four % 4) + 4 * member, 4 * (four % 4), 16 * (k / 16)),
        _ if wide => {
            let lane = 32 * (k / 16 % 2) + 16 * (k / 32);
            (0, 8 * (four % 4) + 4 * member, 4 * (four % 4), lane)
        }
        _ => (k / 16 % 2, 8 * (four % 4) + 4 * member, 4 * (four % 8), 16 * (k / 32)),
    };
    [register, bit, index, lane + row]
}

/// Location of an element of C and D.
fn sum(case: &Case, gfx11: bool, lanes: usize, i: usize, j: usize) -> Place {
    let (register, bit, lane) = match (gfx11, case.short, lanes == 64) {
        (true, _, wide) => {
            let rows = if wide { 4 } else { 2 };
            (i / rows, 0, 16 * i % lanes)
        }
        (_, false, false) => (i % 8, 0, 16 * (i / 8)),
        (_, false, true) => (i % 4, 0, 32 * (i / 4 % 2) + 16 * (i / 8)),
        (_, true, false) => (i / 2 % 4, 16 * (i % 2), 16 * (i / 8)),
        (_, true, true) => (i / 2 % 2, 16 * (i % 2), 32 * (i / 4 % 2) + 16 * (i / 8)),
    };
    Place { register, bit, lanes: vec![lane + j] }
}

fn put(wave: &mut Wave, first: u16, place: Place, bits: usize, value: u32) {
    let Place { register, bit, lanes } = place;
    let mask = (u64::MAX >> (64 - bits)) as u32;
    for lane in lanes {
        let word = &mut wave.row_mut(RowIndex(first + register as u16)).0[lane];
        *word = *word & !(mask << bit) | (value & mask) << bit;
    }
}

/// Returns a small integer. All formats represent sums of these exactly.
fn small(random: &mut Random, bits: usize) -> i32 {
    let range = if bits == 4 { 7 } else { 5 };
    (random.next() % range) as i32 - (range / 2) as i32
}

fn registers(first: usize, bits: usize) -> String {
    match bits.div_ceil(32) {
        1 => format!("v{first}"),
        count => format!("v[{first}:{}]", first + count - 1),
    }
}

/// Checks an operation with A from v0, B from v8, C and D from v16, and the index in v24.
fn check(processor: &str, case: &Case, lanes: usize, sparse: bool) {
    let gfx11 = processor == "gfx1100";
    let mut random = Random(lanes as u64 + case.depth as u64);
    let mut matrix = |rows: usize, columns: usize| -> Vec<Vec<i32>> {
        (0..rows).map(|_| (0..columns).map(|_| small(&mut random, case.bits)).collect()).collect()
    };
    let (mut a, b, c) = (matrix(16, case.depth), matrix(16, case.depth), matrix(16, 16));
    // Two of each four elements are kept, chosen by row.
    let kept =
        |i: usize, four: usize| [[0, 1], [0, 2], [1, 3], [2, 3], [0, 3], [1, 2]][(i + four) % 6];
    if sparse {
        for (i, row) in a.iter_mut().enumerate() {
            for (k, value) in row.iter_mut().enumerate() {
                *value *= i32::from(kept(i, k / 4).contains(&(k % 4)));
            }
        }
    }
    let lane_bits = |elements: usize| -> usize {
        let whole = elements * case.bits * 16 / lanes;
        if gfx11 { elements * case.bits } else { whole.max(32) }
    };
    let share = if sparse { 2 } else { 1 };
    let sums = 256 / lanes * if case.short && !gfx11 { 16 } else { 32 };
    let (left, right) =
        (registers(0, lane_bits(case.depth / share)), registers(8, lane_bits(case.depth)));
    let (third, sum_registers) = if sparse {
        ("v24".to_owned(), registers(16, sums))
    } else {
        (registers(16, sums), registers(16, sums))
    };
    let signs = if case.name.contains("_i32_") { " neg_lo:[1,1,0]" } else { "" };
    let text = format!("{} {sum_registers}, {left}, {right}, {third}{signs}", case.name);
    let element_bits = if case.short { 16 } else { 32 };
    let after = wave(processor, lanes as u8, &text, |wave| {
        for i in 0..16 {
            for k in 0..case.depth {
                let place = if gfx11 {
                    factor_gfx11(case, lanes, i, k)
                } else {
                    factor_gfx12(case, lanes, i, k, sparse)
                };
                put(wave, 8, place.clone(), case.bits, (case.element)(b[i][k]));
                if !sparse {
                    put(wave, 0, place, case.bits, (case.element)(a[i][k]));
                }
            }
            for j in 0..16 {
                put(wave, 16, sum(case, gfx11, lanes, i, j), element_bits, (case.sum)(c[i][j]));
            }
            for four in 0..if sparse { case.depth / 4 } else { 0 } {
                for (member, at) in kept(i, four).into_iter().enumerate() {
                    let k = 4 * four + at;
                    let [register, bit, index, lane] = compressed(case, lanes, i, k, member);
                    let place = Place { register, bit, lanes: vec![lane] };
                    put(wave, 0, place, case.bits, (case.element)(a[i][k]));
                    let place = Place { register: 0, bit: index + 2 * member, lanes: vec![lane] };
                    put(wave, 24, place, 2, at as u32);
                }
            }
        }
        // Matrix operations ignore EXEC.
        wave.set_exec(flipwave_isa::LaneMask(1));
    });
    for i in 0..16 {
        for j in 0..16 {
            let exact = (0..case.depth).map(|k| a[i][k] * b[j][k]).sum::<i32>() + c[i][j];
            let place = sum(case, gfx11, lanes, i, j);
            let word = after.row(RowIndex(16 + place.register as u16)).0[place.lanes[0]];
            let bits = if case.short { word >> place.bit & 0xffff } else { word };
            assert_eq!(bits, (case.sum)(exact), "{processor}, {lanes} lanes: {text}: {i}, {j}");
        }
    }
}

#[test]
fn products_of_small_integers_match_element_sums() {
    for lanes in [32, 64] {
        DENSE.iter().for_each(|case| check("gfx1100", case, lanes, false));
        DENSE.iter().chain(&DENSE_GFX12).for_each(|case| check("gfx1201", case, lanes, false));
        SPARSE.iter().for_each(|case| check("gfx1201", case, lanes, true));
    }
}

/// Negative control: elements interpreted in another format give another result.
#[test]
#[should_panic(expected = "gfx1201, 32 lanes")]
fn comparison_detects_another_format() {
    let other_format = case("v_wmma_f32_16x16x16_fp8_bf8", 16, 8, fp8, single, false);
    check("gfx1201", &other_format, 32, false);
}
