//! Marks on the bits of a workgroup's LDS.

use super::{Shadow, copy_to_ghost};
use crate::execute::lds;
use crate::instruction::lds::LdsAccess;
use crate::instruction::{Op, Word};
use crate::wave::{Row, RowIndex, ScalarIndex, Wave};
use flipwave_isa::{LaneMask, Value};
use std::ops::Range;

/// Marks on the bits of a workgroup's LDS; a set bit is marked.
#[derive(Debug)]
pub struct LdsMarks {
    /// The marks.
    pub bits: Vec<u8>,
}

/// Rows of the ghost wave that hold the operands of an LDS access: far enough apart for the widest
/// operand, and away from the rows that the access names.
const DATA: u16 = 0;
const SECOND_DATA: u16 = 8;
const DESTINATION: u16 = 16;
const ADDRESS: u16 = 24;
/// Maximum number of registers per operand.
const WORDS: u16 = 4;

impl LdsMarks {
    /// LDS with all bits marked.
    pub fn marked(bytes: u32) -> LdsMarks {
        LdsMarks { bits: vec![!0; bytes as usize] }
    }

    /// LDS without marks.
    pub fn clear(bytes: u32) -> LdsMarks {
        LdsMarks { bits: vec![0; bytes as usize] }
    }

    /// Removes the marks of bytes; bytes outside LDS have none.
    pub fn clear_bytes(&mut self, bytes: Range<u32>) {
        let end = (bytes.end as usize).min(self.bits.len());
        let start = (bytes.start as usize).min(end);
        self.bits[start..end].fill(0);
    }

    /// Propagates marks through an LDS instruction: executes it on the marks as data, at the wave's
    /// addresses.
    pub fn follow(
        &mut self,
        shadow: &mut Shadow,
        ghost: &mut Wave,
        wave: &Wave,
        op: &Op,
        access: LdsAccess,
    ) {
        let mut ghost_op = op.clone();
        let first = |source: usize| op.sources[source].row();
        let mut remap = |source: usize, row: u16| {
            if op.sources[source].row().is_some() {
                ghost_op.sources[source].words = [Word::Row(RowIndex(row)); 2];
            }
        };
        remap(0, ADDRESS);
        remap(1, DATA);
        remap(2, SECOND_DATA);
        ghost_op.destination = RowIndex(DESTINATION);
        copy_to_ghost(ghost, wave);
        if let Some(row) = first(0) {
            let is_data = access == LdsAccess::Swizzle;
            *ghost.row_mut(RowIndex(ADDRESS)) =
                if is_data { shadow.rows[usize::from(row.0)] } else { *wave.row(row) };
        }
        for (source, place) in [(first(1), DATA), (first(2), SECOND_DATA)] {
            for word in 0..WORDS {
                let Some(row) = source else { continue };
                *ghost.row_mut(RowIndex(place + word)) = shadow.row(row, word);
            }
        }
        for word in 0..WORDS {
            *ghost.row_mut(RowIndex(DESTINATION + word)) = shadow.row(op.destination, word);
        }
        match access {
            LdsAccess::Atomic { returns, atomic } => {
                self.modify(ghost, &ghost_op, returns, atomic.bytes);
            }
            LdsAccess::ExchangeIf => self.modify(ghost, &ghost_op, true, 8),
            LdsAccess::Count { .. } => {
                let at = (wave.scalar(ScalarIndex::M0) & 0xffff).wrapping_add(op.immediate as u32);
                let bytes = lds::read(&self.bits, at, 4);
                let old = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                ghost.write_row(ghost_op.destination, &Row::splat(old));
            }
            // Only atomics can fault.
            _ => _ = lds::execute(ghost, &ghost_op, access, &mut self.bits),
        }
        if access.is_exchange() && access != LdsAccess::Swizzle {
            // A marked lane number marks the result.
            let marked = shadow.marked_lanes(op.sources[0].words[0]).0 & wave.exec().0;
            let lanes = match access {
                LdsAccess::Permute if marked != 0 => wave.exec().0,
                _ => marked,
            };
            for lane in LaneMask(lanes).lanes() {
                ghost.row_mut(ghost_op.destination).0[usize::from(lane.0)] = !0;
            }
        }
        for word in 0..destination_words(op) {
            let row = op.destination.plus(word).place();
            shadow.rows[row] = *ghost.row(RowIndex(DESTINATION + word));
        }
    }

    /// Propagates marks through an atomic: the result is marked if the old value or the data was.
    fn modify(&mut self, ghost: &mut Wave, op: &Op, returns: bool, bytes: u8) {
        let offset = op.immediate as u32;
        let addresses = lds::addresses(ghost, op, offset);
        for lane in ghost.exec().lanes() {
            let index = usize::from(lane.0);
            let words = u16::from(bytes / 4);
            let old = lds::read(&self.bits, addresses.0[index], bytes.into());
            let data = (0..words).any(|word| {
                [DATA, SECOND_DATA].iter().zip(&op.sources[1..]).any(|(place, source)| {
                    source.row().is_some() && ghost.row(RowIndex(place + word)).0[index] != 0
                })
            });
            if data {
                lds::write(&mut self.bits, addresses.0[index], &[!0; 8][..usize::from(bytes)]);
            }
            for word in (0..words).filter(|_| returns) {
                let at = usize::from(word) * 4;
                let old = u32::from_le_bytes([old[at], old[at + 1], old[at + 2], old[at + 3]]);
                ghost.row_mut(op.destination.plus(word)).0[index] = old;
            }
        }
    }
}

impl Shadow {
    /// Marks of a register of an operand, given the operand's first register.
    pub fn row(&self, first: RowIndex, word: u16) -> Row {
        let index = usize::from(first.0 + word);
        self.rows.get(index).copied().unwrap_or(Row::ZERO)
    }
}

/// Number of registers that an instruction writes.
pub fn destination_words(op: &Op) -> u16 {
    op.inst.destinations().next().map_or(0, |operand| match operand.value {
        Value::Register(range) => range.words.into(),
        _ => 0,
    })
}
