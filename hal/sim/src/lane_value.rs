//! What one lane computes with, and how it is read from and written to rows of words.

use crate::op::{Finish, Op};
use crate::rounding::{ByMode, Nearest, Number, Rounder};
use crate::wave::{LANES, Mode, Row, RowIndex, Wave, blend};
use flipwave_isa::{LaneMask, OutputScale, SdwaSelect, SdwaUnused};
use half::f16;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// How a source is to be understood where a modifier changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One word of bits, an integer or a single-precision number.
    Word,
    /// Single precision, whose denormals may be flushed.
    F32,
    /// The low half word, half precision.
    F16,
    /// The low half word, integer.
    Half,
    /// Two words.
    Wide,
    /// Double precision.
    F64,
    /// Single precision, or half precision in the half word that the source selects; read as
    /// single precision (`v_fma_mix`).
    Mixed,
    /// Two halves of a word, each with its own selects and signs.
    Packed,
    /// Two words, each with its own selects and signs.
    PackedWords,
    /// One bit per lane from a scalar register pair.
    Mask,
}

impl Kind {
    /// 32-bit words of a register operand of this kind.
    pub fn words(self) -> u8 {
        match self {
            Kind::Wide | Kind::F64 | Kind::PackedWords | Kind::Mask => 2,
            _ => 1,
        }
    }
}

/// The rows of one source: the second is used by two-word kinds.
pub type SourceRows<'a> = [&'a Row; 2];

/// A value that one lane reads.
pub trait LaneValue: Copy {
    /// How it lies in registers.
    const KIND: Kind;

    /// The lane's value.
    fn load(rows: SourceRows<'_>, lane: usize) -> Self;

    /// The value's bits if it is a NaN, quieted.
    #[inline(always)]
    fn quiet_nan(self) -> Option<u64> {
        None
    }
}

/// Two elements of a packed operation, the low one first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair<T>(pub T, pub T);

/// A source of a mixed-precision operation, already single precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixed(pub f32);

/// A 16-bit result that goes to the low half of its register and leaves the high half as it is.
/// Most 16-bit operations of gfx9 clear the high half instead; the ones that came with gfx9
/// (and `v_mac_f16` and its forms with a literal) keep it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowHalf<T>(pub T);

/// A 16-bit result that goes to the high half of its register and leaves the low half as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HighHalf<T>(pub T);

macro_rules! word_value {
    ($($type:ty, $kind:ident, $word:ident => $load:expr;)*) => {$(
        impl LaneValue for $type {
            const KIND: Kind = Kind::$kind;
            #[inline(always)]
            fn load(rows: SourceRows<'_>, lane: usize) -> Self {
                let $word = rows[0].0[lane];
                $load
            }
        }
    )*};
}

word_value! {
    u32, Word, word => word;
    i32, Word, word => word as i32;
    u16, Half, word => word as u16;
    i16, Half, word => word as i16;
    Pair<u16>, Packed, word => Pair(word as u16, (word >> 16) as u16);
    Pair<i16>, Packed, word => Pair(word as i16, (word >> 16) as i16);
    Pair<f16>, Packed, word =>
        Pair(f16::from_bits(word as u16), f16::from_bits((word >> 16) as u16));
    bool, Mask, word => word != 0;
}

#[inline(always)]
fn wide(rows: SourceRows<'_>, lane: usize) -> u64 {
    u64::from(rows[0].0[lane]) | (u64::from(rows[1].0[lane]) << 32)
}

macro_rules! wide_value {
    ($($type:ty, $kind:ident, $bits:ident => $load:expr;)*) => {$(
        impl LaneValue for $type {
            const KIND: Kind = Kind::$kind;
            #[inline(always)]
            fn load(rows: SourceRows<'_>, lane: usize) -> Self {
                let $bits = wide(rows, lane);
                $load
            }
        }
    )*};
}

wide_value! {
    u64, Wide, bits => bits;
    i64, Wide, bits => bits as i64;
    Pair<f32>, PackedWords, bits =>
        Pair(f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32));
    Pair<u32>, PackedWords, bits => Pair(bits as u32, (bits >> 32) as u32);
}

impl LaneValue for f32 {
    const KIND: Kind = Kind::F32;
    #[inline(always)]
    fn load(rows: SourceRows<'_>, lane: usize) -> Self {
        f32::from_bits(rows[0].0[lane])
    }
    #[inline(always)]
    fn quiet_nan(self) -> Option<u64> {
        self.is_nan().then_some(u64::from(self.to_bits() | 1 << 22))
    }
}

impl LaneValue for Mixed {
    const KIND: Kind = Kind::Mixed;
    #[inline(always)]
    fn load(rows: SourceRows<'_>, lane: usize) -> Self {
        Mixed(f32::from_bits(rows[0].0[lane]))
    }
    #[inline(always)]
    fn quiet_nan(self) -> Option<u64> {
        self.0.quiet_nan()
    }
}

impl LaneValue for f16 {
    const KIND: Kind = Kind::F16;
    #[inline(always)]
    fn load(rows: SourceRows<'_>, lane: usize) -> Self {
        f16::from_bits(rows[0].0[lane] as u16)
    }
    #[inline(always)]
    fn quiet_nan(self) -> Option<u64> {
        self.is_nan().then_some(u64::from(self.to_bits() | 1 << 9))
    }
}

impl LaneValue for f64 {
    const KIND: Kind = Kind::F64;
    #[inline(always)]
    fn load(rows: SourceRows<'_>, lane: usize) -> Self {
        f64::from_bits(wide(rows, lane))
    }
    #[inline(always)]
    fn quiet_nan(self) -> Option<u64> {
        self.is_nan().then_some(self.to_bits() | 1 << 51)
    }
}

/// The sources of an operation.
pub trait Arguments: Copy {
    /// The kind of each.
    const KINDS: &'static [Kind];

    /// One lane's values.
    fn load(rows: &[SourceRows<'_>; 4], lane: usize) -> Self;

    /// The NaN that a floating-point result takes over: the first source that is one, quieted.
    fn first_nan(self) -> Option<u64>;
}

macro_rules! arguments {
    ($($type:ident $value:ident $index:literal),*) => {
        impl<$($type: LaneValue),*> Arguments for ($($type,)*) {
            const KINDS: &'static [Kind] = &[$($type::KIND),*];
            #[inline(always)]
            fn load(rows: &[SourceRows<'_>; 4], lane: usize) -> Self {
                ($($type::load(rows[$index], lane),)*)
            }
            #[inline(always)]
            fn first_nan(self) -> Option<u64> {
                let ($($value,)*) = self;
                None$(.or_else(|| $value.quiet_nan()))*
            }
        }
    };
}

arguments!(A a 0);
arguments!(A a 0, B b 1);
arguments!(A a 0, B b 1, C c 2);
arguments!(A a 0, B b 1, C c 2, D d 3);

/// Where a result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// So many words per lane.
    Rows(u8),
    /// A bit per lane in a scalar register pair.
    Mask,
    /// Words per lane, and a bit per lane in a scalar register pair.
    RowsAndMask(u8),
}

/// What gives a value for each lane. A trait rather than a closure, because closures cannot be
/// made to be inlined, and a loop around a call is neither vectorised nor compiled for the
/// level.
pub trait PerLane<T> {
    /// The value of one lane.
    fn of(&self, lane: usize) -> T;
}

/// A value that one lane writes.
pub trait LaneResult: Copy {
    /// Where it goes.
    const KIND: ResultKind;
    /// Whether it is a floating-point number (then NaNs are settled and outputs modified).
    const FLOAT: bool = false;
    /// The bits of MODE that decide how results of its format are rounded.
    const ROUNDED_BY: u32 = 0;
    /// All lanes of it.
    type Lanes: Copy;

    /// All lanes.
    fn collect(each: &impl PerLane<Self>) -> Self::Lanes;

    /// Whether any lane is a NaN.
    #[inline(always)]
    fn any_nan(_: &Self::Lanes) -> bool {
        false
    }

    /// The result where the operation gave a NaN: the source's, or the default one, which is
    /// negative for some operations.
    #[inline(always)]
    fn settle(self, _first_nan: Option<u64>, _negative: bool) -> Self {
        self
    }

    /// Flushes if it is to, scales and clamps as the instruction and the mode ask.
    #[inline(always)]
    fn modify(self, _flush: bool, _finish: &Finish, _mode: Mode) -> Self {
        self
    }

    /// Whether the mode flushes denormal results of this type.
    #[inline(always)]
    fn flushed(_: Mode) -> bool {
        false
    }

    /// The result whose bits are in these lanes.
    fn lane(lanes: &Self::Lanes, lane: usize) -> Self;

    /// Writes the lanes of `mask`.
    fn commit(wave: &mut Wave, op: &Op, lanes: &Self::Lanes, mask: LaneMask);
}

/// Writes the lanes of `mask` of a row, whole words.
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

/// Writes the lanes of `mask`, and of those the part of the word that the instruction selects.
#[cold]
fn write_selected(wave: &mut Wave, op: &Op, index: RowIndex, value: &Row, mask: LaneMask) {
    let mut value = *value;
    if let Some(adapt) = &op.adapt {
        let Finish { select, unused, .. } = adapt.finish;
        let (shift, bits) = match select {
            SdwaSelect::Dword => (0, u32::MAX),
            SdwaSelect::Byte0 => (0, 0xff),
            SdwaSelect::Byte1 => (8, 0xff),
            SdwaSelect::Byte2 => (16, 0xff),
            SdwaSelect::Byte3 => (24, 0xff),
            SdwaSelect::Word0 => (0, 0xffff),
            SdwaSelect::Word1 => (16, 0xffff),
        };
        if bits != u32::MAX {
            let old = *wave.row(index);
            for (new, old) in value.0.iter_mut().zip(old.0) {
                let placed = (*new & bits) << shift;
                let field = bits << shift;
                let rest = match unused {
                    SdwaUnused::Pad => 0,
                    SdwaUnused::Preserve => old & !field,
                    SdwaUnused::SignExtend => {
                        let top = bits.count_ones() - 1;
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

/// All lanes, each as a word. The row is not zeroed first: that would cost a quarter of the time
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

/// The lanes whose word has its highest bit set.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn mask_of(set: &Row) -> u64 {
    use std::arch::x86_64::{_mm_load_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32};
    let mut mask = 0;
    for (sixteen, words) in set.0.chunks_exact(16).enumerate() {
        // Signed saturation keeps the highest bits.
        // SAFETY: SSE2 is part of x86-64, and a row's sixteen words are 64 aligned bytes.
        let bits = unsafe {
            let four = |index: usize| _mm_load_si128(words.as_ptr().add(4 * index).cast());
            let low = _mm_packs_epi32(four(0), four(1));
            let high = _mm_packs_epi32(four(2), four(3));
            _mm_movemask_epi8(_mm_packs_epi16(low, high))
        };
        mask |= u64::from(bits as u16) << (16 * sixteen);
    }
    mask
}

/// The lanes whose word has its highest bit set.
#[cfg(not(target_arch = "x86_64"))]
pub fn mask_of(set: &Row) -> u64 {
    (0..LANES).fold(0, |mask, lane| mask | u64::from(set.0[lane] >> 31) << lane)
}

#[inline(always)]
fn all_ones_if(condition: bool) -> u32 {
    0u32.wrapping_sub(u32::from(condition))
}

/// Floating-point formats.
pub trait Float: Copy {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The NaN that invalid operations give.
    const DEFAULT_NAN: u64;
    /// The sign bit.
    const SIGN: u64;
    /// The value of these bits.
    fn of_bits(bits: u64) -> Self;
    /// Whether it is a NaN.
    fn nan(self) -> bool;
    /// Whether it is denormal.
    fn denormal(self) -> bool;
    /// Whether it is a signalling NaN.
    fn signalling(self) -> bool;
    /// A NaN made quiet.
    fn quieted(self) -> Self;
    /// Whether its sign is set.
    fn negative(self) -> bool;
    /// Zero with the sign of the value.
    fn signed_zero(self) -> Self;
    /// Whether it is greater than `other`.
    fn above(self, other: Self) -> bool;
    /// The value with the other sign.
    fn negated(self) -> Self;
    /// Whether the mode flushes denormal results of this format.
    fn result_flushed(mode: Mode) -> bool;
}

macro_rules! float {
    ($type:ty, $bits:ty, $one:expr, $default_nan:expr, $quiet:expr, $flushed:ident,
     $denormal:expr) => {
        impl Float for $type {
            const ZERO: Self = <$type>::from_bits(0);
            const ONE: Self = $one;
            const DEFAULT_NAN: u64 = $default_nan;
            const SIGN: u64 = 1 << (<$bits>::BITS - 1);
            #[inline(always)]
            fn of_bits(bits: u64) -> Self {
                <$type>::from_bits(bits as $bits)
            }
            #[inline(always)]
            fn nan(self) -> bool {
                self.is_nan()
            }
            #[inline(always)]
            fn denormal(self) -> bool {
                $denormal(self)
            }
            #[inline(always)]
            fn signalling(self) -> bool {
                self.is_nan() && self.to_bits() & $quiet == 0
            }
            #[inline(always)]
            fn quieted(self) -> Self {
                <$type>::from_bits(self.to_bits() | $quiet)
            }
            #[inline(always)]
            fn negative(self) -> bool {
                self.to_bits() >> (<$bits>::BITS - 1) != 0
            }
            #[inline(always)]
            fn signed_zero(self) -> Self {
                <$type>::from_bits(self.to_bits() & 1 << (<$bits>::BITS - 1))
            }
            #[inline(always)]
            fn above(self, other: Self) -> bool {
                self > other
            }
            #[inline(always)]
            fn negated(self) -> Self {
                -self
            }
            #[inline(always)]
            fn result_flushed(mode: Mode) -> bool {
                mode.$flushed()
            }
        }
    };
}

float!(f32, u32, 1.0, 0x7fc0_0000, 1 << 22, flushes_f32_results, f32::is_subnormal);
float!(f64, u64, 1.0, 0x7ff8_0000_0000_0000, 1 << 51, flushes_f64_results, f64::is_subnormal);
float!(f16, u16, f16::ONE, 0x7e00, 1 << 9, flushes_f64_results, |value: f16| value.to_bits()
    & 0x7c00
    == 0
    && value.to_bits() & 0x3ff != 0);

impl Finish {
    /// Whether it scales or clamps.
    #[inline(always)]
    pub fn changes_value(&self) -> bool {
        self.clamp || self.scale != OutputScale::None
    }
}

/// A result, with a NaN replaced by the first source's, quieted, or the default one.
#[inline(always)]
pub fn settle<T: Float>(value: T, first_nan: Option<u64>) -> T {
    settle_signed(value, first_nan, false)
}

/// The same, the default one being negative if asked for.
#[inline(always)]
fn settle_signed<T: Float>(value: T, first_nan: Option<u64>, negative: bool) -> T {
    let default = T::DEFAULT_NAN | if negative { T::SIGN } else { 0 };
    if value.nan() { T::of_bits(first_nan.unwrap_or(default)) } else { value }
}

/// The power of two that an output modifier stands for, where it is not ignored: it is where
/// denormal results are kept and under IEEE rules (ISA manual, "VALU instructions": "Output
/// modifiers").
fn scale<T: Float>(finish: &Finish, mode: Mode) -> Option<i32> {
    let exponent = match finish.scale {
        OutputScale::None => return None,
        OutputScale::Times2 => 1,
        OutputScale::Times4 => 2,
        OutputScale::Half => -1,
    };
    (T::result_flushed(mode) && !mode.ieee()).then_some(exponent)
}

/// Flushes a result if it is to, scales and clamps it. Scaling makes minus zero plus zero.
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

/// The floating-point side of [`LaneResult`].
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

/// The same for pairs, whose operations settle NaNs themselves, each half by its own sources.
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

/// The same for half-precision results in one half of a register.
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

/// Whether any word, its sign aside, is above `infinity`.
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

/// A comparison: lanes outside `mask` give 0 (ISA manual, "VOPC").
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
