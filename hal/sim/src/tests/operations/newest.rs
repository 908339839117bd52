//! Operations of gfx1250, checked against independent definitions.

use super::small_float::{BF6, BF8, FP4, FP6, FP8, Table};
use super::{DEFAULT_MODE, Random, Sources, check, levels, operation, samples};
use crate::execute::operations::find_whole;
use crate::instruction::{Op, Run, Source, Word};
use crate::tests::bench::op;
use crate::wave::{Machine, RowIndex, Wave};
use flipwave_isa::{Isa, LaneMask, Pc};
use half::{bf16, f16};

/// Returns a word of a source.
fn word(source: u64) -> u32 {
    source as u32
}

#[test]
pub fn wide_integers_match_reference() {
    type Reference = fn(i128, i128, i128) -> i128;
    let unsigned: [(&str, Reference); 6] = [
        ("v_add_nc_u64", |a, b, _| a + b),
        ("v_sub_nc_u64", |a, b, _| a - b),
        ("v_mul_u64", |a, b, _| (a as u128).wrapping_mul(b as u128) as i128),
        ("v_min_u64", |a, b, _| if a < b { a } else { b }),
        ("v_max_u64", |a, b, _| if a < b { b } else { a }),
        ("v_mad_nc_u64_u32", |a, b, c| (a & 0xffff_ffff) * (b & 0xffff_ffff) + c),
    ];
    for (name, reference) in unsigned {
        check(name, DEFAULT_MODE, &samples(operation(name), 2000), |s| {
            reference(s[0].into(), s[1].into(), s[2].into()) as u64
        });
    }
    let signed: [(&str, Reference); 3] = [
        ("v_min_i64", |a, b, _| if a < b { a } else { b }),
        ("v_max_i64", |a, b, _| if a < b { b } else { a }),
        ("v_mad_nc_i64_i32", |a, b, c| i128::from(a as i32) * i128::from(b as i32) + c),
    ];
    for (name, reference) in signed {
        check(name, DEFAULT_MODE, &samples(operation(name), 2000), |s| {
            let [a, b, c] = [s[0], s[1], s[2]].map(|source| i128::from(source as i64));
            reference(a, b, c) as u64
        });
    }
}

/// Sums in wide arithmetic, saturated to the range of the type.
#[test]
pub fn sums_saturate_before_comparison() {
    let cut = |value: i128, least: i128, most: i128| value.max(least).min(most);
    for (name, is_signed, takes_greater) in [
        ("v_add_max_i32", true, true),
        ("v_add_min_i32", true, false),
        ("v_add_max_u32", false, true),
        ("v_add_min_u32", false, false),
    ] {
        let value = |bits: u64| {
            if is_signed { i128::from(bits as i32) } else { i128::from(bits as u32) }
        };
        let (least, most) =
            if is_signed { (-(1 << 31), (1 << 31) - 1) } else { (0, (1 << 32) - 1) };
        check(name, DEFAULT_MODE, &samples(operation(name), 3000), |s| {
            let sum = cut(value(s[0]) + value(s[1]), least, most);
            let third = value(s[2]);
            let chosen = if (sum > third) == takes_greater { sum } else { third };
            u64::from(chosen as u32)
        });
    }
    check("v_mad_u32", DEFAULT_MODE, &samples(operation("v_mad_u32"), 2000), |s| {
        (u128::from(word(s[0])) * u128::from(word(s[1])) + u128::from(word(s[2]))) as u64
            & 0xffff_ffff
    });
}

#[test]
pub fn packed_short_integers_match_reference() {
    for (kind, is_signed) in [("i16", true), ("u16", false)] {
        let value = |bits: u64| {
            if is_signed { i32::from(bits as u16 as i16) } else { i32::from(bits as u16) }
        };
        let (least, most) = if is_signed { (-0x8000, 0x7fff) } else { (0, 0xffff) };
        for (verb, takes_greater) in [("max", true), ("min", false)] {
            let better = |a: i32, b: i32| if (a > b) == takes_greater { a } else { b };
            for (name, adds) in
                [(format!("v_pk_{verb}3_{kind}"), false), (format!("v_pk_add_{verb}_{kind}"), true)]
            {
                check(&name, DEFAULT_MODE, &samples(operation(&name), 2000), |s| {
                    let half = |shift: u32| {
                        let [a, b, c] =
                            [s[0], s[1], s[2]].map(|source| value(source >> shift & 0xffff));
                        let first = if adds { (a + b).clamp(least, most) } else { better(a, b) };
                        u64::from(better(first, c) as u16)
                    };
                    half(0) | half(16) << 16
                });
            }
        }
    }
    for (name, least, most) in [("v_sat_pk4_i4_i8", -8, 7), ("v_sat_pk4_u4_u8", 0, 15)] {
        check(name, DEFAULT_MODE, &samples(operation(name), 2000), |s| {
            (0..4).fold(0, |result, at| {
                let byte = s[0] >> (8 * at) & 0xff;
                let value = if least < 0 { i64::from(byte as u8 as i8) } else { byte as i64 };
                result | (value.clamp(least, most) as u64 & 15) << (4 * at)
            })
        });
    }
}

/// The least and the greatest of three finite numbers.
#[test]
pub fn extremes_of_three_packed_halves_match_reference() {
    let mut random = Random(12);
    let finite = |random: &mut Random| random.next() & 0xbbff_bbff;
    let all: Vec<Sources> =
        (0..2000).map(|_| std::array::from_fn(|_| finite(&mut random))).collect();
    for (name, takes_greater) in [("v_pk_min3_num_f16", false), ("v_pk_max3_num_f16", true)] {
        check(name, DEFAULT_MODE, &all, |s| {
            let half = |shift: u32| {
                // Converted to integers in the order of the numbers, including zeros.
                let mut keys = [s[0], s[1], s[2]].map(|source| {
                    let bits = (source >> shift) as u16;
                    if bits >> 15 != 0 { -i32::from(bits & 0x7fff) - 1 } else { i32::from(bits) }
                });
                keys.sort_unstable();
                let key = if takes_greater { keys[2] } else { keys[0] };
                u64::from(if key < 0 { 0x8000 | (-key - 1) as u16 } else { key as u16 })
            };
            half(0) | half(16) << 16
        });
    }
}

#[test]
pub fn two_bit_truth_tables_match_reference() {
    let mut random = Random(44);
    let sources: Vec<Sources> =
        (0..2000).map(|_| std::array::from_fn(|_| random.next() & 0xffff_ffff)).collect();
    check("v_bitop2_b32", DEFAULT_MODE, &sources, |s| {
        (0..32).fold(0, |result, at| {
            let number = (s[0] >> at & 1) * 4 + (s[1] >> at & 1) * 2;
            result | (s[2] >> number & 1) << at
        })
    });
}

#[test]
pub fn double_precision_literals_are_exact() {
    let mut random = Random(9);
    let number = |random: &mut Random| ((random.next() % 4001) as f64 / 64.0 - 31.0).to_bits();
    let all: Vec<Sources> =
        (0..500).map(|_| std::array::from_fn(|_| number(&mut random))).collect();
    for name in ["v_fmaak_f64", "v_fmamk_f64"] {
        check(name, DEFAULT_MODE, &all, |s| {
            let [a, b, c] = [s[0], s[1], s[2]].map(f64::from_bits);
            // Exact in every step.
            (a * b + c).to_bits()
        });
    }
}

/// Returns the bfloat16 nearest to a number, ties to even, by exhaustive search.
fn nearest(exact: f64) -> u16 {
    let near = bf16::from_f64(exact).to_bits();
    let distance = |bits: u16| (bf16::from_bits(bits).to_f64() - exact).abs();
    let candidates = [near, near.wrapping_sub(1), near.wrapping_add(1)];
    let least = candidates.into_iter().map(distance).fold(f64::INFINITY, f64::min);
    let best = candidates.into_iter().filter(|bits| distance(*bits) == least);
    best.min_by_key(|bits| bits & 1).expect("a number")
}

/// Returns pairs of bfloat16 whose sums and products are exact in double precision.
fn pairs_of_brains(seed: u64) -> Vec<Sources> {
    let mut random = Random(seed);
    let half = |random: &mut Random| {
        let exponent = 120 + random.next() % 16;
        (random.next() & 0x80) << 8 | exponent << 7 | random.next() & 0x7f
    };
    (0..2000)
        .map(|_| std::array::from_fn(|_| half(&mut random) | half(&mut random) << 16))
        .collect()
}

#[test]
pub fn bfloat16_arithmetic_is_rounded_once() {
    type Reference = fn(f64, f64, f64) -> f64;
    let cases: [(&str, Reference); 5] = [
        ("add", |a, b, _| a + b),
        ("mul", |a, b, _| a * b),
        ("fma", |a, b, c| a * b + c),
        ("min_num", |a, b, _| if a < b { a } else { b }),
        ("max_num", |a, b, _| if a < b { b } else { a }),
    ];
    for (name, reference) in cases {
        for clamp in ["", " clamp"] {
            check(&format!("v_pk_{name}_bf16{clamp}"), DEFAULT_MODE, &pairs_of_brains(3), |s| {
                let half = |shift: u32| {
                    let [a, b, c] = [s[0], s[1], s[2]]
                        .map(|source| bf16::from_bits((source >> shift) as u16).to_f64());
                    let exact = reference(a, b, c);
                    // Zero is positive if clamped, as are exact sums that cancel.
                    let cut = if clamp.is_empty() { exact } else { exact.clamp(0.0, 1.0) + 0.0 };
                    u64::from(nearest(cut))
                };
                half(0) | half(16) << 16
            });
        }
    }
    let mut random = Random(21);
    let single =
        |random: &mut Random| u64::from(((random.next() % 4001) as f32 / 64.0 - 31.0).to_bits());
    let all: Vec<Sources> =
        (0..1000).map(|_| std::array::from_fn(|_| single(&mut random))).collect();
    let exact = |s: &Sources| {
        let [a, b, c] = [s[0], s[1], s[2]].map(|source| f64::from(f32::from_bits(source as u32)));
        a * b + c
    };
    check("v_fma_mix_f32_bf16", DEFAULT_MODE, &all, |s| u64::from((exact(s) as f32).to_bits()));
    let rounded = |s: &Sources| u64::from(nearest(f64::from(exact(s) as f32)));
    check("v_fma_mixlo_bf16", DEFAULT_MODE, &all, rounded);
    check("v_fma_mixhi_bf16", DEFAULT_MODE, &all, |s| rounded(s) << 16);
}

#[test]
pub fn bfloat16_functions_match_reference() {
    use std::f64::consts::TAU;
    let positive: Vec<Sources> = (0..2000).map(|at| [0x3c00 + at, 0, 0, 0]).collect();
    // Odd multiples of 1/128 turn, never at a zero.
    let turns: Vec<Sources> = (0..64)
        .map(|at| [u64::from(bf16::from_f64(f64::from(2 * at + 1) / 128.0).to_bits()), 0, 0, 0])
        .collect();
    type Function = fn(f64) -> f64;
    let cases: [(&str, &[Sources], Function); 8] = [
        ("v_rcp_bf16", &positive, |a| 1.0 / a),
        ("v_rsq_bf16", &positive, |a| 1.0 / a.sqrt()),
        ("v_sqrt_bf16", &positive, f64::sqrt),
        ("v_exp_bf16", &positive[..1000], f64::exp2),
        ("v_log_bf16", &positive, f64::log2),
        ("v_tanh_bf16", &positive, f64::tanh),
        ("v_sin_bf16", &turns, |a| (a * TAU).sin()),
        ("v_cos_bf16", &turns, |a| (a * TAU).cos()),
    ];
    for (name, all, function) in cases {
        check(name, DEFAULT_MODE, all, |s| {
            nearest(function(bf16::from_bits(s[0] as u16).to_f64())).into()
        });
    }
    let singles: Vec<Sources> =
        (-300..300).map(|at| [u64::from((at as f32 / 37.0).to_bits()), 0, 0, 0]).collect();
    check("v_tanh_f32", DEFAULT_MODE, &singles, |s| {
        u64::from((f64::from(f32::from_bits(s[0] as u32)).tanh() as f32).to_bits())
    });
    let halves: Vec<Sources> = (0x3000..0x4400).map(|bits| [bits, 0, 0, 0]).collect();
    check("v_tanh_f16", DEFAULT_MODE, &halves, |s| {
        u64::from(f16::from_f64(f16::from_bits(s[0] as u16).to_f64().tanh()).to_bits())
    });
}

#[test]
pub fn byte_and_half_conversions_match_reference() {
    let bytes: Vec<Sources> = (0..=0xffff).map(|bits| [bits, 0, 0, 0]).collect();
    let finite = |table: &Table, bits: u32| table.number(bits).is_finite();
    for (name, table) in [("fp8", FP8), ("bf8", BF8)] {
        let known: Vec<Sources> = bytes
            .iter()
            .copied()
            .filter(|s| finite(&table, s[0] as u32 & 0xff) && finite(&table, s[0] as u32 >> 8))
            .collect();
        let half = |bits: u64| u64::from(f16::from_f64(table.number(bits as u32 & 0xff)).to_bits());
        check(&format!("v_cvt_f16_{name}"), DEFAULT_MODE, &known, |s| half(s[0]));
        check(&format!("v_cvt_pk_f16_{name}"), DEFAULT_MODE, &known, |s| {
            half(s[0]) | half(s[0] >> 8) << 16
        });
        // Numbers that a byte can represent, exactly or nearly.
        let small: Vec<Sources> = (0..4000u64)
            .map(|at| {
                let half = |at: u64| u64::from(f16::from_f64(at as f64 / 256.0 - 8.0).to_bits());
                [half(at) | half(4000 - at) << 16, (at * 0x1234_5678) & 0xffff_ffff, 0, 0]
            })
            .collect();
        let number = |bits: u64| f16::from_bits(bits as u16).to_f64();
        check(&format!("v_cvt_pk_{name}_f16"), DEFAULT_MODE, &small, |s| {
            let byte = |bits: u64| u64::from(table.nearest(number(bits), None, false));
            byte(s[0]) | byte(s[0] >> 16) << 8
        });
        check(&format!("v_cvt_sr_{name}_f16"), DEFAULT_MODE, &small, |s| {
            u64::from(table.nearest(number(s[0]), Some(s[1] as u32), false))
        });
    }
    // E5M3, without sign, and the only NaN left out.
    let unsigned: Vec<Sources> = (0..=0xfe).map(|bits| [bits, 0, 0, 0]).collect();
    check("v_cvt_f32_fp8 clamp", DEFAULT_MODE, &unsigned, |s| {
        let (exponent, mantissa) = ((s[0] >> 3) as i32, (s[0] & 7) as f32);
        let number = match exponent {
            0 => mantissa * 2f32.powi(-17),
            _ => (8.0 + mantissa) * 2f32.powi(exponent - 18),
        };
        number.to_bits().into()
    });
    // With random bits of zero, both conversions truncate; representable numbers are unchanged.
    let whole: Vec<Sources> = (0..500u64)
        .map(|at| {
            let [a, b] = [at, 500 - at].map(|at| u64::from((at as f32 / 8.0).to_bits()));
            [a, b, 0, 0]
        })
        .collect();
    check("v_cvt_sr_pk_f16_f32", DEFAULT_MODE, &whole, |s| {
        let half = |bits: u64| u64::from(f16::from_f32(f32::from_bits(bits as u32)).to_bits());
        half(s[0]) | half(s[1]) << 16
    });
    check("v_cvt_sr_pk_bf16_f32", DEFAULT_MODE, &whole, |s| {
        (s[0] >> 16 & 0xffff) | (s[1] & 0xffff_0000)
    });
}

fn machine() -> Machine {
    Machine::new(&"gfx1250".parse().expect("a target"), 32)
}

/// Executes a whole-wave operation with sources at rows 0, 40, 80, 120 and 140. Returns the wave
/// with the result at row 160. `rows` returns the words of all lanes.
fn whole(name: &str, text: &str, rows: impl Fn(usize, usize) -> u32) -> Wave {
    let name = super::control::operation(name);
    let operation = find_whole(name, machine()).unwrap_or_else(|| panic!("missing: {name}"));
    let mut wave = Wave::new(levels()[0]);
    wave.machine = machine();
    wave.mode = DEFAULT_MODE;
    wave.vgpr_count = 256;
    wave.set_exec(LaneMask(0xffff_ffff));
    for row in 0..160 {
        wave.rows[row].0 = std::array::from_fn(|lane| rows(row, lane));
    }
    let mut op: Op = op(Run::Whole(operation.function));
    if !text.is_empty() {
        let isa = Isa::new(&"gfx1250".parse().expect("a target")).expect("LLVM has it");
        let bytes = isa.assemble(text).expect(text);
        *op.inst_mut() = isa.decode(&bytes, Pc(0)).expect(text);
    }
    for (source, first) in op.sources.iter_mut().zip([0, 40, 80, 120]) {
        *source = Source { words: [Word::Row(RowIndex(first)), Word::Row(RowIndex(first + 1))] };
    }
    op.sources[3].words[1] = Word::Row(RowIndex(140));
    op.destination = RowIndex(160);
    (operation.function)(&mut wave, &op);
    wave
}

/// Conversion of eight or sixteen numbers to eight, six or four bits.
#[test]
pub fn scaled_packed_conversions_match_reference() {
    let formats =
        [(8, "fp8", FP8), (8, "bf8", BF8), (8, "fp4", FP4), (16, "fp6", FP6), (16, "bf6", BF6)];
    let mut random = Random(77);
    for (count, format, table) in formats {
        let bits = match format {
            "fp4" => 4,
            "fp6" | "bf6" => 6,
            _ => 8,
        };
        for by in [127u32, 129, 120] {
            let factor = 2f64.powi(by as i32 - 127);
            let values: Vec<f32> = (0..count)
                .map(|_| ((random.next() % 128) as f32 / 16.0 - 4.0) * factor as f32)
                .collect();
            let seed = random.next() as u32;
            let pair = |at: usize, convert: fn(f32) -> u16| {
                u32::from(convert(values[2 * at])) | u32::from(convert(values[2 * at + 1])) << 16
            };
            for from in ["f32", "f16", "bf16"] {
                for is_random in [false, true] {
                    let way = if is_random { "sr_" } else { "" };
                    let name = format!("v_cvt_scalef32_{way}pk{count}_{format}_{from}");
                    let wave = whole(&name, "", |row, _| match row {
                        0..16 if from == "f32" => {
                            values.get(row).map_or(0, |value| value.to_bits())
                        }
                        0..8 if row < count / 2 && from == "f16" => {
                            pair(row, |value| f16::from_f32(value).to_bits())
                        }
                        0..8 if row < count / 2 => {
                            pair(row, |value| bf16::from_f32(value).to_bits())
                        }
                        40 if is_random => seed,
                        40 | 80 => by << 23,
                        _ => 0,
                    });
                    let mut random_bits = seed;
                    for (at, value) in values.iter().enumerate() {
                        let wanted = table.nearest(
                            f64::from(*value) / factor,
                            is_random.then_some(random_bits),
                            false,
                        );
                        random_bits =
                            random_bits << 1 ^ if random_bits >> 31 != 0 { 0xc5 } else { 0 };
                        let got: u32 = (0..bits)
                            .map(|bit| {
                                let at = at * bits + bit;
                                let word = wave.row(RowIndex(160 + at as u16 / 32)).0[7];
                                (word >> (at % 32) & 1) << bit
                            })
                            .sum();
                        assert_eq!(got, wanted, "{name}: {at}, {value}");
                    }
                }
            }
        }
    }
}

/// Returns element `k` of a row: a small whole number, whose sums are exact in any order.
fn whole_number(matrix: usize, row: usize, k: usize) -> f64 {
    ((row * 7 + k * 5 + matrix * 3) % 5) as f64 - 2.0
}

/// Returns the bits of a value in a small format, by exhaustive search.
fn bits_of(table: Table, value: f64) -> u32 {
    (0..256)
        .find(|bits| table.number(*bits) == value && (value != 0.0 || *bits == 0))
        .expect("known")
}

/// Elements of 16 bits, whose order of k does not matter as long as it is the same in A and B.
#[test]
fn half_products_match_plain_matrices() {
    let half = |matrix, row, k| u32::from(f16::from_f64(whole_number(matrix, row, k)).to_bits());
    let wave = whole("v_wmma_f32_16x16x32_f16", "", |row, lane| {
        let matrix = row / 40;
        match (matrix, row % 40) {
            (0 | 1, register @ 0..8) => {
                let k = 16 * (lane / 16 % 2) + 2 * register;
                half(matrix, lane % 16, k) | half(matrix, lane % 16, k + 1) << 16
            }
            (2, register @ 0..8) => (register as f32).to_bits(),
            _ => 0,
        }
    });
    for lane in 0..32 {
        for register in 0..8 {
            let (row, column) = (register + 8 * (lane / 16), lane % 16);
            let sum: f64 =
                (0..32).map(|k| whole_number(0, row, k) * whole_number(1, column, k)).sum();
            let got = f32::from_bits(wave.row(RowIndex(160 + register as u16)).0[lane]);
            assert_eq!(f64::from(got), sum + register as f64, "{row} {column}");
        }
    }
}

/// A in E4M3 and B in four bits, for which the order of k matters. Scales apply to 32 elements
/// each: those of A come from the upper half of the wave, those of B from the lower half.
#[test]
fn scaled_products_of_unlike_formats_match_plain_matrices() {
    let text = "v_wmma_scale_f32_16x16x128_f8f6f4 v[160:167], v[0:15], v[40:47], v[80:87], v120, v140 \
                matrix_b_fmt:MATRIX_FMT_FP4 matrix_a_scale:MATRIX_SCALE_ROW1";
    let scale = |matrix: usize, row: usize, block: usize| (row + block + matrix) % 3;
    let scales = |matrix: usize, row: usize| {
        (0..4).fold(0, |word, block| word | (127 + scale(matrix, row, block) as u32) << (8 * block))
    };
    let wave = whole("v_wmma_scale_f32_16x16x128_f8f6f4", text, |row, lane| {
        let (line, half) = (lane % 16, lane / 16 % 2);
        match row {
            // Alternating runs of 16 bytes from each half.
            0..16 => (0..4).fold(0, |word, byte| {
                let k = 32 * (row / 4) + 16 * half + 4 * (row % 4) + byte;
                word | bits_of(FP8, whole_number(0, line, k)) << (8 * byte)
            }),
            // Runs of 32 four-bit elements.
            40..48 => (0..8).fold(0, |word, nibble| {
                let register = row - 40;
                let k = 64 * (register / 4) + 32 * half + 8 * (register % 4) + nibble;
                word | bits_of(FP4, whole_number(1, line, k)) << (4 * nibble)
            }),
            120 if half == 1 => scales(0, line),
            140 if half == 0 => scales(1, line),
            _ => 0,
        }
    });
    for lane in 0..32 {
        for register in 0..8 {
            let (row, column) = (register + 8 * (lane / 16), lane % 16);
            let sum: f64 = (0..128)
                .map(|k| {
                    let exponent = scale(0, row, k / 32) + scale(1, column, k / 32);
                    whole_number(0, row, k)
                        * whole_number(1, column, k)
                        * 2f64.powi(exponent as i32)
                })
                .sum();
            let got = f32::from_bits(wave.row(RowIndex(160 + register as u16)).0[lane]);
            assert_eq!(f64::from(got), sum, "{row} {column}");
        }
    }
}

/// Executes a move of a source whose lane `l` holds 100 + l.
fn moved(name: &str, by: u32, width: u32) -> [u32; 32] {
    let name = super::control::operation(name);
    let operation = find_whole(name, machine()).unwrap_or_else(|| panic!("missing: {name}"));
    let mut wave = Wave::new(levels()[0]);
    wave.machine = machine();
    wave.vgpr_count = 16;
    wave.set_exec(LaneMask(0xffff_ffff));
    wave.row_mut(RowIndex(1)).0 = std::array::from_fn(|lane| 100 + lane as u32);
    let mut op: Op = op(Run::Whole(operation.function));
    let constants = [by, width].map(|word| Source { words: [Word::Constant(word); 2] });
    op.sources =
        [Source { words: [Word::Row(RowIndex(1)); 2] }, constants[0], constants[1], Source::NONE];
    if name.ends_with("idx_gen_b32") {
        op.sources[1] = constants[1];
    }
    op.destination = RowIndex(2);
    (operation.function)(&mut wave, &op);
    std::array::from_fn(|lane| wave.row(RowIndex(2)).0[lane])
}

/// Expected groups written out: eight lanes, moved by two.
#[test]
pub fn group_moves_match_reference() {
    let in_each_group = |lanes: [u32; 8]| -> [u32; 32] {
        std::array::from_fn(|lane| 100 + (lane as u32 & !7) + lanes[lane % 8])
    };
    assert_eq!(moved("v_permlane_bcast_b32", 2, 8), in_each_group([2; 8]));
    assert_eq!(moved("v_permlane_up_b32", 2, 8), in_each_group([0, 1, 0, 1, 2, 3, 4, 5]));
    assert_eq!(moved("v_permlane_down_b32", 2, 8), in_each_group([2, 3, 4, 5, 6, 7, 6, 7]));
    assert_eq!(moved("v_permlane_xor_b32", 2, 8), in_each_group([2, 3, 0, 1, 6, 7, 4, 5]));
    // Beyond the group, a lane keeps its value or wraps around.
    assert_eq!(moved("v_permlane_up_b32", 9, 8), in_each_group([0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(moved("v_permlane_bcast_b32", 10, 8), in_each_group([2; 8]));
    // 100 + l in groups of four: lane (100 + l) % 4, in bytes.
    let indices = moved("v_permlane_idx_gen_b32", 0, 4);
    for (lane, index) in indices.into_iter().enumerate() {
        assert_eq!(index, 4 * (lane as u32 / 4 * 4 + lane as u32 % 4));
    }
}

/// Lookups in tables of sixteen elements, on strings of bits. The first source is the upper part.
#[test]
pub fn table_lookups_match_bit_strings() {
    let mut random = Random(31);
    for (name, width, lower_words) in
        [("v_perm_pk16_b4_u4", 4, 1), ("v_perm_pk16_b6_u4", 6, 2), ("v_perm_pk16_b8_u4", 8, 2)]
    {
        let words: Vec<u32> = (0..width / 2).map(|_| random.next() as u32).collect();
        let indices = random.next();
        let run = |upper: usize, lower: usize| {
            let wave = whole(name, "", |row, _| match (row / 40, row % 40) {
                (2, 0) => indices as u32,
                (2, 1) => (indices >> 32) as u32,
                (source, at) if source == upper => {
                    words.get(lower_words + at).copied().unwrap_or(0)
                }
                (source, at) if source == lower => words.get(at).copied().unwrap_or(0),
                _ => 0,
            });
            (0..width / 2).map(|at| wave.row(RowIndex(160 + at as u16)).0[5]).collect::<Vec<_>>()
        };
        let string = |words: &[u32]| -> Vec<bool> {
            words.iter().flat_map(|word| (0..32).map(move |bit| word >> bit & 1 != 0)).collect()
        };
        let table = string(&words);
        let expected: Vec<bool> = (0..16)
            .flat_map(|at| {
                let index = (indices >> (4 * at)) as usize % 16;
                table[index * width..(index + 1) * width].to_vec()
            })
            .collect();
        assert_eq!(string(&run(0, 1)), expected, "{name}");
        // Negative control: with the parts exchanged, the table is another one.
        assert_ne!(string(&run(1, 0)), expected, "{name}");
    }
}

/// Conversions with a scale for each lane, whose lane and byte `scale_sel` selects: for each value, the first
/// lane with scales, and the bytes for the lower and the upper half of the wave.
#[test]
pub fn conversions_with_selected_scales_match_reference() {
    const BYTES: [(u8, usize, [usize; 2]); 7] = [
        (0, 0, [0, 0]),
        (2, 0, [1, 1]),
        (4, 0, [2, 2]),
        (6, 0, [3, 3]),
        (10, 16, [1, 1]),
        (12, 16, [2, 2]),
        (14, 16, [3, 3]),
    ];
    const SMALLER: [(u8, usize, [usize; 2]); 6] = [
        (0, 0, [0, 1]),
        (2, 0, [2, 3]),
        (4, 16, [0, 1]),
        (6, 16, [2, 3]),
        (1, 0, [0, 2]),
        (5, 16, [0, 2]),
    ];
    let formats = [
        (8, "fp8", FP8, 8),
        (8, "bf8", BF8, 8),
        (8, "fp4", FP4, 4),
        (16, "fp6", FP6, 6),
        (16, "bf6", BF6, 6),
    ];
    let mut random = Random(99);
    for (count, format, table, width) in formats {
        // Numbers, not NaNs.
        let numbers: Vec<u32> = (0..count)
            .map(|_| {
                loop {
                    let bits = random.next() as u32 & ((1 << width) - 1);
                    if table.number(bits).is_finite() {
                        break bits;
                    }
                }
            })
            .collect();
        let words: Vec<u32> = (0..count * width / 32)
            .map(|word| {
                (0..32).fold(0, |all, bit| {
                    let at = 32 * word + bit;
                    all | (numbers[at / width] >> (at % width) & 1) << bit
                })
            })
            .collect();
        let exponent = |lane: usize, byte: usize| 120 + (lane * 3 + byte * 5) % 11;
        let selections: &[_] = if width == 8 { &BYTES } else { &SMALLER };
        for (selection, first, bytes) in selections.iter().copied() {
            for to in ["f32", "f16", "bf16"] {
                let name = format!("v_cvt_scale_pk{count}_{to}_{format}");
                let last = 159 + if to == "f32" { count } else { count / 2 };
                let source = match words.len() {
                    1 => "v0".to_owned(),
                    length => format!("v[0:{}]", length - 1),
                };
                let text = format!("{name} v[160:{last}], {source}, v40 scale_sel:{selection}");
                let wave = whole(&name, &text, |row, lane| match row {
                    40 => (0..4)
                        .fold(0, |all, byte| all | (exponent(lane, byte) as u32) << (8 * byte)),
                    _ => words.get(row).copied().unwrap_or(0),
                });
                for lane in 0..32 {
                    let scale = exponent(first + lane % 16, bytes[lane / 16]);
                    for (at, number) in numbers.iter().enumerate() {
                        let exact = table.number(*number) * 2f64.powi(scale as i32 - 127);
                        let register = if to == "f32" { at } else { at / 2 };
                        let word = wave.row(RowIndex(160 + register as u16)).0[lane];
                        let half = (word >> (16 * (at % 2))) as u16;
                        let (got, expected) = match to {
                            "f32" => (word, (exact as f32).to_bits()),
                            "f16" => (half.into(), f16::from_f64(exact).to_bits().into()),
                            _ => (half.into(), bf16::from_f64(exact).to_bits().into()),
                        };
                        assert_eq!(got, expected, "{text}, lane {lane}, number {at}");
                    }
                }
            }
        }
    }
}

/// Scales of 32 rows of A are in as many lanes. Those of A are in E4M3, those of B in E5M3.
#[test]
fn scaled_products_of_32_rows_match_plain_matrices() {
    let text = "v_wmma_scale_f32_32x16x128_f4 v[160:175], v[0:15], v[40:47], v[80:95], v120, v140 \
                matrix_b_scale:MATRIX_SCALE_ROW1 matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3 \
                matrix_b_scale_fmt:MATRIX_SCALE_FMT_E5M3";
    // Bits and values of the scales.
    let of_a = [(0x38, 1.0), (0x3c, 1.5), (0x42, 2.5)];
    let of_b = [(0x78, 1.0), (0x7c, 1.5), (0x81, 2.25)];
    let chosen = |row: usize, block: usize| (row + 2 * block) % 3;
    let scales = |table: [(u32, f64); 3], row: usize| {
        (0..4).fold(0, |word, block| word | table[chosen(row, block)].0 << (8 * block))
    };
    let nibbles = |matrix: usize, row: usize, register: usize, half: usize| {
        (0..8).fold(0, |word, nibble| {
            let k = 64 * (register / 4) + 32 * half + 8 * (register % 4) + nibble;
            word | bits_of(FP4, whole_number(matrix, row, k)) << (4 * nibble)
        })
    };
    let wave = whole("v_wmma_scale_f32_32x16x128_f4", text, |row, lane| {
        let (line, half) = (lane % 16, lane / 16 % 2);
        match row {
            0..16 => nibbles(0, line + 16 * (row / 8), row % 8, half),
            40..48 => nibbles(1, line, row - 40, half),
            120 => scales(of_a, lane),
            140 if half == 1 => scales(of_b, line),
            _ => 0,
        }
    });
    for lane in 0..32 {
        for register in 0..16 {
            let (row, column) = (16 * (register / 8) + 8 * (lane / 16) + register % 8, lane % 16);
            let sum: f64 = (0..128)
                .map(|k| {
                    let scale = of_a[chosen(row, k / 32)].1 * of_b[chosen(column, k / 32)].1;
                    whole_number(0, row, k) * whole_number(1, column, k) * scale
                })
                .sum();
            let got = f32::from_bits(wave.row(RowIndex(160 + register as u16)).0[lane]);
            assert_eq!(f64::from(got), sum, "{row} {column}");
        }
    }
}
