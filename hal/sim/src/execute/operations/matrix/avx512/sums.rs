//! Sums of products, in vectors.

use super::lines::{Lines, least_exponent};
use super::{
    CHUNKS, Elements, MOST_REGISTERS, Product, QUAD, Rule, Sum, WIDTH, addend, store, write,
};
use crate::instruction::Op;
use crate::wave::{LANES, Row, Wave};
use std::arch::x86_64::*;

/// How sums are made: which of the forms that give the same bits.
#[derive(Clone, Copy)]
pub enum Way {
    /// Each product fused with the sum so far.
    Chain,
    /// Integers, which single precision holds.
    Integers,
    /// Groups of products that single precision holds, pairwise: no result but the last can be a
    /// denormal. Plus zeros take the place of minus zeros where denormals are kept.
    Exact { group: usize, keeps: bool },
    /// The same step by step.
    Stepwise { group: usize, flushes: bool },
    /// Groups whose sum single precision holds, added to the sum so far.
    Together { group: usize, limits: Limits },
    /// Groups aligned to the greatest exponent.
    Aligned(Rule, usize),
}

/// What makes a sum of products and of a sum so far lose nothing but what one rounding takes.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The sum so far is a multiple of one by this.
    per_unit: f32,
    /// Its magnitude is less.
    end: f32,
}

impl Way {
    /// The ways that products can be made, the fastest first.
    pub fn all<const ROOM: usize>(
        product: &Product,
        left: &Lines<ROOM>,
        right: &Lines<ROOM>,
    ) -> [Option<Way>; 2] {
        let lines = [left, right];
        let exponent = |bits: u32| (bits >> 23) as i32 - 127;
        // An exponent of the digits, and one less than that of the last digit.
        let digits =
            |side: usize, bits: u32| exponent(bits).max(least_exponent(product.elements[side]));
        let places = |side: usize| match product.elements[side] {
            Elements::Small(format) => format.mantissa as i32,
            _ => 10,
        };
        let greatest: i32 = [0, 1].map(|side| digits(side, lines[side].greatest)).iter().sum();
        let has_some = lines.iter().all(|own| own.greatest != 0);
        let unit: i32 =
            [0, 1].map(|side| digits(side, lines[side].least) - places(side)).iter().sum();
        match product.sum {
            Sum::Chain => [Some(Way::Chain), None],
            Sum::Integers => [Some(Way::Integers), None],
            Sum::Pairwise(group, flushes) => {
                let is_exact = !has_some || unit >= -100 && greatest <= 120;
                let stepwise = Way::Stepwise { group, flushes };
                let exact = Way::Exact { group, keeps: !flushes };
                [Some(if is_exact { exact } else { stepwise }), None]
            }
            Sum::Fused(rule, group) => {
                let group = group.min(product.depth);
                let least: i32 = lines.iter().map(|own| exponent(own.least)).sum();
                let are_tame = greatest <= 40 && (!has_some || least >= -80);
                if !are_tame
                    || !lines.iter().all(|own| own.are_finite && own.greatest < 0x7f80_0000)
                {
                    return [None, None];
                }
                let [a, b] = lines.map(|own| f64::from(f32::from_bits(own.greatest)));
                let power = |exponent: i32| 2f64.powi(exponent);
                let holds = group as f64 * a * b <= power(24 + unit);
                let together = has_some && holds && greatest - unit <= 24 && greatest <= 24;
                let limits = Limits {
                    per_unit: power(24 - greatest) as f32,
                    end: power(unit.min(40) + 32) as f32,
                };
                [
                    together.then_some(Way::Together { group, limits }),
                    Some(Way::Aligned(rule, group)),
                ]
            }
        }
    }
}

/// The lines whose products a vector of sums has.
#[derive(Clone, Copy)]
pub struct Place {
    /// The row of A for each vector.
    pub rows: [usize; QUAD],
    /// The first of the columns of B.
    pub column: usize,
}

/// Four vectors of sums, by their bits.
pub type Sums = [__m512i; QUAD];

/// Makes D. Gives `false` and writes nothing where the way does not lead there.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline]
pub fn make<const ROOM: usize>(
    wave: &mut Wave,
    op: &Op,
    product: &Product,
    way: Way,
    left: &Lines<ROOM>,
    right: &Lines<ROOM>,
) -> bool {
    let Product { size, depth, blocks, elements, .. } = *product;
    let (broadcast, chosen) = (op.inst.modifiers.cbsz & 7, usize::from(op.inst.modifiers.abid));
    let (groups, registers) = (LANES / size, size * size / LANES);
    let exponents = matches!(way, Way::Aligned(..))
        .then(|| [left.exponents(elements[0], depth), right.exponents(elements[1], depth)]);
    let flushes = matches!(product.sum, Sum::Pairwise(_, true));
    let mut result = [const { std::mem::MaybeUninit::<Row>::uninit() }; MOST_REGISTERS];
    let mut doubts = 0;
    for (block, quad) in
        (0..blocks).flat_map(|block| (0..registers / QUAD).map(move |quad| (block, quad)))
    {
        let first = block * registers + quad * QUAD;
        let of_a = ((block >> broadcast << broadcast) + chosen) % blocks;
        let mut rows = [Row::ZERO; QUAD];
        for chunk in 0..CHUNKS {
            let first_row = of_a * size + QUAD * (chunk * WIDTH / size + groups * quad);
            let place = Place {
                rows: [0, 1, 2, 3].map(|row| first_row + row),
                column: block * size + chunk * WIDTH % size,
            };
            let mut before = [0, 1, 2, 3].map(|register| addend(wave, op, first + register, chunk));
            if flushes {
                before = before.map(|own| without_denormals(own));
            }
            let (sums, bad) = match way {
                Way::Chain => chain(left, right, place, depth, before),
                Way::Integers => integers(left, right, place, depth, before),
                Way::Exact { group, keeps } => {
                    exact(left, right, place, (depth, group), keeps, before)
                }
                Way::Stepwise { group, flushes } => {
                    stepwise(left, right, place, (depth, group), flushes, before)
                }
                Way::Together { group, limits } => {
                    together(left, right, place, (depth, group), limits, before)
                }
                Way::Aligned(rule, group) => match &exponents {
                    Some([a, b]) => {
                        let sides = [(left, a), (right, b)];
                        aligned(sides, place, depth, (rule, group), before)
                    }
                    None => return false,
                },
            };
            doubts |= bad;
            for (row, sum) in rows.iter_mut().zip(sums) {
                store(&mut row.0, chunk * WIDTH, sum);
            }
        }
        for (to, row) in result[first..].iter_mut().zip(rows) {
            to.write(row);
        }
    }
    if doubts != 0 {
        return false;
    }
    let count = registers * blocks;
    // SAFETY: as many were written.
    let result = unsafe { std::slice::from_raw_parts(result.as_ptr().cast::<Row>(), count) };
    write(wave, op, result);
    true
}

#[target_feature(enable = "avx512f")]
#[inline]
fn single(bits: Sums) -> [__m512; QUAD] {
    bits.map(|own| _mm512_castsi512_ps(own))
}

/// The bits of sums, and which of them are NaNs: which NaN depends on the order of the sources.
#[target_feature(enable = "avx512f")]
#[inline]
fn unless_nan(sums: [__m512; QUAD]) -> (Sums, __mmask16) {
    let is_nan = |own: __m512| _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(own, own);
    let bad = sums.into_iter().fold(0, |bad, own| bad | is_nan(own));
    (sums.map(|own| _mm512_castps_si512(own)), bad)
}

/// Zeros in place of denormals, plus zeros in place of minus zeros.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn without_denormals(bits: __m512i) -> __m512i {
    let value = flushed(_mm512_castsi512_ps(bits));
    _mm512_castps_si512(_mm512_add_ps(value, _mm512_setzero_ps()))
}

/// Zeros of the same sign in place of denormals.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn flushed(value: __m512) -> __m512 {
    const DENORMAL: i32 = 0x20;
    let is_denormal = _mm512_fpclass_ps_mask::<DENORMAL>(value);
    _mm512_mask_and_ps(value, is_denormal, value, _mm512_set1_ps(-0.0))
}

#[target_feature(enable = "avx512f")]
#[inline]
pub fn chain<const ROOM: usize>(
    left: &Lines<ROOM>,
    right: &Lines<ROOM>,
    place: Place,
    depth: usize,
    before: Sums,
) -> (Sums, __mmask16) {
    let mut sums = single(before);
    for k in 0..depth {
        let b = right.vector(k, place.column);
        for (row, sum) in sums.iter_mut().enumerate() {
            *sum = _mm512_fmadd_ps(left.splat(k, place.rows[row]), b, *sum);
        }
    }
    unless_nan(sums)
}

#[target_feature(enable = "avx512f")]
#[inline]
pub fn integers<const ROOM: usize>(
    left: &Lines<ROOM>,
    right: &Lines<ROOM>,
    place: Place,
    depth: usize,
    before: Sums,
) -> (Sums, __mmask16) {
    let mut sums = [_mm512_setzero_ps(); QUAD];
    for k in 0..depth {
        let b = right.vector(k, place.column);
        for (row, sum) in sums.iter_mut().enumerate() {
            *sum = _mm512_fmadd_ps(left.splat(k, place.rows[row]), b, *sum);
        }
    }
    let mut result = before;
    for (result, sum) in result.iter_mut().zip(sums) {
        *result = _mm512_add_epi32(*result, _mm512_cvtps_epi32(sum));
    }
    (result, 0)
}

/// A product that single precision holds can be fused with another one.
#[target_feature(enable = "avx512f")]
#[inline]
fn exact<const ROOM: usize>(
    left: &Lines<ROOM>,
    right: &Lines<ROOM>,
    place: Place,
    (depth, group): (usize, usize),
    keeps: bool,
    before: Sums,
) -> (Sums, __mmask16) {
    let mut sums = single(before);
    for first in (0..depth).step_by(group) {
        let pair = |first: usize, row: usize| {
            let [a, b] = [first, first + 1].map(|k| left.splat(k, place.rows[row]));
            let [c, d] = [first, first + 1].map(|k| right.vector(k, place.column));
            _mm512_fmadd_ps(b, d, _mm512_mul_ps(a, c))
        };
        for (row, sum) in sums.iter_mut().enumerate() {
            let mut all = pair(first, row);
            if group == 4 {
                all = _mm512_add_ps(all, pair(first + 2, row));
            }
            if keeps {
                all = _mm512_add_ps(all, _mm512_setzero_ps());
            }
            *sum = _mm512_add_ps(*sum, all);
        }
    }
    unless_nan(sums)
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn stepwise<const ROOM: usize>(
    left: &Lines<ROOM>,
    right: &Lines<ROOM>,
    place: Place,
    (depth, group): (usize, usize),
    flushes: bool,
    before: Sums,
) -> (Sums, __mmask16) {
    let step = |value: __m512| if flushes { flushed(value) } else { value };
    let mut sums = single(before);
    for first in (0..depth).step_by(group) {
        let product = |k: usize, row: usize| {
            let product =
                _mm512_mul_ps(left.splat(k, place.rows[row]), right.vector(k, place.column));
            step(_mm512_add_ps(product, _mm512_setzero_ps()))
        };
        let pair = |first: usize, row: usize| {
            step(_mm512_add_ps(product(first, row), product(first + 1, row)))
        };
        for (row, sum) in sums.iter_mut().enumerate() {
            let mut all = pair(first, row);
            if group == 4 {
                all = step(_mm512_add_ps(all, pair(first + 2, row)));
            }
            *sum = step(_mm512_add_ps(*sum, all));
        }
    }
    unless_nan(sums)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn together<const ROOM: usize>(
    left: &Lines<ROOM>,
    right: &Lines<ROOM>,
    place: Place,
    (depth, group): (usize, usize),
    limits: Limits,
    before: Sums,
) -> (Sums, __mmask16) {
    const TO_ZERO: i32 = 0xb;
    let mut sums = single(before);
    let mut bad = 0;
    for first in (0..depth).step_by(group) {
        let mut parts = [_mm512_setzero_ps(); QUAD];
        for k in first..first + group {
            let b = right.vector(k, place.column);
            for (row, part) in parts.iter_mut().enumerate() {
                *part = _mm512_fmadd_ps(left.splat(k, place.rows[row]), b, *part);
            }
        }
        for (sum, part) in sums.iter_mut().zip(parts) {
            let units = _mm512_mul_ps(*sum, _mm512_set1_ps(limits.per_unit));
            let whole = _mm512_roundscale_ps::<TO_ZERO>(units);
            bad |= _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(units, whole);
            let end = _mm512_set1_ps(limits.end);
            bad |= _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(_mm512_abs_ps(*sum), end);
            *sum = _mm512_add_ps(*sum, part);
        }
    }
    (sums.map(|own| _mm512_castps_si512(own)), bad)
}

/// Lines, and the exponents that go with their values.
type Side<'a, const ROOM: usize> = (&'a Lines<ROOM>, &'a [i32; ROOM]);

#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
#[inline]
fn aligned<const ROOM: usize>(
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
            let place = (place.rows[row], place.column);
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
