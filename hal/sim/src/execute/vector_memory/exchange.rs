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
    let element = |lane: Lane, number: u32| {
        let (word, shift) = (number * bits / 32, number * bits % 32);
        let word = loaded.get(word as usize).map_or(0, |row| row.0[usize::from(lane.0)]);
        if active.contains(lane) { word >> shift & ((1 << bits) - 1) } else { 0 }
    };
    for lane in active.lanes() {
        for word in 0..u32::from(words) {
            let each = 32 / bits;
            let result = (0..each).fold(0, |result, at| {
                let from = Lane(elements.source(lane.0, (word * each + at) as u8));
                result | element(from, u32::from(lane.0 & 7)) << (at * bits)
            });
            let row = wave.row_mut(op.destination.plus(word as u16));
            row.0[usize::from(lane.0)] = result;
        }
    }
}
