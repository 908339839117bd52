//! Interpolation of attributes whose parameters are in registers (RDNA 3 ISA, "VINTERP"): fused
//! multiply-adds that read sources from lanes of their group of four, active or not. Parameter P0
//! is in lane 0 of the group, P10 in lane 1, P20 in lane 2.

use super::row::WholeWaveOperation;
use crate::execute::lane::binary16::{from_f32, to_f32};
use crate::execute::lane::rounding::{ByMode, Rounder};
use crate::execute::lane::{Kind, LaneResult, LaneValue, settle};
use crate::execute::operand::scalar_word;
use crate::instruction::{Finish, Op};
use crate::wave::{LANES, Mode, Row, Wave, blend};
use flipwave_isa::LaneMask;
use half::f16;

/// An operation: `factor * (the lane's second source) + summand`.
struct Interpolation {
    /// Lane of the group that holds the factor.
    factor: usize,
    /// Lane of the group that holds the summand; the computing lane if `None`.
    summand: Option<usize>,
    /// `true` if the factor is half precision, and the summand if it is a parameter.
    has_halves: bool,
    /// `true` if the result is half precision.
    gives_half: bool,
    /// `true` if it rounds toward zero regardless of MODE.
    cuts: bool,
}

/// First step: two parameters in single precision.
const FIRST: Interpolation = Interpolation {
    factor: 1,
    summand: Some(0),
    has_halves: false,
    gives_half: false,
    cuts: false,
};
/// Second step: the third parameter and the result of the first step.
const SECOND: Interpolation = Interpolation { factor: 2, summand: None, ..FIRST };
const FIRST_OF_HALVES: Interpolation = Interpolation { has_halves: true, ..FIRST };
const SECOND_OF_HALVES: Interpolation =
    Interpolation { has_halves: true, gives_half: true, ..SECOND };

macro_rules! rows {
    ($($name:literal $interpolation:expr;)*) => {
        /// The operations.
        pub(super) static TABLE: &[WholeWaveOperation] = &[$(WholeWaveOperation {
            source: Some("RDNA 3 ISA, \"VINTERP\""),
            ..WholeWaveOperation::new($name, &[Kind::Word; 3], |wave, op| {
                interpolate(wave, op, &$interpolation);
            })
        }),*];
    };
}

rows! {
    "v_interp_p10_f32"         FIRST;
    "v_interp_p2_f32_inreg"    SECOND;
    "v_interp_p10_f16_f32"     FIRST_OF_HALVES;
    "v_interp_p2_f16_f32"      SECOND_OF_HALVES;
    "v_interp_p10_rtz_f16_f32" Interpolation { cuts: true, ..FIRST_OF_HALVES };
    "v_interp_p2_rtz_f16_f32"  Interpolation { cuts: true, ..SECOND_OF_HALVES };
}

/// Both rounding fields of MODE, set to toward zero.
const TOWARD_ZERO: u32 = Mode::ROUND_SINGLE | Mode::ROUND_DOUBLE;

fn interpolate(wave: &mut Wave, op: &Op, interpolation: &Interpolation) {
    let Interpolation { factor, summand, has_halves, gives_half, cuts } = *interpolation;
    let modifiers = &op.inst.modifiers;
    let op_sel = modifiers.op_sel.unwrap_or(0);
    let mode = if cuts { Mode(wave.mode.0 | TOWARD_ZERO) } else { wave.mode };
    let finish = Finish { clamp: modifiers.clamp, ..Finish::default() };
    let sources: [Source; 3] = std::array::from_fn(|index| Source {
        row: match op.sources[index].row() {
            Some(row) => *wave.row(row),
            None => Row::splat(scalar_word(wave, op.sources[index].words[0])),
        },
        is_half: has_halves && (index == 0 || index == 2 && summand.is_some()),
        is_high: op_sel >> index & 1 != 0,
        negate: op.inst.sources().nth(index).is_some_and(|operand| operand.negate),
    });
    let is_high = op_sel >> sources.len() & 1 != 0;
    let shift = if is_high { 16 } else { 0 };
    let old = *wave.row(op.destination);
    let mut result = Row::ZERO;
    for lane in 0..LANES {
        let from = |place: usize| (lane & !3) + place;
        let values = [from(factor), lane, summand.map_or(lane, from)];
        let [a, b, c] = [0, 1, 2].map(|index| sources[index].value(values[index], mode));
        let first_nan = [a, b, c].into_iter().find_map(LaneValue::quiet_nan);
        let fused: f32 = settle(ByMode(mode).fused(a, b, c), first_nan);
        result.0[lane] = if gives_half {
            let half: f16 = ByMode(mode).converted(fused, from_f32);
            let half = half.modify(true, &finish, mode);
            old.0[lane] & !(0xffff << shift) | u32::from(half.to_bits()) << shift
        } else {
            fused.modify(true, &finish, mode).to_bits()
        };
    }
    let written = wave.exec();
    blend(wave.row_mut(op.destination), &result, &Row::expand(LaneMask(written.0)));
}

/// A source in all lanes.
struct Source {
    row: Row,
    is_half: bool,
    is_high: bool,
    negate: bool,
}

impl Source {
    /// Reads the number of a lane, in single precision.
    fn value(&self, lane: usize, mode: Mode) -> f32 {
        let word = self.row.0[lane];
        let value = if self.is_half {
            let bits = if self.is_high { word >> 16 } else { word } as u16;
            let is_denormal = bits & 0x7c00 == 0;
            let flushed =
                if is_denormal && mode.flushes_f64_sources() { bits & 0x8000 } else { bits };
            to_f32(f16::from_bits(flushed))
        } else {
            let is_denormal = word & 0x7f80_0000 == 0;
            let flushes = is_denormal && mode.flushes_f32_sources();
            f32::from_bits(if flushes { word & 0x8000_0000 } else { word })
        };
        f32::from_bits(value.to_bits() ^ u32::from(self.negate) << 31)
    }
}
