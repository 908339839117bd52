//! Products of matrices by AVX-512, 16 sums at a time: the same bits as everywhere else, or nothing
//! where that would take more than vectors do well. Then the operation is left to what other hosts do.

mod lines;
mod sums;

use super::fused::Rule;
use super::{permuted_lane, row};
use crate::execute::lane::small_float::SmallFloat;
use crate::execute::operand::scalar_word;
use crate::instruction::{Op, Word};
use crate::wave::{LANES, Level, Row, Wave};
use flipwave_isa::LaneMask;
use lines::Lines;
use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_storeu_si512};
use sums::Way;

/// Sums that are made at a time.
const WIDTH: usize = 16;

/// What an element of A or B is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Single precision.
    Single,
    /// Single precision of which 19 bits count.
    Xf32,
    /// An 8-bit integer.
    Byte,
    /// A floating-point format of 16 bits or less.
    Small(SmallFloat),
}

impl Elements {
    fn bits(self) -> usize {
        match self {
            Elements::Single | Elements::Xf32 => 32,
            Elements::Byte => 8,
            Elements::Small(format) => format.bits as usize,
        }
    }
}

/// How products become a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// Each fused with the sum so far, in the order of k.
    Chain,
    /// Groups of so many, pairwise, each sum rounded; denormals flushed or not.
    Pairwise(usize, bool),
    /// Groups of so many, each fused with the sum so far: see [`super::fused`].
    Fused(Rule, usize),
    /// Integers, which wrap around.
    Integers,
}

/// So many products of `size` by `depth` with `depth` by `size` elements.
#[derive(Clone, Copy)]
pub struct Product {
    pub size: usize,
    pub depth: usize,
    pub blocks: usize,
    pub elements: [Elements; 2],
    pub sum: Sum,
}

impl Product {
    /// Lines of all blocks.
    fn lines(&self) -> usize {
        self.size * self.blocks
    }
}

/// Registers whose elements are in consecutive rows.
const QUAD: usize = 4;
/// Vectors of a register.
const CHUNKS: usize = LANES / WIDTH;
/// Most registers of D.
const MOST_REGISTERS: usize = 32;

/// D = A * B + C. Gives `false` and does nothing where it is not made here.
pub fn multiply_add(wave: &mut Wave, op: &Op, product: &Product) -> bool {
    if wave.level != Level::Avx512 || product.size < WIDTH {
        return false;
    }
    // SAFETY: the host was found to have this level.
    unsafe {
        match product.lines() * product.depth {
            ..=256 => multiply_lines::<256>(wave, op, product),
            257..=512 => multiply_lines::<512>(wave, op, product),
            _ => multiply_lines::<2048>(wave, op, product),
        }
    }
}

/// The same for lines with so many elements in all, or fewer.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
fn multiply_lines<const ROOM: usize>(wave: &mut Wave, op: &Op, product: &Product) -> bool {
    let blgp = op.inst.modifiers.blgp;
    let left = Lines::<ROOM>::read(wave, op, 0, product, |lane| lane);
    let right = Lines::<ROOM>::read(wave, op, 1, product, |lane| permuted_lane(blgp, lane));
    for way in Way::all(product, &left, &right).into_iter().flatten() {
        if sums::make(wave, op, product, way, &left, &right) {
            return true;
        }
    }
    false
}

/// The vector of some lanes of a register of C.
#[target_feature(enable = "avx512f")]
#[inline]
fn addend(wave: &Wave, op: &Op, register: usize, chunk: usize) -> __m512i {
    match op.sources[2].words[0] {
        Word::Row(first) => load(&wave.row(first.plus(register as u16)).0, WIDTH * chunk),
        word => _mm512_set1_epi32(scalar_word(wave, word) as i32),
    }
}

/// The words from one on.
#[target_feature(enable = "avx512f")]
#[inline]
fn load(words: &[u32], first: usize) -> __m512i {
    let words = &words[first..][..WIDTH];
    // SAFETY: the slice has as many words.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Puts words from a place on.
#[target_feature(enable = "avx512f")]
#[inline]
fn store(words: &mut [u32], first: usize, vector: __m512i) {
    let words = &mut words[first..][..WIDTH];
    // SAFETY: the slice has as many words.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) };
}

/// Writes D.
fn write(wave: &mut Wave, op: &Op, result: &[Row]) {
    for (register, row) in result.iter().enumerate() {
        *wave.row_mut(op.destination.plus(register as u16)) = *row;
    }
    wave.written_lanes = Some(LaneMask::FULL);
}
