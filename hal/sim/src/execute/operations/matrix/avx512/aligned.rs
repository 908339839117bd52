//! Vectorised sums of products as fixed-point numbers aligned to the greatest exponent, as in
//! [`super::super::fused`].

use super::super::fused::Rule;
use super::super::sizes::LEAST_OF_PRODUCT;
use super::lines::vector;
use super::product::load;
use super::sums::Group;
use std::arch::x86_64::*;

/// Values and exponents of the products of a group, with two exponents per word.
type Both<'a, const GROUP: usize, const PAIRS: usize> =
    (Group<'a, f32, GROUP>, Group<'a, u32, PAIRS>);

/// Adds the products of a row to the sums; the row is given by its position in its part.
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
            let product_digits = _mm512_cvttps_epi32(_mm512_mul_ps(*product, scale));
            digits = _mm512_add_epi32(digits, product_digits);
        }
        digits
    };
    let odd = _mm512_srai_epi32::<16>(greatest);
    let even = _mm512_srai_epi32::<16>(_mm512_slli_epi32::<16>(greatest));
    let exponent = _mm512_max_epi32(even, odd);
    match rule {
        Rule::Together => joined(Part { digits: digits(exponent, 0, 1), exponent }, sums, None),
        Rule::EvenAndOdd => {
            let [even, odd] = [(even, 0), (odd, 1)].map(|(group_exponent, first)| {
                _mm512_srav_epi32(
                    digits(group_exponent, first, 2),
                    _mm512_sub_epi32(exponent, group_exponent),
                )
            });
            joined(Part { digits: _mm512_add_epi32(even, odd), exponent }, sums, Some(25))
        }
    }
}

/// Places of products after the point.
const PLACES: i32 = 24;
/// Maximum distance by which the exponent of a sum may exceed that of the products, so that the sum
/// and the digits of the products together fit into 31 bits and a sign.
const NEAR: i32 = 5;

/// Sums of products as integers with 24 places after the point, and their exponent.
#[derive(Clone, Copy)]
struct Part {
    digits: __m512i,
    exponent: __m512i,
}

/// Products of a row, and the greatest exponent of the even and of the odd products, in the low and
/// the high half of a word.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn products<const GROUP: usize, const PAIRS: usize>(
    ((rows, columns), (of_rows, of_columns)): Both<'_, GROUP, PAIRS>,
    row: usize,
) -> ([__m512; GROUP], __m512i) {
    // Products are zero if all exponents are smaller.
    let mut greatest = _mm512_set1_epi16(LEAST_EXPONENT);
    for (row_of, column) in of_rows.iter().zip(of_columns) {
        let exponents = _mm512_add_epi16(_mm512_set1_epi32(row_of[row] as i32), load(column, 0));
        greatest = _mm512_max_epi16(greatest, exponents);
    }
    let mut products = [_mm512_setzero_ps(); GROUP];
    for ((product, row_values), column) in products.iter_mut().zip(rows).zip(columns) {
        *product = _mm512_mul_ps(_mm512_set1_ps(row_values[row]), vector(column));
    }
    (products, greatest)
}

/// Two to the power of `number - less`.
#[target_feature(enable = "avx512f")]
#[inline]
fn power(number: i32, less: __m512i) -> __m512 {
    let field = _mm512_sub_epi32(_mm512_set1_epi32(127 + number), less);
    _mm512_castsi512_ps(_mm512_slli_epi32::<23>(field))
}

/// Two to the power of `number + more`.
#[target_feature(enable = "avx512f")]
#[inline]
fn power_plus(number: i32, more: __m512i) -> __m512 {
    let field = _mm512_add_epi32(_mm512_set1_epi32(127 + number), more);
    _mm512_castsi512_ps(_mm512_slli_epi32::<23>(field))
}

/// Exponent of a group of products that are all zeros; any other group has a greater one.
const LEAST_EXPONENT: i16 = (LEAST_OF_PRODUCT - PLACES) as i16;

/// Lanes whose element of C is a NaN, infinite, or so great or small that a power of two used to
/// scale sums is not a single-precision number. The sums of other elements stay in range: with
/// exponents of products of at least [`LEAST_OF_PRODUCT`] they are zero, or at least a unit of the
/// last of 24 places.
#[target_feature(enable = "avx512f")]
#[inline]
pub fn doubtful(addend: __m512) -> __mmask16 {
    const LEAST: i32 = (127 + LEAST_EXPONENT as i32) << 23;
    let magnitude = _mm512_and_si512(_mm512_castps_si512(addend), _mm512_set1_epi32(i32::MAX));
    // Zero is in range.
    let less_one = _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1));
    _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32((127 + 100) << 23))
        | _mm512_cmplt_epu32_mask(less_one, _mm512_set1_epi32(LEAST - 1))
}

/// Combines a group of products with the sum so far. The sum is truncated to 24 places and dropped
/// if its exponent is smaller by more than `near`; the products are truncated to 31 places; both
/// round downwards.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,fma")]
#[inline]
fn joined(Part { digits, exponent }: Part, sum: __m512, near: Option<i32>) -> __m512 {
    let field = _mm512_srli_epi32::<24>(_mm512_slli_epi32::<1>(_mm512_castps_si512(sum)));
    let above = _mm512_sub_epi32(field, _mm512_add_epi32(exponent, _mm512_set1_epi32(127)));
    // Sums that are not truncated are multiples of these units.
    let whole = |unit: __m512i| {
        const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
        let units = _mm512_cvt_roundps_epi32::<DOWN>(_mm512_mul_ps(sum, power(PLACES, unit)));
        match near {
            None => units,
            Some(near) => {
                let is_near = _mm512_cmpge_epi32_mask(above, _mm512_set1_epi32(-near));
                _mm512_maskz_mov_epi32(is_near, units)
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
    // If the sum so far has more bits, units are greater. Bits of the products that are lost
    // without truncation are kept as a sticky last bit, below the bits that the result is rounded
    // to: only the products of 16 pairs of bytes fill 30 bits, and their digits are less than 3.6 *
    // 2^24, so that 26 bits of the total remain if the signs differ.
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
