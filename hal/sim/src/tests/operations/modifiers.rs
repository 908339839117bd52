//! Operand modifiers: DPP, sub-dword selects, signs, output scaling and clamping, constants. From
//! assembled text to registers, at every SIMD level of the host.

use super::exact::{DOUBLE, Format, HALF, Rule, SINGLE, Term};
use super::{DEFAULT_MODE, MODES, Random, control, draw, float, flushed_if, flushes, levels};
use crate::execute::lane::Kind;
use crate::instruction::{Op, Run};
use crate::translate::translate;
use crate::wave::{LANES, Level, Machine, Mode, RowIndex, Wave};
use flipwave_isa::{Isa, LaneMask, Pc};
use std::sync::{LazyLock, Mutex};

fn instruction(text: &str, level: Level) -> Op {
    static ISA: LazyLock<Mutex<Isa>> = LazyLock::new(|| {
        Mutex::new(Isa::new(&"gfx90a".parse().expect("a target")).expect("LLVM has gfx90a"))
    });
    let isa = ISA.lock().expect("no panic while it is held");
    let bytes = isa.assemble(text).ok();
    let inst = bytes.and_then(|bytes| isa.decode(&bytes, Pc(0)).ok());
    drop(isa);
    translate(inst.unwrap_or_else(|| panic!("no instruction: {text}")), level, Machine::default())
}

/// Returns a lane's words of two registers, low first.
fn pair(wave: &Wave, register: u16, lane: usize) -> u64 {
    let word = |index: u16| u64::from(wave.row(RowIndex(index)).0[lane]);
    word(register) | word(register + 1) << 32
}

/// Executes an instruction that writes all or part of `v[8:9]`, on registers filled with values of
/// `kind`, with `v[6:7]` zero. Compares all lanes with `expected`, given the wave before.
fn check(text: &str, kind: Kind, mode: Mode, exec: u64, expected: impl Fn(&Wave, usize) -> u64) {
    let text = control::text(text);
    for level in levels() {
        let op = instruction(&text, level);
        let Run::Vector(function) = op.run else { panic!("not a vector operation: {text}") };
        let mut random = Random(17);
        let mut before = Wave::new(level);
        before.vgpr_count = 256;
        before.mode = control::mode(mode);
        before.set_exec(LaneMask(exec));
        for first in [0, 2, 4, 8, 10] {
            for lane in 0..LANES {
                let bits = draw(&mut random, kind);
                let high = if kind.words() == 2 { bits >> 32 } else { random.next() };
                before.rows[first].0[lane] = bits as u32;
                before.rows[first + 1].0[lane] = high as u32;
            }
        }
        let mut after = before.clone();
        // SAFETY: `levels` returns only levels that the host supports.
        unsafe { function(&mut after, &op) };
        for lane in 0..LANES {
            let (got, expected) = (pair(&after, 8, lane), expected(&before, lane));
            assert!(
                got == expected,
                "{text} {level:?} {:#x} {exec:#x}: lane {lane} is {got:#x}, not {expected:#x}",
                mode.0
            );
        }
    }
}

/// Combines a new low word with the old upper word.
fn low_word(before: &Wave, lane: usize, word: u32) -> u64 {
    pair(before, 8, lane) & !0xffff_ffff | u64::from(word)
}

fn word(before: &Wave, register: u16, lane: usize) -> u32 {
    before.row(RowIndex(register)).0[lane]
}

/// Returns the lane that each lane reads, by permuting a list of lanes.
fn moved(control: &str) -> Vec<Option<usize>> {
    let all: Vec<usize> = (0..LANES).collect();
    let groups = |size: usize, change: &dyn Fn(&mut Vec<Option<usize>>)| {
        let group = |lanes: &[usize]| {
            let mut lanes: Vec<_> = lanes.iter().copied().map(Some).collect();
            change(&mut lanes);
            lanes
        };
        all.chunks(size).flat_map(group).collect()
    };
    let up = |by: usize| {
        move |lanes: &mut Vec<Option<usize>>| {
            lanes.rotate_left(by);
            let end = lanes.len() - by;
            lanes[end..].fill(None);
        }
    };
    let down = |by: usize| {
        move |lanes: &mut Vec<Option<usize>>| {
            lanes.rotate_right(by);
            lanes[..by].fill(None);
        }
    };
    match control {
        "quad_perm:[3,0,1,1]" => groups(4, &|l| *l = [3, 0, 1, 1].map(|at| l[at]).to_vec()),
        "row_shl:1" => groups(16, &up(1)),
        "row_shl:15" => groups(16, &up(15)),
        "row_shr:3" => groups(16, &down(3)),
        "row_ror:5" => groups(16, &|lanes| lanes.rotate_right(5)),
        "wave_shl:1" => groups(64, &up(1)),
        "wave_rol:1" => groups(64, &|lanes| lanes.rotate_left(1)),
        "wave_shr:1" => groups(64, &down(1)),
        "wave_ror:1" => groups(64, &|lanes| lanes.rotate_right(1)),
        "row_mirror" => groups(16, &|lanes| lanes.reverse()),
        "row_half_mirror" => groups(8, &|lanes| lanes.reverse()),
        "row_newbcast:7" => groups(16, &|lanes| *lanes = vec![lanes[7]; 16]),
        "row_bcast:15" => [None, Some(15), Some(31), Some(47)].map(|lane| [lane; 16]).concat(),
        "row_bcast:31" => [None, None, Some(31), Some(31)].map(|lane| [lane; 16]).concat(),
        other => panic!("no control: {other}"),
    }
}

#[test]
pub fn dpp_moves_lanes() {
    let controls = [
        "quad_perm:[3,0,1,1]",
        "row_shl:1",
        "row_shl:15",
        "row_shr:3",
        "row_ror:5",
        "wave_shl:1",
        "wave_rol:1",
        "wave_shr:1",
        "wave_ror:1",
        "row_mirror",
        "row_half_mirror",
        "row_newbcast:7",
        "row_bcast:15",
        "row_bcast:31",
    ];
    let masks = [(0xf, 0xf), (0xa, 0x5), (0x7, 0xe)];
    for control in controls {
        let moved = moved(control);
        for (row_mask, bank_mask) in masks {
            for bound_control in [false, true] {
                let bound = if bound_control { " bound_ctrl:0" } else { "" };
                let text = format!(
                    "v_sub_u32_dpp v8, v0, v2 {control} row_mask:{row_mask:#x} \
                     bank_mask:{bank_mask:#x}{bound}"
                );
                for exec in [u64::MAX, 0x0123_4567_89ab_cdef, 0xffff_0000_ffff_0000] {
                    check(&text, Kind::Word, DEFAULT_MODE, exec, |before, lane| {
                        let active = |lane: usize| exec >> lane & 1 != 0;
                        let source = moved[lane].filter(|source| active(*source));
                        let enabled = row_mask >> (lane / 16) & 1 != 0
                            && bank_mask >> (lane % 16 / 4) & 1 != 0;
                        if !active(lane) || !enabled || source.is_none() && !bound_control {
                            return pair(before, 8, lane);
                        }
                        let read = source.map_or(0, |source| word(before, 0, source));
                        low_word(before, lane, read.wrapping_sub(word(before, 2, lane)))
                    });
                }
            }
        }
    }
}

/// Returns part of a word as a number.
fn part(word: u32, select: &str, signed: bool) -> i64 {
    let bytes = word.to_le_bytes();
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    match (select.split_once('_'), signed) {
        (Some(("BYTE", at)), false) => bytes[at.parse::<usize>().expect("a digit")].into(),
        (Some(("BYTE", at)), true) => (bytes[at.parse::<usize>().expect("a digit")] as i8).into(),
        (Some((_, at)), false) => half(2 * at.parse::<usize>().expect("a digit")).into(),
        (Some((_, at)), true) => (half(2 * at.parse::<usize>().expect("a digit")) as i16).into(),
        (None, false) => word.into(),
        (None, true) => (word as i32).into(),
    }
}

#[test]
pub fn sdwa_selects_parts_of_words() {
    let selects = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"];
    let exec = 0xf0f0_1234_ffff_0001;
    for (index, destination) in selects.into_iter().enumerate() {
        for unused in ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"] {
            for (source, select) in selects.into_iter().enumerate() {
                let second_select = selects[(index + 2 * source) % 7];
                let signed = (index + source) % 2 == 0;
                let first = if signed { "sext(v0)" } else { "v0" };
                let text = format!(
                    "v_add_u32_sdwa v8, {first}, v2 dst_sel:{destination} dst_unused:{unused} \
                     src0_sel:{select} src1_sel:{second_select}"
                );
                check(&text, Kind::Word, DEFAULT_MODE, exec, |before, lane| {
                    if exec >> lane & 1 == 0 {
                        return pair(before, 8, lane);
                    }
                    let sum = part(word(before, 0, lane), select, signed)
                        + part(word(before, 2, lane), second_select, false);
                    let (size, at) = match destination.split_once('_') {
                        Some(("BYTE", at)) => (8, 8 * at.parse::<u32>().expect("a digit")),
                        Some((_, at)) => (16, 16 * at.parse::<u32>().expect("a digit")),
                        None => (32, 0),
                    };
                    let field = (((1u64 << size) - 1) << at) as u32;
                    let old = word(before, 8, lane);
                    let new = match unused {
                        "UNUSED_PAD" => (sum << at) as u32 & field,
                        "UNUSED_SEXT" => (sum << (64 - size) >> (64 - size) << at) as u32,
                        _ => old & !field | (sum << at) as u32 & field,
                    };
                    low_word(before, lane, new)
                });
            }
        }
    }
}

fn half(word: u32, high: bool) -> u32 {
    if high { word >> 16 } else { word & 0xffff }
}

#[test]
pub fn op_sel_selects_halves() {
    for choice in 0..16u32 {
        let high = |operand: u32| choice >> operand & 1 != 0;
        let bits = [0, 1, 2, 3].map(|operand| (choice >> operand & 1).to_string()).join(",");
        let text = format!("v_mad_u16 v8, v0, v2, v4 op_sel:[{bits}]");
        check(&text, Kind::Word, DEFAULT_MODE, u64::MAX, |before, lane| {
            let [a, b, c] = [0, 1, 2].map(|i| half(word(before, 2 * i, lane), high(i.into())));
            let result = (a * b + c) & 0xffff;
            let old = word(before, 8, lane);
            let new = if high(3) { old & 0xffff | result << 16 } else { old & !0xffff | result };
            low_word(before, lane, new)
        });
    }
}

/// Formats the selections of three operands in assembler syntax.
fn choices(bits: u32) -> String {
    [0, 1, 2].map(|operand| (bits >> operand & 1).to_string()).join(",")
}

#[test]
pub fn op_sel_selects_halves_of_packed_operands() {
    for low in 0..8u32 {
        for high in 0..8u32 {
            let (low_text, high_text) = (choices(low), choices(high));
            let text =
                format!("v_pk_mad_u16 v8, v0, v2, v4 op_sel:[{low_text}] op_sel_hi:[{high_text}]");
            check(&text, Kind::Word, DEFAULT_MODE, u64::MAX, |before, lane| {
                let element = |chosen: u32| {
                    let [a, b, c] =
                        [0, 1, 2].map(|i| half(word(before, 2 * i, lane), chosen >> i & 1 != 0));
                    (a * b + c) & 0xffff
                };
                low_word(before, lane, element(low) | element(high) << 16)
            });
            // The same signs, with another order of halves.
            let text = format!(
                "v_pk_fma_f16 v8, v0, v2, v4 op_sel:[{high_text}] op_sel_hi:[{low_text}] \
                 neg_lo:[{low_text}] neg_hi:[{high_text}]"
            );
            check(&text, Kind::Packed, DEFAULT_MODE, u64::MAX, |before, lane| {
                let element = |chosen: u32, negated: u32| {
                    let [a, b, c] = [0, 1, 2].map(|i| {
                        let bits = half(word(before, 2 * i, lane), chosen >> i & 1 != 0);
                        u64::from(bits ^ (negated >> i & 1) << 15)
                    });
                    float::fused(Rule::nearest(HALF), a, b, c) as u32
                };
                low_word(before, lane, element(high, low) | element(low, high) << 16)
            });
            let text = format!(
                "v_pk_fma_f32 v[8:9], v[0:1], v[2:3], v[4:5] op_sel:[{low_text}] \
                 op_sel_hi:[{high_text}] neg_lo:[{high_text}] neg_hi:[{low_text}]"
            );
            check(&text, Kind::PackedWords, DEFAULT_MODE, u64::MAX, |before, lane| {
                let element = |chosen: u32, negated: u32| {
                    let [a, b, c] = [0, 1, 2].map(|i| {
                        let register = 2 * i + (chosen >> i & 1) as u16;
                        let bits = word(before, register, lane);
                        u64::from(bits ^ (negated >> i & 1) << 31)
                    });
                    float::fused(Rule::nearest(SINGLE), a, b, c)
                };
                element(low, high) | element(high, low) << 32
            });
        }
    }
}

/// Sources of mixed precision: a word, or one of its halves, with signs.
#[test]
fn op_sel_selects_halves_of_mixed_operands() {
    let widened = |bits: u32| {
        let sign = u64::from(bits & 0x8000) << 16;
        let bits = u64::from(bits);
        if HALF.is_nan(bits) || HALF.is_infinite(bits) {
            sign | SINGLE.infinity() | (bits & 0x3ff) << 13
        } else {
            Rule::nearest(SINGLE).rounded(&[HALF.term(bits)])
        }
    };
    for select in 0..8u32 {
        for is_half in 0..8u32 {
            let (select_text, half_text) = (choices(select), choices(is_half));
            let text = format!(
                "v_fma_mix_f32 v8, -v0, |v2|, v4 op_sel:[{select_text}] op_sel_hi:[{half_text}]"
            );
            check(&text, Kind::Packed, DEFAULT_MODE, u64::MAX, |before, lane| {
                let [a, b, c] = [0, 1, 2].map(|i| {
                    let bits = word(before, 2 * i, lane);
                    let high = select >> i & 1 != 0;
                    if is_half >> i & 1 != 0 { widened(half(bits, high)) } else { bits.into() }
                });
                let [a, b] = [a ^ SINGLE.sign(), b & !SINGLE.sign()];
                let result = float::fused(Rule::nearest(SINGLE), a, b, c);
                low_word(before, lane, result as u32)
            });
        }
    }
}

const FORMATS: [(&str, Format, Kind); 3] =
    [("f16", HALF, Kind::F16), ("f32", SINGLE, Kind::F32), ("f64", DOUBLE, Kind::F64)];

/// Returns the text of a sum and its number format.
fn sum_text(suffix: &str, first: &str) -> String {
    match suffix {
        "f64" => format!("v_add_f64 v[8:9], {}, v[2:3]", first.replace("v1", "v[0:1]")),
        _ => format!("v_add_{suffix}_e64 v8, {first}, v2").replace("v1", "v0"),
    }
}

fn number(before: &Wave, format: Format, register: u16, lane: usize) -> u64 {
    pair(before, register, lane) & (format.sign() | (format.sign() - 1))
}

/// Writes a result over the old registers. Half precision clears the upper half.
fn over(before: &Wave, format: Format, lane: usize, result: u64) -> u64 {
    if format == DOUBLE { result } else { low_word(before, lane, result as u32) }
}

#[test]
pub fn sign_modifiers_apply_to_sources() {
    for (suffix, format, kind) in FORMATS {
        for signs in ["v1", "-v1", "|v1|", "-|v1|"] {
            // A control may replace part of the text.
            let first = control::text(signs);
            let mut texts = vec![sum_text(suffix, &first)];
            if format == SINGLE {
                let first = first.replace("v1", "v0");
                texts.push(format!(
                    "v_add_f32_sdwa v8, {first}, v2 dst_sel:DWORD dst_unused:UNUSED_PAD \
                     src0_sel:DWORD src1_sel:DWORD"
                ));
                texts.push(format!(
                    "v_add_f32_dpp v8, {first}, v2 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf"
                ));
            }
            for text in texts {
                check(&text, kind, DEFAULT_MODE, u64::MAX, |before, lane| {
                    let mut a = number(before, format, 0, lane);
                    a &= if signs.contains('|') { !format.sign() } else { u64::MAX };
                    a ^= if signs.contains('-') { format.sign() } else { 0 };
                    let b = number(before, format, 2, lane);
                    over(before, format, lane, float::sum(Rule::nearest(format), a, b, [false; 2]))
                });
            }
        }
    }
}

#[test]
pub fn results_are_scaled_and_clamped() {
    // Modifiers scale if denormal results are flushed and IEEE rules are off.
    let scaling = [Mode(0x100), Mode(0x000), Mode(0b0110), Mode(0x150 | 0b1111)];
    for (suffix, format, kind) in FORMATS {
        let scales = [("", 0), (" mul:2", 1), (" mul:4", 2), (" div:2", -1)];
        for (scale, exponent) in scales {
            for clamp in ["", " clamp"] {
                let text = sum_text(suffix, "v1") + clamp + scale;
                for mode in MODES.into_iter().chain(scaling) {
                    let rule = Rule::from_mode(format, mode);
                    let [flush_sources, flush] = flushes(format, mode);
                    let ieee = mode.0 >> 9 & 1 != 0;
                    check(&text, kind, mode, u64::MAX, |before, lane| {
                        let [a, b] = [0, 2].map(|register| {
                            flushed_if(
                                flush_sources,
                                format,
                                number(before, format, register, lane),
                            )
                        });
                        let mut value = float::sum(rule, a, b, [false; 2]);
                        value = flushed_if(flush, format, value);
                        let finite = value & !format.sign() < format.infinity();
                        if exponent != 0 && flush && !ieee && finite {
                            let term = format.term(value);
                            let scaled = Term { exponent: term.exponent + exponent, ..term };
                            value = format.flush(rule.rounded(&[scaled]));
                            value = if format.is_zero(value) { 0 } else { value };
                        }
                        let one = (format.infinity() >> 1) & !((1 << format.mantissa) - 1);
                        if !clamp.is_empty() {
                            value = match () {
                                () if format.is_nan(value) && mode.0 >> 8 & 1 == 0 => value,
                                () if format.is_nan(value) || format.is_negative(value) => 0,
                                () => value.min(one),
                            };
                        }
                        over(before, format, lane, value)
                    });
                }
            }
        }
    }
}

/// Value of a non-register operand for each operand width.
#[test]
pub fn constants_match_operand_width() {
    let words: &[(&str, u32)] = &[
        ("v_mov_b32 v8, 0x3c004000", 0x3c00_4000),
        ("v_mov_b32 v8, -16", 0xffff_fff0),
        ("v_mov_b32 v8, 64", 64),
        ("v_mov_b32 v8, -4.0", 0xc080_0000),
        ("v_mov_b32 v8, 0.15915494", 0x3e22_f983),
        ("v_add_f32 v8, 0.5, v6", 0x3f00_0000),
        ("v_add_f16 v8, 0.5, v6", 0x3800),
        ("v_add_f16 v8, -2.0, v6", 0xc000),
        ("v_add_f16 v8, 0x4248, v6", 0x4248),
        ("v_add_u16 v8, -1, v6", 0xffff),
        ("v_add_u16 v8, 0x8001, v6", 0x8001),
        ("v_pk_add_u16 v8, 7, v6", 7),
        ("v_pk_add_u16 v8, 7, v6 op_sel_hi:[0,1]", 0x0007_0007),
        ("v_pk_add_f16 v8, 1.0, v6 op_sel_hi:[0,1]", 0x3c00_3c00),
        ("v_pk_add_f16 v8, 1.0, v6", 0x0000_3c00),
        ("v_madak_f32 v8, v6, v6, 0x40490fdb", 0x4049_0fdb),
        ("v_cvt_f32_f64 v8, 4.0", 0x4080_0000),
        ("v_cvt_f32_f64 v8, 3.0", 0x4040_0000),
        ("v_cvt_f32_i32 v8, -3", 0xc040_0000),
    ];
    for (text, value) in words {
        check(text, Kind::Word, DEFAULT_MODE, u64::MAX, |before, lane| {
            low_word(before, lane, *value)
        });
    }
    let pairs: &[(&str, u64)] = &[
        ("v_add_f64 v[8:9], 1.0, v[6:7]", 0x3ff0_0000_0000_0000),
        ("v_add_f64 v[8:9], 4, v[6:7]", 4),
        ("v_lshlrev_b64 v[8:9], 4, -1", 0xffff_ffff_ffff_fff0),
        ("v_lshlrev_b64 v[8:9], 0, 0.5", 0x3fe0_0000_0000_0000),
        ("v_pk_mov_b32 v[8:9], 5, 6", 5 | 6 << 32),
    ];
    for (text, value) in pairs {
        check(text, Kind::Word, DEFAULT_MODE, u64::MAX, |_, _| *value);
    }
}
