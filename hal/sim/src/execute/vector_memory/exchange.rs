//! Loads whose lanes exchange what they have loaded, so that a matrix is transposed.

use crate::instruction::Op;
use crate::instruction::vector_memory::Transposed;
use crate::wave::{Row, Wave};
use flipwave_isa::{Lane, LaneMask};

/// Lanes exchange the elements that they have loaded. EXEC must be full; a lane that is not active
/// counts as zeros.
#[cold]
#[inline(never)]
pub fn exchange(wave: &mut Wave, op: &Op, elements: Transposed, active: LaneMask) {
    let words = elements.words();
    let loaded: Vec<Row> = wave.rows_of(op.destination, words).to_vec();
    let bits = u32::from(elements.bits());
    let count = elements.count();
    let element = |lane: Lane, number: u8| {
        let words = loaded.iter().rev().map(|row| u128::from(row.0[usize::from(lane.0)]));
        let all = words.fold(0, |all, word| all << 32 | word);
        if active.contains(lane) {
            all >> (u32::from(number) * bits) & ((1 << bits) - 1)
        } else {
            0
        }
    };
    for lane in active.lanes() {
        let result = (0..count).fold(0, |result, at| {
            let from = Lane(elements.source(lane.0, at));
            result | element(from, lane.0 % count) << (u32::from(at) * bits)
        });
        for word in 0..words {
            let row = wave.row_mut(op.destination.plus(word.into()));
            row.0[usize::from(lane.0)] = (result >> (32 * word)) as u32;
        }
    }
}
