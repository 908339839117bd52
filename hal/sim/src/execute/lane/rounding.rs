//! Rounding according to MODE.
//!
//! Operations that round compute through a [`Rounder`]. [`Nearest`] is the mode that compilers set
//! and costs nothing: its methods are the host's operators. [`ByMode`] rounds in any direction and
//! clamps half-precision overflow; it computes in quadruple precision rounded to odd, after which
//! rounding to a format with at least two bits less is correct in every direction (Boldo,
//! Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).

use super::binary16;
use super::float::Float;
use crate::wave::Mode;
use half::f16;
use rustc_apfloat::ieee::{Double, Half, Quad, Single};
use rustc_apfloat::{Float as _, FloatConvert, Round, Status, StatusAnd};

/// Rounding arithmetic of operations.
pub trait Rounder: Copy {
    /// `a + b`.
    fn sum<T: Number>(self, a: T, b: T) -> T;

    /// `a * b`.
    fn product<T: Number>(self, a: T, b: T) -> T;

    /// `a * b + c`, rounded once.
    fn fused<T: Number>(self, a: T, b: T, c: T) -> T;

    /// `a` times a power of two.
    fn scaled<T: Number>(self, a: T, exponent: i32) -> T;

    /// `(a * b + c)` times a power of two, rounded once; `nearest` computes it rounded to nearest
    /// even.
    fn fused_and_scaled<T: Number>(
        self,
        a: T,
        b: T,
        c: T,
        exponent: i32,
        nearest: impl FnOnce() -> T,
    ) -> T;

    /// Converts to another format; `nearest` rounds to nearest even, and converts NaNs.
    fn converted<T: Exact, U: Number>(self, value: T, nearest: impl FnOnce(T) -> U) -> U;

    /// Rounds to an integral number.
    fn integral(self, value: f32) -> f32;

    /// Converts to half precision, rounded to nearest even in any mode.
    fn nearest_half(self, value: f64) -> f16;
}

/// A number that quadruple precision represents exactly.
pub trait Exact: Copy {
    /// The number in quadruple precision.
    fn exact(self) -> Quad;
}

/// A result format of operations.
pub trait Number: Float + Exact {
    /// Bits of MODE that decide the rounding of results of this format.
    const ROUNDED_BY: u32;
    /// The greatest finite number.
    const GREATEST: Self;
    /// The smallest positive number.
    const LEAST: Self;
    /// `self + other`, rounded to nearest even.
    fn plus(self, other: Self) -> Self;
    /// `self * other`, rounded to nearest even.
    fn times(self, other: Self) -> Self;
    /// `self * factor + summand`, rounded once to nearest even.
    fn times_plus(self, factor: Self, summand: Self) -> Self;
    /// `self` times a power of two, rounded to nearest even.
    fn times_power(self, exponent: i32) -> Self;
    /// The greatest integral number that is not greater than `self`.
    fn rounded_down(self) -> Self;
    /// Rounds a number of quadruple precision to this format.
    fn of_quad(value: Quad, round: Round) -> StatusAnd<Self>;
}

/// Rounds to nearest even; overflow gives infinity.
#[derive(Clone, Copy, Debug)]
pub struct Nearest;

impl Rounder for Nearest {
    #[inline(always)]
    fn sum<T: Number>(self, a: T, b: T) -> T {
        a.plus(b)
    }
    #[inline(always)]
    fn product<T: Number>(self, a: T, b: T) -> T {
        a.times(b)
    }
    #[inline(always)]
    fn fused<T: Number>(self, a: T, b: T, c: T) -> T {
        a.times_plus(b, c)
    }
    #[inline(always)]
    fn scaled<T: Number>(self, a: T, exponent: i32) -> T {
        a.times_power(exponent)
    }
    #[inline(always)]
    fn fused_and_scaled<T: Number>(
        self,
        _: T,
        _: T,
        _: T,
        _: i32,
        nearest: impl FnOnce() -> T,
    ) -> T {
        nearest()
    }
    #[inline(always)]
    fn converted<T: Exact, U: Number>(self, value: T, nearest: impl FnOnce(T) -> U) -> U {
        nearest(value)
    }
    #[inline(always)]
    fn integral(self, value: f32) -> f32 {
        value.round_ties_even()
    }
    #[inline(always)]
    fn nearest_half(self, value: f64) -> f16 {
        binary16::from_f64(value)
    }
}

/// Rounds according to MODE.
#[derive(Clone, Copy, Debug)]
pub struct ByMode(pub Mode);

impl ByMode {
    /// Rounds the result of `compute`, times a power of two, once. `compute` uses the direction
    /// only for the sign of a zero result.
    fn round<T: Number>(self, exponent: i32, compute: impl Fn(Round) -> StatusAnd<Quad>) -> T {
        let direction = direction(self.0, T::ROUNDED_BY);
        let toward_zero = compute(Round::TowardZero);
        let odd = if toward_zero.value.is_zero() {
            compute(direction).value
        } else if toward_zero.status.contains(Status::INEXACT) {
            Quad::from_bits(toward_zero.value.to_bits() | 1)
        } else {
            toward_zero.value
        };
        let rounded = T::of_quad(odd.scalbn(exponent), direction);
        if rounded.status.contains(Status::OVERFLOW) {
            self.overflowed(rounded.value)
        } else {
            rounded.value
        }
    }

    /// Replaces an overflowed result in half precision by the greatest number, if MODE clamps it.
    fn overflowed<T: Number>(self, value: T) -> T {
        if T::ROUNDED_BY & self.0.0 & Mode::FP16_OVERFLOW == 0 {
            value
        } else if value.negative() {
            T::GREATEST.negated()
        } else {
            T::GREATEST
        }
    }
}

/// Rounding direction in the field of MODE that `bits` selects.
fn direction(mode: Mode, bits: u32) -> Round {
    let field = if bits & Mode::ROUND_SINGLE != 0 { mode.0 } else { mode.0 >> 2 };
    match field & 3 {
        0 => Round::NearestTiesToEven,
        1 => Round::TowardPositive,
        2 => Round::TowardNegative,
        _ => Round::TowardZero,
    }
}

fn exactly(value: Quad) -> StatusAnd<Quad> {
    Status::OK.and(value)
}

impl Rounder for ByMode {
    fn sum<T: Number>(self, a: T, b: T) -> T {
        self.round(0, |round| a.exact().add_r(b.exact(), round))
    }
    fn product<T: Number>(self, a: T, b: T) -> T {
        self.round(0, |round| a.exact().mul_r(b.exact(), round))
    }
    fn fused<T: Number>(self, a: T, b: T, c: T) -> T {
        self.round(0, |round| a.exact().mul_add_r(b.exact(), c.exact(), round))
    }
    fn scaled<T: Number>(self, a: T, exponent: i32) -> T {
        // Beyond these bounds every number of every format is zero or infinite.
        self.round(exponent.clamp(-4000, 4000), |_| exactly(a.exact()))
    }
    fn fused_and_scaled<T: Number>(
        self,
        a: T,
        b: T,
        c: T,
        exponent: i32,
        _: impl FnOnce() -> T,
    ) -> T {
        self.round(exponent, |round| a.exact().mul_add_r(b.exact(), c.exact(), round))
    }
    fn converted<T: Exact, U: Number>(self, value: T, nearest: impl FnOnce(T) -> U) -> U {
        let exact = value.exact();
        if exact.is_nan() { nearest(value) } else { self.round(0, |_| exactly(exact)) }
    }
    fn integral(self, value: f32) -> f32 {
        let rounded = value.exact().round_to_integral(direction(self.0, f32::ROUNDED_BY));
        f32::of_quad(rounded.value, Round::TowardZero).value
    }
    fn nearest_half(self, value: f64) -> f16 {
        let nearest = binary16::from_f64(value);
        if nearest.is_infinite() && value.is_finite() { self.overflowed(nearest) } else { nearest }
    }
}

macro_rules! exact_integer {
    ($($type:ty)*) => {$(
        impl Exact for $type {
            fn exact(self) -> Quad {
                Quad::from_i128(self.into()).value
            }
        }
    )*};
}

exact_integer!(i16 u16 i32 u32);

macro_rules! number {
    (
        $type:ty, $format:ty, $bits:ty, rounded by $by:expr,
        greatest $greatest:literal,
        plus $plus:expr, times $times:expr, times_plus $times_plus:expr,
        times_power $times_power:expr, rounded_down $rounded_down:expr
    ) => {
        impl Exact for $type {
            fn exact(self) -> Quad {
                <$format>::from_bits(self.to_bits().into()).convert(&mut false).value
            }
        }

        impl Number for $type {
            const ROUNDED_BY: u32 = $by;
            const GREATEST: Self = <$type>::from_bits($greatest);
            const LEAST: Self = <$type>::from_bits(1);
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                $times(self, other)
            }
            #[inline(always)]
            fn times_plus(self, factor: Self, summand: Self) -> Self {
                $times_plus(self, factor, summand)
            }
            #[inline(always)]
            fn times_power(self, exponent: i32) -> Self {
                $times_power(self, exponent)
            }
            #[inline(always)]
            fn rounded_down(self) -> Self {
                $rounded_down(self)
            }
            fn of_quad(value: Quad, round: Round) -> StatusAnd<Self> {
                let rounded: StatusAnd<$format> = value.convert_r(round, &mut false);
                rounded.map(|value| <$type>::from_bits(value.to_bits() as $bits))
            }
        }
    };
}

/// A double-precision number times a power of two, rounded once. Beyond some bounds every number is
/// zero or infinite. A step before the last one may round a number to a denormal, but such a number
/// is so small that the last step returns zero.
#[inline(always)]
fn double_times_power(a: f64, exponent: i32) -> f64 {
    let power = |exponent: i32| f64::from_bits(((1023 + exponent) as u64) << 52);
    let step = |exponent: i32| if exponent < -1022 { -969 } else { exponent.min(1023) };
    let exponent = exponent.clamp(-2200, 2200);
    let first = step(exponent);
    let second = step(exponent - first);
    a * power(first) * power(second) * power(exponent - first - second)
}

number!(
    f32, Single, u32, rounded by Mode::ROUND_SINGLE,
    greatest 0x7f7f_ffff,
    plus |a: f32, b: f32| a + b, times |a: f32, b: f32| a * b, times_plus f32::mul_add,
    times_power |a: f32, exponent: i32| {
        // Beyond these bounds every number is zero or infinite.
        let exponent = exponent.clamp(-300, 300);
        (f64::from(a) * f64::from_bits(((1023 + exponent) as u64) << 52)) as f32
    },
    rounded_down f32::floor
);
number!(
    f64, Double, u64, rounded by Mode::ROUND_DOUBLE,
    greatest 0x7fef_ffff_ffff_ffff,
    plus |a: f64, b: f64| a + b, times |a: f64, b: f64| a * b, times_plus f64::mul_add,
    times_power double_times_power, rounded_down f64::floor
);
number!(
    f16, Half, u16, rounded by Mode::ROUND_DOUBLE | Mode::FP16_OVERFLOW,
    greatest 0x7bff,
    plus binary16::add, times binary16::multiply, times_plus binary16::multiply_add,
    times_power |a: f16, exponent: i32| {
        // Beyond these bounds every number is zero or infinite.
        let exponent = exponent.clamp(-60, 60);
        let power = f32::from_bits(((127 + exponent) as u32) << 23);
        binary16::from_f32(binary16::to_f32(a) * power)
    },
    rounded_down |a: f16| binary16::from_f32(binary16::to_f32(a).floor())
);
