//! Loads of vector registers.

use super::group::{Group, Labels};
use crate::compile::emit::emitter::{Emitter, NanCheck};
use crate::compile::value::Value;
use crate::instruction::{Element, Half, Word};
use crate::wave::RowIndex;

impl Emitter<'_> {
    /// Loads an element per lane.
    pub(super) fn load(&mut self, group: Group, add: u64, element: Element, to: RowIndex) {
        for (word, value) in (0..).zip(self.load_words(group, add, element)) {
            let row = to.plus(word);
            let value = self.extend(value, element, row);
            self.write_row(row, value, NanCheck::Done);
            if let Some(lane_loop) = &mut self.lane_loop {
                lane_loop.loaded.push(row);
            }
        }
    }

    /// Loads the words of an element per lane: with one load if lanes are consecutive, with a
    /// broadcast if they are equal, otherwise lane by lane.
    pub(super) fn load_words(&mut self, group: Group, add: u64, element: Element) -> Vec<Value> {
        let number = self.number();
        let offset = self.loop_value(format_args!("add i64 {}, {}", group.start, add as i64));
        let consecutive = group.consecutive;
        let labels = Labels { taken: "one", not_taken: "other", number };
        self.branch_recording(group, consecutive, offset, group.step, labels);

        self.label("one", number);
        let one = self.load_consecutive(group, offset, element);
        self.loop_line(format_args!("  br label %loaded{number}"));

        self.label("other", number);
        let labels = Labels { taken: "same", not_taken: "each", number };
        self.branch_recording(group, group.equal, offset, 0, labels);
        self.label("same", number);
        let same = self.load_same(group, offset, element);
        self.loop_line(format_args!("  br label %loaded{number}"));

        self.label("each", number);
        let each = self.load_each(group, add, element);
        self.loop_line(format_args!("  br label %loaded{number}"));

        self.label("loaded", number);
        let kind = self.memory_type(element);
        let words = one.into_iter().zip(same).zip(each);
        words
            .map(|((one, same), each)| {
                self.loop_value(format_args!(
                    "phi {kind} [ {one}, %one{number} ], [ {same}, %same{number} ], [ {each}, %each{number} ]"
                ))
            })
            .collect()
    }

    /// Vector type of an element's word in memory.
    pub(super) fn memory_type(&self, element: Element) -> String {
        format!("<{} x {}>", self.shape.lanes(), part_type(element))
    }

    pub(super) fn load_consecutive(
        &mut self,
        group: Group,
        offset: Value,
        element: Element,
    ) -> Vec<Value> {
        let (lanes, words) = (self.shape.lanes(), u32::from(element.words()));
        let (all, part) = (lanes * words, part_type(element));
        let at =
            self.loop_value(format_args!("getelementptr i8, ptr {}, i64 {offset}", group.bytes));
        let whole = self.loop_value(format_args!("load <{all} x {part}>, ptr {at}, align 1"));
        if words == 1 {
            return vec![whole];
        }
        let word = |word| {
            let places: Vec<String> =
                (0..lanes).map(|lane| format!("i32 {}", lane * words + word)).collect();
            self.loop_value(format_args!(
                "shufflevector <{all} x i32> {whole}, <{all} x i32> poison, <{lanes} x i32> <{}>",
                places.join(", ")
            ))
        };
        (0..words).map(word).collect()
    }

    pub(super) fn load_same(
        &mut self,
        group: Group,
        offset: Value,
        element: Element,
    ) -> Vec<Value> {
        let (kind, part, lanes) =
            (self.memory_type(element), part_type(element), self.shape.lanes());
        let at =
            self.loop_value(format_args!("getelementptr i8, ptr {}, i64 {offset}", group.bytes));
        let word = |word| {
            let at = self.loop_value(format_args!("getelementptr i8, ptr {at}, i64 {}", word * 4));
            let value = self.loop_value(format_args!("load {part}, ptr {at}, align 1"));
            let one =
                self.loop_value(format_args!("insertelement {kind} poison, {part} {value}, i64 0"));
            self.loop_value(format_args!(
                "shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer"
            ))
        };
        (0..u32::from(element.words())).map(word).collect()
    }

    fn load_each(&mut self, group: Group, add: u64, element: Element) -> Vec<Value> {
        let (safe, offsets) = self.lane_offsets(group, add);
        self.record_each(group, offsets, safe);
        let [w, m] = self.types(["W", "M"]);
        let (lanes, bytes) = (self.shape.lanes(), group.bytes);
        if let Element::Part { .. } = element {
            let parts = self.load_parts(group, offsets, element);
            return vec![self.zero_missing_lanes(group, parts, element)];
        }
        let word = |word| {
            let at =
                self.loop_value(format_args!("getelementptr i8, ptr {bytes}, i64 {}", word * 4));
            let at = self.lane_pointers(at, offsets);
            let loaded = self.loop_value(format_args!(
                "call {w} @llvm.masked.gather.v{lanes}i32.v{lanes}p0(<{lanes} x ptr> align 1 {at}, \
                 {m} splat (i1 true), {w} poison)"
            ));
            self.zero_missing_lanes(group, loaded, element)
        };
        (0..u32::from(element.words())).map(word).collect()
    }

    /// Replaces loaded words by zeros in lanes whose elements do not exist.
    fn zero_missing_lanes(&mut self, group: Group, loaded: Value, element: Element) -> Value {
        let Some(exists) = group.exists else { return loaded };
        let (kind, m) = (self.memory_type(element), self.shape.named("M"));
        self.loop_value(format_args!(
            "select {m} {exists}, {kind} {loaded}, {kind} zeroinitializer"
        ))
    }

    /// Loads lane by lane: hosts have no gather of bytes.
    fn load_parts(&mut self, group: Group, offsets: Value, element: Element) -> Value {
        let (kind, part) = (self.memory_type(element), part_type(element));
        let mut all = None;
        for lane in 0..self.shape.lanes() {
            let at = self.lane_pointer(group.bytes, offsets, lane);
            let value = self.loop_value(format_args!("load {part}, ptr {at}, align 1"));
            let before = all.map_or("poison".to_owned(), |all: Value| all.to_string());
            all = Some(self.loop_value(format_args!(
                "insertelement {kind} {before}, {part} {value}, i64 {lane}"
            )));
        }
        all.unwrap_or(Value::Splat(0))
    }

    /// Extends loaded words as [`Element::extend`] does.
    fn extend(&mut self, loaded: Value, element: Element, row: RowIndex) -> Value {
        let Element::Part { signed, half, .. } = element else { return loaded };
        let (kind, w) = (self.memory_type(element), self.shape.named("W"));
        let extend = if signed { "sext" } else { "zext" };
        let value = self.loop_value(format_args!("{extend} {kind} {loaded} to {w}"));
        let (kept, value) = match half {
            Half::Whole => return value,
            Half::Low | Half::LowAlone => (
                0xffff_0000,
                self.loop_value(format_args!("and {w} {value}, {}", Value::Splat(0xffff))),
            ),
            Half::High | Half::HighAlone => {
                (0xffff, self.loop_value(format_args!("shl {w} {value}, {}", Value::Splat(16))))
            }
        };
        if matches!(half, Half::LowAlone | Half::HighAlone) {
            return value;
        }
        let old = self.lane_word(Word::Row(row), NanCheck::Done);
        let old = self.loop_value(format_args!("and {w} {old}, {}", Value::Splat(kept)));
        self.loop_value(format_args!("or {w} {old}, {value}"))
    }
}

/// Type of an element's word in memory.
pub(super) fn part_type(element: Element) -> &'static str {
    match element {
        Element::Words(_) => "i32",
        Element::Part { bytes: 1, .. } => "i8",
        Element::Part { .. } => "i16",
    }
}
