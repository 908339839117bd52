//! Conversions with a scale between 32 numbers in 16 or 32 registers and 32 numbers of six bits in
//! six registers, the first in the lowest bits (CDNA 4 ISA, "BF8 / FP8 and Smaller Formats and
//! Conversions"). [`scaled`](super::scaled) describes the scale. gfx1250 converts eight or sixteen
//! numbers, of eight, six or four bits (LLVM, `VOP3Instructions.td`).

use super::row::WholeWaveOperation;
use super::scaled::{divided, next_random, product, single};
use super::single::flush;
use super::small_float::{BF8, FP8, clamps};
use super::sources;
use crate::execute::lane::Kind;
use crate::execute::lane::binary16::{self, from_f64, to_f32};
use crate::execute::lane::small_float::{Rounding, SmallFloat, brain_to_single};
use crate::execute::operand::scalar_word;
use crate::instruction::Op;
use crate::wave::{LANES, Wave};
use half::f16;

/// Registers of the largest result, 32 numbers of six bits.
const WORDS: usize = 6;

/// Wide format, and its layout in the sources.
#[derive(Clone, Copy, PartialEq)]
enum Wide {
    Single,
    /// Single precision, with even numbers in the first source and odd ones in the second.
    Interleaved,
    Half,
    Brain,
}

/// Rows: name, wide format, narrow format.
macro_rules! conversions {
    ($table:ident by $convert:path, unsettled $unsettled:expr;
     $($name:literal $wide:ident $count:literal $format:expr;)*) => {
        const $table: &[WholeWaveOperation] = &[$(WholeWaveOperation {
            unsettled: $unsettled,
            source: Some(sources::SCALED),
            ..WholeWaveOperation::new(
                $name,
                &[Kind::Word; 3],
                |wave, op| $convert(wave, op, Wide::$wide, $format, $count),
            )
        }),*];
    };
}

conversions! {
    NARROWING by nearest, unsettled None;
    "v_cvt_scalef32_2xpk16_fp6_f32" Interleaved 32 SmallFloat::FP6;
    "v_cvt_scalef32_2xpk16_bf6_f32" Interleaved 32 SmallFloat::BF6;
    "v_cvt_scalef32_pk32_fp6_f16"   Half 32 SmallFloat::FP6;
    "v_cvt_scalef32_pk32_bf6_f16"   Half 32 SmallFloat::BF6;
    "v_cvt_scalef32_pk32_fp6_bf16"  Brain 32 SmallFloat::FP6;
    "v_cvt_scalef32_pk32_bf6_bf16"  Brain 32 SmallFloat::BF6;
}

conversions! {
    NARROWING_GFX1250 by nearest, unsettled Some("as the conversions of gfx950 do");
    "v_cvt_scalef32_pk8_fp8_f32" Single 8 FP8;
    "v_cvt_scalef32_pk8_fp8_f16" Half 8 FP8;
    "v_cvt_scalef32_pk8_fp8_bf16" Brain 8 FP8;
    "v_cvt_scalef32_pk8_bf8_f32" Single 8 BF8;
    "v_cvt_scalef32_pk8_bf8_f16" Half 8 BF8;
    "v_cvt_scalef32_pk8_bf8_bf16" Brain 8 BF8;
    "v_cvt_scalef32_pk8_fp4_f32" Single 8 SmallFloat::FP4;
    "v_cvt_scalef32_pk8_fp4_f16" Half 8 SmallFloat::FP4;
    "v_cvt_scalef32_pk8_fp4_bf16" Brain 8 SmallFloat::FP4;
    "v_cvt_scalef32_pk16_fp6_f32" Single 16 SmallFloat::FP6;
    "v_cvt_scalef32_pk16_fp6_f16" Half 16 SmallFloat::FP6;
    "v_cvt_scalef32_pk16_fp6_bf16" Brain 16 SmallFloat::FP6;
    "v_cvt_scalef32_pk16_bf6_f32" Single 16 SmallFloat::BF6;
    "v_cvt_scalef32_pk16_bf6_f16" Half 16 SmallFloat::BF6;
    "v_cvt_scalef32_pk16_bf6_bf16" Brain 16 SmallFloat::BF6;
}

conversions! {
    STOCHASTIC by stochastic, unsettled Some("each number has a random number of its own");
    "v_cvt_scalef32_sr_pk32_fp6_f32"  Single 32 SmallFloat::FP6;
    "v_cvt_scalef32_sr_pk32_bf6_f32"  Single 32 SmallFloat::BF6;
    "v_cvt_scalef32_sr_pk32_fp6_f16"  Half 32 SmallFloat::FP6;
    "v_cvt_scalef32_sr_pk32_bf6_f16"  Half 32 SmallFloat::BF6;
    "v_cvt_scalef32_sr_pk32_fp6_bf16" Brain 32 SmallFloat::FP6;
    "v_cvt_scalef32_sr_pk32_bf6_bf16" Brain 32 SmallFloat::BF6;
    // gfx1250.
    "v_cvt_scalef32_sr_pk8_fp8_f32" Single 8 FP8;
    "v_cvt_scalef32_sr_pk8_fp8_f16" Half 8 FP8;
    "v_cvt_scalef32_sr_pk8_fp8_bf16" Brain 8 FP8;
    "v_cvt_scalef32_sr_pk8_bf8_f32" Single 8 BF8;
    "v_cvt_scalef32_sr_pk8_bf8_f16" Half 8 BF8;
    "v_cvt_scalef32_sr_pk8_bf8_bf16" Brain 8 BF8;
    "v_cvt_scalef32_sr_pk8_fp4_f32" Single 8 SmallFloat::FP4;
    "v_cvt_scalef32_sr_pk8_fp4_f16" Half 8 SmallFloat::FP4;
    "v_cvt_scalef32_sr_pk8_fp4_bf16" Brain 8 SmallFloat::FP4;
    "v_cvt_scalef32_sr_pk16_fp6_f32" Single 16 SmallFloat::FP6;
    "v_cvt_scalef32_sr_pk16_fp6_f16" Half 16 SmallFloat::FP6;
    "v_cvt_scalef32_sr_pk16_fp6_bf16" Brain 16 SmallFloat::FP6;
    "v_cvt_scalef32_sr_pk16_bf6_f32" Single 16 SmallFloat::BF6;
    "v_cvt_scalef32_sr_pk16_bf6_f16" Half 16 SmallFloat::BF6;
    "v_cvt_scalef32_sr_pk16_bf6_bf16" Brain 16 SmallFloat::BF6;
}

conversions! {
    WIDENING by widen, unsettled None;
    "v_cvt_scalef32_pk32_f32_fp6"  Single 32 SmallFloat::FP6;
    "v_cvt_scalef32_pk32_f32_bf6"  Single 32 SmallFloat::BF6;
    "v_cvt_scalef32_pk32_f16_fp6"  Half 32 SmallFloat::FP6;
    "v_cvt_scalef32_pk32_f16_bf6"  Half 32 SmallFloat::BF6;
    "v_cvt_scalef32_pk32_bf16_fp6" Brain 32 SmallFloat::FP6;
    "v_cvt_scalef32_pk32_bf16_bf6" Brain 32 SmallFloat::BF6;
}

conversions! {
    WIDENING_GFX1250 by widen_selected, unsettled Some("scales of inactive lanes are read");
    "v_cvt_scale_pk8_f32_fp8"   Single 8 FP8;
    "v_cvt_scale_pk8_f32_bf8"   Single 8 BF8;
    "v_cvt_scale_pk8_f32_fp4"   Single 8 SmallFloat::FP4;
    "v_cvt_scale_pk8_f16_fp8"   Half 8 FP8;
    "v_cvt_scale_pk8_f16_bf8"   Half 8 BF8;
    "v_cvt_scale_pk8_f16_fp4"   Half 8 SmallFloat::FP4;
    "v_cvt_scale_pk8_bf16_fp8"  Brain 8 FP8;
    "v_cvt_scale_pk8_bf16_bf8"  Brain 8 BF8;
    "v_cvt_scale_pk8_bf16_fp4"  Brain 8 SmallFloat::FP4;
    "v_cvt_scale_pk16_f32_fp6"  Single 16 SmallFloat::FP6;
    "v_cvt_scale_pk16_f32_bf6"  Single 16 SmallFloat::BF6;
    "v_cvt_scale_pk16_f16_fp6"  Half 16 SmallFloat::FP6;
    "v_cvt_scale_pk16_f16_bf6"  Half 16 SmallFloat::BF6;
    "v_cvt_scale_pk16_bf16_fp6" Brain 16 SmallFloat::FP6;
    "v_cvt_scale_pk16_bf16_bf6" Brain 16 SmallFloat::BF6;
}

/// All conversions.
pub(super) fn operations() -> impl Iterator<Item = &'static WholeWaveOperation> {
    [NARROWING, NARROWING_GFX1250, STOCHASTIC, WIDENING, WIDENING_GFX1250].into_iter().flatten()
}

/// Reads a word of a source of several registers.
pub(super) fn word(wave: &Wave, op: &Op, source: usize, at: usize, lane: usize) -> u32 {
    match op.sources[source].row() {
        Some(first) => wave.row(first.plus(at as u16)).0[lane],
        None => scalar_word(wave, op.sources[source].words[at.min(1)]),
    }
}

/// Reads a lane's number from a source of several registers, flushing denormals as MODE says.
fn number(wave: &Wave, op: &Op, wide: Wide, at: usize, lane: usize) -> f32 {
    let half = || word(wave, op, 0, at / 2, lane) >> (16 * (at % 2));
    let bits = match wide {
        Wide::Single => word(wave, op, 0, at, lane),
        Wide::Interleaved => word(wave, op, at % 2, at / 2, lane),
        Wide::Brain => return brain_to_single(half() as u16),
        Wide::Half => {
            let half = f16::from_bits(half() as u16);
            let flushes = wave.mode.flushes_f64_sources();
            return to_f32(if flushes { binary16::flush(half) } else { half });
        }
    };
    let single = f32::from_bits(bits);
    if wave.mode.flushes_f32_sources() { flush(single) } else { single }
}

/// Narrows, rounding to nearest even. The last source is the scale.
fn nearest(wave: &mut Wave, op: &Op, wide: Wide, format: SmallFloat, count: usize) {
    let scale = if wide == Wide::Interleaved { 2 } else { 1 };
    narrow(wave, op, wide, format, count, scale, |_, _| Rounding::Nearest);
}

/// Narrows with stochastic rounding. The second source is the random bits of the first number, the
/// third is the scale.
fn stochastic(wave: &mut Wave, op: &Op, wide: Wide, format: SmallFloat, count: usize) {
    narrow(wave, op, wide, format, count, 2, |random, at| {
        Rounding::Stochastic((0..at).fold(random, |random, _| next_random(random)))
    });
}

fn narrow(
    wave: &mut Wave,
    op: &Op,
    wide: Wide,
    format: SmallFloat,
    count: usize,
    scale: usize,
    rounding: impl Fn(u32, usize) -> Rounding,
) {
    let clamps = clamps(wave.mode);
    let each = format.bits as usize;
    for lane in wave.exec().lanes() {
        let lane = usize::from(lane.0);
        let (scale, random) = (word(wave, op, scale, 0, lane), word(wave, op, 1, 0, lane));
        let mut words = [0; WORDS];
        for at in 0..count {
            let value = divided(number(wave, op, wide, at, lane), scale);
            let bits = u64::from(format.encode(value, rounding(random, at), clamps));
            let (first, shift) = (at * each / 32, at * each % 32);
            words[first] |= (bits << shift) as u32;
            if let Some(next) = words.get_mut(first + 1) {
                *next |= (bits << shift >> 32) as u32;
            }
        }
        for (at, word) in words.into_iter().enumerate().take(count * each / 32) {
            wave.row_mut(op.destination.plus(at as u16)).0[lane] = word;
        }
    }
}

/// Widens. The second source is the scale.
fn widen(wave: &mut Wave, op: &Op, wide: Wide, format: SmallFloat, count: usize) {
    let scales = std::array::from_fn(|lane| word(wave, op, 1, 0, lane));
    widen_by(wave, op, wide, format, count, &scales);
}

/// Widens with scales of several lanes: each is a byte of a register, which `scale_sel` selects.
fn widen_selected(wave: &mut Wave, op: &Op, wide: Wide, format: SmallFloat, count: usize) {
    let select = ScaleSelect::new(op.inst.modifiers.scale_select, format);
    let scales = std::array::from_fn(|lane| {
        let (holder, byte) = select.of(lane);
        (word(wave, op, 1, 0, holder) >> (8 * byte) & 0xff) << 23
    });
    widen_by(wave, op, wide, format, count, &scales);
}

/// Selection of scales, as matrix operations lay them out (MLIR, `amdgpu.scaled_ext_packed_matrix` and its
/// lowering).
struct ScaleSelect {
    /// First of the 16 lanes that hold the scales.
    first_lane: usize,
    /// Byte of the scale for each half of the wave.
    bytes: [u32; 2],
}

impl ScaleSelect {
    fn new(selection: u8, format: SmallFloat) -> ScaleSelect {
        let bit = |at: u8| selection >> at & 1;
        if format.bits == 8 {
            // Both halves hold elements of one block of 32.
            let byte = u32::from(selection >> 1 & 3);
            return ScaleSelect { first_lane: 16 * usize::from(bit(3)), bytes: [byte; 2] };
        }
        // The upper half holds elements of the next block of 32, or of the block of 16 after the next.
        let is_block_of_16 = bit(0) != 0;
        let bytes = match (is_block_of_16, bit(1)) {
            (true, _) => [0, 2],
            (false, 0) => [0, 1],
            (false, _) => [2, 3],
        };
        ScaleSelect { first_lane: 16 * usize::from(bit(2)), bytes }
    }

    /// The lane that holds a lane's scale, and the byte.
    fn of(&self, lane: usize) -> (usize, u32) {
        (self.first_lane + lane % 16, self.bytes[lane / 16 % 2])
    }
}

/// Widens. `scales` are the scales of the lanes.
fn widen_by(
    wave: &mut Wave,
    op: &Op,
    wide: Wide,
    format: SmallFloat,
    count: usize,
    scales: &[u32; LANES],
) {
    let each = format.bits as usize;
    for lane in wave.exec().lanes() {
        let lane = usize::from(lane.0);
        let scale = scales[lane];
        let mut words = [0; WORDS];
        for (at, read) in words.iter_mut().enumerate().take((count * each).div_ceil(32)) {
            *read = word(wave, op, 0, at, lane);
        }
        let bits = |at: usize| {
            let (first, shift) = (at * each / 32, at * each % 32);
            let next = words.get(first + 1).copied().unwrap_or(0);
            (u64::from(words[first]) | u64::from(next) << 32) >> shift & ((1 << each) - 1)
        };
        for at in 0..count {
            let bits = bits(at) as u32;
            let half = match wide {
                Wide::Single | Wide::Interleaved => {
                    let value = single(format, bits, scale).to_bits();
                    wave.row_mut(op.destination.plus(at as u16)).0[lane] = value;
                    continue;
                }
                Wide::Half => from_f64(product(format, bits, scale)).to_bits().into(),
                Wide::Brain => {
                    let value = product(format, bits, scale);
                    SmallFloat::BF16.encode(value, Rounding::Nearest, false)
                }
            };
            let shift = 16 * (at % 2);
            let word = &mut wave.row_mut(op.destination.plus(at as u16 / 2)).0[lane];
            *word = *word & !(0xffff << shift) | half << shift;
        }
    }
}
