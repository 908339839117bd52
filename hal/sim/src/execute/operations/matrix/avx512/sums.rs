//! Sums of products, in vectors.

use super::aligned::aligned;
use super::lines::{Lines, least_exponent, vector};
use super::{CHUNKS, Elements, MOST_REGISTERS, Product, QUAD, Rule, Sum, WIDTH, addend, write};
use crate::instruction::Op;
use crate::wave::{LANES, Row, Wave};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

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
    let mut result = [const { MaybeUninit::<Row>::uninit() }; MOST_REGISTERS];
    let mut doubts = 0;
    for (block, quad) in
        (0..blocks).flat_map(|block| (0..registers / QUAD).map(move |quad| (block, quad)))
    {
        let first = block * registers + quad * QUAD;
        let of_a = ((block >> broadcast << broadcast) + chosen) % blocks;
        for chunk in 0..CHUNKS {
            let first_row =
                of_a * size + QUAD * (((chunk * WIDTH) >> size.trailing_zeros()) + groups * quad);
            let place = Place {
                rows: [0, 1, 2, 3].map(|row| first_row + row),
                column: block * size + ((chunk * WIDTH) & (size - 1)),
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
            for (register, sum) in sums.into_iter().enumerate() {
                put(&mut result[first + register], chunk, sum);
            }
        }
    }
    if doubts != 0 {
        return false;
    }
    let count = registers * blocks;
    // SAFETY: of as many all lanes were written.
    let result = unsafe { std::slice::from_raw_parts(result.as_ptr().cast::<Row>(), count) };
    write(wave, op, result);
    true
}

/// Writes a vector of a register.
#[target_feature(enable = "avx512f")]
#[inline]
fn put(row: &mut MaybeUninit<Row>, chunk: usize, vector: __m512i) {
    let words = row.as_mut_ptr().cast::<u32>();
    // SAFETY: a row has as many vectors.
    unsafe { _mm512_storeu_si512(words.add(chunk % CHUNKS * WIDTH).cast(), vector) };
}

#[target_feature(enable = "avx512f")]
#[inline]
pub fn single(bits: Sums) -> [__m512; QUAD] {
    bits.map(|own| _mm512_castsi512_ps(own))
}

/// The elements of all lines for two products.
fn two<'a>(products: &mut impl Iterator<Item = &'a [f32]>) -> Option<[&'a [f32]; 2]> {
    Some([products.next()?, products.next()?])
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
    for (a, b) in left.products().zip(right.products()).take(depth) {
        let b = vector(b, place.column);
        for (row, sum) in place.rows.into_iter().zip(&mut sums) {
            *sum = _mm512_fmadd_ps(_mm512_set1_ps(a[row]), b, *sum);
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
    for (a, b) in left.products().zip(right.products()).take(depth) {
        let b = vector(b, place.column);
        for (row, sum) in place.rows.into_iter().zip(&mut sums) {
            *sum = _mm512_fmadd_ps(_mm512_set1_ps(a[row]), b, *sum);
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
    let zero = _mm512_setzero_ps();
    let (mut a, mut b) = (left.products(), right.products());
    for _ in 0..depth / group {
        let mut parts = [zero; QUAD];
        for pair in 0..group / 2 {
            let (Some(a), Some(b)) = (two(&mut a), two(&mut b)) else { break };
            let b = b.map(|own| vector(own, place.column));
            for (row, part) in place.rows.into_iter().zip(&mut parts) {
                let first = _mm512_mul_ps(_mm512_set1_ps(a[0][row]), b[0]);
                let both = _mm512_fmadd_ps(_mm512_set1_ps(a[1][row]), b[1], first);
                *part = if pair == 0 { both } else { _mm512_add_ps(*part, both) };
            }
        }
        for (sum, part) in sums.iter_mut().zip(parts) {
            let part = if keeps { _mm512_add_ps(part, zero) } else { part };
            *sum = _mm512_add_ps(*sum, part);
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
        let products = left.products().zip(right.products());
        for (a, b) in products.skip(first).take(group) {
            let b = vector(b, place.column);
            for (row, part) in place.rows.into_iter().zip(&mut parts) {
                *part = _mm512_fmadd_ps(_mm512_set1_ps(a[row]), b, *part);
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
