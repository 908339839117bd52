//! Description of a matrix product for 16-lane vectors.

use super::super::fused::Rule;
use super::super::registers::permuted_lane;
use super::lines::{Layout, places};
use crate::execute::lane::small_float::SmallFloat;
use crate::execute::operand::scalar_word;
use crate::instruction::{Op, Word};
use crate::wave::{LANES, Row, Wave};
use flipwave_isa::LaneMask;
use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_storeu_si512};

/// Sums computed at a time.
pub const WIDTH: usize = 16;

/// Format of an element of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Single precision.
    Single,
    /// Single precision truncated to 19 bits.
    Xf32,
    /// A signed integer with this number of bits.
    Signed(u8),
    /// An unsigned integer with this number of bits.
    Unsigned(u8),
    /// A floating-point format of 16 bits or less.
    Small(SmallFloat),
}

impl Elements {
    pub fn bits(self) -> usize {
        match self {
            Elements::Single | Elements::Xf32 => 32,
            Elements::Signed(bits) | Elements::Unsigned(bits) => bits.into(),
            Elements::Small(format) => format.bits as usize,
        }
    }
}

/// Summation of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// Each product is fused with the sum so far, in the order of k.
    Chain,
    /// Groups of this size are added pairwise, each sum rounded; the flag is whether denormals are
    /// flushed.
    Pairwise(usize, bool),
    /// Groups of this size are fused with the sum so far: see [`super::super::fused`].
    Fused(Rule, usize),
    /// Integers, which wrap around.
    Integers,
}

/// Dimensions and formats: `blocks` products of `size` by `depth` with `depth` by `size` elements.
#[derive(Clone, Copy)]
pub struct Product {
    pub size: usize,
    pub depth: usize,
    pub blocks: usize,
    pub elements: [Elements; 2],
    pub sum: Sum,
    /// Permutation of the lanes of B (ISA manual, "BLGP").
    pub pattern: u8,
}

impl Product {
    /// Lines of all blocks.
    pub fn lines(&self) -> usize {
        self.size * self.blocks
    }

    /// Layout of the elements of A or B.
    pub fn layout(&self, side: usize) -> Layout {
        let (lines, pattern) = (self.lines(), if side == 1 { self.pattern } else { 0 });
        // All are powers of two.
        let shift = lines.trailing_zeros();
        let (each, groups) = (self.depth * lines / LANES, LANES >> shift);
        // A lane holds 16 bytes of consecutive elements, then 16 bytes of a later run; elements of
        // six and four bits are all consecutive.
        let bits = self.elements[side].bits();
        let run = if bits < 8 { each } else { each.min(128 / bits) };
        Layout {
            lines,
            depth: self.depth,
            each,
            chunks: CHUNKS,
            run,
            from: EACH.map(|chunk| permuted_lane(pattern, chunk * WIDTH) / WIDTH),
            places: places(groups, each / run, |group, number| run * (group + groups * number)),
        }
    }
}

impl Product {
    /// Layout of the elements of A in runs of four.
    pub fn fours(&self) -> Layout {
        let layout = self.layout(0);
        let (run, groups) = (layout.run, LANES >> self.lines().trailing_zeros());
        let fours = |group: usize, four: usize| {
            usize::from(layout.places[group][4 * four / run]) + 4 * four % run
        };
        Layout { run: 4, places: places(groups, layout.each / 4, fours), ..layout }
    }
}

/// Registers whose elements are in consecutive rows.
pub const QUAD: usize = 4;
/// Vectors of a register.
pub const CHUNKS: usize = LANES / WIDTH;
/// Numbers of these vectors.
pub const EACH: [usize; CHUNKS] = [0, 1, 2, 3];
/// Maximum number of registers of D for one block of 16 rows and columns.
pub const MOST_RESULTS: usize = 8;
/// Maximum number of registers of D.
pub const MOST_REGISTERS: usize = 32;

/// The registers of a source.
pub enum Registers<'a> {
    /// Vector registers.
    Rows(&'a [Row]),
    /// First register, and the value of all others; uniform over lanes.
    Constants([i32; 2]),
}

impl<'a> Registers<'a> {
    /// Registers of a source with these words; `None` if the wave has fewer than `count`.
    #[inline(always)]
    pub fn of(wave: &'a Wave, words: [Word; 2], count: usize) -> Option<Registers<'a>> {
        match words[0] {
            Word::Row(first) => wave.rows[first.slot()..].get(..count).map(Registers::Rows),
            _ => Some(Registers::Constants(words.map(|word| scalar_word(wave, word) as i32))),
        }
    }

    /// Reads 16 lanes of a register.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub fn vector(&self, register: usize, chunk: usize) -> __m512i {
        match self {
            Registers::Rows(rows) => load(&rows[register].0, chunk % CHUNKS * WIDTH),
            Registers::Constants(words) => _mm512_set1_epi32(words[register.min(1)]),
        }
    }

    /// Reads 16 lanes of [`QUAD`] registers, starting at `first`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub fn vectors(&self, first: usize, chunk: usize) -> [__m512i; QUAD] {
        match self {
            Registers::Rows(rows) => {
                let rows = &rows[first..][..QUAD];
                [0, 1, 2, 3].map(|register| load(&rows[register].0, chunk % CHUNKS * WIDTH))
            }
            Registers::Constants(_) => {
                [0, 1, 2, 3].map(|register| self.vector(first + register, chunk))
            }
        }
    }
}

/// Loads words, starting at `first`.
#[target_feature(enable = "avx512f")]
#[inline]
pub fn load(words: &[u32], first: usize) -> __m512i {
    let words = &words[first..][..WIDTH];
    // SAFETY: the slice has the length of a vector.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Stores words, starting at `first`.
#[target_feature(enable = "avx512f")]
#[inline]
pub fn store(words: &mut [u32], first: usize, vector: __m512i) {
    let words = &mut words[first..][..WIDTH];
    // SAFETY: the slice has the length of a vector.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) };
}

/// Writes D.
#[target_feature(enable = "avx512f")]
#[inline]
pub fn write(wave: &mut Wave, op: &Op, result: &[Row]) {
    for (register, row) in result.iter().enumerate() {
        let to = wave.row_mut(op.destination.plus(register as u16));
        for first in (0..LANES).step_by(WIDTH) {
            store(&mut to.0, first, load(&row.0, first));
        }
    }
    wave.written_lanes = Some(LaneMask::FULL);
}
