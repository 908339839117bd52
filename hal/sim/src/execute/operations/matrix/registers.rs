//! Layout of matrix elements in the registers of a wave.

use crate::execute::operand::scalar_word;
use crate::instruction::{Op, Word};
use crate::wave::{LANES, Row, Wave};
use flipwave_isa::Family;

/// Maximum number of elements of A or B per lane.
pub const MOST_ELEMENTS: usize = 4;
/// Maximum number of products per sum.
#[cfg(target_arch = "x86_64")]
pub const MOST_DEPTH: usize = 16;
/// Maximum number of words of C or D per lane.
pub const MOST_ROWS: usize = 32;

/// Elements of A or B of each lane.
pub type Elements<T> = [[T; MOST_ELEMENTS]; LANES];

/// A value of each lane.
pub type Lanes<T> = [T; LANES];

/// Maximum number of products summed in one scalar step.
pub const MOST_GROUP: usize = 4;

/// Sign bit of a double if a source is negated, which only double precision supports.
#[inline(always)]
pub fn negation(op: &Op, source: usize) -> u64 {
    u64::from(op.inst.modifiers.negated_sources >> source & 1) << 63
}

/// The first word of C, or of D if the operation has no separate register for C.
pub fn first_of_sum(op: &Op) -> Word {
    if op.inst.operation.is(Family::SparseMfma) {
        Word::Row(op.destination)
    } else {
        op.sources[2].words[0]
    }
}

/// Word of C that holds the `index`-th element of each lane, for sums of one word.
pub fn sum_row(wave: &Wave, op: &Op, index: usize) -> Row {
    match first_of_sum(op) {
        Word::Row(first) => *wave.row(first.plus(index as u16)),
        word => row(wave, word),
    }
}

/// Reads a word of a source in all lanes.
#[inline(always)]
pub fn row(wave: &Wave, word: Word) -> Row {
    match word {
        Word::Row(row) => *wave.row(row),
        other => Row::splat(scalar_word(wave, other)),
    }
}

/// Combines a lane's two words.
#[inline(always)]
pub fn joined(rows: &[Row; 2], lane: usize) -> u64 {
    u64::from(rows[0].0[lane]) | u64::from(rows[1].0[lane]) << 32
}

/// Permutes the lanes of B according to `blgp` (ISA manual, "BLGP").
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
