//! Floating-point formats.

use crate::wave::Mode;
use half::f16;

/// A floating-point format.
pub trait Float: Copy {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// NaN that invalid operations return.
    const DEFAULT_NAN: u64;
    /// The sign bit.
    const SIGN: u64;
    /// Number with these bits.
    fn of_bits(bits: u64) -> Self;
    /// Returns `true` for a NaN.
    fn nan(self) -> bool;
    /// Returns `true` for a denormal.
    fn denormal(self) -> bool;
    /// Returns `true` for a signalling NaN.
    fn signalling(self) -> bool;
    /// Quiets a NaN.
    fn quieted(self) -> Self;
    /// Returns `true` if the sign bit is set.
    fn negative(self) -> bool;
    /// Zero with the sign of the value.
    fn signed_zero(self) -> Self;
    /// Returns `true` if the value is greater than `other`.
    fn above(self, other: Self) -> bool;
    /// The value with the opposite sign.
    fn negated(self) -> Self;
    /// Returns `true` if the mode flushes denormal results of this format.
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

/// Returns a result, replacing a NaN by the first source NaN, quieted, or else by the default NaN.
#[inline(always)]
pub fn settle<T: Float>(value: T, first_nan: Option<u64>) -> T {
    settle_signed(value, first_nan, false)
}

/// Like [`settle`], with a negative default NaN if `negative` is set.
#[inline(always)]
pub fn settle_signed<T: Float>(value: T, first_nan: Option<u64>, negative: bool) -> T {
    let default = T::DEFAULT_NAN | if negative { T::SIGN } else { 0 };
    if value.nan() { T::of_bits(first_nan.unwrap_or(default)) } else { value }
}
