//! Sums of products as fixed-point numbers aligned to the greatest exponent: those of
//! [`super::super::fused`], in vectors.

use super::Rule;
use super::sums::{Group, vector};
use std::arch::x86_64::*;

/// The products of a group, and the exponents that go with what they are made of.
type Both<'a, const GROUP: usize> = (Group<'a, f32, GROUP>, Group<'a, i32, GROUP>);

/// The sums so far and the products of a row.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,fma")]
#[inline]
pub fn add_aligned<const GROUP: usize>(
    rule: Rule,
    group: Both<'_, GROUP>,
    row: usize,
    sums: __m512,
) -> __m512 {
    match rule {
        Rule::Together => joined(part(group, row, (0, 1)), sums, None),
        Rule::EvenAndOdd => {
            let parts = [0, 1].map(|side| part(group, row, (side, 2)));
            let exponent = _mm512_max_epi32(parts[0].exponent, parts[1].exponent);
            let [even, odd] = parts
                .map(|own| _mm512_srav_epi32(own.digits, _mm512_sub_epi32(exponent, own.exponent)));
            joined(Part { digits: _mm512_add_epi32(even, odd), exponent }, sums, Some(25))
        }
    }
}

/// Sums of products as whole numbers of 24 places after the point, and the exponent that goes with them.
#[derive(Clone, Copy)]
struct Part {
    digits: __m512i,
    exponent: __m512i,
}

/// Products of a row from one on, each so many after the other, cut towards zero where the greatest
/// exponent has 24 places.
#[target_feature(enable = "avx512f")]
#[inline]
fn part<const GROUP: usize>(
    ((rows, columns), (of_rows, of_columns)): Both<'_, GROUP>,
    row: usize,
    (first, step): (usize, usize),
) -> Part {
    // Products are zeros where all exponents are less.
    let mut greatest = _mm512_set1_epi32(-90);
    let mut products = [_mm512_setzero_ps(); GROUP];
    for at in (first..GROUP).step_by(step) {
        products[at] = _mm512_mul_ps(_mm512_set1_ps(rows[at][row]), vector(&columns[at]));
        // SAFETY: the array has as many numbers.
        let own = unsafe { _mm512_loadu_si512(of_columns[at].as_ptr().cast()) };
        let own = _mm512_add_epi32(_mm512_set1_epi32(of_rows[at][row]), own);
        greatest = _mm512_max_epi32(greatest, own);
    }
    let scale = power(24, greatest);
    let mut digits = _mm512_setzero_si512();
    for at in (first..GROUP).step_by(step) {
        let own = _mm512_cvttps_epi32(_mm512_mul_ps(products[at], scale));
        digits = _mm512_add_epi32(digits, own);
    }
    Part { digits, exponent: greatest }
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
pub fn doubtful(sum: __m512) -> __mmask16 {
    const LEAST: i32 = 37 << 23;
    let magnitude = _mm512_and_si512(_mm512_castps_si512(sum), _mm512_set1_epi32(i32::MAX));
    // Zero is no such.
    let less_one = _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1));
    _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32(0xff << 23))
        | _mm512_cmplt_epu32_mask(less_one, _mm512_set1_epi32(LEAST - 1))
}

/// A group of products and the sum so far: that is cut to 24 places and left out where it is less by more
/// than so many, the products are cut to 31, both downwards.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,fma")]
#[inline]
fn joined(part: Part, sum: __m512, near: Option<i32>) -> __m512 {
    const DOWN: i32 = 9;
    let field = _mm512_srli_epi32::<24>(_mm512_slli_epi32::<1>(_mm512_castps_si512(sum)));
    let field = _mm512_max_epi32(field, _mm512_set1_epi32(1));
    let exponent = _mm512_sub_epi32(field, _mm512_set1_epi32(127));
    let top = _mm512_max_epi32(part.exponent, exponent);
    let whole = _mm512_roundscale_ps::<DOWN>(_mm512_mul_ps(sum, power(24, top)));
    let mut third = _mm512_mul_ps(whole, power_plus(-24, top));
    if let Some(near) = near {
        let least = _mm512_sub_epi32(part.exponent, _mm512_set1_epi32(near));
        third = _mm512_maskz_mov_ps(_mm512_cmpge_epi32_mask(exponent, least), third);
    }
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
    let [low, high] = if is_cut {
        let (up, down) = (halves_of(power(31, top)), halves_of(power_plus(-31, top)));
        [0, 1].map(|half| {
            let products = _mm512_mul_pd(digits[half], units[half]);
            let whole = _mm512_roundscale_pd::<DOWN>(_mm512_mul_pd(products, up[half]));
            _mm512_fmadd_pd(whole, down[half], thirds[half])
        })
    } else {
        [0, 1].map(|half| _mm512_fmadd_pd(digits[half], units[half], thirds[half]))
    }
    .map(|sums| _mm512_cvtpd_ps(sums));
    _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high)
}
