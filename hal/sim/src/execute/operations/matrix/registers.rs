//! How the elements of matrices lie in the registers of a wave.

use crate::execute::operand::scalar_word;
use crate::instruction::{Op, Word};
use crate::wave::{LANES, Row, Wave};
use flipwave_isa::Family;

/// The most elements of A or B that a lane holds.
pub const MOST_ELEMENTS: usize = 4;
/// The most products of a sum.
#[cfg(target_arch = "x86_64")]
pub const MOST_DEPTH: usize = 16;
/// The most words of C or D that a lane holds.
pub const MOST_ROWS: usize = 32;

/// What each lane holds of A or B.
pub type Elements<T> = [[T; MOST_ELEMENTS]; LANES];

/// A value of each lane.
pub type Lanes<T> = [T; LANES];

/// Most products that are summed one lane after another.
pub const MOST_GROUP: usize = 4;

/// The sign bit of a double, if a source is negated, which only double precision can have.
#[inline(always)]
pub fn negation(op: &Op, source: usize) -> u64 {
    u64::from(op.inst.modifiers.negated_sources >> source & 1) << 63
}

/// The word of C that holds the `index`-th element of each lane, where a sum is a word; the word of D
/// where the operation names no other register for it.
pub fn sum_row(wave: &Wave, op: &Op, index: usize) -> Row {
    if op.inst.operation.is(Family::SparseMfma) {
        return *wave.row(op.destination.plus(index as u16));
    }
    match op.sources[2].row() {
        Some(first) => *wave.row(first.plus(index as u16)),
        None => row(wave, op.sources[2].words[0]),
    }
}

/// A word of a source in all lanes.
#[inline(always)]
pub fn row(wave: &Wave, word: Word) -> Row {
    match word {
        Word::Row(row) => *wave.row(row),
        other => Row::splat(scalar_word(wave, other)),
    }
}

/// A lane's two words.
#[inline(always)]
pub fn joined(rows: &[Row; 2], lane: usize) -> u64 {
    u64::from(rows[0].0[lane]) | u64::from(rows[1].0[lane]) << 32
}

/// The lanes of B as `blgp` rearranges them (ISA manual, "BLGP").
#[inline(always)]
pub fn permuted<T: Copy>(elements: &Elements<T>, pattern: u8) -> Elements<T> {
    std::array::from_fn(|lane| elements[permuted_lane(pattern, lane)])
}

#[inline(always)]
pub fn permuted_lane(pattern: u8, lane: usize) -> usize {
    match pattern & 7 {
        0 => lane,
        1 => lane % 32,
        2 => lane % 32 + 32,
        3 => (lane + 16) % LANES,
        pattern => lane % 16 + 16 * usize::from(pattern - 4),
    }
}
