//! Addresses of LDS operations.

use crate::instruction::Op;
use crate::wave::{LANES, Row, ScalarIndex, Wave};

/// Address of each lane for operations that take the base from M0: M0[15:0] plus the offset, plus
/// four bytes per lane (ISA manual, "DS_READ_ADDTID_B32").
pub fn by_thread(wave: &Wave, op: &Op) -> Row {
    let first = (wave.scalar(ScalarIndex::M0) & 0xffff).wrapping_add(op.immediate as u32);
    Row(std::array::from_fn(|lane| first.wrapping_add(4 * lane as u32)))
}

/// The two offsets of operations that have two in place of one.
#[inline(always)]
pub fn two_offsets(op: &Op) -> [u32; 2] {
    [op.immediate as u32 & 0xff, op.immediate as u32 >> 8 & 0xff]
}

/// The address of each lane.
#[inline(always)]
pub fn addresses(wave: &Wave, op: &Op, offset: u32) -> Row {
    let Some(row) = op.sources[0].row() else { return Row::splat(offset) };
    let (row, mut addresses) = (wave.row(row), Row::ZERO);
    for lane in 0..LANES {
        addresses.0[lane] = row.0[lane].wrapping_add(offset);
    }
    addresses
}
