//! Lookups in tables of sixteen elements (gfx1250). The first source has the upper part of the table, the
//! second the lower part, each with the first element in the lowest bits; four bits of the third source
//! select each element (AMD's tests of gfx1250 instructions in ROCm, `PackedPermute`; AMD's rocjitsu).

use super::row::WholeWaveOperation;
use super::wide_float::word;
use crate::execute::lane::Kind;
use crate::instruction::Op;
use crate::wave::Wave;

/// The operations.
pub(super) static TABLE: &[WholeWaveOperation] = &[
    WholeWaveOperation::new(
        "v_perm_pk16_b4_u4",
        &[Kind::Word, Kind::Word, Kind::Wide],
        |wave, op| look_up(wave, op, Table { bits: 4, lower_words: 1 }),
    ),
    WholeWaveOperation::new(
        "v_perm_pk16_b6_u4",
        &[Kind::Word, Kind::Wide, Kind::Wide],
        |wave, op| look_up(wave, op, Table { bits: 6, lower_words: 2 }),
    ),
    WholeWaveOperation::new(
        "v_perm_pk16_b8_u4",
        &[Kind::Wide, Kind::Wide, Kind::Wide],
        |wave, op| look_up(wave, op, Table { bits: 8, lower_words: 2 }),
    ),
];

/// Elements in a table.
const ELEMENTS: usize = 16;

/// Layout of a table.
#[derive(Clone, Copy)]
struct Table {
    /// Bits of an element.
    bits: usize,
    /// Words of the lower part.
    lower_words: usize,
}

impl Table {
    fn words(self) -> usize {
        ELEMENTS * self.bits / 32
    }

    /// Reads a lane's table.
    fn read(self, wave: &Wave, op: &Op, lane: usize) -> u128 {
        (0..self.words()).fold(0, |table, at| {
            let word = match at.checked_sub(self.lower_words) {
                Some(upper) => word(wave, op, 0, upper, lane),
                None => word(wave, op, 1, at, lane),
            };
            table | u128::from(word) << (32 * at)
        })
    }
}

fn look_up(wave: &mut Wave, op: &Op, layout: Table) {
    for lane in wave.exec().lanes() {
        let lane = usize::from(lane.0);
        let table = layout.read(wave, op, lane);
        let indices =
            u64::from(word(wave, op, 2, 0, lane)) | u64::from(word(wave, op, 2, 1, lane)) << 32;
        let result = (0..ELEMENTS).fold(0u128, |result, at| {
            let index = (indices >> (4 * at) & 15) as usize;
            let element = table >> (layout.bits * index) & ((1 << layout.bits) - 1);
            result | element << (layout.bits * at)
        });
        for at in 0..layout.words() {
            wave.row_mut(op.destination.plus(at as u16)).0[lane] = (result >> (32 * at)) as u32;
        }
    }
}
