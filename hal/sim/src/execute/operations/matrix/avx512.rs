//! Products of matrices by AVX-512, 16 sums at a time: the same bits as everywhere else, or nothing
//! where that would take more than vectors do well. Then the operation is left to what other hosts do.

mod aligned;
mod lines;
mod sums;

use super::fused::Rule;
use super::permuted_lane;
use crate::execute::lane::small_float::SmallFloat;
use crate::execute::operand::scalar_word;
use crate::instruction::{Op, Word};
use crate::wave::{LANES, Level, Row, Wave};
use flipwave_isa::LaneMask;
use lines::{Layout, Lines, Room};
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
    /// An integer of so many bits, with a sign.
    Signed(u8),
    /// The same without.
    Unsigned(u8),
    /// A floating-point format of 16 bits or less.
    Small(SmallFloat),
}

impl Elements {
    fn bits(self) -> usize {
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

    /// Where the elements of A or of B lie, whose lanes `blgp` rearranges.
    fn layout(&self, side: usize, blgp: u8) -> Layout<impl Fn(usize, usize) -> usize> {
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
const QUAD: usize = 4;
/// Vectors of a register.
const CHUNKS: usize = LANES / WIDTH;
/// The numbers of these.
const EACH: [usize; CHUNKS] = [0, 1, 2, 3];
/// Most registers of D of one block of 16 rows and columns.
const MOST_RESULTS: usize = 8;
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
            ..=256 => multiply_lines::<16>(wave, op, product),
            257..=512 => multiply_lines::<32>(wave, op, product),
            _ => multiply_lines::<128>(wave, op, product),
        }
    }
}

/// The same for lines of no more than so many parts.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
fn multiply_lines<const PARTS: usize>(wave: &mut Wave, op: &Op, product: &Product) -> bool {
    let flushes = matches!(product.sum, Sum::Pairwise(_, true));
    let mut rooms = [const { [const { Room::uninit() }; PARTS] }; 2];
    let [left, right] = &mut rooms;
    let lines = |room, side: usize| {
        let (elements, layout) =
            (product.elements[side], product.layout(side, op.inst.modifiers.blgp));
        let count = (layout.each * elements.bits()).div_ceil(32);
        let registers = Registers::of(wave, op.sources[side].words, count)?;
        Some(Lines::read(room, &registers, elements, flushes, layout))
    };
    let (Some(left), Some(right)) = (lines(left, 0), lines(right, 1)) else { return false };
    Way::all(product, [&left, &right])
        .into_iter()
        .flatten()
        .any(|way| sums::make::<PARTS>((wave, op, product), way, (&left, &right)))
}

/// A product of matrices with 16 rows and columns, of sums in the order of k or of integers.
pub struct WaveProduct<K, R> {
    pub elements: [Elements; 2],
    /// Products of a sum.
    pub depth: usize,
    /// Lanes that hold A and B, and how many elements each.
    pub holders: (usize, usize),
    /// How many elements of a lane in a row have one k after the other.
    pub run: usize,
    /// The k of an element of a lane.
    pub k: K,
    /// Lanes that hold D, and how many elements each.
    pub results: (usize, usize),
    /// The row of an element of D of a lane.
    pub row: R,
}

/// D = A * B + C. Gives `false` and does nothing where it is not made here.
pub fn multiply_wave<K, R>(wave: &mut Wave, op: &Op, product: &WaveProduct<K, R>) -> bool
where
    K: Fn(usize, usize) -> usize,
    R: Fn(usize, usize) -> usize,
{
    if wave.level != Level::Avx512 {
        return false;
    }
    // SAFETY: the host was found to have this level.
    unsafe {
        match product.depth * WIDTH {
            ..=256 => multiply_wave_lines::<16, K, R>(wave, op, product),
            257..=512 => multiply_wave_lines::<32, K, R>(wave, op, product),
            _ => multiply_wave_lines::<128, K, R>(wave, op, product),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
fn multiply_wave_lines<const PARTS: usize, K, R>(
    wave: &mut Wave,
    op: &Op,
    product: &WaveProduct<K, R>,
) -> bool
where
    K: Fn(usize, usize) -> usize,
    R: Fn(usize, usize) -> usize,
{
    let (lanes, each) = product.holders;
    let mut rooms = [const { [const { Room::uninit() }; PARTS] }; 2];
    let [left, right] = &mut rooms;
    let lines = |room, side: usize| {
        let elements = product.elements[side];
        let layout = Layout {
            lines: WIDTH,
            depth: product.depth,
            each,
            run: product.run,
            chunks: lanes / WIDTH,
            from: EACH,
            place: |own: usize, group: usize| (product.k)(group * WIDTH, own * product.run),
        };
        let count = (each * elements.bits()).div_ceil(32);
        let registers = Registers::of(wave, op.sources[side].words, count)?;
        let lines = Lines::read(room, &registers, elements, false, layout);
        lines.are_finite.then_some(lines)
    };
    let (Some(left), Some(right)) = (lines(left, 0), lines(right, 1)) else { return false };
    let is_integer = matches!(product.elements[0], Elements::Signed(_) | Elements::Unsigned(_));
    let (lanes, count) = product.results;
    // Each vector of D is a part of a register, by its number and the first lane, and a row.
    let part = |vector: usize| (vector % count, vector / count * WIDTH);
    let rows: [usize; WIDTH] = std::array::from_fn(|vector| {
        let (register, lane) = part(vector);
        (product.row)(lane, register)
    });
    let Some(addends) = Registers::of(wave, [op.sources[2].words[0]; 2], count) else {
        return false;
    };
    let before = std::array::from_fn(|vector| {
        let (register, lane) = part(vector);
        addends.vector(register, lane / WIDTH)
    });
    let all = (&rows, left.values(), right.values());
    let (sums, doubts) = match is_integer {
        true => sums::integers_of_all(all, before),
        false => sums::chain_of_all(all, before),
    };
    let mut result = [Row::ZERO; MOST_RESULTS];
    for (vector, sum) in sums.into_iter().enumerate() {
        let (register, lane) = part(vector);
        store(&mut result[register].0, lane, sum);
    }
    if doubts != 0 {
        return false;
    }
    for (register, words) in result[..count].iter().enumerate() {
        let row = wave.row_mut(op.destination.plus(register as u16));
        row.0[..lanes].copy_from_slice(&words.0[..lanes]);
    }
    wave.written_lanes = Some(wave.machine.all_lanes());
    true
}

/// The registers of a source.
enum Registers<'a> {
    /// Vector registers.
    Rows(&'a [Row]),
    /// The first and all others, which are the same in all lanes.
    Constants([i32; 2]),
}

impl<'a> Registers<'a> {
    /// The registers of a source of these words, so many of them; nothing where a wave has not as many.
    #[inline(always)]
    fn of(wave: &'a Wave, words: [Word; 2], count: usize) -> Option<Registers<'a>> {
        match words[0] {
            Word::Row(first) => wave.rows[first.slot()..].get(..count).map(Registers::Rows),
            _ => Some(Registers::Constants(words.map(|word| scalar_word(wave, word) as i32))),
        }
    }

    /// Those of 16 lanes of a register.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn vector(&self, register: usize, chunk: usize) -> __m512i {
        match self {
            Registers::Rows(rows) => load(&rows[register].0, chunk % CHUNKS * WIDTH),
            Registers::Constants(words) => _mm512_set1_epi32(words[register.min(1)]),
        }
    }

    /// The same of registers from one on.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn vectors(&self, first: usize, chunk: usize) -> [__m512i; QUAD] {
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
#[target_feature(enable = "avx512f")]
#[inline]
fn write(wave: &mut Wave, op: &Op, result: &[Row]) {
    for (register, row) in result.iter().enumerate() {
        let to = wave.row_mut(op.destination.plus(register as u16));
        for first in (0..LANES).step_by(WIDTH) {
            store(&mut to.0, first, load(&row.0, first));
        }
    }
    wave.written_lanes = Some(LaneMask::FULL);
}
