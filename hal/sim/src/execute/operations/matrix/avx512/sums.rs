//! Sums of products, in vectors.

use super::aligned::aligned;
use super::lines::{Lines, least_exponent};
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
    /// denormal.
    Exact { group: usize, flushes: bool },
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
    pub fn all<const ROOM: usize>(product: &Product, lines: [&Lines<ROOM>; 2]) -> [Option<Way>; 2] {
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
                let exact = Way::Exact { group, flushes };
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

/// Four vectors of sums, by their bits.
pub type Sums = [__m512i; QUAD];

/// The lines of which vectors of sums have the products.
#[derive(Clone, Copy)]
pub struct Place {
    /// The row of A for the first vector; the others have the next ones.
    pub row: usize,
    /// The first of the columns of B.
    pub column: usize,
}

/// Makes D. Gives `false` and writes nothing where the way does not lead there.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline]
pub fn make<const ROOM: usize>(
    wave: &mut Wave,
    op: &Op,
    product: &Product,
    way: Way,
    sides: [&Lines<ROOM>; 2],
) -> bool {
    let [left, right] = sides;
    let depth = product.depth;
    let factors = |place: Place| left.quads(place.row).zip(right.vectors(place.column)).take(depth);
    match way {
        Way::Chain => fill(wave, op, product, |place, before| chain(factors(place), before)),
        Way::Integers => fill(wave, op, product, |place, before| integers(factors(place), before)),
        Way::Exact { group: 2, flushes } => {
            fill(wave, op, product, |place, before| exact::<2>(factors(place), flushes, before))
        }
        Way::Exact { flushes, .. } => {
            fill(wave, op, product, |place, before| exact::<4>(factors(place), flushes, before))
        }
        Way::Stepwise { group: 2, flushes } => {
            fill(wave, op, product, |place, before| stepwise::<2>(factors(place), flushes, before))
        }
        Way::Stepwise { flushes, .. } => {
            fill(wave, op, product, |place, before| stepwise::<4>(factors(place), flushes, before))
        }
        Way::Together { group, limits } => {
            fill(wave, op, product, |place, before| together(factors(place), group, limits, before))
        }
        Way::Aligned(rule, group) => {
            let a = left.exponents(product.elements[0], depth);
            let b = right.exponents(product.elements[1], depth);
            fill(wave, op, product, |place, before| {
                aligned([(left, &a), (right, &b)], place, depth, (rule, group), before)
            })
        }
    }
}

/// Fills D with sums. Gives `false` and writes nothing where some are doubtful.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline]
fn fill(
    wave: &mut Wave,
    op: &Op,
    product: &Product,
    sum: impl Fn(Place, Sums) -> (Sums, __mmask16),
) -> bool {
    let Product { size, blocks, .. } = *product;
    let (broadcast, chosen) = (op.inst.modifiers.cbsz & 7, usize::from(op.inst.modifiers.abid));
    let (groups, registers) = (LANES / size, size * size / LANES);
    let mut result = [const { MaybeUninit::<Row>::uninit() }; MOST_REGISTERS];
    let mut doubts = 0;
    for block in 0..blocks {
        let of_a = ((block >> broadcast << broadcast) + chosen) % blocks;
        for quad in 0..registers / QUAD {
            let first = block * registers + quad * QUAD;
            let to = &mut result[first..][..QUAD];
            for chunk in 0..CHUNKS {
                let group = (chunk * WIDTH) >> size.trailing_zeros();
                let row = of_a * size + QUAD * (group + groups * quad);
                let column = block * size + ((chunk * WIDTH) & (size - 1));
                let before = [0, 1, 2, 3].map(|own| addend(wave, op, first + own, chunk));
                let (sums, bad) = sum(Place { row, column }, before);
                doubts |= bad;
                for (row, sum) in to.iter_mut().zip(sums) {
                    put(row, chunk, sum);
                }
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

/// The elements of four rows of A, and of 16 columns of B, for one product after the other.
pub trait Factors<'a>: Iterator<Item = ([f32; QUAD], &'a [f32; WIDTH])> {}

impl<'a, I: Iterator<Item = ([f32; QUAD], &'a [f32; WIDTH])>> Factors<'a> for I {}

#[target_feature(enable = "avx512f")]
#[inline]
fn vector(elements: &[f32; WIDTH]) -> __m512 {
    // SAFETY: there are as many numbers.
    unsafe { _mm512_loadu_ps(elements.as_ptr()) }
}

/// The bits of sums, and which of them are NaNs: which NaN depends on the order of the sources.
#[target_feature(enable = "avx512f")]
#[inline]
fn unless_nan(sums: [__m512; QUAD]) -> (Sums, __mmask16) {
    let [a, b, c, d] = sums;
    let is_nan = |one: __m512, other: __m512| _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(one, other);
    (sums.map(|own| _mm512_castps_si512(own)), is_nan(a, b) | is_nan(c, d))
}

/// Zeros of the same sign in place of denormals.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn flushed(value: __m512) -> __m512 {
    const DENORMAL: i32 = 0x20;
    let is_denormal = _mm512_fpclass_ps_mask::<DENORMAL>(value);
    _mm512_mask_and_ps(value, is_denormal, value, _mm512_set1_ps(-0.0))
}

/// Sums so far, with plus zeros in place of minus zeros, and of denormals where those are flushed.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn begun(before: Sums, flushes: bool) -> [__m512; QUAD] {
    single(before).map(|own| {
        let own = if flushes { flushed(own) } else { own };
        _mm512_add_ps(own, _mm512_setzero_ps())
    })
}

/// Adds products to sums, each fused with its sum.
#[target_feature(enable = "avx512f")]
#[inline]
fn fuse<'a>(factors: impl Factors<'a>, sums: &mut [__m512; QUAD]) {
    for (a, b) in factors {
        let b = vector(b);
        for (a, sum) in a.into_iter().zip(&mut *sums) {
            *sum = _mm512_fmadd_ps(_mm512_set1_ps(a), b, *sum);
        }
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
pub fn chain<'a>(factors: impl Factors<'a>, before: Sums) -> (Sums, __mmask16) {
    let mut sums = single(before);
    fuse(factors, &mut sums);
    unless_nan(sums)
}

#[target_feature(enable = "avx512f")]
#[inline]
pub fn integers<'a>(factors: impl Factors<'a>, before: Sums) -> (Sums, __mmask16) {
    let mut sums = [_mm512_setzero_ps(); QUAD];
    fuse(factors, &mut sums);
    let mut result = before;
    for (result, sum) in result.iter_mut().zip(sums) {
        *result = _mm512_add_epi32(*result, _mm512_cvtps_epi32(sum));
    }
    (result, 0)
}

/// A product that single precision holds can be fused with another one. Of a sum of products that is
/// a minus zero the sign is lost, as it has to be: sums so far are no minus zeros.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn exact<'a, const GROUP: usize>(
    mut factors: impl Factors<'a>,
    flushes: bool,
    before: Sums,
) -> (Sums, __mmask16) {
    let mut sums = begun(before, flushes);
    while let Some(first) = pair(&mut factors) {
        let mut parts = first;
        if GROUP == 4
            && let Some(second) = pair(&mut factors)
        {
            for (part, own) in parts.iter_mut().zip(second) {
                *part = _mm512_add_ps(*part, own);
            }
        }
        for (sum, part) in sums.iter_mut().zip(parts) {
            *sum = _mm512_add_ps(*sum, part);
        }
    }
    unless_nan(sums)
}

/// The sums of the next two products.
#[target_feature(enable = "avx512f")]
#[inline]
fn pair<'a>(factors: &mut impl Factors<'a>) -> Option<[__m512; QUAD]> {
    let ([a, c], [b, d]) = two(factors)?;
    let mut sums = [_mm512_setzero_ps(); QUAD];
    for (at, sum) in sums.iter_mut().enumerate() {
        let first = _mm512_mul_ps(_mm512_set1_ps(a[at]), b);
        *sum = _mm512_fmadd_ps(_mm512_set1_ps(c[at]), d, first);
    }
    Some(sums)
}

/// The next two factors of A, and of B.
#[target_feature(enable = "avx512f")]
#[inline]
fn two<'a>(factors: &mut impl Factors<'a>) -> Option<([[f32; QUAD]; 2], [__m512; 2])> {
    let ((a, b), (c, d)) = (factors.next()?, factors.next()?);
    Some(([a, c], [vector(b), vector(d)]))
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn stepwise<'a, const GROUP: usize>(
    mut factors: impl Factors<'a>,
    flushes: bool,
    before: Sums,
) -> (Sums, __mmask16) {
    let step = |value: __m512| if flushes { flushed(value) } else { value };
    let mut next_pair = || {
        let ([a, c], [b, d]) = two(&mut factors)?;
        let product = |a: f32, b: __m512| {
            step(_mm512_add_ps(_mm512_mul_ps(_mm512_set1_ps(a), b), _mm512_setzero_ps()))
        };
        Some([0, 1, 2, 3].map(|at| step(_mm512_add_ps(product(a[at], b), product(c[at], d)))))
    };
    let mut sums = begun(before, flushes);
    while let Some(mut parts) = next_pair() {
        if GROUP == 4
            && let Some(second) = next_pair()
        {
            for (part, own) in parts.iter_mut().zip(second) {
                *part = step(_mm512_add_ps(*part, own));
            }
        }
        for (sum, part) in sums.iter_mut().zip(parts) {
            *sum = step(_mm512_add_ps(*sum, part));
        }
    }
    unless_nan(sums)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn together<'a>(
    factors: impl Factors<'a>,
    group: usize,
    limits: Limits,
    before: Sums,
) -> (Sums, __mmask16) {
    const TO_ZERO: i32 = 0xb;
    let mut sums = single(before);
    let mut bad = 0;
    let mut factors = factors.peekable();
    while factors.peek().is_some() {
        let mut parts = [_mm512_setzero_ps(); QUAD];
        fuse(factors.by_ref().take(group), &mut parts);
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
