//! Sums of products as fixed-point numbers aligned to the greatest exponent: those of
//! [`super::super::fused`], in vectors.

use super::super::fused::Rule;
use super::super::sizes::LEAST_OF_PRODUCT;
use super::lines::vector;
use super::product::load;
use super::sums::Group;
use std::arch::x86_64::*;

/// The products of a group, and the exponents that go with what they are made of, two in a word.
type Both<'a, const GROUP: usize, const PAIRS: usize> =
    (Group<'a, f32, GROUP>, Group<'a, u32, PAIRS>);

/// The sums so far and the products of a row, which is given by its place in its part.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline]
pub fn add_aligned<const GROUP: usize, const PAIRS: usize>(
    rule: Rule,
    both: Both<'_, GROUP, PAIRS>,
    row: usize,
    sums: __m512,
) -> __m512 {
    let (products, greatest) = products(both, row);
    let digits = |exponent: __m512i, first: usize, step: usize| {
        let scale = power(PLACES, exponent);
        let mut digits = _mm512_setzero_si512();
        for product in products[first..].iter().step_by(step) {
            let own = _mm512_cvttps_epi32(_mm512_mul_ps(*product, scale));
            digits = _mm512_add_epi32(digits, own);
        }
        digits
    };
    let odd = _mm512_srai_epi32::<16>(greatest);
    let even = _mm512_srai_epi32::<16>(_mm512_slli_epi32::<16>(greatest));
    let exponent = _mm512_max_epi32(even, odd);
    match rule {
        Rule::Together => joined(Part { digits: digits(exponent, 0, 1), exponent }, sums, None),
        Rule::EvenAndOdd => {
            let [even, odd] = [(even, 0), (odd, 1)].map(|(own, first)| {
                _mm512_srav_epi32(digits(own, first, 2), _mm512_sub_epi32(exponent, own))
            });
            joined(Part { digits: _mm512_add_epi32(even, odd), exponent }, sums, Some(25))
        }
    }
}

/// Places of products after the point.
const PLACES: i32 = 24;
/// By how much the exponent of a sum so far may be the greater one, so that it and the digits of products
/// together are a number of 31 bits and a sign.
const NEAR: i32 = 5;

/// Sums of products as whole numbers of 24 places after the point, and the exponent that goes with them.
#[derive(Clone, Copy)]
struct Part {
    digits: __m512i,
    exponent: __m512i,
}

/// Products of a row, and the greatest exponent of the even and of the odd ones in the low and the high
/// half of a word.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn products<const GROUP: usize, const PAIRS: usize>(
    ((rows, columns), (of_rows, of_columns)): Both<'_, GROUP, PAIRS>,
    row: usize,
) -> ([__m512; GROUP], __m512i) {
    // Products are zeros where all exponents are less.
    let mut greatest = _mm512_set1_epi16(LEAST_EXPONENT);
    for (row_of, column) in of_rows.iter().zip(of_columns) {
        let own = _mm512_add_epi16(_mm512_set1_epi32(row_of[row] as i32), load(column, 0));
        greatest = _mm512_max_epi16(greatest, own);
    }
    let mut products = [_mm512_setzero_ps(); GROUP];
    for ((product, own), column) in products.iter_mut().zip(rows).zip(columns) {
        *product = _mm512_mul_ps(_mm512_set1_ps(own[row]), vector(column));
    }
    (products, greatest)
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

/// The exponent of a group of products that are all zeros; that of another one is greater.
const LEAST_EXPONENT: i16 = (LEAST_OF_PRODUCT - PLACES) as i16;

/// Which of the elements of C are no numbers, infinite, or so great or small that powers of two with which
/// sums are multiplied here are none of single precision. Sums of others are none of these, either: where
/// exponents of products are at least [`LEAST_OF_PRODUCT`] they are zero, or not less than a unit of the last
/// of 24 places.
#[target_feature(enable = "avx512f")]
#[inline]
pub fn doubtful(addend: __m512) -> __mmask16 {
    const LEAST: i32 = (127 + LEAST_EXPONENT as i32) << 23;
    let magnitude = _mm512_and_si512(_mm512_castps_si512(addend), _mm512_set1_epi32(i32::MAX));
    // Zero is no such.
    let less_one = _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1));
    _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32((127 + 100) << 23))
        | _mm512_cmplt_epu32_mask(less_one, _mm512_set1_epi32(LEAST - 1))
}

/// A group of products and the sum so far: that is cut to 24 places and left out where it is less by more
/// than so many, the products are cut to 31, both downwards.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,fma")]
#[inline]
fn joined(Part { digits, exponent }: Part, sum: __m512, near: Option<i32>) -> __m512 {
    let field = _mm512_srli_epi32::<24>(_mm512_slli_epi32::<1>(_mm512_castps_si512(sum)));
    let above = _mm512_sub_epi32(field, _mm512_add_epi32(exponent, _mm512_set1_epi32(127)));
    // All sums so far that are not cut are whole numbers of these units.
    let whole = |unit: __m512i| {
        const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
        let own = _mm512_cvt_roundps_epi32::<DOWN>(_mm512_mul_ps(sum, power(PLACES, unit)));
        match near {
            None => own,
            Some(near) => {
                let is_near = _mm512_cmpge_epi32_mask(above, _mm512_set1_epi32(-near));
                _mm512_maskz_mov_epi32(is_near, own)
            }
        }
    };
    let rounded = |total: __m512i, unit: __m512i| {
        _mm512_mul_ps(_mm512_cvtepi32_ps(total), power_plus(-PLACES, unit))
    };
    let far = _mm512_sub_epi32(above, _mm512_set1_epi32(NEAR));
    if _mm512_cmpgt_epi32_mask(far, _mm512_setzero_si512()) == 0 {
        return rounded(_mm512_add_epi32(digits, whole(exponent)), exponent);
    }
    // Where the sum so far has more bits, units are greater. What is lost of the products, but not cut
    // from them, is kept as the last bit, which stands below those that the result is rounded to: products
    // that fill 30 bits are those of 16 pairs of bytes, whose digits are less than 3.6 by 2 to the power of
    // 24, so that 26 bits of the total remain where they have the other sign.
    let shift = _mm512_max_epi32(far, _mm512_setzero_si512());
    let unit = _mm512_add_epi32(exponent, shift);
    let cut =
        _mm512_max_epi32(_mm512_sub_epi32(shift, _mm512_set1_epi32(2)), _mm512_setzero_si512());
    let rest = _mm512_sub_epi32(shift, cut);
    let digits = _mm512_srav_epi32(digits, cut);
    let kept = _mm512_srav_epi32(digits, rest);
    let is_lost = _mm512_cmpneq_epi32_mask(_mm512_sllv_epi32(kept, rest), digits);
    let kept = _mm512_mask_or_epi32(kept, is_lost, kept, _mm512_set1_epi32(1));
    rounded(_mm512_add_epi32(kept, whole(unit)), unit)
}
