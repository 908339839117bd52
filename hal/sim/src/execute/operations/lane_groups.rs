//! Moves between the lanes of a group whose size is a scalar (gfx1250; CDNA 5 ISA, 15.14, as public
//! tests restate it). Sources: the data, the distance, and the group's width.

use super::row::WholeWaveOperation;
use crate::execute::lane::Kind;
use crate::execute::operand::scalar_word;
use crate::instruction::Op;
use crate::wave::{LANES, Row, Wave};

const UNSETTLED: Option<&str> =
    Some("lanes that are not active are read all the same, and widths are powers of two");

/// The operations.
pub(super) static TABLE: &[WholeWaveOperation] = &[
    move_of("v_permlane_bcast_b32", |wave, op| moved(wave, op, Group::broadcast)),
    move_of("v_permlane_up_b32", |wave, op| moved(wave, op, Group::up)),
    move_of("v_permlane_down_b32", |wave, op| moved(wave, op, Group::down)),
    move_of("v_permlane_xor_b32", |wave, op| moved(wave, op, Group::xor)),
    WholeWaveOperation {
        unsettled: UNSETTLED,
        ..WholeWaveOperation::new("v_permlane_idx_gen_b32", &[Kind::Word; 2], addresses)
    },
];

const fn move_of(
    name: &'static str,
    function: crate::instruction::ScalarFunction,
) -> WholeWaveOperation {
    WholeWaveOperation {
        unsettled: UNSETTLED,
        ..WholeWaveOperation::new(name, &[Kind::Word; 3], function)
    }
}

/// A lane's position in its group.
struct Group {
    lane: u32,
    /// First lane of the group.
    base: u32,
    width: u32,
    by: u32,
}

impl Group {
    fn broadcast(self) -> u32 {
        self.base + (self.by & 63 & (self.width - 1))
    }

    fn up(self) -> u32 {
        let by = self.by.min(self.width);
        if self.lane - self.base < by { self.lane } else { self.lane - by }
    }

    fn down(self) -> u32 {
        let by = self.by.min(self.width);
        if self.lane - self.base + by < self.width { self.lane + by } else { self.lane }
    }

    fn xor(self) -> u32 {
        let other = self.lane ^ self.by & 63;
        if self.by < 32 && other < self.base + self.width { other } else { self.lane }
    }
}

/// Writes to each active lane the word of the lane that `from` selects.
fn moved(wave: &mut Wave, op: &Op, from: fn(Group) -> u32) {
    let source = row(wave, op);
    let [by, width] = [1, 2].map(|source| scalar_word(wave, op.sources[source].words[0]));
    let width = width.clamp(1, 32);
    let result = Row(std::array::from_fn(|lane| {
        let lane = lane as u32;
        let other = from(Group { lane, base: lane / width * width, width, by });
        source.0[other as usize % LANES]
    }));
    wave.write_row(op.destination, &result);
}

/// Writes the `ds_bpermute_b32` address of the lane of its group that each lane selects.
fn addresses(wave: &mut Wave, op: &Op) {
    let source = row(wave, op);
    let width = scalar_word(wave, op.sources[1].words[0]).clamp(1, 32);
    let result = Row(std::array::from_fn(|lane| {
        let first = lane as u32 / width * width;
        (first + (source.0[lane] & (width - 1))) << 2
    }));
    wave.write_row(op.destination, &result);
}

fn row(wave: &Wave, op: &Op) -> Row {
    match op.sources[0].row() {
        Some(row) => *wave.row(row),
        None => Row::splat(scalar_word(wave, op.sources[0].words[0])),
    }
}
