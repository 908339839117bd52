//! Loads whose lanes exchange the loaded data in order to transpose a matrix.

use crate::instruction::Op;
use crate::wave::{LANES, Wave};

/// Data loaded by each lane, before or after the exchange.
pub struct Loaded {
    /// Words of each lane, the first one in the lowest bits; zero in inactive lanes (EXEC must be
    /// full).
    pub lanes: [u128; LANES],
    /// Words per lane.
    pub words: u8,
    /// Bits per element.
    pub bits: u8,
}

impl Loaded {
    /// Writes the exchanged elements to each active lane. `source` maps a lane and an element
    /// number to the lane and element number that the element comes from.
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
