//! One-block operations of gfx942 and gfx950, checked against products of plain matrices. The
//! layout of elements follows the tables of the CDNA 4 ISA: the first k of each four registers by
//! row of 16 lanes.

use super::{A, B, C, D, machine, output};
use crate::execute::operations::{WholeWaveOperation, find_whole};
use crate::instruction::{Op, Run, Source, Word};
use crate::tests::bench::op;
use crate::tests::operations::matrix::Elements;
use crate::tests::operations::{Random, control, levels};
use crate::wave::{LANES, RowIndex, Wave};
use flipwave_isa::{LaneMask, Operation};
use half::f16;

pub(super) const SCALE_A: u16 = 80;
const SCALE_B: u16 = 81;

/// Element type of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Element {
    F16,
    Bf16,
    Xf32,
    I8,
    /// Bits, bits of the mantissa, exponent bias.
    Small(u32, u32, i32),
}

impl Element {
    pub(super) fn bits(self) -> u32 {
        match self {
            Element::F16 | Element::Bf16 => 16,
            Element::Xf32 => 32,
            Element::I8 => 8,
            Element::Small(bits, ..) => bits,
        }
    }

    /// Returns the bits of a small whole number.
    fn encode(self, value: i32) -> u32 {
        match self {
            Element::F16 => f16::from_f32(value as f32).to_bits().into(),
            Element::Bf16 => (value as f32).to_bits() >> 16,
            // The truncated bits are ignored.
            Element::Xf32 => (value as f32).to_bits() | if value == 0 { 0 } else { 0x1fff },
            Element::I8 => u32::from(value as u8),
            Element::Small(bits, mantissa, bias) => {
                let magnitude = value.unsigned_abs();
                let code = match magnitude.checked_ilog2() {
                    None => 0,
                    Some(log) => {
                        let fraction = (magnitude << mantissa >> log) - (1 << mantissa);
                        ((log as i32 + bias) as u32) << mantissa | fraction
                    }
                };
                code | if value < 0 { 1 << (bits - 1) } else { 0 }
            }
        }
    }
}

/// Returns the element types of a name on a processor.
pub(super) fn elements(name: &str, processor: &str) -> [Element; 2] {
    let fnuz = i32::from(processor == "gfx942");
    let one = |part: &str| match part {
        "fp8" => Element::Small(8, 3, 7 + fnuz),
        "bf8" => Element::Small(8, 2, 15 + fnuz),
        "xf32" => Element::Xf32,
        "i8" => Element::I8,
        "bf16" => Element::Bf16,
        _ => Element::F16,
    };
    let plain = name.replace("bf16_1k", "_bf16").replace("i8", "_i8");
    let plain = if plain.contains('_') && plain.ends_with("f16") && !plain.ends_with("bf16") {
        plain.replace("f16", "_f16")
    } else {
        plain
    };
    let parts: Vec<&str> = plain.split('_').filter(|part| !part.is_empty()).collect();
    let last = one(parts[parts.len() - 1]);
    let before = parts[parts.len() - 2];
    [if before.ends_with('8') && before.len() == 3 { one(before) } else { last }, last]
}

/// Returns the number of rows and columns, and of products, in a name.
pub(super) fn sizes(name: &str) -> (usize, usize) {
    let sizes = name.split('_').find(|part| part.starts_with("16x") || part.starts_with("32x"));
    let numbers: Vec<usize> = sizes
        .unwrap_or_else(|| panic!("no sizes: {name}"))
        .split('x')
        .map(|number| number.chars().take_while(char::is_ascii_digit).collect::<String>())
        .map(|number| number.parse().expect("a number"))
        .collect();
    (numbers[0], numbers[2])
}

/// Location of the k-th element of a line: its lane and its index there. Four registers hold 128
/// bits.
pub(super) fn place(bits: u32, size: usize, depth: usize, line: usize, k: usize) -> (usize, usize) {
    let groups = LANES / size;
    let each = depth / groups;
    let chunk = if bits < 8 { 32 } else { (128 / bits as usize).min(each) };
    let (part, within) = (k / (chunk * groups), k % (chunk * groups));
    (line + size * (within / chunk), part * chunk + within % chunk)
}

/// Writes an element to a lane's registers at index `item`.
fn put(wave: &mut Wave, first: u16, lane: usize, item: usize, bits: u32, value: u32) {
    for bit in 0..bits as usize {
        let at = item * bits as usize + bit;
        wave.rows[usize::from(first) + at / 32].0[lane] |= (value >> bit & 1) << (at % 32);
    }
}

pub(super) fn execute(name: &str, wave: &mut Wave, change: impl Fn(&mut Op)) {
    let (op, operation) = prepared(name, wave, change);
    (operation.function)(wave, &op);
}

/// Prepares an operation on the matrices at A, B and C.
pub(super) fn prepared(
    name: &str,
    wave: &Wave,
    change: impl Fn(&mut Op),
) -> (Op, &'static WholeWaveOperation) {
    let name = control::operation(name);
    let operation =
        find_whole(name, wave.machine).unwrap_or_else(|| panic!("v_mfma missing: {name}"));
    let mut op = op(Run::Whole(operation.function));
    op.inst_mut().operation = Operation::named(name);
    for (source, first) in op.sources.iter_mut().zip([A, B, C, SCALE_A]) {
        *source = Source { words: [Word::Row(RowIndex(first)), Word::Row(RowIndex(first + 1))] };
    }
    op.destination = RowIndex(D);
    change(&mut op);
    (op, operation)
}

pub(super) fn wave(processor: &str) -> Wave {
    let mut wave = Wave::new(levels()[0]);
    wave.machine = machine(processor);
    wave.vgpr_count = 256;
    wave.set_exec(LaneMask(1));
    wave
}

/// Writes the accumulator matrix to C or D and returns it.
fn put_sum(
    wave: &mut Wave,
    first: u16,
    size: usize,
    is_integer: bool,
    random: &mut Random,
) -> Vec<i32> {
    let shape = ("", Elements::F32, size, 0, 1);
    let mut values = Vec::new();
    for at in 0..size * size {
        let value = (random.next() % 17) as i32 - 8;
        let (lane, register) = output(&shape, 0, at / size, at % size);
        let bits = if is_integer { value as u32 } else { (value as f32).to_bits() };
        wave.rows[usize::from(first + register)].0[lane] = bits;
        values.push(value);
    }
    values
}

fn result(wave: &Wave, size: usize, row: usize, column: usize, is_integer: bool) -> i32 {
    let (lane, register) = output(&("", Elements::F32, size, 0, 1), 0, row, column);
    let bits = wave.row(RowIndex(D + register)).0[lane];
    if is_integer { bits as i32 } else { f32::from_bits(bits) as i32 }
}

/// Returns the names of a machine's operations tested in this file.
fn names(processor: &str) -> Vec<&'static str> {
    let all = crate::execute::operations::whole_wave_operations(machine(processor));
    let old = crate::execute::operations::whole_wave_operations(machine("gfx90a"));
    let old: Vec<&str> = old.map(|row| row.name).collect();
    all.map(|row| row.name)
        .filter(|name| {
            !old.contains(name) && !name.contains("f8f6f4") && !name.contains("ld_scale")
        })
        .filter(|name| name.starts_with("v_mfma") || name.starts_with("v_smfmac"))
        .collect()
}

/// Returns small whole numbers, which all types and sums represent exactly.
fn line(random: &mut Random, depth: usize) -> Vec<i32> {
    (0..depth).map(|_| (random.next() % 7) as i32 - 3).collect()
}

#[test]
pub fn small_integer_products_match_plain_matrices() {
    let mut checked = 0;
    for processor in ["gfx942", "gfx950"] {
        for name in names(processor) {
            checked += 1;
            let is_sparse = name.starts_with("v_smfmac");
            let (size, depth) = sizes(name);
            let [a, b] = elements(name, processor);
            let is_integer = a == Element::I8;
            let mut random = Random(depth as u64);
            // Rotate through the index sets of sparse operations.
            let each = depth * size / LANES;
            for set in 0..if is_sparse { 32 / each } else { 1 } {
                let mut wave = wave(processor);
                let rows: Vec<Vec<i32>> = (0..size).map(|_| line(&mut random, depth)).collect();
                let columns: Vec<Vec<i32>> = (0..size).map(|_| line(&mut random, depth)).collect();
                for (at, column) in columns.iter().enumerate() {
                    for (k, value) in column.iter().enumerate() {
                        let (lane, item) = place(b.bits(), size, depth, at, k);
                        put(&mut wave, B, lane, item, b.bits(), b.encode(*value));
                    }
                }
                let mut kept = rows.clone();
                for (at, row) in rows.iter().enumerate() {
                    for k in 0..depth {
                        let (lane, item) = place(a.bits(), size, depth, at, k);
                        if !is_sparse {
                            put(&mut wave, A, lane, item, a.bits(), a.encode(row[k]));
                        } else if item % 4 == 0 {
                            // Two of four are kept; their indices are encoded in two bits each.
                            let two = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
                                [random.next() as usize % 6];
                            for (which, kept_k) in [two.0, two.1].into_iter().enumerate() {
                                let to = item / 2 + which;
                                put(&mut wave, A, lane, to, a.bits(), a.encode(row[k + kept_k]));
                                let shift = set * each + 2 * to;
                                wave.rows[usize::from(C)].0[lane] |= (kept_k as u32) << shift;
                            }
                            for kept_k in (0..4).filter(|kept_k| ![two.0, two.1].contains(kept_k)) {
                                kept[at][k + kept_k] = 0;
                            }
                        }
                    }
                }
                let first = if is_sparse { D } else { C };
                let third = put_sum(&mut wave, first, size, is_integer, &mut random);
                execute(name, &mut wave, |op| op.inst_mut().modifiers.abid = set as u8);
                for at in 0..size * size {
                    let (row, column) = (at / size, at % size);
                    let products = kept[row].iter().zip(&columns[column]).map(|(a, b)| a * b);
                    let wanted = products.sum::<i32>() + third[at];
                    let got = result(&wave, size, row, column, is_integer);
                    assert!(
                        got == wanted,
                        "{name} {processor}: {row}, {column}: {got}, not {wanted}"
                    );
                }
                assert_eq!(wave.written_lanes, Some(LaneMask::FULL));
            }
        }
    }
    assert!(checked > 80, "{checked}");
}

/// With `cbsz`, the first set of indices applies, whatever `abid` is.
#[test]
fn broadcast_uses_first_index_set() {
    let name = "v_smfmac_f32_16x16x32_f16";
    let run = |cbsz, abid| {
        let mut random = Random(3);
        let mut wave = wave("gfx942");
        for row in &mut wave.rows[..120] {
            row.0.iter_mut().for_each(|word| *word = random.next() as u32 & 0x3fff_3fff);
        }
        execute(name, &mut wave, |op| {
            op.inst_mut().modifiers.cbsz = cbsz;
            op.inst_mut().modifiers.abid = abid;
        });
        wave.row(RowIndex(D)).0
    };
    assert_eq!(run(1, 2), run(0, 0));
    assert_ne!(run(0, 2), run(0, 0));
}

/// Lanes of the second source are permuted as in older operations.
#[test]
fn lanes_of_the_second_source_are_rearranged() {
    let name = "v_mfma_f32_16x16x32_fp8_fp8";
    let run = |blgp: u8, from: fn(usize) -> usize| {
        let mut random = Random(5);
        let mut wave = wave("gfx942");
        for row in &mut wave.rows[..60] {
            row.0.iter_mut().for_each(|word| *word = random.next() as u32 & 0x3f3f_3f3f);
        }
        for row in &mut wave.rows[usize::from(B)..usize::from(B) + 2] {
            row.0 = std::array::from_fn(|lane| row.0[from(lane)]);
        }
        execute(name, &mut wave, |op| op.inst_mut().modifiers.blgp = blgp);
        wave.row(RowIndex(D)).0
    };
    assert_eq!(run(3, |lane| lane), run(0, |lane| (lane + 16) % 64));
    assert_eq!(run(1, |lane| lane), run(0, |lane| lane % 32));
    assert_ne!(run(1, |lane| lane), run(0, |lane| lane));
}

/// All pairs of formats, with power-of-two scales.
#[test]
pub fn all_format_modifiers_match_plain_matrices() {
    const FORMATS: [Element; 5] = [
        Element::Small(8, 3, 7),
        Element::Small(8, 2, 15),
        Element::Small(6, 3, 1),
        Element::Small(6, 2, 3),
        Element::Small(4, 1, 1),
    ];
    let mut random = Random(7);
    for (size, shape) in [(16, "16x16x128"), (32, "32x32x64")] {
        let depth = 32 * LANES / size;
        for (cbsz, blgp) in (0..5).flat_map(|a| (0..5).map(move |b| (a, b))) {
            for scaled in [false, true] {
                let (a, b) = (FORMATS[cbsz], FORMATS[blgp]);
                let mut wave = wave("gfx950");
                let bytes = [random.next() as u32 % 4, random.next() as u32 % 4];
                let mut lines = [Vec::new(), Vec::new()];
                let mut scales = [vec![0i32; LANES], vec![0i32; LANES]];
                for (side, (first, element)) in [(A, a), (B, b)].into_iter().enumerate() {
                    for at in 0..size {
                        let line = line(&mut random, depth);
                        for (k, value) in line.iter().enumerate() {
                            let (lane, item) = place(element.bits(), size, depth, at, k);
                            put(
                                &mut wave,
                                first,
                                lane,
                                item,
                                element.bits(),
                                element.encode(*value),
                            );
                        }
                        lines[side].push(line);
                    }
                    for lane in 0..LANES {
                        let exponent = (random.next() % 4) as i32;
                        scales[side][lane] = 1 << exponent;
                        let noise = random.next() as u32 & !(0xff << (8 * bytes[side]));
                        let field = (127 + exponent) as u32;
                        wave.rows[usize::from([SCALE_A, SCALE_B][side])].0[lane] =
                            noise | field << (8 * bytes[side]);
                    }
                }
                let third = put_sum(&mut wave, C, size, false, &mut random);
                let name = if scaled { "v_mfma_scale_f32_" } else { "v_mfma_f32_" };
                let name = format!("{name}{shape}_f8f6f4");
                let bit =
                    |which: u32| Some((bytes[0] >> which & 1 | (bytes[1] >> which & 1) << 1) as u8);
                execute(&name, &mut wave, |op| {
                    op.inst_mut().modifiers.cbsz = cbsz as u8;
                    op.inst_mut().modifiers.blgp = blgp as u8;
                    op.inst_mut().modifiers.op_sel = bit(0);
                    op.inst_mut().modifiers.op_sel_hi = bit(1);
                });
                for at in 0..size * size {
                    let (row, column) = (at / size, at % size);
                    let wanted = (0..depth).fold(third[at], |sum, k| {
                        // Lane by line and block of 32.
                        let scale = |side: usize, line: usize| {
                            if scaled { scales[side][line + size * (k / 32)] } else { 1 }
                        };
                        sum + lines[0][row][k]
                            * lines[1][column][k]
                            * scale(0, row)
                            * scale(1, column)
                    });
                    let got = result(&wave, size, row, column, false);
                    assert!(
                        got == wanted,
                        "{name} {a:?} {b:?}: {row}, {column}: {got}, not {wanted}"
                    );
                }
            }
        }
    }
}
