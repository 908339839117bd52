//! Recording of the footprint of device memory accesses. Mostly the bytes are recorded already,
//! which the code tests inline; otherwise it calls a function that records them.

use super::group::{Group, Labels, Touched};
use crate::compile::emit::emitter::Emitter;
use crate::compile::frame::offset;
use crate::compile::value::Value;
use flipwave_machine::LINE;

impl Emitter<'_> {
    /// Branches to one of two labels. Before the first label, records the bytes of the active
    /// lanes.
    pub(super) fn branch_recording(
        &mut self,
        group: Group,
        condition: Value,
        offset: Value,
        stride: u32,
        labels: Labels<'_>,
    ) {
        let Labels { taken, not_taken, number } = labels;
        let Some(touched) = group.touched else {
            self.loop_line(format_args!(
                "  br i1 {condition}, label %{taken}{number}, label %{not_taken}{number}"
            ));
            return;
        };
        self.loop_line(format_args!(
            "  br i1 {condition}, label %looked.{taken}{number}, label %{not_taken}{number}"
        ));
        self.label(&format!("looked.{taken}"), number);
        let known = match stride {
            0 => self.has_element(touched, offset, group.step),
            _ => self.has_lines(touched, offset, stride * self.shape.lanes()),
        };
        self.loop_line(format_args!(
            "  br i1 {known}, label %{taken}{number}, label %touched.{taken}{number}"
        ));
        self.label(&format!("touched.{taken}"), number);
        let (m, lanes) = (self.shape.named("M"), self.shape.lanes());
        let bits = self.loop_value(format_args!("bitcast {m} %active to i{lanes}"));
        if stride == group.step {
            let bytes = u64::from(stride * lanes);
            self.record_lines(touched, offset, bytes, bits, &format!("{taken}{number}"));
        }
        let bits = self.loop_value(format_args!("zext i{lanes} {bits} to i64"));
        let touch = self.function(offset::TOUCH);
        self.loop_line(format_args!(
            "  call void {touch}(ptr %frame, i64 {}, i64 {offset}, i64 {bits}, i64 {stride})\n  \
             br label %{taken}{number}",
            touched.site
        ));
    }

    /// Records whole lines, and branches to the label, if the bytes are whole lines of a chapter
    /// that is touched already, and all lanes are active. Falls through otherwise.
    fn record_lines(
        &mut self,
        touched: Touched,
        offset: Value,
        bytes: u64,
        active: Value,
        label: &str,
    ) {
        let (lines, lanes) = (bytes / LINE, self.shape.lanes());
        if lines == 0 || !bytes.is_multiple_of(LINE) {
            return;
        }
        let remainder = self.loop_value(format_args!("and i64 {offset}, {}", LINE - 1));
        let is_aligned = self.loop_value(format_args!("icmp eq i64 {remainder}, 0"));
        let are_active = self.loop_value(format_args!("icmp eq i{lanes} {active}, -1"));
        let line = self.loop_value(format_args!("lshr i64 {offset}, {}", LINE.trailing_zeros()));
        let in_page = self.loop_value(format_args!("and i64 {line}, 63"));
        let is_in = self.loop_value(format_args!("icmp ule i64 {in_page}, {}", 64 - lines));
        let page = self.loop_value(format_args!("lshr i64 {line}, 6"));
        let chapter = self.loop_value(format_args!("lshr i64 {line}, 12"));
        let chapter = self.footprint_word(touched, offset::TOUCHED_CHAPTERS, chapter);
        let pages = self.loop_value(format_args!("load i64, ptr {chapter}"));
        let is_known = self.loop_value(format_args!("icmp ne i64 {pages}, 0"));
        let mut all = self.loop_value(format_args!("and i1 {is_aligned}, {are_active}"));
        for condition in [is_in, is_known] {
            all = self.loop_value(format_args!("and i1 {all}, {condition}"));
        }
        self.loop_line(format_args!("  br i1 {all}, label %lines.{label}, label %other.{label}"));
        self.loop_line(format_args!("lines.{label}:"));
        let in_chapter = self.loop_value(format_args!("and i64 {page}, 63"));
        let bit = self.loop_value(format_args!("shl i64 1, {in_chapter}"));
        let pages = self.loop_value(format_args!("or i64 {pages}, {bit}"));
        self.loop_line(format_args!("  store i64 {pages}, ptr {chapter}"));
        let page = self.footprint_word(touched, offset::TOUCHED_PAGES, page);
        let known = self.loop_value(format_args!("load i64, ptr {page}"));
        let bits = self.loop_value(format_args!("shl i64 {}, {in_page}", u64::MAX >> (64 - lines)));
        let known = self.loop_value(format_args!("or i64 {known}, {bits}"));
        self.loop_line(format_args!("  store i64 {known}, ptr {page}"));
        let first =
            self.loop_value(format_args!("getelementptr i64, ptr {}, i64 {line}", touched.bits));
        self.loop_line(format_args!(
            "  store <{lines} x i64> splat (i64 -1), ptr {first}, align 8\n  \
             br label %{label}\nother.{label}:"
        ));
    }

    /// Address of a word of a level of the footprint.
    fn footprint_word(&mut self, touched: Touched, at: usize, index: Value) -> Value {
        let pointer =
            self.loop_value(format_args!("getelementptr i8, ptr {}, i64 {at}", touched.window));
        let words = self.loop_value(format_args!("load ptr, ptr {pointer}"));
        self.loop_value(format_args!("getelementptr i64, ptr {words}, i64 {index}"))
    }

    /// Records what lanes touch at these offsets.
    pub(super) fn record_each(&mut self, group: Group, offsets: Value, lanes: Value) {
        let Some(touched) = group.touched else { return };
        let ([w, m, d], count) = (self.types(["W", "M", "D"]), self.shape.lanes());
        let offsets = self.loop_value(format_args!("zext {w} {offsets} to {d}"));
        let places = self
            .loop_value(format_args!("getelementptr i8, ptr %frame, i64 {}", offset::LANE_OFFSETS));
        self.loop_line(format_args!("  store {d} {offsets}, ptr {places}, align 8"));
        let bits = self.loop_value(format_args!("bitcast {m} {lanes} to i{count}"));
        let bits = self.loop_value(format_args!("zext i{count} {bits} to i64"));
        let touch = self.function(offset::TOUCH_EACH);
        self.loop_line(format_args!(
            "  call void {touch}(ptr %frame, i64 {}, i64 {bits})",
            touched.site
        ));
    }

    /// Loads a function pointer of the frame.
    fn function(&mut self, at: usize) -> Value {
        let pointer = self.loop_value(format_args!("getelementptr i8, ptr %frame, i64 {at}"));
        self.loop_value(format_args!("load ptr, ptr {pointer}"))
    }

    /// Tests whether all lines of the bytes are recorded as touched completely.
    fn has_lines(&mut self, touched: Touched, offset: Value, bytes: u32) -> Value {
        let shift = LINE.trailing_zeros();
        let first = self.loop_value(format_args!("lshr i64 {offset}, {shift}"));
        let end = self.loop_value(format_args!("add i64 {offset}, {}", bytes - 1));
        let last = self.loop_value(format_args!("lshr i64 {end}, {shift}"));
        let mut all = self.line(touched, last);
        for line in 0..u64::from(bytes).div_ceil(LINE) {
            let line = self.loop_value(format_args!("add i64 {first}, {line}"));
            // At most the last line.
            let is_in = self.loop_value(format_args!("icmp ult i64 {line}, {last}"));
            let line = self.loop_value(format_args!("select i1 {is_in}, i64 {line}, i64 {last}"));
            let bits = self.line(touched, line);
            all = self.loop_value(format_args!("and i64 {all}, {bits}"));
        }
        self.loop_value(format_args!("icmp eq i64 {all}, -1"))
    }

    /// Tests whether bytes of one line are recorded as touched.
    fn has_element(&mut self, touched: Touched, offset: Value, bytes: u32) -> Value {
        let line = self.loop_value(format_args!("lshr i64 {offset}, {}", LINE.trailing_zeros()));
        let bits = self.line(touched, line);
        let pointer = self.loop_value(format_args!("and i64 {offset}, {}", LINE - 1));
        // Bytes beyond the line count as not recorded.
        let bits = self.loop_value(format_args!("lshr i64 {bits}, {pointer}"));
        let mask = (1u64 << bytes) - 1;
        let known = self.loop_value(format_args!("and i64 {bits}, {mask}"));
        self.loop_value(format_args!("icmp eq i64 {known}, {mask}"))
    }

    /// The bytes of a line that are recorded as touched.
    fn line(&mut self, touched: Touched, line: Value) -> Value {
        let pointer =
            self.loop_value(format_args!("getelementptr i64, ptr {}, i64 {line}", touched.bits));
        self.loop_value(format_args!("load i64, ptr {pointer}"))
    }
}
