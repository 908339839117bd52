//! Batches: loads of a loop that loads many rows. The loop does not use these rows otherwise, so
//! the loads are emitted at its end, those of a group together: one test of the address pattern
//! serves all of them. Each row is written as soon as it is loaded, since the host does not have
//! that many registers.

use super::group::{Batch, BatchedLoad, Group, rows_from, rows_loaded};
use crate::compile::access::{Access, Direction};
use crate::compile::emit::emitter::Emitter;
use crate::compile::emit::lane_loop::MANY_LOADED;
use crate::compile::plan::Plan;
use crate::compile::value::Value;
use crate::instruction::{Element, Op, Source, Word};
use crate::wave::RowIndex;

impl Emitter<'_> {
    /// Returns `true` if the loads of an instruction, all of this group, join a batch.
    pub(super) fn is_batched(&self, op: &Op, access: Access, group: &Group) -> bool {
        let Some(lane_loop) = &self.lane_loop else { return false };
        let is_free =
            |row| !lane_loop.rows.contains_key(&row) && !lane_loop.before.contains_key(&row);
        access.direction == Direction::Load
            && matches!(access.element, Element::Words(_))
            && group.touched.is_none()
            && rows_from(op.destination, rows_loaded(access)).all(is_free)
            && lane_loop.loaded.len() + self.rows_loaded_from_here() >= MANY_LOADED
    }

    /// Number of rows loaded from the current instruction up to the first that is not a load.
    fn rows_loaded_from_here(&self) -> usize {
        let mut rows = 0;
        for plan in &self.source.plans[self.index..] {
            match plan {
                Plan::Access(access) if access.direction == Direction::Load => {
                    rows += usize::from(rows_loaded(*access));
                }
                Plan::Nothing => {}
                _ => break,
            }
        }
        rows
    }

    /// Adds a load to a batch.
    pub(super) fn add_to_batch(&mut self, group: Group, add: u64, element: Element, to: RowIndex) {
        let Some(lane_loop) = &mut self.lane_loop else { return };
        let load = BatchedLoad { add, element, to };
        lane_loop.loaded.extend(load.rows());
        // Each group has its own start offset.
        match lane_loop.batches.iter_mut().find(|batch| batch.group.start == group.start) {
            Some(batch) => batch.loads.push(load),
            None => lane_loop.batches.push(Batch { group, loads: vec![load] }),
        }
    }

    /// Rows that batches of the current loop load.
    pub(in crate::compile::emit) fn batched_rows(&self) -> impl Iterator<Item = RowIndex> {
        let batches = self.lane_loop.iter().flat_map(|lane_loop| &lane_loop.batches);
        batches.flat_map(|batch| &batch.loads).flat_map(BatchedLoad::rows)
    }

    /// Returns `true` if a batch loads the row.
    pub(in crate::compile::emit) fn is_batched_row(&self, row: RowIndex) -> bool {
        self.batched_rows().any(|batched| batched == row)
    }

    /// Returns `true` if an instruction reads or writes a row that a batch loads.
    pub(in crate::compile::emit) fn uses_batched_rows(&self, op: &Op) -> bool {
        // A source has at most two words, except for stored data.
        let (stored, written) = match self.source.plans[self.index] {
            Plan::Access(access) if access.direction == Direction::Load => (0, rows_loaded(access)),
            Plan::Access(access) => (access.element.words(), 0),
            // The halves do not tell all that they write.
            Plan::Dual(..) => return self.batched_rows().next().is_some(),
            // Results have at most two words.
            _ => (0, 2),
        };
        let sources = op.sources.iter().flat_map(|source| source.words);
        let mut read = sources.filter_map(|word| match word {
            Word::Row(row) => Some(row),
            _ => None,
        });
        let data = op.sources[1..].iter().filter_map(Source::row);
        let mut data = data.flat_map(|first| rows_from(first, stored));
        let is_batched = |row| self.is_batched_row(row);
        read.any(is_batched)
            || data.any(is_batched)
            || rows_from(op.destination, written).any(is_batched)
    }

    /// Emits the batches of the current loop. The rows are saved before, from copy number
    /// `first_copy` on, if that is given.
    pub(in crate::compile::emit) fn load_batches(&mut self, first_copy: Option<usize>) {
        let batches =
            self.lane_loop.as_mut().map(|lane_loop| std::mem::take(&mut lane_loop.batches));
        let batches = batches.unwrap_or_default();
        if batches.is_empty() {
            return;
        }
        if let Some(first) = first_copy {
            let rows = batches.iter().flat_map(|batch| &batch.loads).flat_map(BatchedLoad::rows);
            for (copy, row) in (first..).zip(rows) {
                let before = self.load_row(row);
                self.store_copy(copy, before);
            }
        }
        let all = self.all_active();
        for Batch { group, loads } in batches {
            let number = self.number();
            let [one, same] = [group.consecutive, group.equal]
                .map(|kind| self.loop_value(format_args!("and i1 {all}, {kind}")));
            self.loop_line(format_args!("  br i1 {one}, label %row{number}, label %norow{number}"));
            self.load_all("row", number, &loads, group, Self::load_consecutive);
            self.label("norow", number);
            self.loop_line(format_args!(
                "  br i1 {same}, label %word{number}, label %mixed{number}"
            ));
            self.load_all("word", number, &loads, group, Self::load_same);
            self.label("mixed", number);
            for load in &loads {
                let words = self.load_words(group, load.add, load.element);
                for (row, word) in load.rows().zip(words) {
                    self.store_row(row, word, None);
                }
            }
            self.loop_line(format_args!("  br label %batched{number}"));
            self.label("batched", number);
        }
    }

    /// Emits the basic block that loads all rows of a batch with one kind of loads, where all lanes
    /// are active.
    fn load_all(
        &mut self,
        label: &str,
        number: u32,
        loads: &[BatchedLoad],
        group: Group,
        words: impl Fn(&mut Self, Group, Value, Element) -> Vec<Value>,
    ) {
        self.label(label, number);
        let (w, bytes) = (self.shape.named("W"), self.shape.lanes() * 4);
        for load in loads {
            let offset =
                self.loop_value(format_args!("add i64 {}, {}", group.start, load.add as i64));
            for (row, word) in load.rows().zip(words(self, group, offset, load.element)) {
                let pointer = self.row_in_loop(row);
                self.loop_line(format_args!("  store {w} {word}, ptr {pointer}, align {bytes}"));
            }
        }
        self.loop_line(format_args!("  br label %batched{number}"));
    }
}
