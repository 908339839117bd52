//! Sums of products as fixed-point numbers aligned to the greatest exponent: those of
//! [`super::super::fused`], in vectors.

use super::lines::Lines;
use super::sums::{Place, Sums, single};
use super::{Rule, WIDTH};
use std::arch::x86_64::*;

/// Lines, and the exponents that go with their values.
pub type Side<'a, const ROOM: usize> = (&'a Lines<ROOM>, &'a [i32; ROOM]);

#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
#[inline]
pub fn aligned<const ROOM: usize>(
    sides: [Side<'_, ROOM>; 2],
    place: Place,
    depth: usize,
    (rule, group): (Rule, usize),
    before: Sums,
) -> (Sums, __mmask16) {
    let mut sums = single(before);
    let mut bad = 0;
    for first in (0..depth).step_by(group) {
        for (row, sum) in sums.iter_mut().enumerate() {
            let place = (place.row + row, place.column);
            let group = match (rule, group) {
                (Rule::EvenAndOdd, _) => even_and_odd(sides, place, first, group),
                (Rule::Together, 8) => part::<ROOM, 8>(sides, place, first, 1),
                (Rule::Together, _) => part::<ROOM, 4>(sides, place, first, 1),
            };
            let near = if rule == Rule::EvenAndOdd { 25 } else { i32::MAX / 2 };
            bad |= doubtful(*sum);
            *sum = joined(group, *sum, near);
        }
    }
    (sums.map(|own| _mm512_castps_si512(own)), bad)
}

/// Sums of products as whole numbers of 24 places after the point, and the exponent that goes with them.
#[derive(Clone, Copy)]
struct Part {
    digits: __m512i,
    exponent: __m512i,
}

/// Products from one on, each so many after the other, cut towards zero where the greatest exponent has
/// 24 places.
#[target_feature(enable = "avx512f")]
#[inline]
fn part<const ROOM: usize, const COUNT: usize>(
    [(left, a), (right, b)]: [Side<'_, ROOM>; 2],
    (row, column): (usize, usize),
    first: usize,
    step: usize,
) -> Part {
    // Products are zeros where all exponents are less.
    let mut greatest = _mm512_set1_epi32(-90);
    let mut products = [_mm512_setzero_ps(); COUNT];
    for (at, product) in products.iter_mut().enumerate() {
        let k = first + at * step;
        *product = _mm512_mul_ps(left.splat(k, row), right.vector(k, column));
        let a = _mm512_set1_epi32(a[k * left.count + row]);
        let b = &b[k * right.count + column..][..WIDTH];
        // SAFETY: the slice has as many numbers.
        let b = unsafe { _mm512_loadu_si512(b.as_ptr().cast()) };
        greatest = _mm512_max_epi32(greatest, _mm512_add_epi32(a, b));
    }
    let scale = power(24, greatest);
    let mut digits = _mm512_setzero_si512();
    for product in products {
        digits = _mm512_add_epi32(digits, _mm512_cvttps_epi32(_mm512_mul_ps(product, scale)));
    }
    Part { digits, exponent: greatest }
}

/// Even products and odd ones, and their sum.
#[target_feature(enable = "avx512f")]
#[inline]
fn even_and_odd<const ROOM: usize>(
    sides: [Side<'_, ROOM>; 2],
    (row, column): (usize, usize),
    first: usize,
    group: usize,
) -> Part {
    let parts = [0, 1].map(|side| match group {
        16 => part::<ROOM, 8>(sides, (row, column), first + side, 2),
        _ => part::<ROOM, 4>(sides, (row, column), first + side, 2),
    });
    let exponent = _mm512_max_epi32(parts[0].exponent, parts[1].exponent);
    let down =
        |part: Part| _mm512_srav_epi32(part.digits, _mm512_sub_epi32(exponent, part.exponent));
    Part { digits: _mm512_add_epi32(down(parts[0]), down(parts[1])), exponent }
}

/// Two to the power of a number less another one.
#[target_feature(enable = "avx512f")]
#[inline]
fn power(number: i32, less: __m512i) -> __m512 {
    let field = _mm512_sub_epi32(_mm512_set1_epi32(127 + number), less);
    _mm512_castsi512_ps(_mm512_slli_epi32::<23>(field))
}

/// Two to the power of a number and another one.
#[target_feature(enable = "avx512f")]
#[inline]
fn power_plus(number: i32, more: __m512i) -> __m512 {
    let field = _mm512_add_epi32(_mm512_set1_epi32(127 + number), more);
    _mm512_castsi512_ps(_mm512_slli_epi32::<23>(field))
}

/// Which sums so far are no numbers, infinite, or so small that powers of two with which they are
/// multiplied here are none of single precision.
#[target_feature(enable = "avx512f")]
#[inline]
fn doubtful(sum: __m512) -> __mmask16 {
    const LEAST: i32 = 37 << 23;
    let magnitude = _mm512_and_si512(_mm512_castps_si512(sum), _mm512_set1_epi32(i32::MAX));
    // Zero is no such.
    let less_one = _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1));
    _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32(0xff << 23))
        | _mm512_cmplt_epu32_mask(less_one, _mm512_set1_epi32(LEAST - 1))
}

/// A group of products and the sum so far: that is cut to 24 places and left out where it is less by more
/// than so many, the products are cut to 31, both downwards.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
#[inline]
fn joined(part: Part, sum: __m512, near: i32) -> __m512 {
    const DOWN: i32 = 9;
    let field = _mm512_srli_epi32::<24>(_mm512_slli_epi32::<1>(_mm512_castps_si512(sum)));
    let field = _mm512_max_epi32(field, _mm512_set1_epi32(1));
    let exponent = _mm512_sub_epi32(field, _mm512_set1_epi32(127));
    let top = _mm512_max_epi32(part.exponent, exponent);
    let whole = _mm512_roundscale_ps::<DOWN>(_mm512_mul_ps(sum, power(24, top)));
    let third = _mm512_mul_ps(whole, power_plus(-24, top));
    let least = _mm512_sub_epi32(part.exponent, _mm512_set1_epi32(near));
    let third = _mm512_maskz_mov_ps(_mm512_cmpge_epi32_mask(exponent, least), third);
    let distance = _mm512_sub_epi32(top, part.exponent);
    let is_cut = _mm512_cmpgt_epi32_mask(distance, _mm512_set1_epi32(7)) != 0;
    let unit = power_plus(-24, part.exponent);
    let halves =
        |words: __m512i| [_mm512_castsi512_si256(words), _mm512_extracti64x4_epi64::<1>(words)];
    let halves_of = |values: __m512| {
        [_mm512_castps512_ps256(values), _mm512_extractf32x8_ps::<1>(values)]
            .map(|half| _mm512_cvtps_pd(half))
    };
    let digits = halves(part.digits).map(|half| _mm512_cvtepi32_pd(half));
    let (units, thirds) = (halves_of(unit), halves_of(third));
    let mut products = [0, 1].map(|half| _mm512_mul_pd(digits[half], units[half]));
    if is_cut {
        let (up, down) = (halves_of(power(31, top)), halves_of(power_plus(-31, top)));
        products = [0, 1].map(|half| {
            let whole = _mm512_roundscale_pd::<DOWN>(_mm512_mul_pd(products[half], up[half]));
            _mm512_mul_pd(whole, down[half])
        });
    }
    let [low, high] =
        [0, 1].map(|half| _mm512_cvtpd_ps(_mm512_add_pd(products[half], thirds[half])));
    _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high)
}
