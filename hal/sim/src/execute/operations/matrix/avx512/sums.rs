//! Vectorised sums of products.

use super::super::fused::Rule;
use super::super::registers::first_of_sum;
use super::super::sizes::{Bounds, Limits};
use super::Form;
use super::aligned::{add_aligned, doubtful};
use super::lines::{Lines, Parts, vector};
use super::product::{CHUNKS, MOST_REGISTERS, Product, QUAD, Registers, Sum, WIDTH, write};
use crate::instruction::Op;
use crate::wave::{LANES, Row, Wave};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Summation methods; the applicable ones produce the same bits.
#[derive(Clone, Copy)]
pub enum Method {
    /// Fuses each product with the sum so far.
    Chain,
    /// Sums integers that single precision represents.
    Integers,
    /// Adds groups of products that single precision represents, pairwise: only the last result can
    /// be a denormal.
    Exact { group: usize, flushes: bool },
    /// Adds groups pairwise, step by step.
    Stepwise { group: usize, flushes: bool },
    /// Adds groups whose sum single precision represents to the sum so far.
    Together { group: usize, limits: Limits },
    /// Aligns groups to the greatest exponent.
    Aligned(Rule, usize),
}

impl Method {
    /// Methods that can compute a product, the fastest first.
    pub fn all(product: &Product, form: Form, lines: [&Lines<'_>; 2]) -> [Option<Method>; 2] {
        let bounds = || {
            let digits = [0, 1].map(|side| lines[side].digits(product.elements[side]));
            Bounds::of(digits, lines.map(|side| side.sizes))
        };
        match product.sum {
            Sum::Chain => [Some(Method::Chain), None],
            Sum::Integers => [Some(Method::Integers), None],
            Sum::Pairwise(group, flushes) => {
                let group = group.min(product.depth);
                let stepwise = Method::Stepwise { group, flushes };
                let exact = Method::Exact { group, flushes };
                [Some(if bounds().are_moderate() { exact } else { stepwise }), None]
            }
            Sum::Fused(rule, group) => {
                let (group, bounds) = (group.min(product.depth), bounds());
                let are_finite = lines.iter().all(|side| side.are_finite);
                if group < 4 || !are_finite || !bounds.are_tame() {
                    return [None, None];
                }
                let limits = bounds.limits(group);
                let (group, is_aligned) = match form {
                    // Half of the products of a group are zero. Which of a four are even products is
                    // not known.
                    Form::Sparse(_) => (2 * group, matches!(rule, Rule::Together)),
                    _ => (group, true),
                };
                let together = limits.map(|limits| Method::Together { group, limits });
                [together, is_aligned.then_some(Method::Aligned(rule, group))]
            }
        }
    }
}

/// Bits of four vectors of sums.
type Sums = [__m512i; QUAD];

/// Wave, instruction and product of an operation.
type Task<'a> = (&'a mut Wave, &'a Op, &'a Product);

/// Values of A and B.
type Sides<'a, T> = (Parts<'a, T>, Parts<'a, T>);

/// Values of a group of products: 16 rows of A and 16 columns of B.
pub type Group<'a, T, const COUNT: usize> = (&'a [[T; WIDTH]; COUNT], &'a [[T; WIDTH]; COUNT]);

/// The lines whose products four vectors of sums accumulate.
#[derive(Clone, Copy)]
struct Place {
    /// Row of A for the first vector; the other vectors have the following rows.
    row: usize,
    /// First column of B.
    column: usize,
}

impl Place {
    /// Values of its products, group by group.
    #[inline(always)]
    fn groups<'a, T, const COUNT: usize>(
        self,
        (left, right): Sides<'a, T>,
    ) -> impl Iterator<Item = Group<'a, T, COUNT>> {
        let (rows, columns) = (left.of(self.row), right.of(self.column));
        rows.as_chunks().0.iter().zip(columns.as_chunks().0)
    }

    /// Positions of its rows among the 16 rows of a group.
    #[inline(always)]
    fn rows(self) -> [usize; QUAD] {
        let first = self.row % WIDTH / QUAD * QUAD;
        [first, first + 1, first + 2, first + 3]
    }
}

/// Computes D for lines of at most `PARTS` parts. Returns `false` without effect if the method
/// cannot compute the result.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline]
pub fn make<const PARTS: usize>(
    task: Task<'_>,
    method: Method,
    left: &Lines<'_>,
    right: &Lines<'_>,
) -> bool {
    let product = task.2;
    let sides = (left.values(), right.values());
    match method {
        Method::Chain => match product.depth {
            1 => chain::<1>(task, sides),
            2 => chain::<2>(task, sides),
            _ => chain::<4>(task, sides),
        },
        Method::Integers => match product.depth {
            4 => integers::<4>(task, sides),
            8 => integers::<8>(task, sides),
            _ => integers::<16>(task, sides),
        },
        Method::Exact { group: 2, flushes } => exact::<2>(task, sides, flushes),
        Method::Exact { flushes, .. } => exact::<4>(task, sides, flushes),
        Method::Stepwise { group: 2, flushes } => stepwise::<2>(task, sides, flushes),
        Method::Stepwise { flushes, .. } => stepwise::<4>(task, sides, flushes),
        Method::Together { group: 4, limits } => together::<4>(task, sides, limits),
        Method::Together { group: 8, limits } => together::<8>(task, sides, limits),
        Method::Together { group: 16, limits } => together::<16>(task, sides, limits),
        Method::Together { limits, .. } => together::<32>(task, sides, limits),
        Method::Aligned(rule, group) => {
            let [mut a, mut b] = [const { [const { MaybeUninit::uninit() }; PARTS] }; 2];
            let a = left.exponents(product.elements[0], &mut a);
            let b = right.exponents(product.elements[1], &mut b);
            match (rule, group) {
                (Rule::Together, 4) => aligned::<4, 2>(task, sides, (a, b), rule),
                (Rule::Together, 8) => aligned::<8, 4>(task, sides, (a, b), rule),
                (Rule::Together, _) => aligned::<16, 8>(task, sides, (a, b), rule),
                (Rule::EvenAndOdd, _) => aligned::<16, 8>(task, sides, (a, b), rule),
            }
        }
    }
}

/// Fills D: `begin` converts the elements of C to sums, `add` adds products to them and returns the
/// doubtful lanes. Returns `false` without effect if there are any.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline]
fn fill(
    (wave, op, product): Task<'_>,
    begin: impl Fn(__m512i) -> __m512i,
    add: impl Fn(Place, &mut Sums) -> __mmask16,
) -> bool {
    let Product { size, blocks, .. } = *product;
    let word = first_of_sum(op);
    let Some(addends) = Registers::of(wave, [word; 2], size * size * blocks / LANES) else {
        return false;
    };
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
                let mut sums = addends.vectors(first, chunk).map(&begin);
                doubts |= add(Place { row, column }, &mut sums);
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
    // SAFETY: all lanes of this many rows were written.
    let result = unsafe { std::slice::from_raw_parts(result.as_ptr().cast::<Row>(), count) };
    write(wave, op, result);
    true
}

/// Writes a vector of a register.
#[target_feature(enable = "avx512f")]
#[inline]
fn put(row: &mut MaybeUninit<Row>, chunk: usize, vector: __m512i) {
    let words = row.as_mut_ptr().cast::<u32>();
    // SAFETY: a row has this many vectors.
    unsafe { _mm512_storeu_si512(words.add(chunk % CHUNKS * WIDTH).cast(), vector) };
}

/// Reinterprets bits as numbers.
#[target_feature(enable = "avx512f")]
#[inline]
fn float(bits: __m512i) -> __m512 {
    _mm512_castsi512_ps(bits)
}

/// Reinterprets numbers as bits.
#[target_feature(enable = "avx512f")]
#[inline]
fn bits(value: __m512) -> __m512i {
    _mm512_castps_si512(value)
}

/// Lanes with NaN sums: which NaN results depends on the order of the sources.
#[target_feature(enable = "avx512f")]
#[inline]
fn nans(sums: &Sums) -> __mmask16 {
    let [a, b, c, d] = sums.map(|sum| float(sum));
    let is_nan = |one: __m512, other: __m512| _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(one, other);
    is_nan(a, b) | is_nan(c, d)
}

/// Replaces denormals by zeros of the same sign.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn flushed(value: __m512) -> __m512 {
    const DENORMAL: i32 = 0x20;
    let is_denormal = _mm512_fpclass_ps_mask::<DENORMAL>(value);
    _mm512_mask_and_ps(value, is_denormal, value, _mm512_set1_ps(-0.0))
}

/// Replaces minus zeros by plus zeros, and also denormals if `flushes` is set.
#[target_feature(enable = "avx512f")]
#[inline]
fn begun(before: __m512i, flushes: bool) -> __m512i {
    const EXPONENT: i32 = 0xff << 23;
    if flushes {
        let has = _mm512_test_epi32_mask(before, _mm512_set1_epi32(EXPONENT));
        _mm512_maskz_mov_epi32(has, before)
    } else {
        bits(_mm512_add_ps(float(before), _mm512_setzero_ps()))
    }
}

/// Adds products to sums, each fused with its sum.
#[target_feature(enable = "avx512f")]
#[inline]
fn fuse<const GROUP: usize>(
    place: Place,
    (rows, columns): Group<'_, f32, GROUP>,
    mut sums: [__m512; QUAD],
) -> [__m512; QUAD] {
    for (rows, column) in rows.iter().zip(columns) {
        let column = vector(column);
        for (row, sum) in place.rows().into_iter().zip(&mut sums) {
            *sum = _mm512_fmadd_ps(_mm512_set1_ps(rows[row]), column, *sum);
        }
    }
    sums
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
fn chain<const GROUP: usize>(task: Task<'_>, sides: Sides<'_, f32>) -> bool {
    let add = |place: Place, sums: &mut Sums| {
        for group in place.groups::<_, GROUP>(sides) {
            *sums = fuse(place, group, sums.map(|sum| float(sum))).map(|sum| bits(sum));
        }
        nans(sums)
    };
    fill(task, |before| before, add)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
fn integers<const GROUP: usize>(task: Task<'_>, sides: Sides<'_, f32>) -> bool {
    let add = |place: Place, sums: &mut Sums| {
        for group in place.groups::<_, GROUP>(sides) {
            let parts = fuse(place, group, [_mm512_setzero_ps(); QUAD]);
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum = _mm512_add_epi32(*sum, _mm512_cvtps_epi32(part));
            }
        }
        0
    };
    fill(task, |before| before, add)
}

/// Adds the products of a group to sums, pairwise; `pair` sums the products of a row at two
/// consecutive positions, `add` adds two numbers.
#[target_feature(enable = "avx512f")]
#[inline]
fn pairwise<const GROUP: usize>(
    place: Place,
    (rows, columns): Group<'_, f32, GROUP>,
    sums: &mut Sums,
    pair: impl Fn([f32; 2], [__m512; 2]) -> __m512,
    add: impl Fn(__m512, __m512) -> __m512,
) {
    let columns = columns.each_ref().map(|column| vector(column));
    for (row, sum) in place.rows().into_iter().zip(sums) {
        let pair = |first: usize| {
            let next = first + 1;
            pair([rows[first][row], rows[next][row]], [columns[first], columns[next]])
        };
        let part = if GROUP == 4 { add(pair(0), pair(2)) } else { pair(0) };
        *sum = bits(add(float(*sum), part));
    }
}

/// Sums with products that are exact in single precision, so that a product can be fused with
/// another. The sign of a minus zero sum of products is lost, as it must be: sums so far are never
/// minus zero.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
fn exact<const GROUP: usize>(task: Task<'_>, sides: Sides<'_, f32>, flushes: bool) -> bool {
    let pair = |[a, c]: [f32; 2], [b, d]: [__m512; 2]| {
        _mm512_fmadd_ps(_mm512_set1_ps(c), d, _mm512_mul_ps(_mm512_set1_ps(a), b))
    };
    let add = |place: Place, sums: &mut Sums| {
        for group in place.groups::<_, GROUP>(sides) {
            pairwise(place, group, sums, pair, |one, other| _mm512_add_ps(one, other));
        }
        nans(sums)
    };
    fill(task, |before| begun(before, flushes), add)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
fn stepwise<const GROUP: usize>(task: Task<'_>, sides: Sides<'_, f32>, flushes: bool) -> bool {
    let step = |value: __m512| if flushes { flushed(value) } else { value };
    let product = |a: f32, b: __m512| {
        step(_mm512_add_ps(_mm512_mul_ps(_mm512_set1_ps(a), b), _mm512_setzero_ps()))
    };
    let pair =
        |[a, c]: [f32; 2], [b, d]: [__m512; 2]| step(_mm512_add_ps(product(a, b), product(c, d)));
    let add = |place: Place, sums: &mut Sums| {
        for group in place.groups::<_, GROUP>(sides) {
            pairwise(place, group, sums, pair, |one, other| step(_mm512_add_ps(one, other)));
        }
        nans(sums)
    };
    fill(task, |before| begun(before, flushes), add)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
fn together<const GROUP: usize>(task: Task<'_>, sides: Sides<'_, f32>, limits: Limits) -> bool {
    const TO_ZERO: i32 = 0xb;
    let add = |place: Place, sums: &mut Sums| {
        let bad = sums.iter().fold(0, |bad, sum| {
            let addend = float(*sum);
            let units = _mm512_mul_ps(addend, _mm512_set1_ps(limits.per_unit));
            let whole = _mm512_roundscale_ps::<TO_ZERO>(units);
            let end = _mm512_set1_ps(limits.end);
            bad | _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(units, whole)
                | _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(_mm512_abs_ps(addend), end)
        });
        for group in place.groups::<_, GROUP>(sides) {
            let parts = fuse(place, group, [_mm512_setzero_ps(); QUAD]);
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum = bits(_mm512_add_ps(float(*sum), part));
            }
        }
        bad
    };
    fill(task, |before| before, add)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
fn aligned<const GROUP: usize, const PAIRS: usize>(
    task: Task<'_>,
    sides: Sides<'_, f32>,
    exponents: Sides<'_, u32>,
    rule: Rule,
) -> bool {
    let add = |place: Place, sums: &mut Sums| {
        let bad = sums.iter().fold(0, |bad, sum| bad | doubtful(float(*sum)));
        for group in place.groups::<_, GROUP>(sides).zip(place.groups::<_, PAIRS>(exponents)) {
            for (row, sum) in place.rows().into_iter().zip(&mut *sums) {
                *sum = bits(add_aligned(rule, group, row, float(*sum)));
            }
        }
        bad
    };
    fill(task, |before| before, add)
}
