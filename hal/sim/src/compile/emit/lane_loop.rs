//! Segments: how they begin and end, and the rows that they read and write.

use super::emitter::{Emitter, LaneLoop, RowValue};
use crate::compile::compiled::BailoutRegion;
use crate::compile::frame::{BAILOUT, NAN_BAILOUT};
use crate::compile::value::Value;
use crate::compile::workspace::{MOVED_ROWS, SAVED_ROWS};
use crate::execute::lane::Kind;
use crate::instruction::{Op, Word};
use crate::wave::{RowIndex, ScalarIndex};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Rows that a segment loads from which on what computes with them is another one.
pub(super) const MANY_LOADED: usize = 8;

impl Emitter<'_> {
    /// Whether a scalar register gets a word of a lane mask from the open segment.
    pub(super) fn is_loop_mask(&self, index: ScalarIndex) -> bool {
        let masks = self.lane_loop.iter().flat_map(|open| open.masks.values());
        masks.into_iter().any(|(_, words)| words.contains(&index))
    }

    /// Opens a segment for an instruction, if none is open that it can be part of.
    pub(super) fn open_loop_for(&mut self, index: usize, operations: &[(&Op, &[Kind])]) {
        // Lane masks of the segment's own that are read as words.
        let reads_own = |(op, kinds): &(&Op, &[Kind])| {
            op.sources.iter().zip(*kinds).any(|(source, kind)| {
                let own =
                    |word: Word| matches!(word, Word::Scalar(index) if self.is_loop_mask(index));
                let is_whole_mask = *kind == Kind::Mask
                    && matches!(source.words[0], Word::Scalar(low)
                        if self.lane_loop.as_ref().is_some_and(|open| open.masks.contains_key(&low)));
                !is_whole_mask && source.words.into_iter().any(own)
            })
        };
        // Two masks that overlap, or too many rows to keep copies of.
        let overlaps = |(op, _): &(&Op, &[Kind])| {
            let [low, high] = op.mask_destination;
            // What no register takes is always zero of waves with 32 lanes.
            let is_taken = |word: &ScalarIndex| *word == low || *word != ScalarIndex::DROPPED;
            let masks = self.lane_loop.iter().flat_map(|open| &open.masks);
            masks.into_iter().any(|(own, (_, words))| {
                let same = |word| is_taken(word) && words.contains(word);
                *own != low && [low, high].iter().any(same)
            })
        };
        let is_full = self.lane_loop.as_ref().is_some_and(|open| {
            let rows = open.rows.len() + self.batched_rows().count();
            rows + 8 > SAVED_ROWS || open.moved.len() + 2 > MOVED_ROWS
        });
        let takes_own =
            |(op, _): &(&Op, &[Kind])| self.takes_written_rows(op) || self.uses_batched_rows(op);
        if is_full
            || operations.iter().any(reads_own)
            || operations.iter().any(overlaps)
            || operations.iter().any(takes_own)
        {
            self.close_loop();
        }
        if self.lane_loop.is_none() {
            // Where the segment is undone, the wave must have what was computed before.
            self.store_scalars();
            let number = self.number();
            self.lane_loop = Some(LaneLoop {
                first: index,
                number,
                body: String::new(),
                rows: BTreeMap::new(),
                before: BTreeMap::new(),
                masks: BTreeMap::new(),
                read_masks: Vec::new(),
                bailout_lanes: Vec::new(),
                label: format!("loop{number}"),
                is_second_half: false,
                moved: Vec::new(),
                accesses: Vec::new(),
                written_first: Vec::new(),
                loaded: Vec::new(),
                groups: Vec::new(),
                batches: Vec::new(),
            });
        }
    }

    /// Closes the open segment where it loads many rows, and an operation computes with one of them: one
    /// loop that loads for some lanes, computes, and at last writes all rows has the next lanes wait for
    /// that. Of two the host executes several turns at once.
    pub(super) fn split_after_loads(&mut self, ops: &[&Op]) {
        let Some(open) = &self.lane_loop else { return };
        let is_loaded = |word: Word| matches!(word, Word::Row(row) if open.loaded.contains(&row));
        let mut words = ops.iter().flat_map(|op| &op.sources).flat_map(|source| source.words);
        if open.loaded.len() >= MANY_LOADED && words.any(is_loaded) {
            self.close_loop();
        }
    }

    /// Loads a row as it is before the segment, if it is not yet.
    pub(super) fn save_row_before(&mut self, row: RowIndex) {
        if self.lane_loop.as_ref().is_some_and(|open| !open.before.contains_key(&row)) {
            let value = self.load_row(row);
            if let Some(open) = &mut self.lane_loop {
                open.before.insert(row, value);
            }
        }
    }

    /// A row, as it is in the loop.
    pub(super) fn row(&mut self, row: RowIndex) -> RowValue {
        if let Some(lanes) = self.lane_loop.as_ref().and_then(|open| open.rows.get(&row)) {
            return *lanes;
        }
        let value = self.load_row(row);
        let lanes = RowValue { value, is_written: false, may_be_nan: false };
        if let Some(open) = &mut self.lane_loop {
            open.rows.insert(row, lanes);
            open.before.insert(row, value);
        }
        lanes
    }

    pub(super) fn load_row(&mut self, row: RowIndex) -> Value {
        let pointer = self.row_in_loop(row);
        let words = self.shape.named("W");
        let bytes = self.shape.lanes() * 4;
        self.loop_value(format_args!("load {words}, ptr {pointer}, align {bytes}"))
    }

    /// Where a row is that the wave has, in the loop.
    pub(super) fn row_in_loop(&mut self, row: RowIndex) -> Value {
        let at = usize::from(row.0) * 256;
        self.loop_value(format_args!("getelementptr i8, ptr %lanes, i64 {at}"))
    }

    /// Stores a new value of a row's active lanes; the others keep `old`, or what the wave has.
    pub(super) fn store_row(&mut self, row: RowIndex, new: Value, old: Option<Value>) {
        let old = old.unwrap_or_else(|| self.load_row(row));
        let ([w, m], bytes) =
            (["W", "M"].map(|name| self.shape.named(name)), self.shape.lanes() * 4);
        let value = self.loop_value(format_args!("select {m} %active, {w} {new}, {w} {old}"));
        let (pointer, store) = (self.row_in_loop(row), self.shape.store_selected());
        self.loop_line(format_args!("  {store} {w} {value}, ptr {pointer}, align {bytes}"));
    }

    /// Stores what a row was before the segment as a copy.
    pub(super) fn store_copy(&mut self, copy: usize, value: Value) {
        let (w, bytes) = (self.shape.named("W"), self.shape.lanes() * 4);
        let pointer =
            self.loop_value(format_args!("getelementptr i8, ptr %copies, i64 {}", copy * 256));
        self.loop_line(format_args!("  store {w} {value}, ptr {pointer}, align {bytes}"));
    }

    /// Has the interpreter execute the segment where a row may be a NaN and is one.
    pub(super) fn check_nan(&mut self, row: RowIndex) {
        let Some(lanes) = self.lane_loop.as_mut().and_then(|open| open.rows.get_mut(&row)) else {
            return;
        };
        if std::mem::take(&mut lanes.may_be_nan) {
            let value = lanes.value;
            let [w, f] = ["W", "F"].map(|name| self.shape.named(name));
            let float = self.loop_value(format_args!("bitcast {w} {value} to {f}"));
            self.bail_out_at_nan(float, f);
        }
    }

    /// The same where a floating-point value of this type is a NaN.
    pub(super) fn bail_out_at_nan(&mut self, value: Value, float: &str) {
        let nan = self.loop_value(format_args!("fcmp uno {float} {value}, zeroinitializer"));
        if let Some(open) = &mut self.lane_loop {
            open.bailout_lanes.push(nan);
        }
    }

    pub(super) fn write_row(&mut self, row: RowIndex, value: Value, may_be_nan: bool) {
        if let Some(open) = &mut self.lane_loop {
            open.rows.insert(row, RowValue { value, is_written: true, may_be_nan });
        }
    }

    /// Ends the open segment.
    pub(super) fn close_loop(&mut self) {
        let Some(open) = &self.lane_loop else { return };
        let written: Vec<RowIndex> =
            open.rows.iter().filter(|(_, lanes)| lanes.is_written).map(|(row, _)| *row).collect();
        for row in &written {
            self.check_nan(*row);
        }
        let Some(open) = &self.lane_loop else { return };
        let may_bail_out = !open.bailout_lanes.is_empty() || !open.accesses.is_empty();
        // What is read as it was before, and written; and what is written after a fault, if there is one,
        // or where the first instruction is half done.
        let saves_all = open.may_fault() || open.is_second_half;
        let is_saved = |row: &RowIndex| {
            let is_written_again = !open.is_second_half && open.written_first.contains(row);
            may_bail_out && (open.before.contains_key(row) || (saves_all && !is_written_again))
        };
        let mut saved: Vec<RowIndex> = written.iter().copied().filter(is_saved).collect();
        for row in &saved {
            self.save_row_before(*row);
        }
        let Some(open) = &self.lane_loop else { return };
        let (before, rows) = (open.before.clone(), open.rows.clone());
        for (copy, row) in saved.iter().enumerate() {
            self.store_copy(copy, before[row]);
        }
        for row in &written {
            self.store_row(*row, rows[row].value, before.get(row).copied());
        }
        let batched: Vec<RowIndex> = self.batched_rows().collect();
        self.load_batches(saves_all.then_some(saved.len()));
        if saves_all {
            saved.extend(batched);
        }
        let m = self.shape.named("M");
        let lanes = self.shape.lanes();
        let nans = self.lane_loop.as_ref().map_or_else(Vec::new, |open| open.bailout_lanes.clone());
        let mut any_nan = None;
        for nan in nans {
            any_nan = Some(match any_nan {
                None => nan,
                Some(before) => self.loop_value(format_args!("or {m} {before}, {nan}")),
            });
        }
        let any_nan = any_nan.map(|nan| {
            let active = self.loop_value(format_args!("and {m} {nan}, %active"));
            self.loop_value(format_args!("bitcast {m} {active} to i{lanes}"))
        });
        let masks: Vec<(Value, [ScalarIndex; 2])> = self
            .lane_loop
            .as_ref()
            .map_or_else(Vec::new, |open| open.masks.values().copied().collect());
        let masks: Vec<(Value, [ScalarIndex; 2])> = masks
            .into_iter()
            .map(|(mask, words)| {
                let bits = self.loop_value(format_args!("bitcast {m} {mask} to i{lanes}"));
                let wide = self.loop_value(format_args!("zext i{lanes} {bits} to i64"));
                (self.loop_value(format_args!("shl i64 {wide}, %lane")), words)
            })
            .collect();
        let Some(open) = self.lane_loop.take() else { return };
        self.write_loop(open, any_nan, &masks, saved);
    }

    /// Writes the loop of a segment: its body is the text, with `%lane`, `%lanes`, `%copies` and
    /// `%active` for what is its own.
    pub(super) fn write_loop(
        &mut self,
        open: LaneLoop,
        any_nan: Option<Value>,
        masks: &[(Value, [ScalarIndex; 2])],
        saved: Vec<RowIndex>,
    ) {
        let number = open.number;
        let lanes = self.shape.lanes();
        let (before, label) = (std::mem::take(&mut self.label), format!("loop{number}"));
        let end = &open.label;
        let has_accesses = !open.accesses.is_empty();
        if has_accesses {
            self.text.push_str("  store i64 0, ptr %bailout.at\n");
        }
        let _ = write!(
            self.text,
            "  br label %{label}\n{label}:\n  \
             %lane{number} = phi i64 [ 0, %{before} ], [ %next{number}, %{end} ]\n"
        );
        for index in 0..masks.len() {
            let _ = writeln!(
                self.text,
                "  %mask{number}.{index} = phi i64 [ 0, %{before} ], [ %whole{number}.{index}, %{end} ]"
            );
        }
        if any_nan.is_some() {
            let _ = writeln!(
                self.text,
                "  %nan{number} = phi i{lanes} [ 0, %{before} ], [ %bailouts{number}, %{end} ]"
            );
        }
        let active =
            self.shape.mask_of_bits(&format!("%active{number}"), &format!("%bits{number}"));
        let _ = write!(
            self.text,
            "  %shift{number} = lshr i64 %exec, %lane{number}\n  \
             %bits{number} = trunc i64 %shift{number} to i{lanes}\n{active}  \
             %byte{number} = shl i64 %lane{number}, 2\n  \
             %lanes{number} = getelementptr i8, ptr %rows, i64 %byte{number}\n  \
             %copies{number} = getelementptr i8, ptr %saved, i64 %byte{number}\n"
        );
        let body = open.body.replace("%lanes,", &format!("%lanes{number},"));
        let body = body.replace("%copies,", &format!("%copies{number},"));
        let body = body.replace("%active", &format!("%active{number}"));
        let body = body.replace("%lane\n", &format!("%lane{number}\n"));
        self.text.push_str(&body);
        for (index, (mask, _)) in masks.iter().enumerate() {
            let _ = writeln!(
                self.text,
                "  %whole{number}.{index} = or i64 %mask{number}.{index}, {mask}"
            );
        }
        if let Some(nan) = any_nan {
            let _ = writeln!(self.text, "  %bailouts{number} = or i{lanes} %nan{number}, {nan}");
        }
        let _ = write!(
            self.text,
            "  %next{number} = add i64 %lane{number}, {lanes}\n  \
             %more{number} = icmp ult i64 %next{number}, {}\n  \
             br i1 %more{number}, label %{label}, label %after{number}\nafter{number}:\n",
            self.machine.lanes
        );
        self.label = format!("after{number}");
        if any_nan.is_some() || has_accesses {
            let (mut bails_out, mut code) = (Value::Bit(false), Value::Word(BAILOUT));
            if any_nan.is_some() {
                bails_out = self.value(format_args!("icmp ne i{lanes} %bailouts{number}, 0"));
                code = self
                    .value(format_args!("select i1 {bails_out}, i32 {NAN_BAILOUT}, i32 {BAILOUT}"));
            }
            if has_accesses {
                let lanes_left = self.value(format_args!("load i64, ptr %bailout.at"));
                let any_lane = self.value(format_args!("icmp ne i64 {lanes_left}, 0"));
                bails_out = self.value(format_args!("or i1 {bails_out}, {any_lane}"));
            }
            let region = self.regions.len();
            let _ = write!(
                self.text,
                "  br i1 {bails_out}, label %bailout{number}, label %intact{number}\n\
                 bailout{number}:\n  store i64 {region}, ptr %index.at\n  ret i32 {code}\nintact{number}:\n"
            );
            self.label = format!("intact{number}");
            self.regions.push(BailoutRegion { instructions: open.first..self.index, saved });
        }
        for (index, (_, words)) in masks.iter().enumerate() {
            let whole = self.value(format_args!("or i64 %whole{number}.{index}, 0"));
            self.write_wide(*words, whole);
        }
    }
}
