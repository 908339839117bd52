//! Propagation of marks through per-lane memory accesses: the instruction is executed on a ghost
//! wave whose data are marks, at the wave's addresses, on a memory of marks.

use super::{LdsMarks, MarkedMemory, Shadow, copy_to_ghost, destination_words};
use crate::execute::vector_memory::execute;
use crate::instruction::vector_memory::{Formatted, Part, Transfer, VectorAccess};
use crate::instruction::{Element, Op, Word};
use crate::memory::Memory;
use crate::wave::{LANES, Row, RowIndex, Wave};

/// Rows of the ghost wave that hold the operands: far enough apart for the widest operand, a block
/// of 32 registers.
const DATA: RowIndex = RowIndex(0);
const DESTINATION: RowIndex = RowIndex(32);
const ADDRESS: RowIndex = RowIndex(64);

/// Memories that vector memory instructions access.
pub struct Memories<'a> {
    /// Device memory.
    pub device: &'a mut MarkedMemory,
    /// The workgroup's LDS.
    pub lds: &'a mut LdsMarks,
}

/// Propagates marks through an access.
pub fn follow(
    shadow: &mut Shadow,
    ghost: &mut Wave,
    memories: Memories<'_>,
    wave: &Wave,
    op: &Op,
    access: VectorAccess,
) {
    let Memories { device: memory, lds } = memories;
    let mut access = Access::new(shadow, ghost, lds, wave, op, access);
    match access.access.transfer {
        // Storing no marks to a memory without marks has no effect.
        Transfer::Store(_) | Transfer::StoreBlock
            if memory.is_empty()
                && !access.access.space.is_flat()
                && access.data_marks().0 == [0; LANES] => {}
        Transfer::LoadFormat(_) => access.load_format(memory),
        Transfer::StoreFormat(format) => access.store_format(format, memory),
        Transfer::Atomic { atomic, returns } => {
            access.modify(Element::Words(atomic.bytes / 4), returns, memory);
        }
        transfer => access.execute(transfer, memory),
    }
    let words = access.destination_words;
    for word in 0..words {
        let row = op.destination.plus(word).place();
        shadow.rows[row] = *ghost.row(DESTINATION.plus(word));
    }
}

/// An access on a ghost wave.
struct Access<'a> {
    ghost: &'a mut Wave,
    lds: &'a mut LdsMarks,
    op: Op,
    access: VectorAccess,
    data_words: u16,
    destination_words: u16,
}

impl<'a> Access<'a> {
    /// Copies a wave's addresses and marks to the operands of the ghost.
    fn new(
        shadow: &Shadow,
        ghost: &'a mut Wave,
        lds: &'a mut LdsMarks,
        wave: &Wave,
        op: &Op,
        access: VectorAccess,
    ) -> Access<'a> {
        copy_to_ghost(ghost, wave);
        let mut ghost_op = op.clone();
        if let Some(first) = op.sources[0].row() {
            for word in 0..2 {
                *ghost.row_mut(ADDRESS.plus(word)) = *wave.row(first.plus(word));
            }
            ghost_op.sources[0].words = [0, 1].map(|word| match op.sources[0].words[word] {
                Word::Row(_) => Word::Row(ADDRESS.plus(word as u16)),
                none => none,
            });
        }
        let data = op.sources[1].row().filter(|_| access.transfer.has_data());
        let data_words = data.map_or(0, |_| data_words(access.transfer));
        if let Some(first) = data {
            ghost_op.sources[1].words = [Word::Row(DATA); 2];
            for word in 0..data_words {
                *ghost.row_mut(DATA.plus(word)) = shadow.row(first, word);
            }
        }
        ghost_op.destination = DESTINATION;
        let destination_words = destination_words(op);
        for word in 0..destination_words {
            *ghost.row_mut(DESTINATION.plus(word)) = shadow.row(op.destination, word);
        }
        Access { ghost, lds, op: ghost_op, access, data_words, destination_words }
    }

    /// Executes the access with another transfer. Unmapped memory is left for the wave's own
    /// execution to report.
    fn execute(&mut self, transfer: Transfer, memory: &mut dyn Memory) {
        let access = VectorAccess { transfer, ..self.access };
        _ = execute(self.ghost, &self.op, access, memory, &mut self.lds.bits);
    }

    /// Combined marks of all words of the data.
    fn data_marks(&self) -> Row {
        let mut marks = Row::ZERO;
        for word in 0..self.data_words {
            let row = self.ghost.row(DATA.plus(word));
            marks.0.iter_mut().zip(row.0).for_each(|(marks, word)| *marks |= word);
        }
        marks
    }

    fn destination(&self, words: u16) -> Vec<Row> {
        (0..words).map(|word| *self.ghost.row(DESTINATION.plus(word))).collect()
    }

    /// Propagates marks through a converting load: a result is marked if a memory without marks
    /// gives another value.
    fn load_format(&mut self, memory: &mut MarkedMemory) {
        let transfer = self.access.transfer;
        self.execute(transfer, &mut MarkedMemory::default());
        let clear = self.destination(self.destination_words);
        self.execute(transfer, memory);
        let exec = self.ghost.exec();
        for (word, clear) in (0..).zip(&clear) {
            let row = self.ghost.row_mut(DESTINATION.plus(word));
            for lane in exec.lanes().map(|lane| usize::from(lane.0)) {
                row.0[lane] = if row.0[lane] == clear.0[lane] { 0 } else { !0 };
            }
        }
    }

    /// Propagates marks through a converting store. Marks are not numbers, so the number one, which
    /// no format converts to zero, represents them.
    fn store_format(&mut self, format: Formatted, memory: &mut MarkedMemory) {
        let one = match format.part {
            Part::Words => 1.0f32.to_bits(),
            Part::Halves | Part::HighHalf => 0x3c00_3c00,
        };
        for word in 0..self.data_words {
            let row = self.ghost.row_mut(DATA.plus(word));
            row.0.iter_mut().filter(|marks| **marks != 0).for_each(|marks| *marks = one);
        }
        self.execute(self.access.transfer, memory);
    }

    /// Propagates marks through an atomic operation: the result is marked if the old value or the
    /// data was.
    fn modify(&mut self, element: Element, returns: bool, memory: &mut MarkedMemory) {
        let words = u16::from(element.words());
        let mut left = self.data_marks();
        let kept = self.destination(words);
        (0..words).for_each(|word| *self.ghost.row_mut(DESTINATION.plus(word)) = Row::ZERO);
        self.execute(Transfer::Load(element), memory);
        let loaded = self.destination(words);
        for row in &loaded {
            left.0.iter_mut().zip(row.0).for_each(|(left, word)| *left |= word);
        }
        left.0.iter_mut().filter(|marks| **marks != 0).for_each(|marks| *marks = !0);
        if left.0 != [0; LANES] {
            (0..words).for_each(|word| *self.ghost.row_mut(DATA.plus(word)) = left);
            self.execute(Transfer::Store(element), memory);
        }
        let exec = *self.ghost.exec_row();
        for (word, (loaded, kept)) in (0..).zip(loaded.iter().zip(&kept)) {
            let row = self.ghost.row_mut(DESTINATION.plus(word));
            for lane in 0..LANES {
                let is_loaded = returns && exec.0[lane] != 0;
                row.0[lane] = if is_loaded { loaded.0[lane] } else { kept.0[lane] };
            }
        }
    }
}

/// Number of data registers of a transfer.
fn data_words(transfer: Transfer) -> u16 {
    match transfer {
        Transfer::Store(element) => element.words().into(),
        Transfer::StoreFormat(_) => 4,
        Transfer::StoreBlock => 32,
        Transfer::Atomic { atomic, .. } => {
            u16::from(atomic.bytes / 4) * if atomic.has_second_operand() { 2 } else { 1 }
        }
        _ => 0,
    }
}
