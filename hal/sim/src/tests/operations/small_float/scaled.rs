//! Conversions with a scale.

use super::super::{MODES, Random, Sources, check, control};
use super::{BF6, BF8, FP4, FP6, FP8, Table, near};
use crate::execute::operations::find_whole;
use crate::instruction::{Op, Run, Source, Word};
use crate::tests::bench::op;
use crate::wave::{Machine, Mode, RowIndex, Wave};
use flipwave_isa::{Float8, Generation, LaneMask};
use half::f16;

/// Returns two to the exponent of a scale.
fn scale(bits: u64) -> f64 {
    match bits >> 23 & 0xff {
        0xff => f64::NAN,
        field => 2f64.powi(field as i32 - 127),
    }
}

/// Returns a scale, mostly near one, with a sign and a mantissa that are ignored.
fn draw_scale(random: &mut Random) -> u64 {
    let field = match random.next() % 16 {
        0 => 0xff,
        1 => 0,
        2 => 254,
        _ => 118 + random.next() % 19,
    };
    random.next() & 0x807f_ffff | field << 23
}

/// Source format of a conversion: its name, and the number of its bits.
type Format = (&'static str, fn(u64, Mode) -> f64);

const FORMATS: [Format; 3] = [
    ("f32", super::single),
    ("f16", |bits, mode| {
        let value = f16::from_bits(bits as u16);
        let is_denormal = bits & 0x7c00 == 0;
        if is_denormal && mode.flushes_f64_sources() {
            0f64.copysign(value.into())
        } else if value.is_nan() {
            f64::NAN.copysign(if bits & 0x8000 != 0 { -1.0 } else { 1.0 })
        } else {
            value.into()
        }
    }),
    ("bf16", |bits, _| super::single(bits << 16, MODES[0])),
];

/// Returns bits of a number of a format near those of a table.
fn sources(format: &str, table: Table) -> Vec<u64> {
    near(table, 300)
        .into_iter()
        .map(|bits| {
            let value = f32::from_bits(bits as u32);
            match format {
                "f32" => bits,
                "f16" => f16::from_f32(value).to_bits().into(),
                _ => bits >> 16,
            }
        })
        .collect()
}

/// Returns the quotient. A NaN scale gives a positive NaN.
fn quotient(value: f64, by: f64) -> f64 {
    match (by.is_nan(), value.is_nan()) {
        (true, _) => f64::NAN.copysign(1.0),
        (_, true) => value,
        _ => value / by,
    }
}

const RESULTS: [(&str, Table); 3] = [("fp8", FP8), ("bf8", BF8), ("fp4", FP4)];

#[test]
pub fn narrowing_divides_by_scale() {
    for ((to, table), (from, number)) in
        RESULTS.into_iter().flat_map(|to| FORMATS.map(|from| (to, from)))
    {
        let values = sources(from, table);
        let mut random = Random(29);
        let samples: Vec<Sources> = values
            .iter()
            .map(|value| {
                let high = random.choose(&values);
                let scale = draw_scale(&mut random);
                match from {
                    "f32" => [*value, high, scale, 0],
                    _ => [value | high << 16, scale, 0, 0],
                }
            })
            .collect();
        let width = if to == "fp4" { 4 } else { 8 };
        for mode in MODES {
            check(&format!("v_cvt_scalef32_pk_{to}_{from}"), mode, &samples, |s| {
                let (pair, by) = match from {
                    "f32" => ([s[0], s[1]], s[2]),
                    _ => ([s[0] & 0xffff, s[0] >> 16], s[1]),
                };
                let clamps = mode.0 >> 23 & 1 != 0;
                let [low, high] = pair.map(|bits| {
                    table.nearest(quotient(number(bits, mode), scale(by)), None, clamps)
                });
                u64::from(low | high << width)
            });
        }
    }
}

#[test]
pub fn random_bits_choose_after_the_division() {
    for ((to, table), (from, number)) in
        RESULTS.into_iter().flat_map(|to| FORMATS.map(|from| (to, from)))
    {
        let values = sources(from, table);
        let mut random = Random(31);
        let is_pair = to == "fp4";
        let shift = if from == "f32" { 32 } else { 16 };
        let samples: Vec<Sources> = values
            .iter()
            .map(|value| {
                let high = if is_pair { random.choose(&values) << shift } else { 0 };
                [value | high, random.next() & 0xffff_ffff, draw_scale(&mut random), 0]
            })
            .collect();
        let name = if is_pair { "sr_pk" } else { "sr" };
        for mode in MODES {
            check(&format!("v_cvt_scalef32_{name}_{to}_{from}"), mode, &samples, |s| {
                let clamps = mode.0 >> 23 & 1 != 0;
                let one = |bits: u64, random: u64| {
                    let value = quotient(number(bits, mode), scale(s[2]));
                    u64::from(table.nearest(value, Some(random as u32), clamps))
                };
                // The second number uses the next random word of the shift register.
                let next = s[1] << 1 & 0xffff_ffff ^ if s[1] >> 31 & 1 != 0 { 0xc5 } else { 0 };
                let low = s[0] & ((1 << shift) - 1);
                if is_pair {
                    one(low, s[1]) | one(s[0] >> shift, next) << 4
                } else {
                    one(low, s[1])
                }
            });
        }
    }
}

/// Returns the bits of a product in a format.
fn bits_in(format: &str, value: f64) -> u64 {
    match format {
        "f32" if value.is_nan() => 0x7fc0_0000,
        "f32" => (value as f32).to_bits().into(),
        // Small numbers have too few digits to be rounded twice.
        "f16" if value.is_nan() => 0x7e00,
        "f16" => f16::from_f64(value).to_bits().into(),
        _ if value.is_nan() => 0x7fc0,
        _ => {
            let bits = u64::from((value as f32).to_bits());
            (bits + 0x7fff + (bits >> 16 & 1)) >> 16
        }
    }
}

#[test]
pub fn widening_multiplies_by_scale() {
    let mut random = Random(37);
    let samples: Vec<Sources> =
        (0..2000).map(|_| [random.next() & 0xffff, draw_scale(&mut random), 0, 0]).collect();
    for (from, table, width) in [("fp8", FP8, 8), ("bf8", BF8, 8), ("fp4", FP4, 4)] {
        for to in ["f32", "f16", "bf16"] {
            let product = |s: &Sources, at: u32| {
                let bits = s[0] as u32 >> at & ((1 << width) - 1);
                let by = scale(s[1]);
                let number = table.number(bits);
                bits_in(to, if by.is_nan() { f64::NAN } else { number * by })
            };
            let shift = if to == "f32" { 32 } else { 16 };
            check(&format!("v_cvt_scalef32_pk_{to}_{from}"), MODES[0], &samples, |s| {
                product(s, 0) | product(s, width) << shift
            });
            if width == 8 && to != "bf16" {
                check(&format!("v_cvt_scalef32_{to}_{from}"), MODES[0], &samples, |s| {
                    product(s, 0)
                });
            }
        }
    }
}

/// Returns a machine with 8-bit elements and scaled formats.
fn machine() -> Machine {
    Machine { generation: Generation::Gfx940, float8: Float8::Ocp, ..Machine::default() }
}

/// Executes a conversion of 32 numbers: sources at rows 0, 40 and 80, the result at row 100.
fn convert(name: &str, rows: &[(u16, Vec<u32>)]) -> Wave {
    let name = control::operation(name);
    let mut wave = Wave::new(super::super::levels()[0]);
    wave.machine = machine();
    wave.mode = MODES[0];
    wave.vgpr_count = 256;
    wave.set_exec(LaneMask(0x5555_5555_5555_5555));
    for (row, words) in rows {
        for (at, word) in words.iter().enumerate() {
            wave.rows[usize::from(*row) + at].0.fill(*word);
        }
    }
    let operation = find_whole(name, machine()).unwrap_or_else(|| panic!("missing: {name}"));
    let mut op: Op = op(Run::Whole(operation.function));
    for (source, first) in op.sources.iter_mut().zip([0, 40, 80]) {
        *source = Source { words: [Word::Row(RowIndex(first)), Word::Row(RowIndex(first + 1))] };
    }
    op.destination = RowIndex(100);
    (operation.function)(&mut wave, &op);
    wave
}

/// A conversion's name, its source words by their first row, whether they are bfloat16, and whether
/// random bits are among them.
type Case = (String, Vec<(u16, Vec<u32>)>, bool, bool);

/// Returns a six-bit number in a row of words.
fn six_bits(words: &[u32], at: usize) -> u32 {
    (0..6).map(|bit| (words[(at * 6 + bit) / 32] >> ((at * 6 + bit) % 32) & 1) << bit).sum()
}

#[test]
pub fn six_bit_conversions_match_reference() {
    let mut random = Random(41);
    let scales = [127u32 << 23, 129 << 23, 120 << 23];
    let from_one = |value: f32| (value.to_bits(), f16::from_f32(value).to_bits());
    for (six, table) in [("fp6", FP6), ("bf6", BF6)] {
        for by in scales {
            let factor = scale(by.into());
            let values: Vec<f32> = (0..32)
                .map(|_| {
                    let value = (random.next() % 4096) as f32 / 256.0 - 8.0;
                    f16::from_f32(value * factor as f32).to_f32()
                })
                .collect();
            let singles: Vec<u32> = values.iter().map(|value| from_one(*value).0).collect();
            let halves: Vec<u32> = values
                .chunks(2)
                .map(|two| u32::from(from_one(two[0]).1) | u32::from(from_one(two[1]).1) << 16)
                .collect();
            let brains: Vec<u32> =
                singles.chunks(2).map(|two| two[0] >> 16 | two[1] & 0xffff_0000).collect();
            let [even, odd] = [0, 1].map(|first| singles.iter().skip(first).step_by(2).copied());
            let seed = random.next() as u32;
            let nearest = |value: f64, random| table.nearest(value / factor, random, false);
            let brain = |at: usize| f64::from(f32::from_bits(singles[at] & 0xffff_0000));
            let random_of = |at: usize| {
                (0..at).fold(seed, |bits, _| bits << 1 ^ if bits >> 31 != 0 { 0xc5 } else { 0 })
            };
            let seeded = vec![seed];
            let cases: [Case; 6] = [
                (
                    format!("v_cvt_scalef32_2xpk16_{six}_f32"),
                    vec![(0, even.collect()), (40, odd.collect()), (80, vec![by])],
                    false,
                    false,
                ),
                (
                    format!("v_cvt_scalef32_pk32_{six}_f16"),
                    vec![(0, halves.clone()), (40, vec![by])],
                    false,
                    false,
                ),
                (
                    format!("v_cvt_scalef32_pk32_{six}_bf16"),
                    vec![(0, brains.clone()), (40, vec![by])],
                    true,
                    false,
                ),
                (
                    format!("v_cvt_scalef32_sr_pk32_{six}_f32"),
                    vec![(0, singles.clone()), (40, seeded.clone()), (80, vec![by])],
                    false,
                    true,
                ),
                (
                    format!("v_cvt_scalef32_sr_pk32_{six}_f16"),
                    vec![(0, halves.clone()), (40, seeded.clone()), (80, vec![by])],
                    false,
                    true,
                ),
                (
                    format!("v_cvt_scalef32_sr_pk32_{six}_bf16"),
                    vec![(0, brains.clone()), (40, seeded), (80, vec![by])],
                    true,
                    true,
                ),
            ];
            for (name, rows, is_brain, is_random) in cases {
                let wave = convert(&name, &rows);
                let words: Vec<u32> = (100..106).map(|row| wave.row(RowIndex(row)).0[2]).collect();
                for at in 0..32 {
                    let value = if is_brain { brain(at) } else { values[at].into() };
                    let wanted = nearest(value, is_random.then(|| random_of(at)));
                    assert_eq!(six_bits(&words, at), wanted, "{name}: {at}, {value}");
                }
                // An inactive lane keeps its register.
                assert_eq!(wave.row(RowIndex(100)).0[1], 0, "{name}");
            }
            let packed: Vec<u32> = (0..6).map(|_| random.next() as u32).collect();
            for to in ["f32", "f16", "bf16"] {
                let name = format!("v_cvt_scalef32_pk32_{to}_{six}");
                let wave = convert(&name, &[(0, packed.clone()), (40, vec![by])]);
                for at in 0..32usize {
                    let wanted = bits_in(to, table.number(six_bits(&packed, at)) * factor);
                    let (row, shift) = if to == "f32" { (at, 0) } else { (at / 2, at % 2 * 16) };
                    let got = wave.row(RowIndex(100 + row as u16)).0[0] >> shift;
                    let got = if to == "f32" { got } else { got & 0xffff };
                    assert_eq!(u64::from(got), wanted, "{name}: {at}");
                }
            }
        }
    }
}
