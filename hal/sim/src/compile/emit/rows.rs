//! Rows outside lane loops, in parts of one vector each.

use super::emitter::Emitter;
use crate::compile::value::Value;
use crate::wave::RowIndex;
use std::ops::Range;

impl Emitter<'_> {
    /// Indices of the parts of a row.
    pub(super) fn parts(&self) -> Range<u32> {
        0..u32::from(self.machine.lanes) / self.shape.lanes()
    }

    /// Host address of a part of a row.
    pub(super) fn row_pointer(&mut self, row: RowIndex, part: u32) -> Value {
        let at = u32::from(row.0) * 256 + part * self.shape.lanes() * 4;
        self.value(format_args!("getelementptr i8, ptr %rows, i64 {at}"))
    }

    /// Loads a part of a row.
    pub(super) fn part_of_row(&mut self, row: RowIndex, part: u32) -> Value {
        let pointer = self.row_pointer(row, part);
        let (w, bytes) = (self.shape.named("W"), self.shape.lanes() * 4);
        self.value(format_args!("load {w}, ptr {pointer}, align {bytes}"))
    }

    /// Loads the word of a lane.
    pub(super) fn word_of_row(&mut self, row: RowIndex, lane: Value) -> Value {
        let pointer = self.row_pointer(row, 0);
        let pointer = self.value(format_args!("getelementptr i32, ptr {pointer}, i64 {lane}"));
        self.value(format_args!("load i32, ptr {pointer}, align 4"))
    }

    /// The active lanes of a part.
    pub(super) fn active(&mut self, part: u32) -> Value {
        let count = self.shape.lanes();
        let bits = self.value(format_args!("lshr i64 %exec, {}", part * count));
        let bits = self.value(format_args!("trunc i64 {bits} to i{count}"));
        let mask = Value::Named(self.number());
        self.text.push_str(&self.shape.mask_of_bits(&mask.to_string(), &bits.to_string()));
        mask
    }
}
