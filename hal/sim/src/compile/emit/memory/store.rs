//! Registers to memory.

use super::group::Group;
use super::load::part_type;
use crate::compile::emit::emitter::Emitter;
use crate::compile::value::Value;
use crate::instruction::{Element, Half, Word};
use crate::wave::RowIndex;

impl Emitter<'_> {
    /// Stores an element per lane, lowest lane first: as a whole where all lanes are active and follow
    /// each other, else each by itself.
    pub(super) fn store(&mut self, data: RowIndex, group: Group, add: u64, element: Element) {
        let data: Vec<Value> =
            (0..element.words()).map(|word| self.part(data.plus(word.into()), element)).collect();
        let number = self.number();
        let m = self.shape.named("M");
        let all = self.all_active();
        // Nothing is stored after an access that is left to the interpreter, which may fault.
        let no_doubts = self.no_doubts();
        let at_once = self.loop_value(format_args!("and i1 {all}, {}", group.consecutive));
        let whole = self.loop_value(format_args!("and i1 {at_once}, {no_doubts}"));
        let offset = self.loop_value(format_args!("add i64 {}, {}", group.start, add as i64));
        self.branch_noting(group, (whole, offset), group.step, ("one", "each", number));

        self.label("one", number);
        self.store_consecutive(&data, group, offset, element);
        self.loop_line(format_args!("  br label %stored{number}"));

        self.label("each", number);
        let (safe, offsets) = self.each(group, add);
        let no_doubts = self.no_doubts();
        let safe =
            self.loop_value(format_args!("select i1 {no_doubts}, {m} {safe}, {m} zeroinitializer"));
        self.note_each(group, offsets, safe);
        match (&data[..], element) {
            ([word], Element::Words(_)) => self.scatter(*word, group, offsets, safe),
            _ => self.store_each(&data, group, (safe, offsets), element),
        }
        self.loop_line(format_args!("  br label %stored{number}"));
        self.label("stored", number);
    }

    /// A word of the data, as memory has it.
    fn part(&mut self, row: RowIndex, element: Element) -> Value {
        let value = self.lane_word(Word::Row(row), false);
        let Element::Part { half, .. } = element else { return value };
        let w = self.shape.named("W");
        let value = match half {
            Half::High | Half::HighAlone => {
                self.loop_value(format_args!("lshr {w} {value}, {}", Value::Splat(16)))
            }
            Half::Low | Half::LowAlone | Half::Whole => value,
        };
        let kind = self.kind(element);
        self.loop_value(format_args!("trunc {w} {value} to {kind}"))
    }

    fn no_doubts(&mut self) -> Value {
        let doubts = self.loop_value(format_args!("load i64, ptr %bailout.at"));
        self.loop_value(format_args!("icmp eq i64 {doubts}, 0"))
    }

    fn store_consecutive(&mut self, data: &[Value], group: Group, offset: Value, element: Element) {
        let at =
            self.loop_value(format_args!("getelementptr i8, ptr {}, i64 {offset}", group.bytes));
        let (kind, lanes) = (self.kind(element), self.shape.lanes());
        let mut whole = data[0];
        let mut width = lanes;
        // The words of all lanes one after the other, then those of each lane side by side.
        for word in &data[1..] {
            let wider = width + lanes;
            let first = self.widened(whole, width, wider);
            let second = self.widened(*word, lanes, wider);
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

    /// A vector of words with more places, of no meaning, after its own.
    fn widened(&mut self, value: Value, width: u32, wider: u32) -> Value {
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
        let at = self.at_each(group.bytes, offsets);
        self.loop_line(format_args!(
            "  call void @llvm.masked.scatter.v{lanes}i32.v{lanes}p0({w} {data}, \
             <{lanes} x ptr> align 1 {at}, {m} {safe})"
        ));
    }

    /// One lane after the other: what overlaps is the highest lane's in all its words. Lanes that do not
    /// store do so where nobody looks.
    fn store_each(
        &mut self,
        data: &[Value],
        group: Group,
        (safe, offsets): (Value, Value),
        element: Element,
    ) {
        let m = self.shape.named("M");
        let (kind, part) = (self.kind(element), part_type(element));
        for lane in 0..self.shape.lanes() {
            let stores = self.loop_value(format_args!("extractelement {m} {safe}, i64 {lane}"));
            let at = self.at_one(group.bytes, offsets, lane);
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
