//! Loads whose lanes exchange what they have loaded, so that a matrix is transposed.

use crate::instruction::Op;
use crate::wave::{LANES, Wave};

/// What each lane has loaded, or gets.
pub struct Loaded {
    /// The words of each lane, the first lowest; zeros in lanes that are not active: EXEC must be
    /// full.
    pub lanes: [u128; LANES],
    /// Words of a lane.
    pub words: u8,
    /// Bits of an element.
    pub bits: u8,
}

impl Loaded {
    /// Gives each active lane its elements, each from where `source` has it for a lane and the number
    /// of the element: a lane, and its number there.
    pub fn exchange(
        &self,
        wave: &mut Wave,
        op: &Op,
        source: impl Fn(usize, usize) -> (usize, usize),
    ) {
        let bits = usize::from(self.bits);
        for lane in wave.exec().lanes() {
            let lane = usize::from(lane.0);
            let result = (0..usize::from(self.words) * 32 / bits).fold(0, |result, element| {
                let (from, number) = source(lane, element);
                let element =
                    (self.lanes[from] >> (number * bits) & ((1 << bits) - 1)) << (element * bits);
                result | element
            });
            for word in 0..self.words {
                let row = wave.row_mut(op.destination.plus(word.into()));
                row.0[lane] = (result >> (32 * u32::from(word))) as u32;
            }
        }
    }
}
