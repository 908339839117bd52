//! Results of one lane, and how they are written to rows of words.

use super::float::{Float, settle_signed};
use super::rounding::{ByMode, Nearest, Number, Rounder};
use super::value::{HighHalf, LowHalf, Pair, wide};
use crate::instruction::{Finish, Op, ResultKind};
use crate::wave::{LANES, Mode, Row, RowIndex, Wave, blend, mask_of};
use flipwave_isa::{LaneMask, OutputScale, SdwaSelect, SdwaUnused};
use half::f16;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Computes a value for each lane. A trait instead of a closure, because closures cannot be forced
/// to inline, and a loop around a call is neither vectorised nor compiled for the host's vector
/// level.
pub trait PerLane<T> {
    /// Computes the value of one lane.
    fn of(&self, lane: usize) -> T;
}

/// A value that one lane writes.
pub trait LaneResult: Copy {
    /// Destination of the value.
    const KIND: ResultKind;
    /// `true` if it is a floating-point number, whose NaNs are settled and to which output modifiers
    /// apply.
    const FLOAT: bool = false;
    /// Bits of MODE that decide the rounding of results of this format.
    const ROUNDED_BY: u32 = 0;
    /// Type of the values of all lanes.
    type Lanes: Copy;

    /// Computes all lanes.
    fn collect(each: &impl PerLane<Self>) -> Self::Lanes;

    /// Returns `true` if any lane is a NaN.
    #[inline(always)]
    fn any_nan(_: &Self::Lanes) -> bool {
        false
    }

    /// Returns the result where the operation returned a NaN: the source's NaN, or the default NaN,
    /// which is negative for some operations.
    #[inline(always)]
    fn settle(self, _first_nan: Option<u64>, _negative: bool) -> Self {
        self
    }

    /// Flushes the result if `_flush` is set, then applies output scale and clamp.
    #[inline(always)]
    fn modify(self, _flush: bool, _finish: &Finish, _mode: Mode) -> Self {
        self
    }

    /// Returns `true` if the mode flushes denormal results of this type.
    #[inline(always)]
    fn flushed(_: Mode) -> bool {
        false
    }

    /// Reads the result of one lane.
    fn lane(lanes: &Self::Lanes, lane: usize) -> Self;

    /// Writes the lanes of `mask` to the destination.
    fn commit(wave: &mut Wave, op: &Op, lanes: &Self::Lanes, mask: LaneMask);
}

/// Writes whole words to the lanes of `mask` of a row.
#[inline(always)]
fn write(wave: &mut Wave, op: &Op, word: u16, value: &Row, mask: LaneMask) {
    let index = op.destination.plus(word);
    let in_part = |select: SdwaSelect| select != SdwaSelect::Dword || mask != wave.exec();
    if op.adapt.as_deref().is_some_and(|adapt| in_part(adapt.finish.select)) {
        write_selected(wave, op, index, value, mask);
    } else {
        wave.write_row(index, value);
    }
}

/// Writes the part of the word that the instruction selects to the lanes of `mask`.
#[cold]
fn write_selected(wave: &mut Wave, op: &Op, index: RowIndex, value: &Row, mask: LaneMask) {
    let mut value = *value;
    if let Some(adapt) = &op.adapt {
        let Finish { select, unused, .. } = adapt.finish;
        let (shift, length) = select.field();
        let bits = u32::MAX >> (u32::BITS - length);
        if select != SdwaSelect::Dword {
            let old = *wave.row(index);
            for (new, old) in value.0.iter_mut().zip(old.0) {
                let placed = (*new & bits) << shift;
                let field = bits << shift;
                let rest = match unused {
                    SdwaUnused::Pad => 0,
                    SdwaUnused::Preserve => old & !field,
                    SdwaUnused::SignExtend => {
                        let top = length - 1;
                        let above = !(field | (1u32 << shift).wrapping_sub(1));
                        if *new >> top & 1 != 0 { above } else { 0 }
                    }
                };
                *new = placed | rest;
            }
        }
    }
    blend(wave.row_mut(index), &value, &Row::expand(mask));
}

/// Computes all lanes as words. The row is not zeroed first: that would cost a quarter of the time
/// of a simple operation.
#[inline(always)]
fn row_of<T>(each: &impl PerLane<T>, word: impl Fn(T) -> u32) -> Row {
    let mut words = [const { MaybeUninit::uninit() }; LANES];
    for (lane, slot) in words.iter_mut().enumerate() {
        slot.write(word(each.of(lane)));
    }
    // SAFETY: the loop has written all words.
    Row(words.map(|word| unsafe { word.assume_init() }))
}

#[inline(always)]
fn all_ones_if(condition: bool) -> u32 {
    0u32.wrapping_sub(u32::from(condition))
}

/// Power of two of an output modifier, unless it is ignored: it is ignored where denormal results
/// are kept and under IEEE rules (ISA manual, "VALU instructions": "Output modifiers").
fn scale<T: Float>(finish: &Finish, mode: Mode) -> Option<i32> {
    let exponent = match finish.scale {
        OutputScale::None => return None,
        OutputScale::Times2 => 1,
        OutputScale::Times4 => 2,
        OutputScale::Half => -1,
    };
    (T::result_flushed(mode) && !mode.ieee()).then_some(exponent)
}

/// Flushes a result if `flush` is set, scales and clamps it. Scaling turns minus zero into plus
/// zero.
fn modify<T: Number>(value: T, flush: bool, finish: &Finish, mode: Mode) -> T {
    let flushed = |value: T| if value.denormal() { value.signed_zero() } else { value };
    let mut value = value;
    if flush && T::result_flushed(mode) {
        value = flushed(value);
    }
    if let Some(exponent) = scale::<T>(finish, mode)
        && !value.nan()
    {
        let scaled = if mode.0 & T::ROUNDED_BY == 0 {
            Nearest.scaled(flushed(value), exponent)
        } else {
            ByMode(mode).scaled(flushed(value), exponent)
        };
        value = flushed(scaled);
        if !value.above(T::ZERO) && !T::ZERO.above(value) {
            value = T::ZERO;
        }
    }
    if !finish.clamp {
        value
    } else if value.nan() {
        if mode.dx10_clamp() { T::ZERO } else { value }
    } else if value.above(T::ONE) {
        T::ONE
    } else if value.above(T::ZERO) {
        value
    } else {
        T::ZERO
    }
}

/// Floating-point methods of [`LaneResult`].
macro_rules! float_methods {
    ($any_nan:expr) => {
        const FLOAT: bool = true;
        const ROUNDED_BY: u32 = <Self as Number>::ROUNDED_BY;
        #[inline(always)]
        fn any_nan(lanes: &Self::Lanes) -> bool {
            $any_nan(lanes)
        }
        #[inline(always)]
        fn settle(self, first_nan: Option<u64>, negative: bool) -> Self {
            settle_signed(self, first_nan, negative)
        }
        fn modify(self, flush: bool, finish: &Finish, mode: Mode) -> Self {
            modify(self, flush, finish, mode)
        }
        #[inline(always)]
        fn flushed(mode: Mode) -> bool {
            Self::result_flushed(mode)
        }
    };
}

/// Methods of pairs, whose operations settle NaNs themselves, each half from its own sources.
macro_rules! pair_methods {
    ($element:ty) => {
        const FLOAT: bool = true;
        const ROUNDED_BY: u32 = <$element as Number>::ROUNDED_BY;
        fn modify(self, flush: bool, finish: &Finish, mode: Mode) -> Self {
            Pair(modify(self.0, flush, finish, mode), modify(self.1, flush, finish, mode))
        }
        #[inline(always)]
        fn flushed(mode: Mode) -> bool {
            <$element>::result_flushed(mode)
        }
    };
}

/// Methods of half-precision results in one half of a register.
macro_rules! half_methods {
    ($place:ident) => {
        const FLOAT: bool = true;
        const ROUNDED_BY: u32 = <f16 as Number>::ROUNDED_BY;
        #[inline(always)]
        fn any_nan(lanes: &Row) -> bool {
            f16::any_nan(lanes)
        }
        #[inline(always)]
        fn settle(self, first_nan: Option<u64>, negative: bool) -> Self {
            $place(self.0.settle(first_nan, negative))
        }
        #[inline(always)]
        fn modify(self, flush: bool, finish: &Finish, mode: Mode) -> Self {
            $place(modify(self.0, flush, finish, mode))
        }
        #[inline(always)]
        fn flushed(mode: Mode) -> bool {
            f16::result_flushed(mode)
        }
    };
}

/// Returns `true` if the magnitude of any word is above `infinity`.
#[inline(always)]
fn any_above(lanes: &Row, infinity: u32, magnitude: u32) -> bool {
    let mut any = 0;
    for word in lanes.0 {
        any |= u32::from(word & magnitude > infinity);
    }
    any != 0
}

#[inline(always)]
fn any_nan_f64(lanes: &[Row; 2]) -> bool {
    let mut any = 0;
    for (low, high) in lanes[0].0.iter().zip(&lanes[1].0) {
        // A set bit in the low word counts as the lowest bit of the high one.
        let magnitude = high & 0x7fff_ffff;
        any |= u32::from((magnitude | u32::from(*low != 0)) > 0x7ff0_0000);
    }
    any != 0
}

macro_rules! word_result {
    ($type:ty, $value:ident => $store:expr, $word:ident => $load:expr, { $($more:tt)* }) => {
        impl LaneResult for $type {
            const KIND: ResultKind = ResultKind::Rows(1);
            type Lanes = Row;
            #[inline(always)]
            fn collect(each: &impl PerLane<Self>) -> Row {
                row_of(each, |$value| $store)
            }
            #[inline(always)]
            fn lane(lanes: &Row, lane: usize) -> Self {
                let $word = lanes.0[lane];
                $load
            }
            #[inline(always)]
            fn commit(wave: &mut Wave, op: &Op, lanes: &Row, mask: LaneMask) {
                write(wave, op, 0, lanes, mask);
            }
            $($more)*
        }
    };
}

word_result!(u32, value => value, word => word, {});
word_result!(i32, value => value as u32, word => word as i32, {});
word_result!(u16, value => u32::from(value), word => word as u16, {});
word_result!(i16, value => u32::from(value as u16), word => word as i16, {});
word_result!(Pair<u16>, value => u32::from(value.0) | u32::from(value.1) << 16,
    word => Pair(word as u16, (word >> 16) as u16), {});
word_result!(Pair<i16>, value => u32::from(value.0 as u16) | u32::from(value.1 as u16) << 16,
    word => Pair(word as i16, (word >> 16) as i16), {});
word_result!(f32, value => value.to_bits(), word => f32::from_bits(word),
    { float_methods!(|lanes| any_above(lanes, 0x7f80_0000, 0x7fff_ffff)); });
word_result!(f16, value => u32::from(value.to_bits()), word => f16::from_bits(word as u16),
    { float_methods!(|lanes| any_above(lanes, 0x7c00, 0x7fff)); });
word_result!(Pair<f16>,
    value => u32::from(value.0.to_bits()) | u32::from(value.1.to_bits()) << 16,
    word => Pair(f16::from_bits(word as u16), f16::from_bits((word >> 16) as u16)),
    { pair_methods!(f16); });

macro_rules! half_result {
    ($place:ident, $type:ty, $shift:literal, $keep:literal,
     $word:ident => $load:expr, $value:ident => $store:expr, { $($more:tt)* }) => {
        impl LaneResult for $place<$type> {
            const KIND: ResultKind = ResultKind::Rows(1);
            type Lanes = Row;
            #[inline(always)]
            fn collect(each: &impl PerLane<Self>) -> Row {
                row_of(each, |$place($value)| u32::from($store))
            }
            #[inline(always)]
            fn lane(lanes: &Row, lane: usize) -> Self {
                let $word = lanes.0[lane] as u16;
                $place($load)
            }
            #[inline(always)]
            fn commit(wave: &mut Wave, op: &Op, lanes: &Row, mask: LaneMask) {
                let whole = op.adapt.as_ref().is_none_or(|adapt| {
                    adapt.finish.select == SdwaSelect::Dword
                });
                if whole {
                    let old = *wave.row(op.destination);
                    let mut merged = *lanes;
                    for (new, old) in merged.0.iter_mut().zip(old.0) {
                        *new = old & $keep | (*new & 0xffff) << $shift;
                    }
                    write(wave, op, 0, &merged, mask);
                } else {
                    write(wave, op, 0, lanes, mask);
                }
            }
            $($more)*
        }
    };
}

half_result!(LowHalf, u16, 0, 0xffff_0000, word => word, value => value, {});
half_result!(LowHalf, i16, 0, 0xffff_0000, word => word as i16, value => value as u16, {});
half_result!(LowHalf, f16, 0, 0xffff_0000, word => f16::from_bits(word),
    value => value.to_bits(), { half_methods!(LowHalf); });
half_result!(HighHalf, u16, 16, 0x0000_ffff, word => word, value => value, {});
half_result!(HighHalf, f16, 16, 0x0000_ffff, word => f16::from_bits(word),
    value => value.to_bits(), { half_methods!(HighHalf); });

macro_rules! wide_result {
    ($type:ty, $value:ident => $store:expr, $bits:ident => $load:expr, { $($more:tt)* }) => {
        impl LaneResult for $type {
            const KIND: ResultKind = ResultKind::Rows(2);
            type Lanes = [Row; 2];
            #[inline(always)]
            fn collect(each: &impl PerLane<Self>) -> [Row; 2] {
                let mut rows = [Row::ZERO; 2];
                for lane in 0..LANES {
                    let $value = each.of(lane);
                    let bits: u64 = $store;
                    rows[0].0[lane] = bits as u32;
                    rows[1].0[lane] = (bits >> 32) as u32;
                }
                rows
            }
            #[inline(always)]
            fn lane(lanes: &[Row; 2], lane: usize) -> Self {
                let $bits = wide([&lanes[0], &lanes[1]], lane);
                $load
            }
            #[inline(always)]
            fn commit(wave: &mut Wave, op: &Op, lanes: &[Row; 2], mask: LaneMask) {
                write(wave, op, 0, &lanes[0], mask);
                write(wave, op, 1, &lanes[1], mask);
            }
            $($more)*
        }
    };
}

wide_result!(u64, value => value, bits => bits, {});
wide_result!(i64, value => value as u64, bits => bits as i64, {});
wide_result!(f64, value => value.to_bits(), bits => f64::from_bits(bits),
    { float_methods!(any_nan_f64); });
wide_result!(Pair<u32>, value => u64::from(value.0) | u64::from(value.1) << 32,
    bits => Pair(bits as u32, (bits >> 32) as u32), {});
wide_result!(Pair<f32>,
    value => u64::from(value.0.to_bits()) | u64::from(value.1.to_bits()) << 32,
    bits => Pair(f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32)),
    { pair_methods!(f32); });

/// A comparison: inactive lanes return 0 (ISA manual, "VOPC").
impl LaneResult for bool {
    const KIND: ResultKind = ResultKind::Mask;
    type Lanes = u64;
    #[inline(always)]
    fn collect(each: &impl PerLane<Self>) -> u64 {
        mask_of(&row_of(each, all_ones_if))
    }
    #[inline(always)]
    fn lane(lanes: &u64, lane: usize) -> Self {
        lanes >> lane & 1 != 0
    }
    #[inline(always)]
    fn commit(wave: &mut Wave, op: &Op, lanes: &u64, mask: LaneMask) {
        let result = LaneMask(lanes & mask.0);
        wave.write_mask(op.mask_destination, result);
        if op.writes_exec {
            wave.set_exec(result);
        }
    }
}

/// The first parts of pairs.
struct Value<'a, P>(&'a P);

impl<T, P: PerLane<(T, bool)>> PerLane<T> for Value<'_, P> {
    #[inline(always)]
    fn of(&self, lane: usize) -> T {
        self.0.of(lane).0
    }
}

/// The second parts of pairs.
struct Carry<'a, T, P>(&'a P, PhantomData<T>);

impl<T, P: PerLane<(T, bool)>> PerLane<bool> for Carry<'_, T, P> {
    #[inline(always)]
    fn of(&self, lane: usize) -> bool {
        self.0.of(lane).1
    }
}

/// Words and a carry.
impl<T: LaneResult> LaneResult for (T, bool) {
    const KIND: ResultKind = match T::KIND {
        ResultKind::Rows(words) => ResultKind::RowsAndMask(words),
        other => other,
    };
    const FLOAT: bool = T::FLOAT;
    const ROUNDED_BY: u32 = T::ROUNDED_BY;
    type Lanes = (T::Lanes, u64);
    #[inline(always)]
    fn modify(self, flush: bool, finish: &Finish, mode: Mode) -> Self {
        (self.0.modify(flush, finish, mode), self.1)
    }
    #[inline(always)]
    fn collect(each: &impl PerLane<Self>) -> (T::Lanes, u64) {
        (T::collect(&Value(each)), bool::collect(&Carry(each, PhantomData)))
    }
    #[inline(always)]
    fn lane(lanes: &(T::Lanes, u64), lane: usize) -> Self {
        (T::lane(&lanes.0, lane), bool::lane(&lanes.1, lane))
    }
    #[inline(always)]
    fn commit(wave: &mut Wave, op: &Op, lanes: &(T::Lanes, u64), mask: LaneMask) {
        T::commit(wave, op, &lanes.0, mask);
        wave.write_mask(op.mask_destination, LaneMask(lanes.1 & mask.0));
    }
}
