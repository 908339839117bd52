//! Source values of one lane, and how they are read from rows of words.

use crate::instruction::Kind;
use crate::wave::Row;
use half::f16;

/// Rows of one source; only two-word kinds use the second row.
pub type SourceRows<'a> = [&'a Row; 2];

/// A value that one lane reads.
pub trait LaneValue: Copy {
    /// Layout in registers.
    const KIND: Kind;

    /// Reads the lane's value.
    fn load(rows: SourceRows<'_>, lane: usize) -> Self;

    /// Bits of the value, quieted, if it is a NaN.
    #[inline(always)]
    fn quiet_nan(self) -> Option<u64> {
        None
    }
}

/// Two elements of a packed operation, the low one first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair<T>(pub T, pub T);

/// A source of a mixed-precision operation, converted to single precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixed(pub f32);

/// A source of an operation that mixes bfloat16 and single precision, converted to single
/// precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixedBrain(pub f32);

/// A 16-bit result that is written to the low half of its register and keeps the high half. Most
/// 16-bit operations of gfx9 clear the high half instead; the operations new in gfx9 (and
/// `v_mac_f16` and its forms with a literal) keep it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowHalf<T>(pub T);

/// A 16-bit result that is written to the high half of its register and keeps the low half.
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

/// Two words of a lane.
#[inline(always)]
pub fn wide(rows: SourceRows<'_>, lane: usize) -> u64 {
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

impl LaneValue for MixedBrain {
    const KIND: Kind = Kind::MixedBrain;
    #[inline(always)]
    fn load(rows: SourceRows<'_>, lane: usize) -> Self {
        MixedBrain(f32::from_bits(rows[0].0[lane]))
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
    /// Kind of each source.
    const KINDS: &'static [Kind];

    /// Reads one lane's values.
    fn load(rows: &[SourceRows<'_>; 4], lane: usize) -> Self;

    /// NaN that a floating-point result propagates: the first source NaN, quieted.
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
