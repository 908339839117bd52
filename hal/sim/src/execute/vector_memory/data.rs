//! Data operands of vector memory operations.

use crate::instruction::Op;
use crate::memory::atomic::Atomic;
use crate::wave::{RowIndex, Wave};
use flipwave_isa::Lane;

/// Row of a word of the data operand.
#[inline(always)]
pub fn data_row(op: &Op, word: usize) -> Option<RowIndex> {
    op.sources[1].row().map(|row| row.plus(word as u16))
}

/// Data and comparison operand of one lane: the data registers hold the pair `[data, compare]`.
pub fn atomic_operands(wave: &Wave, op: &Op, atomic: Atomic, lane: Lane) -> [u64; 2] {
    let lane = usize::from(lane.0);
    let word = |word| data_row(op, word).map_or(0, |row| u64::from(wave.row(row).0[lane]));
    if atomic.bytes == 4 {
        [word(0), if atomic.has_second_operand() { word(1) } else { 0 }]
    } else {
        let pair = |first| word(first) | word(first + 1) << 32;
        [pair(0), if atomic.has_second_operand() { pair(2) } else { 0 }]
    }
}

pub fn write_lane(wave: &mut Wave, op: &Op, lane: Lane, value: u64, bytes: u8) {
    wave.row_mut(op.destination).0[usize::from(lane.0)] = value as u32;
    if bytes == 8 {
        wave.row_mut(op.destination.plus(1)).0[usize::from(lane.0)] = (value >> 32) as u32;
    }
}
