//! Vector operations in the body of a lane loop.

use super::emitter::{Emitter, NanCheck};
use super::halves::HalfKind;
use crate::compile::plan::VectorPlan;
use crate::compile::template::expand;
use crate::compile::value::Value;
use crate::compile::vector::{Nan, Stored};
use crate::execute::lane::{Kind, Nans, ResultKind};
use crate::instruction::lane_move::LaneMove;
use crate::instruction::{Finish, Op, SourceAdapt, Word};
use crate::wave::RowIndex;
use flipwave_isa::{SdwaSelect, SdwaUnused};
use std::fmt::Write;

impl Emitter<'_> {
    /// A source word in each lane.
    pub(super) fn lane_word(&mut self, word: Word, nan_check: NanCheck) -> Value {
        match word {
            Word::Row(row) => {
                let lanes = self.row(row);
                if nan_check == NanCheck::Done {
                    self.check_nan(row);
                }
                lanes.value
            }
            Word::Constant(word) => Value::Splat(word),
            word => {
                let value = self.word(word);
                self.splat(value)
            }
        }
    }

    /// A source word in each lane, after the lane move of the instruction.
    fn source_word(
        &mut self,
        word: Word,
        lane_move: Option<&LaneMove>,
        nan_check: NanCheck,
    ) -> Value {
        match (word, lane_move) {
            (Word::Row(row), Some(lane_move)) => self.moved_row(row, lane_move),
            _ => self.lane_word(word, nan_check),
        }
    }

    /// A source that is a lane mask.
    pub(super) fn mask(&mut self, words: [Word; 2]) -> Value {
        if let Some(lane_loop) = &self.lane_loop {
            if let Word::Scalar(low) = words[0]
                && let Some((mask, _)) = lane_loop.masks.get(&low)
            {
                return *mask;
            }
            if let Some((_, known)) =
                lane_loop.read_masks.iter().find(|(mask_words, _)| *mask_words == words)
            {
                return *known;
            }
        }
        let whole = self.wide(words);
        let value = self.mask_part(whole);
        if let Some(lane_loop) = &mut self.lane_loop {
            lane_loop.read_masks.push((words, value));
        }
        value
    }

    /// The part of a lane mask that belongs to the lanes of the iteration.
    pub(super) fn mask_part(&mut self, whole: Value) -> Value {
        let lanes = self.shape.lanes();
        let shifted = self.loop_value(format_args!("lshr i64 {whole}, %lane"));
        let bits = self.loop_value(format_args!("trunc i64 {shifted} to i{lanes}"));
        let mask = Value::Named(self.number());
        let lines = self.shape.mask_of_bits(&mask.to_string(), &bits.to_string());
        if let Some(lane_loop) = &mut self.lane_loop {
            lane_loop.body.push_str(&lines);
        }
        mask
    }

    /// A source of an operation, with its sign modifiers applied.
    pub(super) fn argument(
        &mut self,
        op: &Op,
        plan: VectorPlan,
        index: usize,
        kind: Kind,
    ) -> Value {
        let words = op.sources[index].words;
        let adapt = op.adapt.as_ref().map_or(SourceAdapt::default(), |adapt| adapt.sources[index]);
        let lane_move = op.lane_move().filter(|_| index == 0);
        let propagates_nan = plan.lowering.nan == Nan::Propagates;
        let sign = if matches!(kind, Kind::F16 | Kind::Half) { 0x8000u32 } else { 1 << 31 };
        let (w, d, f) = (self.shape.named("W"), self.shape.named("D"), self.shape.named("F"));
        match kind {
            Kind::Mask => self.mask(words),
            Kind::Wide | Kind::F64 => {
                // A word that is a single-precision NaN is a plain number as a part of a wide
                // source.
                let [low, high] =
                    words.map(|word| self.source_word(word, lane_move, NanCheck::Done));
                let mut value = self.join_words(low, high);
                if adapt.absolute {
                    value =
                        self.loop_value(format_args!("and {d} {value}, splat (i64 {})", i64::MAX));
                }
                if adapt.negate {
                    value =
                        self.loop_value(format_args!("xor {d} {value}, splat (i64 {})", i64::MIN));
                }
                if kind == Kind::F64 { self.as_double(value) } else { value }
            }
            _ => {
                let is_whole = adapt.select == SdwaSelect::Dword;
                let is_single = matches!(kind, Kind::F32 | Kind::Mixed);
                let nan_check = if propagates_nan && is_whole && is_single {
                    NanCheck::Deferred
                } else {
                    NanCheck::Done
                };
                let mut value = self.source_word(words[0], lane_move, nan_check);
                let extends = adapt.sign_extend && kind != Kind::Mixed;
                value = self.extract_part(value, adapt.select, extends);
                if kind == Kind::Mixed && !is_whole {
                    let number = self.half_numbers(value);
                    value = self.loop_value(format_args!("bitcast {f} {number} to {w}"));
                }
                if adapt.absolute {
                    value =
                        self.loop_value(format_args!("and {w} {value}, {}", Value::Splat(!sign)));
                }
                if adapt.negate {
                    value =
                        self.loop_value(format_args!("xor {w} {value}, {}", Value::Splat(sign)));
                }
                match kind {
                    Kind::F16 => self.half_numbers(value),
                    Kind::F32 | Kind::Mixed => {
                        self.loop_value(format_args!("bitcast {w} {value} to {f}"))
                    }
                    Kind::Half => {
                        self.loop_value(format_args!("and {w} {value}, {}", Value::Splat(0xffff)))
                    }
                    _ => value,
                }
            }
        }
    }

    /// Extracts a part of each word.
    fn extract_part(&mut self, value: Value, select: SdwaSelect, sign_extend: bool) -> Value {
        let (shift, bits) = select.field();
        if select == SdwaSelect::Dword {
            return value;
        }
        let w = self.shape.named("W");
        let right = if sign_extend { "ashr" } else { "lshr" };
        let high = Value::Splat(32 - bits - shift);
        let high = self.loop_value(format_args!("shl {w} {value}, {high}"));
        self.loop_value(format_args!("{right} {w} {high}, {}", Value::Splat(32 - bits)))
    }

    /// Inserts a result into a part of a word; the instruction defines the remaining bits.
    fn insert_part(&mut self, value: Value, to: RowIndex, finish: &Finish) -> Value {
        let (shift, bits) = finish.select.field();
        if finish.select == SdwaSelect::Dword {
            return value;
        }
        let w = self.shape.named("W");
        let right = if finish.unused == SdwaUnused::SignExtend { "ashr" } else { "lshr" };
        let high = self.loop_value(format_args!("shl {w} {value}, {}", Value::Splat(32 - bits)));
        let below = Value::Splat(32 - bits - shift);
        let placed = self.loop_value(format_args!("{right} {w} {high}, {below}"));
        if finish.unused != SdwaUnused::Preserve {
            return placed;
        }
        let part_bits = u32::MAX >> (32 - bits) << shift;
        let old = self.lane_word(Word::Row(to), NanCheck::Done);
        let old = self.loop_value(format_args!("and {w} {old}, {}", Value::Splat(!part_bits)));
        self.loop_value(format_args!("or {w} {placed}, {old}"))
    }

    /// Emits an operation. Returns the number of its results.
    pub(super) fn compute(&mut self, op: &Op, plan: VectorPlan) -> u32 {
        let mut arguments = Vec::new();
        for (index, kind) in plan.row.sources.iter().enumerate() {
            arguments.push(self.argument(op, plan, index, *kind));
        }
        if plan.lowering.nan == Nan::NotAmongSources {
            for (argument, kind) in arguments.clone().iter().zip(plan.row.sources) {
                let float = self.shape.named(if *kind == Kind::F64 { "E" } else { "F" });
                self.bail_out_at_nan(*argument, float);
            }
        }
        if plan.lowering.takes_lanes {
            arguments.push(self.lane_numbers());
        }
        let number = self.number();
        let shape = self.shape;
        if let Some(lane_loop) = &mut self.lane_loop {
            expand(&mut lane_loop.body, plan.lowering.code, &arguments, number, shape);
            if plan.lowering.has_bailouts {
                lane_loop.bailout_lanes.push(Value::Bailout(number));
            }
        }
        if self.makes_nans_exact(plan) {
            self.with_exact_nans(plan, &arguments, number)
        } else {
            number
        }
    }

    /// Returns `true` if NaN results are made exact immediately.
    fn makes_nans_exact(&self, plan: VectorPlan) -> bool {
        self.variant.nan_exact
            && plan.lowering.nan == Nan::Propagates
            && plan.row.numerics.nans != Nans::Own
    }

    /// Replaces NaN results by the first source that is a NaN, quieted, or by the default NaN.
    fn with_exact_nans(&mut self, plan: VectorPlan, arguments: &[Value], number: u32) -> u32 {
        let is_double = plan.row.result == ResultKind::Rows(2);
        let (types, word, quiet, default) = if is_double {
            (["E", "D", "M"], "i64", 1u64 << 51, 0x7ff8_u64 << 48)
        } else {
            (["F", "W", "M"], "i32", 1 << 22, 0x7fc0_0000)
        };
        let [f, w, m] = self.types(types);
        let sign = match plan.row.numerics.nans {
            Nans::Negative if is_double => 1 << 63,
            Nans::Negative => 1 << 31,
            _ => 0,
        };
        let splat = |bits: u64| {
            let bits = if is_double { bits as i64 } else { i64::from(bits as u32 as i32) };
            format!("splat ({word} {bits})")
        };
        let result = Value::Result(number);
        let is_nan = self.loop_value(format_args!("fcmp uno {f} {result}, zeroinitializer"));
        let mut nan =
            self.loop_value(format_args!("or {w} zeroinitializer, {}", splat(default | sign)));
        let sources = arguments.iter().zip(plan.row.sources).rev();
        for (argument, _) in
            sources.filter(|(_, kind)| matches!(kind, Kind::F32 | Kind::F16 | Kind::F64))
        {
            let is_source_nan =
                self.loop_value(format_args!("fcmp uno {f} {argument}, zeroinitializer"));
            let bits = self.loop_value(format_args!("bitcast {f} {argument} to {w}"));
            let quieted = self.loop_value(format_args!("or {w} {bits}, {}", splat(quiet)));
            nan = self
                .loop_value(format_args!("select {m} {is_source_nan}, {w} {quieted}, {w} {nan}"));
        }
        let bits = self.loop_value(format_args!("bitcast {f} {result} to {w}"));
        let bits = self.loop_value(format_args!("select {m} {is_nan}, {w} {nan}, {w} {bits}"));
        let exact = self.number();
        if let Some(lane_loop) = &mut self.lane_loop {
            let _ = writeln!(lane_loop.body, "  %r.{exact} = bitcast {w} {bits} to {f}");
        }
        exact
    }

    /// Writes the results of an operation to its registers.
    pub(super) fn commit(&mut self, op: &Op, to: RowIndex, plan: VectorPlan, number: u32) {
        let result = Value::Result(number);
        let (words, mask) = match plan.row.result {
            ResultKind::Mask => (0, Some(result)),
            ResultKind::Rows(words) => (words, None),
            ResultKind::RowsAndMask(words) => (words, Some(Value::Second(number))),
        };
        let is_float = plan.row.float && plan.lowering.result == Stored::Whole;
        let half_kind = if plan.row.float { HalfKind::Number } else { HalfKind::Integer };
        let may_be_nan = plan.lowering.nan == Nan::Propagates && !self.makes_nans_exact(plan);
        let finish = op.adapt.as_ref().map_or(Finish::default(), |adapt| adapt.finish);
        let is_part = finish.select != SdwaSelect::Dword;
        let [w, d, f, e] = ["W", "D", "F", "E"].map(|name| self.shape.named(name));
        match words {
            0 => {}
            1 if plan.lowering.result != Stored::Whole => {
                if may_be_nan {
                    self.bail_out_at_nan(result, f);
                }
                let mut value = self.narrow_to_half(result, half_kind);
                let kept_bits = match plan.lowering.result {
                    Stored::LowHalf if !is_part => Some(!0xffff),
                    Stored::HighHalf => Some(0xffff),
                    _ => None,
                };
                if plan.lowering.result == Stored::HighHalf {
                    value = self.loop_value(format_args!("shl {w} {value}, {}", Value::Splat(16)));
                }
                if let Some(kept_bits) = kept_bits {
                    let old = self.lane_word(Word::Row(to), NanCheck::Done);
                    let old =
                        self.loop_value(format_args!("and {w} {old}, {}", Value::Splat(kept_bits)));
                    value = self.loop_value(format_args!("or {w} {old}, {value}"));
                }
                if plan.lowering.result == Stored::Halves {
                    let high = self.narrow_to_half(Value::Second(number), half_kind);
                    value = self.combine_halves(value, high);
                }
                let value = self.insert_part(value, to, &finish);
                self.write_result(op, to, value, NanCheck::Done);
            }
            1 => {
                if may_be_nan && is_part {
                    self.bail_out_at_nan(result, f);
                }
                let value = if is_float {
                    self.loop_value(format_args!("bitcast {f} {result} to {w}"))
                } else {
                    result
                };
                let value = self.insert_part(value, to, &finish);
                let nan_check =
                    if may_be_nan && !is_part { NanCheck::Deferred } else { NanCheck::Done };
                self.write_result(op, to, value, nan_check);
            }
            _ => {
                let wide = if is_float {
                    self.loop_value(format_args!("bitcast {e} {result} to {d}"))
                } else {
                    result
                };
                let low = self.loop_value(format_args!("trunc {d} {wide} to {w}"));
                let high = self.loop_value(format_args!("lshr {d} {wide}, splat (i64 32)"));
                let high = self.loop_value(format_args!("trunc {d} {high} to {w}"));
                if may_be_nan {
                    self.bail_out_at_nan(result, e);
                }
                self.write_result(op, to, low, NanCheck::Done);
                self.write_result(op, to.plus(1), high, NanCheck::Done);
            }
        }
        if let Some(mask) = mask {
            let m = self.shape.named("M");
            let active = self.loop_value(format_args!("and {m} {mask}, %active"));
            let [low, high] = op.mask_destination;
            if let Some(lane_loop) = &mut self.lane_loop {
                lane_loop.masks.insert(low, (active, [low, high]));
                lane_loop.read_masks.retain(|(words, _)| {
                    !words
                        .iter()
                        .any(|word| [low, high].iter().any(|index| *word == Word::Scalar(*index)))
                });
            }
        }
    }

    /// Writes a word of a result to the lanes that can read their source.
    fn write_result(&mut self, op: &Op, to: RowIndex, value: Value, nan_check: NanCheck) {
        let written = op.lane_move().and_then(|lane_move| self.written_lanes(lane_move));
        let value = written.map_or(value, |written| self.blend(written, value, to));
        self.write_row(to, value, nan_check);
    }

    /// Selects `value` in the lanes `written`, and the row's value in others.
    pub(super) fn blend(&mut self, written: Value, value: Value, row: RowIndex) -> Value {
        let [w, m] = self.types(["W", "M"]);
        let old = self.lane_word(Word::Row(row), NanCheck::Done);
        self.loop_value(format_args!("select {m} {written}, {w} {value}, {w} {old}"))
    }

    /// Combines two words per lane to a 64-bit value.
    pub(super) fn join_words(&mut self, low: Value, high: Value) -> Value {
        let [w, d] = ["W", "D"].map(|name| self.shape.named(name));
        let low = self.loop_value(format_args!("zext {w} {low} to {d}"));
        let high = self.loop_value(format_args!("zext {w} {high} to {d}"));
        let high = self.loop_value(format_args!("shl {d} {high}, splat (i64 32)"));
        self.loop_value(format_args!("or {d} {low}, {high}"))
    }

    pub(super) fn as_double(&mut self, wide: Value) -> Value {
        let [d, e] = ["D", "E"].map(|name| self.shape.named(name));
        self.loop_value(format_args!("bitcast {d} {wide} to {e}"))
    }

    /// The lane numbers.
    pub(super) fn lane_numbers(&mut self) -> Value {
        let (w, lanes) = (self.shape.named("W"), self.shape.lanes());
        let first = self.loop_value(format_args!("add i64 0, %lane"));
        let first = self.loop_value(format_args!("trunc i64 {first} to i32"));
        let first = self.splat(first);
        let each: Vec<String> = (0..lanes).map(|lane| format!("i32 {lane}")).collect();
        self.loop_value(format_args!("add {w} {first}, <{}>", each.join(", ")))
    }

    /// Broadcasts a word to all lanes.
    pub(super) fn splat(&mut self, value: Value) -> Value {
        let (w, lanes) = (self.shape.named("W"), self.shape.lanes());
        let one = self.loop_value(format_args!("insertelement {w} poison, i32 {value}, i64 0"));
        self.loop_value(format_args!(
            "shufflevector {w} {one}, {w} poison, <{lanes} x i32> zeroinitializer"
        ))
    }

    /// Vector types by their abbreviations.
    pub(super) fn types<const COUNT: usize>(&self, names: [&str; COUNT]) -> [&'static str; COUNT] {
        names.map(|name| self.shape.named(name))
    }
}
