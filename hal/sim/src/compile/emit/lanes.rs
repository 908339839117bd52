//! What operations do in the lanes of a segment.

use super::emitter::Emitter;
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
    /// A word of a source in each lane. `keeps_nan` says whether the operation gives a NaN where
    /// this is one.
    pub(super) fn lane_word(&mut self, word: Word, keeps_nan: bool) -> Value {
        match word {
            Word::Row(row) => {
                let lanes = self.row(row);
                if !keeps_nan {
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

    /// The same, of another lane where those are moved.
    fn source_word(&mut self, word: Word, lane_move: Option<&LaneMove>, keeps_nan: bool) -> Value {
        match (word, lane_move) {
            (Word::Row(row), Some(lane_move)) => self.moved(row, lane_move),
            _ => self.lane_word(word, keeps_nan),
        }
    }

    /// A lane mask that is a source.
    pub(super) fn mask(&mut self, words: [Word; 2]) -> Value {
        if let Some(open) = &self.lane_loop {
            if let Word::Scalar(low) = words[0]
                && let Some((own, _)) = open.masks.get(&low)
            {
                return *own;
            }
            if let Some((_, known)) = open.read_masks.iter().find(|(own, _)| *own == words) {
                return *known;
            }
        }
        let whole = self.wide(words);
        let value = self.mask_part(whole);
        if let Some(open) = &mut self.lane_loop {
            open.read_masks.push((words, value));
        }
        value
    }

    /// The bits of a lane mask for the lanes of the loop's turn.
    pub(super) fn mask_part(&mut self, whole: Value) -> Value {
        let lanes = self.shape.lanes();
        let shifted = self.loop_value(format_args!("lshr i64 {whole}, %lane"));
        let bits = self.loop_value(format_args!("trunc i64 {shifted} to i{lanes}"));
        let mask = Value::Named(self.number());
        let lines = self.shape.mask_of_bits(&mask.to_string(), &bits.to_string());
        if let Some(open) = &mut self.lane_loop {
            open.body.push_str(&lines);
        }
        mask
    }

    /// One source of an operation, with its signs as modifiers have them.
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
        let keeps_nan = plan.lowering.nan == Nan::Propagates;
        let sign = if matches!(kind, Kind::F16 | Kind::Half) { 0x8000u32 } else { 1 << 31 };
        let (w, d, f) = (self.shape.named("W"), self.shape.named("D"), self.shape.named("F"));
        match kind {
            Kind::Mask => self.mask(words),
            Kind::Wide | Kind::F64 => {
                // A NaN of single precision as half of it is a number as any other.
                let [low, high] = words.map(|word| self.source_word(word, lane_move, false));
                let mut value = self.joined(low, high);
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
                let keeps_nan = keeps_nan && is_whole && is_single;
                let mut value = self.source_word(words[0], lane_move, keeps_nan);
                let extends = adapt.sign_extend && kind != Kind::Mixed;
                value = self.selected(value, adapt.select, extends);
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

    /// A part of each word.
    fn selected(&mut self, value: Value, select: SdwaSelect, sign_extend: bool) -> Value {
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

    /// A word whose part is a result, and whose rest is what the instruction makes of the old one.
    fn placed(&mut self, value: Value, to: RowIndex, finish: &Finish) -> Value {
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
        let own = u32::MAX >> (32 - bits) << shift;
        let old = self.lane_word(Word::Row(to), false);
        let old = self.loop_value(format_args!("and {w} {old}, {}", Value::Splat(!own)));
        self.loop_value(format_args!("or {w} {placed}, {old}"))
    }

    /// Computes an operation; its results are those of the number.
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
        if let Some(open) = &mut self.lane_loop {
            expand(&mut open.body, plan.lowering.code, &arguments, number, shape);
            if plan.lowering.has_bailouts {
                open.bailout_lanes.push(Value::Bailout(number));
            }
        }
        if self.settles(plan) { self.settled(plan, &arguments, number) } else { number }
    }

    /// Whether NaNs that an operation gives are made those of the interpreter at once.
    fn settles(&self, plan: VectorPlan) -> bool {
        self.variant.nan_exact
            && plan.lowering.nan == Nan::Propagates
            && plan.row.numerics.nans != Nans::Own
    }

    /// A result whose NaNs are the first source that is one, quieted, or the default NaN.
    fn settled(&mut self, plan: VectorPlan, arguments: &[Value], number: u32) -> u32 {
        let is_double = plan.row.result == ResultKind::Rows(2);
        let (types, word, quiet, default) = match is_double {
            true => (["E", "D", "M"], "i64", 1u64 << 51, 0x7ff8_u64 << 48),
            false => (["F", "W", "M"], "i32", 1 << 22, 0x7fc0_0000),
        };
        let [f, w, m] = self.types(types);
        let sign = match plan.row.numerics.nans {
            Nans::Negative if is_double => 1 << 63,
            Nans::Negative => 1 << 31,
            _ => 0,
        };
        let splat = |bits: u64| match is_double {
            true => format!("splat ({word} {})", bits as i64),
            false => format!("splat ({word} {})", bits as u32 as i32),
        };
        let result = Value::Result(number);
        let is_nan = self.loop_value(format_args!("fcmp uno {f} {result}, zeroinitializer"));
        let mut nan =
            self.loop_value(format_args!("or {w} zeroinitializer, {}", splat(default | sign)));
        let sources = arguments.iter().zip(plan.row.sources).rev();
        for (argument, _) in
            sources.filter(|(_, kind)| matches!(kind, Kind::F32 | Kind::F16 | Kind::F64))
        {
            let is_own = self.loop_value(format_args!("fcmp uno {f} {argument}, zeroinitializer"));
            let bits = self.loop_value(format_args!("bitcast {f} {argument} to {w}"));
            let own = self.loop_value(format_args!("or {w} {bits}, {}", splat(quiet)));
            nan = self.loop_value(format_args!("select {m} {is_own}, {w} {own}, {w} {nan}"));
        }
        let bits = self.loop_value(format_args!("bitcast {f} {result} to {w}"));
        let bits = self.loop_value(format_args!("select {m} {is_nan}, {w} {nan}, {w} {bits}"));
        let settled = self.number();
        if let Some(open) = &mut self.lane_loop {
            let _ = writeln!(open.body, "  %r.{settled} = bitcast {w} {bits} to {f}");
        }
        settled
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
        let may_be_nan = plan.lowering.nan == Nan::Propagates && !self.settles(plan);
        let finish = op.adapt.as_ref().map_or(Finish::default(), |adapt| adapt.finish);
        let is_part = finish.select != SdwaSelect::Dword;
        let [w, d, f, e] = ["W", "D", "F", "E"].map(|name| self.shape.named(name));
        match words {
            0 => {}
            1 if plan.lowering.result != Stored::Whole => {
                if may_be_nan {
                    self.bail_out_at_nan(result, f);
                }
                let mut value = self.half(result, plan.row.float);
                let kept = match plan.lowering.result {
                    Stored::LowHalf if !is_part => Some(!0xffff),
                    Stored::HighHalf => Some(0xffff),
                    _ => None,
                };
                if plan.lowering.result == Stored::HighHalf {
                    value = self.loop_value(format_args!("shl {w} {value}, {}", Value::Splat(16)));
                }
                if let Some(kept) = kept {
                    let old = self.lane_word(Word::Row(to), false);
                    let old =
                        self.loop_value(format_args!("and {w} {old}, {}", Value::Splat(kept)));
                    value = self.loop_value(format_args!("or {w} {old}, {value}"));
                }
                if plan.lowering.result == Stored::Halves {
                    let high = self.half(Value::Second(number), plan.row.float);
                    value = self.both_halves(value, high);
                }
                let value = self.placed(value, to, &finish);
                self.write_result(op, to, value, false);
            }
            1 => {
                if may_be_nan && is_part {
                    self.bail_out_at_nan(result, f);
                }
                let value = match is_float {
                    true => self.loop_value(format_args!("bitcast {f} {result} to {w}")),
                    false => result,
                };
                let value = self.placed(value, to, &finish);
                self.write_result(op, to, value, may_be_nan && !is_part);
            }
            _ => {
                let wide = match is_float {
                    true => self.loop_value(format_args!("bitcast {e} {result} to {d}")),
                    false => result,
                };
                let low = self.loop_value(format_args!("trunc {d} {wide} to {w}"));
                let high = self.loop_value(format_args!("lshr {d} {wide}, splat (i64 32)"));
                let high = self.loop_value(format_args!("trunc {d} {high} to {w}"));
                if may_be_nan {
                    self.bail_out_at_nan(result, e);
                }
                self.write_result(op, to, low, false);
                self.write_result(op, to.plus(1), high, false);
            }
        }
        if let Some(mask) = mask {
            let m = self.shape.named("M");
            let active = self.loop_value(format_args!("and {m} {mask}, %active"));
            let [low, high] = op.mask_destination;
            if let Some(open) = &mut self.lane_loop {
                open.masks.insert(low, (active, [low, high]));
                open.read_masks.retain(|(words, _)| {
                    !words
                        .iter()
                        .any(|word| [low, high].iter().any(|index| *word == Word::Scalar(*index)))
                });
            }
        }
    }

    /// Writes a word of a result, to those lanes that can take what they are to take from others.
    fn write_result(&mut self, op: &Op, to: RowIndex, value: Value, may_be_nan: bool) {
        let written = op.lane_move().and_then(|lane_move| self.written(lane_move));
        let value = written.map_or(value, |written| self.blended(written, value, to));
        self.write_row(to, value, may_be_nan);
    }

    /// A new value in some lanes, and what a row has in the others.
    pub(super) fn blended(&mut self, written: Value, value: Value, row: RowIndex) -> Value {
        let [w, m] = self.types(["W", "M"]);
        let old = self.lane_word(Word::Row(row), false);
        self.loop_value(format_args!("select {m} {written}, {w} {value}, {w} {old}"))
    }

    /// Two words per lane as one value.
    pub(super) fn joined(&mut self, low: Value, high: Value) -> Value {
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

    /// The number of each lane.
    pub(super) fn lane_numbers(&mut self) -> Value {
        let (w, lanes) = (self.shape.named("W"), self.shape.lanes());
        let first = self.loop_value(format_args!("add i64 0, %lane"));
        let first = self.loop_value(format_args!("trunc i64 {first} to i32"));
        let first = self.splat(first);
        let each: Vec<String> = (0..lanes).map(|lane| format!("i32 {lane}")).collect();
        self.loop_value(format_args!("add {w} {first}, <{}>", each.join(", ")))
    }

    /// A word in all lanes.
    pub(super) fn splat(&mut self, value: Value) -> Value {
        let (w, lanes) = (self.shape.named("W"), self.shape.lanes());
        let one = self.loop_value(format_args!("insertelement {w} poison, i32 {value}, i64 0"));
        self.loop_value(format_args!(
            "shufflevector {w} {one}, {w} poison, <{lanes} x i32> zeroinitializer"
        ))
    }

    /// Types by their abbreviations.
    pub(super) fn types<const COUNT: usize>(&self, names: [&str; COUNT]) -> [&'static str; COUNT] {
        names.map(|name| self.shape.named(name))
    }
}
