//! The arithmetic of matrix operations, by the type of the elements and by generation.
//!
//! The order and the roundings of the summation are not documented. They are taken from published
//! measurements of the hardware (Xie et al., "MMA-Sim: bit-accurate reference model of tensor cores
//! and matrix cores", 2025, and its code, <https://github.com/microsoft/MMA-Sim>, which also covers
//! CDNA 1):
//!
//! | elements | gfx908 (CDNA 1) | gfx90a (CDNA 2) | gfx940, gfx942 (CDNA 3) |
//! |---|---|---|---|
//! | single and double precision | a chain of fused multiply-adds in the order of k, beginning with C; denormals kept | the same | the same |
//! | half precision, bfloat16 | groups of four (two for the `bf16` operations without `_1k`): products pairwise, then the group's sum onto the sum so far, every sum rounded to single precision; denormals kept | the same, denormals flushed: sources read as plus zero, sums become zero | groups of eight, the sum so far with them, as fixed-point numbers aligned to the greatest exponent; denormals kept |
//! | `xf32` | | | the same in groups of four, the last 13 bits of the mantissa cut off |
//! | 8-bit floating point | | | the same in groups of 16, of which even and odd products are aligned apart |
//!
//! Nothing is published on gfx950 (CDNA 4) or on sparse operations. They round here as dense ones
//! of gfx942 do, with the products of the stored elements only, and the instruction tables say so.
//! With scales, the exponents of two scales are added to those of 32 products (CDNA 4 ISA, "Rules
//! for the F8F6F4 MFMA instructions").
//!
//! AMD also states that MI200, unlike other chips, flushes denormals of half precision and bfloat16
//! (MIOpen, "MI200 matrix fused multiply-add (MFMA) behavior specifics"). MODE has no effect.
//!
//! The publications do not settle which NaN results (here the first source NaN), or whether the
//! rounding mode in MODE applies to single and double precision (the measurements used rounding to
//! nearest even).

#[cfg(target_arch = "x86_64")]
use super::avx512::{self, Sum};
use super::fused::{self, Factor, Rule, sum};
use super::registers::{Elements, Lanes, MOST_GROUP};
use super::sizes::{Bounds, Digits, Sizes};
use crate::execute::lane::binary16::to_f32;
use crate::execute::lane::small_float::{SmallFloat, brain_to_single};
use crate::execute::lane::{Kind, LaneValue, settle};
use crate::execute::matrix_sum::{Steps, chain, integers};
use crate::execute::operations::single;
use crate::wave::LANES;
use flipwave_arch::SumType;
use half::f16;
use std::marker::PhantomData;

/// The arithmetic of an element type.
pub(super) trait Element {
    /// An element of A or B.
    type Value: Copy + Default;
    /// An element of C or D.
    type Sum: Copy;
    /// Register kind of a lane's elements of A or B.
    const SOURCE: Kind;
    /// Register kind of a lane's elements of C.
    const SUM: Kind;
    /// Bits of an element of A or B.
    const BITS: usize;
    /// Words of an element of C or D.
    const SUM_WORDS: usize;
    /// Consecutive rows of C and D that a lane holds.
    const ROWS: usize;
    /// Number of products summed at a time.
    const GROUP: usize;
    /// Format and summation of the vectorised implementation, if there is one.
    #[cfg(target_arch = "x86_64")]
    const VECTORS: Option<(avx512::Elements, Sum)> = None;

    /// Decodes an element of A or B.
    fn value(bits: u64) -> Self::Value;
    /// Decodes an element of C.
    fn initial(bits: u64) -> Self::Sum;
    /// Returns `true` if sums of the products of these elements can be computed in fewer steps, see
    /// [`Element::add_all`].
    #[inline(always)]
    fn are_moderate(_: &Elements<Self::Value>, _: &Elements<Self::Value>) -> bool {
        false
    }
    /// Adds a group of products to a sum.
    fn add(a: &[Self::Value], b: &[Self::Value], sum: Self::Sum) -> Self::Sum;
    /// Adds a group of products in all lanes; `a` and `b` are the factors of consecutive products.
    /// The flag says whether all factors are moderate.
    #[inline(always)]
    fn add_all(
        a: &[Lanes<Self::Value>],
        b: &[Lanes<Self::Value>],
        _are_moderate: bool,
        sums: &mut Lanes<Self::Sum>,
    ) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let of_lane = |factors: &[Lanes<Self::Value>]| -> [Self::Value; MOST_GROUP] {
                std::array::from_fn(|at| factors.get(at).map_or(Default::default(), |f| f[lane]))
            };
            *sum = Self::add(&of_lane(a)[..a.len()], &of_lane(b)[..b.len()], *sum);
        }
    }
    /// Sums one element from the factors of its products, step by step.
    fn sum_by_steps(
        factors: &[[Self::Value; 2]],
        initial: Self::Sum,
        steps: &mut Steps<'_>,
    ) -> Self::Sum;
    /// Data type of sums, as steps use it.
    const SUM_TYPE: SumType = SumType::F32;
    /// Number of products between partial sums.
    const STEP: usize = Self::GROUP;
    /// Encodes an element of D.
    fn bits(sum: Self::Sum) -> u64;
}

/// Single precision.
pub(super) struct Single;

impl Element for Single {
    type Value = f32;
    type Sum = f32;
    const SOURCE: Kind = Kind::F32;
    const SUM: Kind = Kind::F32;
    const BITS: usize = 32;
    const SUM_WORDS: usize = 1;
    const ROWS: usize = 4;
    const GROUP: usize = 1;
    #[cfg(target_arch = "x86_64")]
    const VECTORS: Option<(avx512::Elements, Sum)> = Some((avx512::Elements::Single, Sum::Chain));

    #[inline(always)]
    fn value(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn initial(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn add(a: &[f32], b: &[f32], sum: f32) -> f32 {
        settled(a[0].mul_add(b[0], sum), [a[0], b[0], sum])
    }
    #[inline(always)]
    fn add_all(a: &[Lanes<f32>], b: &[Lanes<f32>], _: bool, sums: &mut Lanes<f32>) {
        for (a, b) in a.iter().zip(b) {
            let before = *sums;
            let mut is_nan = false;
            for lane in 0..LANES {
                sums[lane] = a[lane].mul_add(b[lane], before[lane]);
                is_nan |= sums[lane].is_nan();
            }
            if is_nan {
                *sums = std::array::from_fn(|lane| Self::add(&[a[lane]], &[b[lane]], before[lane]));
            }
        }
    }
    fn sum_by_steps(factors: &[[f32; 2]], initial: f32, steps: &mut Steps<'_>) -> f32 {
        chain(factors.iter().copied(), initial, steps)
    }
    #[inline(always)]
    fn bits(sum: f32) -> u64 {
        sum.to_bits().into()
    }
}

/// Double precision.
pub(super) struct Double;

impl Element for Double {
    type Value = f64;
    type Sum = f64;
    const SOURCE: Kind = Kind::F64;
    const SUM: Kind = Kind::F64;
    const BITS: usize = 64;
    const SUM_WORDS: usize = 2;
    const SUM_TYPE: SumType = SumType::F64;
    const ROWS: usize = 1;
    const GROUP: usize = 1;

    #[inline(always)]
    fn value(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn initial(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn add(a: &[f64], b: &[f64], sum: f64) -> f64 {
        let first_nan = [a[0], b[0], sum].into_iter().find_map(LaneValue::quiet_nan);
        settle(a[0].mul_add(b[0], sum), first_nan)
    }
    fn sum_by_steps(factors: &[[f64; 2]], initial: f64, steps: &mut Steps<'_>) -> f64 {
        chain(factors.iter().copied(), initial, steps)
    }
    #[inline(always)]
    fn bits(sum: f64) -> u64 {
        sum.to_bits()
    }
}

/// 8-bit integers.
pub(super) struct Byte;

impl Element for Byte {
    type Value = i32;
    type Sum = i32;
    const SOURCE: Kind = Kind::Word;
    const SUM: Kind = Kind::Word;
    const BITS: usize = 8;
    const SUM_WORDS: usize = 1;
    const ROWS: usize = 4;
    const GROUP: usize = 4;
    const SUM_TYPE: SumType = SumType::I32;
    const STEP: usize = 1;
    #[cfg(target_arch = "x86_64")]
    const VECTORS: Option<(avx512::Elements, Sum)> =
        Some((avx512::Elements::Signed(8), Sum::Integers));

    #[inline(always)]
    fn value(bits: u64) -> i32 {
        (bits as i8).into()
    }
    #[inline(always)]
    fn initial(bits: u64) -> i32 {
        bits as i32
    }
    #[inline(always)]
    fn add(a: &[i32], b: &[i32], sum: i32) -> i32 {
        a.iter().zip(b).fold(sum, |sum, (a, b)| sum.wrapping_add(a * b))
    }
    fn sum_by_steps(factors: &[[i32; 2]], initial: i32, steps: &mut Steps<'_>) -> i32 {
        integers(factors.iter().map(|[a, b]| a * b), initial, false, steps)
    }
    #[inline(always)]
    fn bits(sum: i32) -> u64 {
        (sum as u32).into()
    }
}

/// A 16-bit format whose products are exact in single precision.
pub(super) trait Short {
    /// The format.
    const FORMAT: SmallFloat;

    /// Decodes an element.
    fn value(bits: u16) -> f32;

    /// Exponent field of an element.
    #[inline(always)]
    fn field(bits: u16) -> u16 {
        (bits & 0x7fff) >> Self::FORMAT.mantissa
    }
}

/// Half precision.
pub(super) struct Half;

impl Short for Half {
    const FORMAT: SmallFloat = SmallFloat::F16;
    #[inline(always)]
    fn value(bits: u16) -> f32 {
        to_f32(f16::from_bits(bits))
    }
}

/// Bfloat16: the high half of single precision.
pub(super) struct Brain;

impl Short for Brain {
    const FORMAT: SmallFloat = SmallFloat::BF16;
    #[inline(always)]
    fn value(bits: u16) -> f32 {
        brain_to_single(bits)
    }
}

/// Products summed pairwise in groups, every sum rounded to single precision; with `FLUSHED`,
/// denormal sources read as plus zero, and denormal sums become zero.
pub(super) struct Pairwise<T, const GROUP: usize, const FLUSHED: bool>(PhantomData<T>);

impl<T: Short, const GROUP: usize, const FLUSHED: bool> Element for Pairwise<T, GROUP, FLUSHED> {
    type Value = f32;
    type Sum = f32;
    const SOURCE: Kind = if GROUP == 2 { Kind::Word } else { Kind::Wide };
    const SUM: Kind = Kind::F32;
    const BITS: usize = 16;
    const SUM_WORDS: usize = 1;
    const ROWS: usize = 4;
    const GROUP: usize = GROUP;
    #[cfg(target_arch = "x86_64")]
    const VECTORS: Option<(avx512::Elements, Sum)> =
        Some((avx512::Elements::Small(T::FORMAT), Sum::Pairwise(GROUP, FLUSHED)));

    #[inline(always)]
    fn value(bits: u64) -> f32 {
        if FLUSHED && T::field(bits as u16) == 0 { 0.0 } else { T::value(bits as u16) }
    }
    #[inline(always)]
    fn initial(bits: u64) -> f32 {
        let value = f32::from_bits(bits as u32);
        if FLUSHED { single::flush(value) + 0.0 } else { value }
    }
    #[inline(always)]
    fn add(a: &[f32], b: &[f32], sum: f32) -> f32 {
        added::<FLUSHED>(sum, pairwise::<GROUP, FLUSHED>(a, b))
    }
    #[inline(always)]
    fn are_moderate(a: &Elements<f32>, b: &Elements<f32>) -> bool {
        let sizes = [a, b].map(|side| Sizes::of(side.as_flattened()));
        Bounds::of([Digits::of(T::FORMAT); 2], sizes).are_moderate()
    }
    #[inline(always)]
    fn add_all(a: &[Lanes<f32>], b: &[Lanes<f32>], are_moderate: bool, sums: &mut Lanes<f32>) {
        let before = *sums;
        let product = |lane: usize, at: usize| a[at][lane] * b[at][lane];
        if are_moderate {
            // Products are exact, and no sum is a denormal. Adding zero removes the sign of a zero.
            for lane in 0..LANES {
                let group = in_pairs::<GROUP>(|at| product(lane, at), |a, b| a + b);
                sums[lane] = before[lane] + (group + 0.0);
            }
        } else {
            for lane in 0..LANES {
                let add = |a: f32, b: f32| flushed::<FLUSHED>(a + b);
                let group = in_pairs::<GROUP>(|at| add(product(lane, at), 0.0), add);
                sums[lane] = add(before[lane], group);
            }
        }
        let is_nan = sums.iter().fold(false, |is_nan, sum| is_nan | sum.is_nan());
        // The order of the sources decides which NaN results.
        if is_nan {
            let of_lane = |factors: &[Lanes<f32>], lane: usize| -> [f32; GROUP] {
                std::array::from_fn(|at| factors[at][lane])
            };
            *sums = std::array::from_fn(|lane| {
                Self::add(&of_lane(a, lane), &of_lane(b, lane), before[lane])
            });
        }
    }
    fn sum_by_steps(factors: &[[f32; 2]], initial: f32, steps: &mut Steps<'_>) -> f32 {
        let mut sum = steps.begin(initial);
        for (number, factors) in factors.chunks(GROUP).enumerate() {
            let first = number * GROUP;
            let products: [f32; GROUP] = std::array::from_fn(|at| {
                let [a, b] = factors[at];
                let product = multiplied::<FLUSHED>(a, b);
                steps.product(first + at, product).unwrap_or(product)
            });
            let group = in_pairs::<GROUP>(|at| products[at], added::<FLUSHED>);
            sum = added::<FLUSHED>(sum, group);
            sum = steps.sum(first + GROUP - 1, sum);
        }
        sum
    }
    #[inline(always)]
    fn bits(sum: f32) -> u64 {
        sum.to_bits().into()
    }
}

/// Products of a group and the sum so far, added as fixed-point numbers.
pub(super) struct Fused<T>(PhantomData<T>);

impl<T: Short> Element for Fused<T> {
    type Value = Factor;
    type Sum = f32;
    const SOURCE: Kind = Kind::Wide;
    const SUM: Kind = Kind::F32;
    const BITS: usize = 16;
    const SUM_WORDS: usize = 1;
    const ROWS: usize = 4;
    const GROUP: usize = 8;
    #[cfg(target_arch = "x86_64")]
    const VECTORS: Option<(avx512::Elements, Sum)> =
        Some((avx512::Elements::Small(T::FORMAT), Sum::Fused(Rule::Together, 8)));

    #[inline(always)]
    fn value(bits: u64) -> Factor {
        Factor::of(T::FORMAT, bits as u32 & 0xffff)
    }
    #[inline(always)]
    fn initial(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn add(a: &[Factor], b: &[Factor], before: f32) -> f32 {
        sum(Rule::Together, a.iter().copied().zip(b.iter().copied()), 0, before)
    }
    #[inline(always)]
    fn add_all(a: &[Lanes<Factor>], b: &[Lanes<Factor>], _: bool, sums: &mut Lanes<f32>) {
        for (lane, before) in sums.iter_mut().enumerate() {
            let factors = a.iter().zip(b).map(|(a, b)| (a[lane], b[lane]));
            *before = sum(Rule::Together, factors, 0, *before);
        }
    }
    fn sum_by_steps(factors: &[[Factor; 2]], initial: f32, steps: &mut Steps<'_>) -> f32 {
        let factors: Vec<(Factor, Factor)> = factors.iter().map(|[a, b]| (*a, *b)).collect();
        fused::sum_by_steps(Rule::Together, Self::GROUP, &factors, |_| 0, initial, steps)
    }
    #[inline(always)]
    fn bits(sum: f32) -> u64 {
        sum.to_bits().into()
    }
}

/// Replaces a NaN result by the first source NaN.
#[inline(always)]
fn settled(result: f32, sources: [f32; 3]) -> f32 {
    settle(result, sources.into_iter().find_map(LaneValue::quiet_nan))
}

/// Flushes denormals if `FLUSHED`.
#[inline(always)]
fn flushed<const FLUSHED: bool>(value: f32) -> f32 {
    if FLUSHED { single::flush(value) } else { value }
}

/// Adds two numbers, flushing denormals if `FLUSHED`.
#[inline(always)]
fn added<const FLUSHED: bool>(a: f32, b: f32) -> f32 {
    let sum = a + b;
    settled(flushed::<FLUSHED>(sum), [a, b, 0.0])
}

/// Multiplies two numbers, flushing denormals if `FLUSHED`. Adding zero removes the sign of a zero.
#[inline(always)]
fn multiplied<const FLUSHED: bool>(a: f32, b: f32) -> f32 {
    let product = a * b + 0.0;
    settled(flushed::<FLUSHED>(product), [a, b, 0.0])
}

/// Sum of the products of a group.
#[inline(always)]
fn pairwise<const GROUP: usize, const FLUSHED: bool>(a: &[f32], b: &[f32]) -> f32 {
    in_pairs::<GROUP>(|at| multiplied::<FLUSHED>(a[at], b[at]), added::<FLUSHED>)
}

/// Pairwise sum of two or four products.
#[inline(always)]
fn in_pairs<const GROUP: usize>(
    product: impl Fn(usize) -> f32,
    add: impl Fn(f32, f32) -> f32,
) -> f32 {
    let pair = |at: usize| add(product(at), product(at + 1));
    if GROUP == 2 { pair(0) } else { add(pair(0), pair(2)) }
}
