//! Stores of vector registers.

use super::group::{Group, Labels};
use super::load::part_type;
use crate::compile::emit::emitter::{Emitter, NanCheck};
use crate::compile::value::Value;
use crate::instruction::{Element, Half, Word};
use crate::wave::RowIndex;

impl Emitter<'_> {
    /// Stores an element per lane, in lane order: with one store if all lanes are active and
    /// consecutive, otherwise lane by lane.
    pub(super) fn store(&mut self, data: RowIndex, group: Group, add: u64, element: Element) {
        let data: Vec<Value> = (0..element.words())
            .map(|word| self.memory_word(data.plus(word.into()), element))
            .collect();
        let number = self.number();
        let m = self.shape.named("M");
        let all = self.all_active();
        // Nothing may be stored after an access that the interpreter handles, since that may fault.
        let nothing_left = self.no_bailout();
        let at_once = self.loop_value(format_args!("and i1 {all}, {}", group.consecutive));
        let whole = self.loop_value(format_args!("and i1 {at_once}, {nothing_left}"));
        let offset = self.loop_value(format_args!("add i64 {}, {}", group.start, add as i64));
        let labels = Labels { taken: "one", not_taken: "each", number };
        self.branch_recording(group, whole, offset, group.step, labels);

        self.label("one", number);
        self.store_consecutive(&data, group, offset, element);
        self.loop_line(format_args!("  br label %stored{number}"));

        self.label("each", number);
        let (safe, offsets) = self.lane_offsets(group, add);
        let nothing_left = self.no_bailout();
        let safe = self
            .loop_value(format_args!("select i1 {nothing_left}, {m} {safe}, {m} zeroinitializer"));
        self.record_each(group, offsets, safe);
        match (&data[..], element) {
            ([word], Element::Words(_)) => self.scatter(*word, group, offsets, safe),
            _ => self.store_each(&data, group, safe, offsets, element),
        }
        self.loop_line(format_args!("  br label %stored{number}"));
        self.label("stored", number);
    }

    /// A word of the data, in the width that it has in memory.
    fn memory_word(&mut self, row: RowIndex, element: Element) -> Value {
        let value = self.lane_word(Word::Row(row), NanCheck::Done);
        let Element::Part { half, .. } = element else { return value };
        let w = self.shape.named("W");
        let value = match half {
            Half::High | Half::HighAlone => {
                self.loop_value(format_args!("lshr {w} {value}, {}", Value::Splat(16)))
            }
            Half::Low | Half::LowAlone | Half::Whole => value,
        };
        let kind = self.memory_type(element);
        self.loop_value(format_args!("trunc {w} {value} to {kind}"))
    }

    fn no_bailout(&mut self) -> Value {
        let lanes_left = self.loop_value(format_args!("load i64, ptr %bailout.at"));
        self.loop_value(format_args!("icmp eq i64 {lanes_left}, 0"))
    }

    fn store_consecutive(&mut self, data: &[Value], group: Group, offset: Value, element: Element) {
        let at =
            self.loop_value(format_args!("getelementptr i8, ptr {}, i64 {offset}", group.bytes));
        let (kind, lanes) = (self.memory_type(element), self.shape.lanes());
        let mut whole = data[0];
        let mut width = lanes;
        // First the words of all lanes in a row, then interleaved by lane.
        for word in &data[1..] {
            let wider = width + lanes;
            let first = self.widen(whole, width, wider);
            let second = self.widen(*word, lanes, wider);
            let places: Vec<String> = (0..wider)
                .map(|place| {
                    format!("i32 {}", if place < width { place } else { wider + place - width })
                })
                .collect();
            whole = self.loop_value(format_args!(
                "shufflevector <{wider} x i32> {first}, <{wider} x i32> {second}, <{wider} x i32> <{}>",
                places.join(", ")
            ));
            width = wider;
        }
        if data.len() == 1 {
            self.loop_line(format_args!("  store {kind} {whole}, ptr {at}, align 1"));
            return;
        }
        let words = data.len() as u32;
        let places: Vec<String> = (0..width)
            .map(|place| format!("i32 {}", place % words * lanes + place / words))
            .collect();
        let whole = self.loop_value(format_args!(
            "shufflevector <{width} x i32> {whole}, <{width} x i32> poison, <{width} x i32> <{}>",
            places.join(", ")
        ));
        self.loop_line(format_args!("  store <{width} x i32> {whole}, ptr {at}, align 1"));
    }

    /// Extends a vector of words with undefined elements.
    fn widen(&mut self, value: Value, width: u32, wider: u32) -> Value {
        let places: Vec<String> = (0..wider)
            .map(|place| if place < width { format!("i32 {place}") } else { "i32 poison".into() })
            .collect();
        self.loop_value(format_args!(
            "shufflevector <{width} x i32> {value}, <{width} x i32> poison, <{wider} x i32> <{}>",
            places.join(", ")
        ))
    }

    fn scatter(&mut self, data: Value, group: Group, offsets: Value, safe: Value) {
        let [w, m] = self.types(["W", "M"]);
        let lanes = self.shape.lanes();
        let at = self.lane_pointers(group.bytes, offsets);
        self.loop_line(format_args!(
            "  call void @llvm.masked.scatter.v{lanes}i32.v{lanes}p0({w} {data}, \
             <{lanes} x ptr> align 1 {at}, {m} {safe})"
        ));
    }

    /// Stores in lane order: where elements overlap, the highest lane's words remain. Masked-off
    /// lanes store to a dummy location.
    fn store_each(
        &mut self,
        data: &[Value],
        group: Group,
        safe: Value,
        offsets: Value,
        element: Element,
    ) {
        let m = self.shape.named("M");
        let (kind, part) = (self.memory_type(element), part_type(element));
        for lane in 0..self.shape.lanes() {
            let stores = self.loop_value(format_args!("extractelement {m} {safe}, i64 {lane}"));
            let at = self.lane_pointer(group.bytes, offsets, lane);
            let at = self.loop_value(format_args!("select i1 {stores}, ptr {at}, ptr %discard"));
            for (word, values) in (0..).zip(data) {
                let value =
                    self.loop_value(format_args!("extractelement {kind} {values}, i64 {lane}"));
                let at =
                    self.loop_value(format_args!("getelementptr i8, ptr {at}, i64 {}", word * 4));
                self.loop_line(format_args!("  store {part} {value}, ptr {at}, align 1"));
            }
        }
    }
}
