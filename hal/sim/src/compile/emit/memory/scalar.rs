//! Loads to scalar registers. They bail out if the words are not in the window that was found when
//! the interpreter last executed the load.

use super::group::Window;
use crate::compile::compiled::BailoutRegion;
use crate::compile::emit::emitter::Emitter;
use crate::compile::frame::{BAILOUT, offset};
use crate::compile::value::Value;
use crate::instruction::{Op, Word};
use crate::memory::WindowAccess;
use crate::wave::ScalarIndex;
use std::fmt::Write;

impl Emitter<'_> {
    /// Emits a load of `words` words. Its address is computed as by
    /// [`execute`](crate::execute::scalar_memory::execute).
    pub(in crate::compile::emit) fn scalar_load(&mut self, op: &Op, words: u8) {
        let bytes = 4 * u32::from(words);
        self.close_loop();
        let base = self.wide(op.sources[0].words);
        let base = self.value(format_args!("and i64 {base}, -4"));
        let offset = match op.sources[1].words[0] {
            Word::Constant(word) => {
                Value::Wide((i64::from(word).wrapping_add(op.immediate) & !3) as u64)
            }
            word => {
                let word = self.word(word);
                let offset = self.value(format_args!("zext i32 {word} to i64"));
                let offset = self.value(format_args!("add i64 {offset}, {}", op.immediate));
                self.value(format_args!("and i64 {offset}, -4"))
            }
        };
        let window = self.window(WindowAccess::Read, bytes, Some(base));
        let Window { bytes: first, length, add, missing, touched } = window;
        let start = self.value(format_args!("add i64 {add}, {offset}"));
        // A window is at least as long as the longest load.
        let last = self.value(format_args!("sub i64 {length}, {bytes}"));
        let mut fits = self.value(format_args!("icmp ule i64 {start}, {last}"));
        if let Some(missing) = missing {
            let there = self.value(format_args!("icmp eq i64 {missing}, 0"));
            fits = self.value(format_args!("and i1 {fits}, {there}"));
        }
        self.store_scalars();
        let (number, region) = (self.number(), self.regions.len());
        let _ = write!(
            self.text,
            "  br i1 {fits}, label %intact{number}, label %bailout{number}\nbailout{number}:\n  \
             store i64 {region}, ptr %index.at\n  ret i32 {BAILOUT}\nintact{number}:\n"
        );
        self.label = format!("intact{number}");
        self.regions
            .push(BailoutRegion { instructions: self.index..self.index + 1, saved: Vec::new() });
        if let Some(touched) = touched {
            let pointer =
                self.value(format_args!("getelementptr i8, ptr %frame, i64 {}", offset::TOUCH));
            let touch = self.value(format_args!("load ptr, ptr {pointer}"));
            let site = touched.site;
            let _ = writeln!(
                self.text,
                "  call void {touch}(ptr %frame, i64 {site}, i64 {start}, i64 1, i64 0)"
            );
        }
        let pointer = self.value(format_args!("getelementptr i8, ptr {first}, i64 {start}"));
        for word in 0..words {
            let at = 4 * u32::from(word);
            let pointer = self.value(format_args!("getelementptr i8, ptr {pointer}, i64 {at}"));
            let value = self.value(format_args!("load i32, ptr {pointer}, align 1"));
            self.write_scalar(ScalarIndex(op.scalar_destination.0 + word), value);
        }
    }
}
