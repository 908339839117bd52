//! What accesses touch of device memory, where that is noted: mostly it is known already, which the
//! code sees for itself; else it calls what notes it.

use super::Group;
use crate::compile::emit::Emitter;
use crate::compile::frame::offset;
use crate::compile::value::Value;
use crate::memory::LINE;

/// Where it is noted what a group touches.
#[derive(Clone, Copy)]
pub struct Touched {
    /// The number of its access.
    pub site: usize,
    /// For each line of its window the bytes that are touched.
    pub bits: Value,
}

impl Emitter<'_> {
    /// Branches to the first label on a condition, or else to the second one. Before it is at the first
    /// one it notes what active lanes touch: the first lane at `offset`, each next one `apart` bytes
    /// further on, or all lanes the same where that is zero.
    pub(super) fn branch_noting(
        &mut self,
        group: Group,
        (condition, offset): (Value, Value),
        apart: u32,
        (yes, no, number): (&str, &str, u32),
    ) {
        let Some(touched) = group.touched else {
            self.body(format_args!(
                "  br i1 {condition}, label %{yes}{number}, label %{no}{number}"
            ));
            return;
        };
        self.body(format_args!(
            "  br i1 {condition}, label %looked.{yes}{number}, label %{no}{number}"
        ));
        self.label(&format!("looked.{yes}"), number);
        let known = match apart {
            0 => self.knows_element(touched, offset, group.step),
            _ => self.knows_lines(touched, offset, apart * self.shape.lanes()),
        };
        self.body(format_args!(
            "  br i1 {known}, label %{yes}{number}, label %touched.{yes}{number}"
        ));
        self.label(&format!("touched.{yes}"), number);
        let (m, lanes) = (self.shape.named("M"), self.shape.lanes());
        let bits = self.lanes(format_args!("bitcast {m} %active to i{lanes}"));
        let bits = self.lanes(format_args!("zext i{lanes} {bits} to i64"));
        let touch = self.function(offset::TOUCH);
        self.body(format_args!(
            "  call void {touch}(ptr %frame, i64 {}, i64 {offset}, i64 {bits}, i64 {apart})\n  \
             br label %{yes}{number}",
            touched.site
        ));
    }

    /// Notes what lanes touch at these offsets.
    pub(super) fn note_each(&mut self, group: Group, offsets: Value, lanes: Value) {
        let Some(touched) = group.touched else { return };
        let ([m, d], count) = (self.types(["M", "D"]), self.shape.lanes());
        let places =
            self.lanes(format_args!("getelementptr i8, ptr %frame, i64 {}", offset::PLACES));
        self.body(format_args!("  store {d} {offsets}, ptr {places}, align 8"));
        let bits = self.lanes(format_args!("bitcast {m} {lanes} to i{count}"));
        let bits = self.lanes(format_args!("zext i{count} {bits} to i64"));
        let touch = self.function(offset::TOUCH_EACH);
        self.body(format_args!(
            "  call void {touch}(ptr %frame, i64 {}, i64 {bits})",
            touched.site
        ));
    }

    /// A function that the frame has.
    fn function(&mut self, at: usize) -> Value {
        let place = self.lanes(format_args!("getelementptr i8, ptr %frame, i64 {at}"));
        self.lanes(format_args!("load ptr, ptr {place}"))
    }

    /// Whether all bytes of all lines are touched in which so many bytes lie.
    fn knows_lines(&mut self, touched: Touched, offset: Value, bytes: u32) -> Value {
        let shift = LINE.trailing_zeros();
        let first = self.lanes(format_args!("lshr i64 {offset}, {shift}"));
        let end = self.lanes(format_args!("add i64 {offset}, {}", bytes - 1));
        let last = self.lanes(format_args!("lshr i64 {end}, {shift}"));
        let mut all = self.line(touched, last);
        for line in 0..u64::from(bytes).div_ceil(LINE) {
            let line = self.lanes(format_args!("add i64 {first}, {line}"));
            // The last one, and no line beyond it.
            let is_in = self.lanes(format_args!("icmp ult i64 {line}, {last}"));
            let line = self.lanes(format_args!("select i1 {is_in}, i64 {line}, i64 {last}"));
            let bits = self.line(touched, line);
            all = self.lanes(format_args!("and i64 {all}, {bits}"));
        }
        self.lanes(format_args!("icmp eq i64 {all}, -1"))
    }

    /// Whether so many bytes are touched, which lie in one line.
    fn knows_element(&mut self, touched: Touched, offset: Value, bytes: u32) -> Value {
        let line = self.lanes(format_args!("lshr i64 {offset}, {}", LINE.trailing_zeros()));
        let bits = self.line(touched, line);
        let place = self.lanes(format_args!("and i64 {offset}, {}", LINE - 1));
        // Bytes beyond the line are none that are known.
        let bits = self.lanes(format_args!("lshr i64 {bits}, {place}"));
        let own = (1u64 << bytes) - 1;
        let known = self.lanes(format_args!("and i64 {bits}, {own}"));
        self.lanes(format_args!("icmp eq i64 {known}, {own}"))
    }

    /// The bytes of a line that are touched.
    fn line(&mut self, touched: Touched, line: Value) -> Value {
        let place = self.lanes(format_args!("getelementptr i64, ptr {}, i64 {line}", touched.bits));
        self.lanes(format_args!("load i64, ptr {place}"))
    }
}
