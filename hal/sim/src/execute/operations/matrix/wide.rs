//! Operations of CDNA 3 and CDNA 4 on one block: those whose sources are wider than two words or
//! have newer element formats, sparse ones, and those with scales.
//!
//! The CDNA 4 ISA defines the layout ("General input and output layout", "8-bit and Smaller Matrix
//! Operations and Layouts", "Details of Sparsity Structure"): a lane holds 16 bytes of consecutive
//! elements, then 16 bytes of a later run; elements of six and four bits are all consecutive.
//!
//! The rounding of sums was measured only for dense operations of gfx942; all others round in the
//! same way here.

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::fused::{Factor, Rule, sum, sum_by_steps};
use super::lines::{Lines, words};
use super::registers::{permuted_lane, row, sum_row};
use super::sizes::{Bounds, Digits, Limits, Sizes};
use super::vectors::{Term, Vector, WIDTH, add_fused, add_integers, add_together, are_tame};
use crate::execute::lane::small_float::SmallFloat;
use crate::execute::matrix_sum::{Steps, SummedElement, integers};
use crate::execute::operand::scalar_word;
use crate::instruction::{Op, Word};
use crate::wave::level::at_each_level;
use crate::wave::{LANES, Level, Row, Wave};
use flipwave_arch::{MatrixElement, ProductShape, SumType};
use flipwave_isa::{Float8, LaneMask};

/// Format of an element.
#[derive(Clone, Copy)]
pub enum Format {
    /// A floating-point format of 16 bits or less.
    Small(SmallFloat),
    /// Single precision truncated to 19 bits.
    Xf32,
    /// An 8-bit integer.
    Byte,
}

#[cfg(target_arch = "x86_64")]
impl Shape {
    /// The product, whose B has its lanes permuted by `pattern`.
    fn product(&self, pattern: u8) -> avx512::Product {
        let elements = |format| match format {
            Format::Small(format) => avx512::Elements::Small(format),
            Format::Xf32 => avx512::Elements::Xf32,
            Format::Byte => avx512::Elements::Signed(8),
        };
        let sum = match self.sum {
            Sum::Integers => avx512::Sum::Integers,
            Sum::Fused(rule, group) => avx512::Sum::Fused(rule, group),
        };
        avx512::Product {
            size: self.size,
            depth: self.depth,
            blocks: 1,
            elements: [elements(self.a), elements(self.b)],
            sum,
            pattern,
        }
    }
}

impl Format {
    /// E4M3.
    pub const FP8: Format = Format::Small(SmallFloat::fp8(Float8::Ocp));
    /// E5M2.
    pub const BF8: Format = Format::Small(SmallFloat::bf8(Float8::Ocp));
    /// E4M3 without minus zero.
    pub const FP8_FNUZ: Format = Format::Small(SmallFloat::fp8(Float8::Fnuz));
    /// E5M2 without minus zero.
    pub const BF8_FNUZ: Format = Format::Small(SmallFloat::bf8(Float8::Fnuz));
    /// Half precision.
    pub const F16: Format = Format::Small(SmallFloat::F16);
    /// Bfloat16.
    pub const BF16: Format = Format::Small(SmallFloat::BF16);

    pub(super) fn bits(self) -> usize {
        match self {
            Format::Small(format) => format.bits as usize,
            Format::Xf32 => 32,
            Format::Byte => 8,
        }
    }

    /// Precision of floating-point elements.
    fn digits(self) -> Digits {
        match self {
            Format::Small(format) => Digits::of(format),
            Format::Xf32 | Format::Byte => Digits::XF32,
        }
    }

    fn factor(self, bits: u32) -> Factor {
        match self {
            Format::Small(format) => Factor::of(format, bits),
            Format::Xf32 => Factor::truncated(bits),
            Format::Byte => Factor::integer((bits as i8).into()),
        }
    }

    /// Index k of the product of an element: the `item`-th of `each` elements of a lane, in the
    /// `group`-th of `groups` groups of lanes.
    pub(super) fn place(self, item: usize, group: usize, groups: usize, each: usize) -> usize {
        let chunk = if self.bits() < 8 { each } else { each.min(128 / self.bits()) };
        item % chunk + chunk * (group + groups * (item / chunk))
    }
}

/// Summation of products.
#[derive(Clone, Copy)]
pub enum Sum {
    /// Integers, which wrap around.
    Integers,
    /// Groups of this size, each fused with the sum so far.
    Fused(Rule, usize),
}

/// Shape of a product of `size` by `depth` with `depth` by `size` elements.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Rows and columns of the result.
    pub size: usize,
    /// Products of a dense sum. Sparse sums have half as many.
    pub depth: usize,
    /// Format of the elements of A.
    pub a: Format,
    /// Format of the elements of B.
    pub b: Format,
    /// Summation of products.
    pub sum: Sum,
}

impl Shape {
    /// Shape with `products` products per sum, as summation steps use it.
    pub(super) const fn steps(&self, products: usize) -> ProductShape {
        let (sum, group) = match self.sum {
            Sum::Integers => (SumType::I32, 1),
            Sum::Fused(_, group) => (SumType::F32, if group < products { group } else { products }),
        };
        ProductShape { group: group as u8, sum, ..ProductShape::square(self.size, products) }
    }
}

/// Maximum number of elements of a row of A or a column of B.
pub(super) const MOST_DEPTH: usize = 128;
/// Maximum number of elements of A or of B.
pub(super) const MOST_ELEMENTS: usize = 2048;
/// Products that share a scale.
const SCALED: usize = 32;
/// Products of a scaled sum that are added at a time.
const SCALED_GROUP: usize = 16;
/// Maximum number of words of A or B per lane.
pub(super) const MOST_WORDS: usize = 8;

/// Rows of A or columns of B, one after the other.
type Elements = [Factor; MOST_ELEMENTS];

/// D = A * B + C.
#[inline(always)]
pub fn dense(wave: &mut Wave, op: &Op, shape: &Shape) {
    #[cfg(target_arch = "x86_64")]
    let product = shape.product(op.inst.modifiers.blgp);
    #[cfg(target_arch = "x86_64")]
    if avx512::multiply_add(wave, op, &product, avx512::Form::Dense) {
        return;
    }
    dense_of_level(wave, op, shape);
}

at_each_level! {
    /// Computes [`dense`] with the vectors that the compiler generates for the host's level.
    pub fn dense_of_level(wave: &mut Wave, op: &Op, shape: &Shape) -> () = dense_at_level;
}

/// D = A * B + D, where A stores two of each four elements of a row, whose positions the third source
/// specifies, two bits each. `cbsz` and `abid` select the part of its words.
#[inline(always)]
pub fn sparse(wave: &mut Wave, op: &Op, shape: &Shape) {
    #[cfg(target_arch = "x86_64")]
    {
        let form = avx512::Form::Sparse(avx512::Positions {
            word: op.sources[2].words[0],
            first_bit: first_position(op, shape) as u32,
            repeated: avx512::Repeated::Added,
        });
        if avx512::multiply_add(wave, op, &shape.product(0), form) {
            return;
        }
    }
    sparse_of_level(wave, op, shape);
}

/// Lowest bit of the positions of a lane's elements.
fn first_position(op: &Op, shape: &Shape) -> usize {
    let index_bits = shape.depth * shape.size / LANES;
    let modifiers = &op.inst.modifiers;
    let set =
        if modifiers.cbsz & 3 == 0 { usize::from(modifiers.abid) % (32 / index_bits) } else { 0 };
    set * index_bits
}

at_each_level! {
    /// Computes [`sparse`] with the vectors that the compiler generates for the host's level.
    pub fn sparse_of_level(wave: &mut Wave, op: &Op, shape: &Shape) -> () = sparse_at_level;
}

/// D = A * B + C with the formats in `cbsz` and `blgp`; each 32 products have a scale of their row
/// and one of their column, whose exponents are bytes that `op_sel` and `op_sel_hi` select.
#[inline(always)]
pub fn scaled(wave: &mut Wave, op: &Op, size: usize, has_scales: bool) {
    #[cfg(target_arch = "x86_64")]
    if is_scaled_in_vectors(wave, op, size, has_scales) {
        return;
    }
    scaled_of_level(wave, op, size, has_scales);
}

/// Computes [`scaled`] with AVX-512; returns `false` without effect if that is not available, or a
/// scaled element is not a single-precision number.
#[cfg(target_arch = "x86_64")]
fn is_scaled_in_vectors(wave: &mut Wave, op: &Op, size: usize, has_scales: bool) -> bool {
    let modifiers = &op.inst.modifiers;
    let [Some(a), Some(b)] = [modifiers.cbsz, modifiers.blgp].map(format_of) else { return false };
    let (depth, sum) = (SCALED * LANES / size, Sum::Fused(Rule::EvenAndOdd, SCALED_GROUP));
    let product = Shape { size, depth, a, b, sum }.product(0);
    let form = if has_scales {
        let scales = scales(wave, op);
        if scales.as_flattened().contains(&0xff) {
            return false;
        }
        avx512::Form::Scaled(scales.map(|exponents| avx512::Powers { block: SCALED, exponents }))
    } else {
        avx512::Form::Dense
    };
    avx512::multiply_add(wave, op, &product, form)
}

at_each_level! {
    /// Computes [`scaled`] with the vectors that the compiler generates for the host's level.
    pub fn scaled_of_level(wave: &mut Wave, op: &Op, size: usize, has_scales: bool) -> ()
        = scaled_at_level;
}

#[inline(always)]
fn dense_at_level(wave: &mut Wave, op: &Op, shape: &Shape) {
    match shape.size * shape.depth {
        ..=256 => dense_in_room::<256>(wave, op, shape),
        257..=512 => dense_in_room::<512>(wave, op, shape),
        _ => dense_in_room::<MOST_ELEMENTS>(wave, op, shape),
    }
}

/// Computes [`dense`] for at most `ROOM` elements.
#[inline(always)]
fn dense_in_room<const ROOM: usize>(wave: &mut Wave, op: &Op, shape: &Shape) {
    let Shape { size, depth, a, b, sum } = *shape;
    let blgp = op.inst.modifiers.blgp;
    let left = Lines::<ROOM>::read(wave, op, 0, a, size, depth, |lane| lane);
    let right = Lines::<ROOM>::read(wave, op, 1, b, size, depth, |lane| permuted_lane(blgp, lane));
    if !are_tame(left.greatest, right.greatest) {
        return dense_one_by_one(wave, op, shape);
    }
    let mut result = addends(wave, op, size);
    if let Sum::Fused(_, group) = sum
        && wave.level != Level::Plain
        && add_all_together(&mut result, shape, group, &left, &right)
    {
        return write(wave, op, &result[..size * size / LANES]);
    }
    let mut terms = [Term::default(); MOST_DEPTH];
    for row in 0..size {
        let terms = &mut terms[..depth];
        left.copy_terms(row, terms);
        for column in (0..size).step_by(WIDTH) {
            add_in_vectors(sum, terms, &right, column, place(&mut result, size, row, column));
        }
    }
    write(wave, op, &result[..size * size / LANES]);
}

/// Adds all products to the elements of C, in groups that are added at once. Returns `false`
/// without effect if the bits would differ.
#[inline(always)]
fn add_all_together<const ROOM: usize>(
    result: &mut Registers,
    shape: &Shape,
    group: usize,
    left: &Lines<ROOM>,
    right: &Lines<ROOM>,
) -> bool {
    let Shape { size, depth, a, b, .. } = *shape;
    let mut rooms = [[0.0; ROOM]; 2];
    let [a_values, b_values] = rooms.each_mut().map(|room| &mut room[..size * depth]);
    if !left.values(a_values) || !right.values(b_values) {
        return false;
    }
    let sizes = [Sizes::of(a_values), Sizes::of(b_values)];
    let bounds = Bounds::of([a, b].map(Format::digits), sizes);
    let limits = if bounds.are_tame() { bounds.limits(group) } else { None };
    let hold =
        |limits: &Limits| result[..size * size / LANES].iter().all(|row| limits.hold(&row.0));
    if !limits.as_ref().is_some_and(hold) {
        return false;
    }
    for row in (0..size).step_by(ROWS) {
        for column in (0..size).step_by(WIDTH) {
            let mut sums: [Vector<f32>; ROWS] = std::array::from_fn(|offset| {
                place(result, size, row + offset, column).map(f32::from_bits)
            });
            add_together(group, (a_values, row), (b_values, column), size, &mut sums);
            for (offset, sums) in sums.into_iter().enumerate() {
                *place(result, size, row + offset, column) = sums.map(f32::to_bits);
            }
        }
    }
    true
}

#[inline(always)]
fn sparse_at_level(wave: &mut Wave, op: &Op, shape: &Shape) {
    let Shape { size, depth, b, sum, .. } = *shape;
    let left = sparse_rows(wave, op, shape);
    let right = Lines::<MOST_ELEMENTS>::read(wave, op, 1, b, size, depth, |lane| lane);
    let is_finite = |(factor, _): &(Factor, usize)| factor.value.is_finite();
    let greatest = left.iter().map(|(factor, _)| factor.exponent).max().unwrap_or_default();
    if !left.iter().all(is_finite) || !are_tame(greatest, right.greatest) {
        return sparse_one_by_one(wave, op, shape, &left);
    }
    let kept = depth / 2;
    let mut result = addends(wave, op, size);
    let mut terms = [Term::default(); MOST_DEPTH / 2];
    for (row, left) in left[..size * kept].chunks(kept).enumerate() {
        let terms = &mut terms[..kept];
        for (term, (factor, product)) in terms.iter_mut().zip(left) {
            let Factor { significand, exponent, .. } = *factor;
            *term = Term { significand, exponent, product: *product as u32 };
        }
        for column in (0..size).step_by(WIDTH) {
            add_in_vectors(sum, terms, &right, column, place(&mut result, size, row, column));
        }
    }
    write(wave, op, &result[..size * size / LANES]);
}

#[inline(always)]
fn scaled_at_level(wave: &mut Wave, op: &Op, size: usize, has_scales: bool) {
    let modifiers = &op.inst.modifiers;
    let [Some(a), Some(b)] = [modifiers.cbsz, modifiers.blgp].map(format_of) else { return };
    let depth = SCALED * LANES / size;
    let scales = has_scales.then(|| scales(wave, op));
    let scale = |side: usize, line: usize, block: usize| {
        scales.map_or(127, |scales| scales[side][line + size * block])
    };
    let left = Lines::<MOST_ELEMENTS>::read(wave, op, 0, a, size, depth, |lane| lane);
    let right = Lines::<MOST_ELEMENTS>::read(wave, op, 1, b, size, depth, |lane| lane);
    if !are_tame(left.greatest, right.greatest) {
        return scaled_one_by_one(wave, op, size, [a, b], scale);
    }
    let mut result = addends(wave, op, size);
    let mut terms = [Term::default(); MOST_DEPTH];
    for row in 0..size {
        let terms = &mut terms[..depth];
        left.copy_terms(row, terms);
        for column in (0..size).step_by(WIDTH) {
            let bits = place(&mut result, size, row, column);
            let mut sums = bits.map(f32::from_bits);
            let mut is_nan = [false; WIDTH];
            for (block, terms) in terms.chunks(SCALED).enumerate() {
                let a = scale(0, row, block);
                let mut exponents = [0; WIDTH];
                for lane in 0..WIDTH {
                    let b = scale(1, column + lane, block);
                    exponents[lane] = i32::from(a) + i32::from(b) - 2 * 127;
                    is_nan[lane] |= a == 0xff || b == 0xff;
                }
                for group in terms.chunks(SCALED_GROUP) {
                    add_fused(Rule::EvenAndOdd, group, &right, column, &exponents, &mut sums);
                }
            }
            for lane in 0..WIDTH {
                bits[lane] = if is_nan[lane] { 0x7fc0_0000 } else { sums[lane].to_bits() };
            }
        }
    }
    write(wave, op, &result[..size * size / LANES]);
}

/// Adds products to the sums of a row and of columns from `column` on, given as bits.
#[inline(always)]
fn add_in_vectors<const ROOM: usize>(
    rule: Sum,
    terms: &[Term],
    right: &Lines<ROOM>,
    column: usize,
    bits: &mut Vector<u32>,
) {
    match rule {
        Sum::Integers => add_integers(terms, right, column, bits),
        Sum::Fused(rule, group) => {
            let mut sums = bits.map(f32::from_bits);
            for group in terms.chunks(group) {
                add_fused(rule, group, right, column, &[0; WIDTH], &mut sums);
            }
            *bits = sums.map(f32::to_bits);
        }
    }
}

/// Consecutive rows of C and D that a lane holds.
const ROWS: usize = 4;

/// The registers of D.
type Registers = [Row; 16];

/// C.
#[inline(always)]
fn addends(wave: &Wave, op: &Op, size: usize) -> Registers {
    let mut result = [Row::ZERO; 16];
    for (register, row) in result[..size * size / LANES].iter_mut().enumerate() {
        *row = sum_row(wave, op, register);
    }
    result
}

/// Elements of a row of D, starting at a column.
#[inline(always)]
fn place(result: &mut Registers, size: usize, row: usize, column: usize) -> &mut Vector<u32> {
    let groups = LANES / size;
    let (register, group) = (row % ROWS + row / (ROWS * groups) * ROWS, row / ROWS % groups);
    let (vectors, _) = result[register].0.as_chunks_mut();
    &mut vectors[(group * size + column) / WIDTH]
}

/// Writes D.
fn write(wave: &mut Wave, op: &Op, result: &[Row]) {
    for (register, row) in result.iter().enumerate() {
        *wave.row_mut(op.destination.plus(register as u16)) = *row;
    }
    wave.written_lanes = Some(LaneMask::FULL);
}

/// Computes [`dense`] if not all elements, or not all products, are known to be finite.
#[cold]
#[inline(never)]
fn dense_one_by_one(wave: &mut Wave, op: &Op, shape: &Shape) {
    let Shape { size, depth, a, b, .. } = *shape;
    let blgp = op.inst.modifiers.blgp;
    let left = elements(wave, op, 0, a, size, depth, |lane| lane);
    let right = elements(wave, op, 1, b, size, depth, |lane| permuted_lane(blgp, lane));
    let pairs = |row: usize, column: usize, products: &mut Products| {
        let (left, right) = (&left[row * depth..][..depth], &right[column * depth..][..depth]);
        for ((product, a), b) in products.iter_mut().zip(left).zip(right) {
            *product = (*a, *b);
        }
        depth
    };
    finish(wave, op, size, pairs, |products, before, _, _| summed(shape.sum, products, before));
}

/// Elements of the rows of a sparse A in the order of their products, and the element of the column
/// that each is multiplied with.
type SparseRows = [(Factor, usize); MOST_ELEMENTS / 2];

fn sparse_rows(wave: &Wave, op: &Op, shape: &Shape) -> SparseRows {
    let Shape { size, depth, a, b, .. } = *shape;
    let each = depth * size / LANES;
    let groups = LANES / size;
    let kept = lane_elements(wave, op, 0, a, each / 2);
    let first_bit = first_position(op, shape);
    let indices = row(wave, op.sources[2].words[0]);
    let mut left = [(Factor::default(), 0usize); MOST_ELEMENTS / 2];
    for lane in 0..LANES {
        let (row, group) = (lane % size, lane / size);
        for (item, factor) in kept[lane][..each / 2].iter().enumerate() {
            let selected = indices.0[lane] >> (first_bit + 2 * item) & 3;
            let met = b.place(item / 2 * 4 + selected as usize, group, groups, each);
            let order = b.place(item / 2 * 4, group, groups, each) / 2 + item % 2;
            left[row * depth / 2 + order] = (*factor, met);
        }
    }
    left
}

/// Computes [`sparse`] if not all elements, or not all products, are known to be finite.
#[cold]
#[inline(never)]
fn sparse_one_by_one(wave: &mut Wave, op: &Op, shape: &Shape, left: &SparseRows) {
    let Shape { size, depth, b, .. } = *shape;
    let right = elements(wave, op, 1, b, size, depth, |lane| lane);
    let pairs = |row: usize, column: usize, products: &mut Products| {
        let left = &left[row * depth / 2..][..depth / 2];
        for (product, (a, met)) in products.iter_mut().zip(left) {
            *product = (*a, right[column * depth + met]);
        }
        depth / 2
    };
    finish(wave, op, size, pairs, |products, before, _, _| summed(shape.sum, products, before));
}

/// Exponents of the scales of A and of B, as in [`scaled`].
fn scales(wave: &Wave, op: &Op) -> [[u8; LANES]; 2] {
    let modifiers = &op.inst.modifiers;
    [0, 1].map(|side| {
        let low = modifiers.op_sel.unwrap_or(0) >> side & 1;
        let high = modifiers.op_sel_hi.unwrap_or(u8::MAX) >> side & 1;
        scale_bytes(wave, op.sources[3].words[side], low | high << 1)
    })
}

/// Computes [`scaled`] if not all elements, or not all products, are known to be finite.
#[cold]
#[inline(never)]
fn scaled_one_by_one(
    wave: &mut Wave,
    op: &Op,
    size: usize,
    formats: [Format; 2],
    scale: impl Fn(usize, usize, usize) -> u8,
) {
    let depth = SCALED * LANES / size;
    let [left, right] =
        [0, 1].map(|side| elements(wave, op, side, formats[side], size, depth, |lane| lane));
    let pairs = |row: usize, column: usize, products: &mut Products| {
        let (left, right) = (&left[row * depth..][..depth], &right[column * depth..][..depth]);
        for ((product, a), b) in products.iter_mut().zip(left).zip(right) {
            *product = (*a, *b);
        }
        depth
    };
    finish(wave, op, size, pairs, |products, before, row, column| {
        let mut before = f32::from_bits(before);
        for (block, products) in products.chunks(SCALED).enumerate() {
            let [a, b] = [scale(0, row, block), scale(1, column, block)];
            if a == 0xff || b == 0xff {
                return 0x7fc0_0000;
            }
            let exponent = i32::from(a) + i32::from(b) - 2 * 127;
            for group in products.chunks(SCALED_GROUP) {
                before = sum(Rule::EvenAndOdd, group.iter().copied(), exponent, before);
            }
        }
        before.to_bits()
    });
}

/// Format with this number (CDNA 4 ISA, "Rules for the F8F6F4 MFMA instructions"). Instructions
/// with other numbers are refused earlier.
fn format_of(number: u8) -> Option<Format> {
    Some(match number {
        0 => Format::FP8,
        1 => Format::BF8,
        2 => Format::Small(SmallFloat::FP6),
        3 => Format::Small(SmallFloat::BF6),
        4 => Format::Small(SmallFloat::FP4),
        _ => return None,
    })
}

/// Reads a byte of each lane of a scale; for a constant, its exponent.
fn scale_bytes(wave: &Wave, word: Word, byte: u8) -> [u8; LANES] {
    match word {
        Word::Row(row) => wave.row(row).0.map(|word| (word >> (8 * byte)) as u8),
        Word::Constant(bits) => [(bits >> 23) as u8; LANES],
        other => [(scalar_word(wave, other) >> (8 * byte)) as u8; LANES],
    }
}

/// Factors of the products of a sum.
type Products = [(Factor, Factor); MOST_DEPTH];

/// Bits of an element of D, from the products and the bits of C.
fn summed(rule: Sum, products: &[(Factor, Factor)], before: u32) -> u32 {
    match rule {
        Sum::Integers => products
            .iter()
            .fold(before, |sum, (a, b)| sum.wrapping_add((a.significand * b.significand) as u32)),
        Sum::Fused(rule, group) => products
            .chunks(group)
            .fold(f32::from_bits(before), |before, group| {
                sum(rule, group.iter().copied(), 0, before)
            })
            .to_bits(),
    }
}

/// Sums one element of the result of [`dense`], step by step.
pub fn dense_sum(
    wave: &Wave,
    op: &Op,
    shape: &Shape,
    element: MatrixElement,
    steps: &mut Steps<'_>,
) -> Option<SummedElement> {
    let blgp = op.inst.modifiers.blgp;
    let factors = factors(wave, op, shape, element, |lane| permuted_lane(blgp, lane));
    Some(summed_by_steps(wave, op, shape.size, element, |before| {
        shape.sum.by_steps(&factors, before, steps)
    }))
}

/// Sums one element of the result of [`sparse`], step by step.
pub fn sparse_sum(
    wave: &Wave,
    op: &Op,
    shape: &Shape,
    element: MatrixElement,
    steps: &mut Steps<'_>,
) -> Option<SummedElement> {
    let Shape { size, depth, b, sum, .. } = *shape;
    let [row, column] = [element.row, element.column].map(usize::from);
    let left = sparse_rows(wave, op, shape);
    let right = elements(wave, op, 1, b, size, depth, |lane| lane);
    let left = &left[row * depth / 2..][..depth / 2];
    let factors: Vec<(Factor, Factor)> =
        left.iter().map(|(a, met)| (*a, right[column * depth + met])).collect();
    Some(summed_by_steps(wave, op, size, element, |before| sum.by_steps(&factors, before, steps)))
}

/// Shape of [`scaled`], as summation steps use it.
pub const fn scaled_steps(size: usize) -> ProductShape {
    ProductShape { group: SCALED_GROUP as u8, ..ProductShape::square(size, SCALED * LANES / size) }
}

/// Sums one element of the result of [`scaled`], step by step. If a scale is a NaN, the element is
/// a NaN.
pub fn scaled_sum(
    wave: &Wave,
    op: &Op,
    size: usize,
    has_scales: bool,
    element: MatrixElement,
    steps: &mut Steps<'_>,
) -> Option<SummedElement> {
    let modifiers = &op.inst.modifiers;
    let [Some(a), Some(b)] = [modifiers.cbsz, modifiers.blgp].map(format_of) else { return None };
    let rule = Sum::Fused(Rule::EvenAndOdd, SCALED_GROUP);
    let depth = SCALED * LANES / size;
    let shape = Shape { size, depth, a, b, sum: rule };
    let factors = factors(wave, op, &shape, element, |lane| lane);
    let scales = has_scales.then(|| scales(wave, op));
    let of_step = |step: usize| {
        let place = |line: u8| usize::from(line) + size * (step / SCALED);
        scales.map_or([127; 2], |[a, b]| [a[place(element.row)], b[place(element.column)]])
    };
    Some(summed_by_steps(wave, op, size, element, |before| {
        let exponent = |step: usize| {
            let [a, b] = of_step(step).map(i32::from);
            a + b - 2 * 127
        };
        let before = f32::from_bits(before);
        let sum = sum_by_steps(Rule::EvenAndOdd, SCALED_GROUP, &factors, exponent, before, steps);
        let is_nan = (0..depth).step_by(SCALED).any(|step| of_step(step).contains(&0xff));
        if is_nan { 0x7fc0_0000 } else { sum.to_bits() }
    }))
}

/// Factors of an element's products, all of which are stored; `from` maps a lane to the lane whose
/// elements of B it has.
fn factors(
    wave: &Wave,
    op: &Op,
    shape: &Shape,
    element: MatrixElement,
    from: impl Fn(usize) -> usize,
) -> Vec<(Factor, Factor)> {
    let Shape { size, depth, a, b, .. } = *shape;
    let [row, column] = [element.row, element.column].map(usize::from);
    let left = elements(wave, op, 0, a, size, depth, |lane| lane);
    let right = elements(wave, op, 1, b, size, depth, from);
    let (left, right) = (&left[row * depth..][..depth], &right[column * depth..][..depth]);
    left.iter().copied().zip(right.iter().copied()).collect()
}

/// Element of D whose bits `sum` computes from those of C.
fn summed_by_steps(
    wave: &Wave,
    op: &Op,
    size: usize,
    element: MatrixElement,
    sum: impl FnOnce(u32) -> u32,
) -> SummedElement {
    let [row, column] = [element.row, element.column].map(usize::from);
    let groups = LANES / size;
    let register = row % ROWS + row / (ROWS * groups) * ROWS;
    let lane = row / ROWS % groups * size + column;
    let before = sum_row(wave, op, register).0[lane];
    let first = op.destination.plus(register as u16);
    SummedElement::words(first, lane, 1, sum(before).into())
}

impl Sum {
    /// Computes the bits of a sum from the bits of C.
    fn by_steps(self, factors: &[(Factor, Factor)], before: u32, steps: &mut Steps<'_>) -> u32 {
        match self {
            Sum::Integers => {
                let products = factors.iter().map(|(a, b)| a.significand * b.significand);
                integers(products, before as i32, false, steps) as u32
            }
            Sum::Fused(rule, group) => {
                let before = f32::from_bits(before);
                sum_by_steps(rule, group, factors, |_| 0, before, steps).to_bits()
            }
        }
    }
}

/// Computes all elements of D. `pairs` returns the factors of an element and their number.
fn finish(
    wave: &mut Wave,
    op: &Op,
    size: usize,
    pairs: impl Fn(usize, usize, &mut Products) -> usize,
    sum: impl Fn(&[(Factor, Factor)], u32, usize, usize) -> u32,
) {
    let groups = LANES / size;
    let registers = size * size / LANES;
    let mut products = [(Factor::default(), Factor::default()); MOST_DEPTH];
    let mut result = [Row::ZERO; 16];
    for (register, result) in result[..registers].iter_mut().enumerate() {
        let before = sum_row(wave, op, register);
        for (lane, result) in result.0.iter_mut().enumerate() {
            let row = register % ROWS + ROWS * (lane / size + groups * (register / ROWS));
            let column = lane % size;
            let count = pairs(row, column, &mut products);
            *result = sum(&products[..count], before.0[lane], row, column);
        }
    }
    write(wave, op, &result[..registers]);
}

/// Rows of A or columns of B in the order of their products.
fn elements(
    wave: &Wave,
    op: &Op,
    source: usize,
    format: Format,
    size: usize,
    depth: usize,
    from: impl Fn(usize) -> usize,
) -> Elements {
    let each = depth * size / LANES;
    let lanes = lane_elements(wave, op, source, format, each);
    let mut elements = [Factor::default(); MOST_ELEMENTS];
    for lane in 0..LANES {
        let (line, group) = (lane % size, lane / size);
        for (item, factor) in lanes[from(lane)][..each].iter().enumerate() {
            elements[line * depth + format.place(item, group, LANES / size, each)] = *factor;
        }
    }
    elements
}

/// Reads the elements of A or B of each lane.
fn lane_elements(
    wave: &Wave,
    op: &Op,
    source: usize,
    format: Format,
    each: usize,
) -> [[Factor; 32]; LANES] {
    let bits = format.bits();
    let words = words(wave, op, source, each * bits, |lane| lane);
    let mut elements = [[Factor::default(); 32]; LANES];
    for (lane, elements) in elements.iter_mut().enumerate() {
        for (item, element) in elements[..each].iter_mut().enumerate() {
            let (word, shift) = (item * bits / 32, item * bits % 32);
            let both = u64::from(words[word].0[lane]) | u64::from(words[word + 1].0[lane]) << 32;
            *element = format.factor((both >> shift & ((1 << bits) - 1)) as u32);
        }
    }
    elements
}
