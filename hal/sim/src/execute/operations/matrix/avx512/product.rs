//! A product of matrices as vectors of 16 lanes see it.

use super::super::fused::Rule;
use super::super::registers::permuted_lane;
use super::lines::Layout;
use crate::execute::lane::small_float::SmallFloat;
use crate::execute::operand::scalar_word;
use crate::instruction::{Op, Word};
use crate::wave::{LANES, Row, Wave};
use flipwave_isa::LaneMask;
use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_storeu_si512};

/// Sums that are made at a time.
pub const WIDTH: usize = 16;

/// What an element of A or B is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Single precision.
    Single,
    /// Single precision of which 19 bits count.
    Xf32,
    /// An integer of so many bits, with a sign.
    Signed(u8),
    /// The same without.
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

/// How products become a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// Each fused with the sum so far, in the order of k.
    Chain,
    /// Groups of so many, pairwise, each sum rounded; denormals flushed or not.
    Pairwise(usize, bool),
    /// Groups of so many, each fused with the sum so far: see [`super::super::fused`].
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
    pub fn lines(&self) -> usize {
        self.size * self.blocks
    }

    /// Where the elements of A or of B lie, whose lanes `blgp` rearranges.
    pub fn layout(&self, side: usize, blgp: u8) -> Layout<impl Fn(usize, usize) -> usize> {
        let (lines, blgp) = (self.lines(), if side == 1 { blgp } else { 0 });
        // All are powers of two.
        let shift = lines.trailing_zeros();
        let (each, groups) = (self.depth * lines / LANES, LANES >> shift);
        // A lane holds 16 bytes of elements side by side, then 16 bytes from further on.
        let run = each.min(128 / self.elements[side].bits());
        Layout {
            lines,
            depth: self.depth,
            each,
            chunks: CHUNKS,
            run,
            from: EACH.map(|chunk| permuted_lane(blgp, chunk * WIDTH) / WIDTH),
            place: move |own, group| run * (group + groups * own),
        }
    }
}

/// Registers whose elements are in consecutive rows.
pub const QUAD: usize = 4;
/// Vectors of a register.
pub const CHUNKS: usize = LANES / WIDTH;
/// The numbers of these.
pub const EACH: [usize; CHUNKS] = [0, 1, 2, 3];
/// Most registers of D of one block of 16 rows and columns.
pub const MOST_RESULTS: usize = 8;
/// Most registers of D.
pub const MOST_REGISTERS: usize = 32;

/// The registers of a source.
pub enum Registers<'a> {
    /// Vector registers.
    Rows(&'a [Row]),
    /// The first and all others, which are the same in all lanes.
    Constants([i32; 2]),
}

impl<'a> Registers<'a> {
    /// The registers of a source of these words, so many of them; nothing where a wave has not as many.
    #[inline(always)]
    pub fn of(wave: &'a Wave, words: [Word; 2], count: usize) -> Option<Registers<'a>> {
        match words[0] {
            Word::Row(first) => wave.rows[first.slot()..].get(..count).map(Registers::Rows),
            _ => Some(Registers::Constants(words.map(|word| scalar_word(wave, word) as i32))),
        }
    }

    /// Those of 16 lanes of a register.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub fn vector(&self, register: usize, chunk: usize) -> __m512i {
        match self {
            Registers::Rows(rows) => load(&rows[register].0, chunk % CHUNKS * WIDTH),
            Registers::Constants(words) => _mm512_set1_epi32(words[register.min(1)]),
        }
    }

    /// The same of registers from one on.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub fn vectors(&self, first: usize, chunk: usize) -> [__m512i; QUAD] {
        match self {
            Registers::Rows(rows) => {
                let rows = &rows[first..][..QUAD];
                [0, 1, 2, 3].map(|own| load(&rows[own].0, chunk % CHUNKS * WIDTH))
            }
            Registers::Constants(_) => [0, 1, 2, 3].map(|own| self.vector(first + own, chunk)),
        }
    }
}

/// The words from one on.
#[target_feature(enable = "avx512f")]
#[inline]
pub fn load(words: &[u32], first: usize) -> __m512i {
    let words = &words[first..][..WIDTH];
    // SAFETY: the slice has as many words.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Puts words from a place on.
#[target_feature(enable = "avx512f")]
#[inline]
pub fn store(words: &mut [u32], first: usize, vector: __m512i) {
    let words = &mut words[first..][..WIDTH];
    // SAFETY: the slice has as many words.
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
