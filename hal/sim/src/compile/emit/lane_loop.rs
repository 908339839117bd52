//! Lane loops: their beginning and end, and the rows that they read and write.

use super::emitter::{Emitter, LaneLoop, NanCheck, RowValue};
use crate::compile::compiled::BailoutRegion;
use crate::compile::frame::{BAILOUT, NAN_BAILOUT};
use crate::compile::value::Value;
use crate::compile::workspace::{MOVED_ROWS, SAVED_ROWS};
use crate::execute::lane::Kind;
use crate::instruction::{Op, Word};
use crate::wave::{RowIndex, ScalarIndex};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Number of rows loaded by a loop from which on operations that use them are placed into another
/// loop.
pub(super) const MANY_LOADED: usize = 8;

impl Emitter<'_> {
    /// Returns `true` if the current loop computes a lane mask into a scalar register.
    pub(super) fn is_loop_mask(&self, index: ScalarIndex) -> bool {
        let masks = self.lane_loop.iter().flat_map(|lane_loop| lane_loop.masks.values());
        masks.into_iter().any(|(_, words)| words.contains(&index))
    }

    /// Opens a loop for an instruction, unless the current one can contain it.
    pub(super) fn open_loop_for(&mut self, index: usize, operations: &[(&Op, &[Kind])]) {
        // Masks that the loop computes, and that the instruction reads as words.
        let reads_loop_mask = |(op, kinds): &(&Op, &[Kind])| {
            op.sources.iter().zip(*kinds).any(|(source, kind)| {
                let is_loop_mask =
                    |word: Word| matches!(word, Word::Scalar(index) if self.is_loop_mask(index));
                let is_whole_mask = *kind == Kind::Mask
                    && matches!(source.words[0], Word::Scalar(low)
                        if self.lane_loop.as_ref().is_some_and(|lane_loop| lane_loop.masks.contains_key(&low)));
                !is_whole_mask && source.words.into_iter().any(is_loop_mask)
            })
        };
        // Masks that overlap.
        let overlaps = |(op, _): &(&Op, &[Kind])| {
            let [low, high] = op.mask_destination;
            // Dropped high words are always zero in waves of 32 lanes.
            let is_taken = |word: &ScalarIndex| *word == low || *word != ScalarIndex::DROPPED;
            let masks = self.lane_loop.iter().flat_map(|lane_loop| &lane_loop.masks);
            masks.into_iter().any(|(first, (_, words))| {
                let same = |word| is_taken(word) && words.contains(word);
                *first != low && [low, high].iter().any(same)
            })
        };
        let is_full = self.lane_loop.as_ref().is_some_and(|lane_loop| {
            let rows = lane_loop.rows.len() + self.batched_rows().count();
            rows + 8 > SAVED_ROWS || lane_loop.moved.len() + 2 > MOVED_ROWS
        });
        let conflicts =
            |(op, _): &(&Op, &[Kind])| self.reads_written_rows(op) || self.uses_batched_rows(op);
        if is_full
            || operations.iter().any(reads_loop_mask)
            || operations.iter().any(overlaps)
            || operations.iter().any(conflicts)
        {
            self.close_loop();
        }
        if self.lane_loop.is_none() {
            // After a bailout the interpreter needs all earlier results.
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

    /// Closes the current loop if it loads many rows and an operation uses one of them. In a loop
    /// that loads, computes and writes many rows, each iteration waits for the one before; the host
    /// overlaps the iterations of two separate loops.
    pub(super) fn split_after_loads(&mut self, ops: &[&Op]) {
        let Some(lane_loop) = &self.lane_loop else { return };
        let is_loaded =
            |word: Word| matches!(word, Word::Row(row) if lane_loop.loaded.contains(&row));
        let mut words = ops.iter().flat_map(|op| &op.sources).flat_map(|source| source.words);
        if lane_loop.loaded.len() >= MANY_LOADED && words.any(is_loaded) {
            self.close_loop();
        }
    }

    /// Loads a row as it is before the loop, unless it is loaded already.
    pub(super) fn save_row_before(&mut self, row: RowIndex) {
        if self.lane_loop.as_ref().is_some_and(|lane_loop| !lane_loop.before.contains_key(&row)) {
            let value = self.load_row(row);
            if let Some(lane_loop) = &mut self.lane_loop {
                lane_loop.before.insert(row, value);
            }
        }
    }

    /// The current value of a row in the loop.
    pub(super) fn row(&mut self, row: RowIndex) -> RowValue {
        if let Some(lanes) = self.lane_loop.as_ref().and_then(|lane_loop| lane_loop.rows.get(&row))
        {
            return *lanes;
        }
        let value = self.load_row(row);
        let lanes = RowValue { value, is_written: false, nan_check: NanCheck::Done };
        if let Some(lane_loop) = &mut self.lane_loop {
            lane_loop.rows.insert(row, lanes);
            lane_loop.before.insert(row, value);
        }
        lanes
    }

    pub(super) fn load_row(&mut self, row: RowIndex) -> Value {
        let pointer = self.row_in_loop(row);
        let words = self.shape.named("W");
        let bytes = self.shape.lanes() * 4;
        self.loop_value(format_args!("load {words}, ptr {pointer}, align {bytes}"))
    }

    /// Host address of a row of the wave, at the lanes of the iteration.
    pub(super) fn row_in_loop(&mut self, row: RowIndex) -> Value {
        let at = usize::from(row.0) * 256;
        self.loop_value(format_args!("getelementptr i8, ptr %lanes, i64 {at}"))
    }

    /// Stores a new value to a row's active lanes; other lanes keep `old`, or the wave's value if
    /// that is `None`.
    pub(super) fn store_row(&mut self, row: RowIndex, new: Value, old: Option<Value>) {
        let old = old.unwrap_or_else(|| self.load_row(row));
        let ([w, m], bytes) =
            (["W", "M"].map(|name| self.shape.named(name)), self.shape.lanes() * 4);
        let value = self.loop_value(format_args!("select {m} %active, {w} {new}, {w} {old}"));
        let (pointer, store) = (self.row_in_loop(row), self.shape.store_selected());
        self.loop_line(format_args!("  {store} {w} {value}, ptr {pointer}, align {bytes}"));
    }

    /// Saves a row's value before the loop.
    pub(super) fn store_copy(&mut self, copy: usize, value: Value) {
        let (w, bytes) = (self.shape.named("W"), self.shape.lanes() * 4);
        let pointer =
            self.loop_value(format_args!("getelementptr i8, ptr %copies, i64 {}", copy * 256));
        self.loop_line(format_args!("  store {w} {value}, ptr {pointer}, align {bytes}"));
    }

    /// Bails out if a row whose check was deferred is a NaN.
    pub(super) fn check_nan(&mut self, row: RowIndex) {
        let Some(lanes) =
            self.lane_loop.as_mut().and_then(|lane_loop| lane_loop.rows.get_mut(&row))
        else {
            return;
        };
        if std::mem::replace(&mut lanes.nan_check, NanCheck::Done) == NanCheck::Deferred {
            let value = lanes.value;
            let [w, f] = ["W", "F"].map(|name| self.shape.named(name));
            let float = self.loop_value(format_args!("bitcast {w} {value} to {f}"));
            self.bail_out_at_nan(float, f);
        }
    }

    /// Bails out if a floating-point value of type `float` is a NaN.
    pub(super) fn bail_out_at_nan(&mut self, value: Value, float: &str) {
        let nan = self.loop_value(format_args!("fcmp uno {float} {value}, zeroinitializer"));
        if let Some(lane_loop) = &mut self.lane_loop {
            lane_loop.bailout_lanes.push(nan);
        }
    }

    pub(super) fn write_row(&mut self, row: RowIndex, value: Value, nan_check: NanCheck) {
        if let Some(lane_loop) = &mut self.lane_loop {
            lane_loop.rows.insert(row, RowValue { value, is_written: true, nan_check });
        }
    }

    /// Closes the current loop.
    pub(super) fn close_loop(&mut self) {
        let Some(lane_loop) = &self.lane_loop else { return };
        let written: Vec<RowIndex> = lane_loop
            .rows
            .iter()
            .filter(|(_, lanes)| lanes.is_written)
            .map(|(row, _)| *row)
            .collect();
        for row in &written {
            self.check_nan(*row);
        }
        let Some(lane_loop) = &self.lane_loop else { return };
        let may_bail_out = !lane_loop.bailout_lanes.is_empty() || !lane_loop.accesses.is_empty();
        // Saved are rows that the loop both reads and writes; if an access may fault, or the first
        // instruction is partly executed already, all written rows.
        let saves_all = lane_loop.may_fault() || lane_loop.is_second_half;
        let is_saved = |row: &RowIndex| {
            let is_written_again =
                !lane_loop.is_second_half && lane_loop.written_first.contains(row);
            may_bail_out && (lane_loop.before.contains_key(row) || (saves_all && !is_written_again))
        };
        let mut saved: Vec<RowIndex> = written.iter().copied().filter(is_saved).collect();
        for row in &saved {
            self.save_row_before(*row);
        }
        let Some(lane_loop) = &self.lane_loop else { return };
        let (before, rows) = (lane_loop.before.clone(), lane_loop.rows.clone());
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
        let nans = self
            .lane_loop
            .as_ref()
            .map_or_else(Vec::new, |lane_loop| lane_loop.bailout_lanes.clone());
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
            .map_or_else(Vec::new, |lane_loop| lane_loop.masks.values().copied().collect());
        let masks: Vec<(Value, [ScalarIndex; 2])> = masks
            .into_iter()
            .map(|(mask, words)| {
                let bits = self.loop_value(format_args!("bitcast {m} {mask} to i{lanes}"));
                let wide = self.loop_value(format_args!("zext i{lanes} {bits} to i64"));
                (self.loop_value(format_args!("shl i64 {wide}, %lane")), words)
            })
            .collect();
        let Some(lane_loop) = self.lane_loop.take() else { return };
        self.write_loop(lane_loop, any_nan, &masks, saved);
    }

    /// Emits the current loop. Its body refers to `%lane`, `%lanes`, `%copies` and `%active`, which
    /// get the loop's number.
    pub(super) fn write_loop(
        &mut self,
        lane_loop: LaneLoop,
        any_nan: Option<Value>,
        masks: &[(Value, [ScalarIndex; 2])],
        saved: Vec<RowIndex>,
    ) {
        let number = lane_loop.number;
        let lanes = self.shape.lanes();
        let (before, label) = (std::mem::take(&mut self.label), format!("loop{number}"));
        let end = &lane_loop.label;
        let has_accesses = !lane_loop.accesses.is_empty();
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
        let body = lane_loop.body.replace("%lanes,", &format!("%lanes{number},"));
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
            self.regions.push(BailoutRegion { instructions: lane_loop.first..self.index, saved });
        }
        for (index, (_, words)) in masks.iter().enumerate() {
            let whole = self.value(format_args!("or i64 %whole{number}.{index}, 0"));
            self.write_wide(*words, whole);
        }
    }
}
