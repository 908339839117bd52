//! Half words, and half precision: numbers of single precision as long as code computes with them.

use super::emitter::Emitter;
use crate::compile::value::Value;

impl Emitter<'_> {
    /// The numbers that the low halves of words have. NaNs become quiet.
    pub(super) fn half_numbers(&mut self, words: Value) -> Value {
        let ([w, f], lanes) = (self.types(["W", "F"]), self.shape.lanes());
        let halves = self.loop_value(format_args!("trunc {w} {words} to <{lanes} x i16>"));
        let halves =
            self.loop_value(format_args!("bitcast <{lanes} x i16> {halves} to <{lanes} x half>"));
        self.loop_value(format_args!("fpext <{lanes} x half> {halves} to {f}"))
    }

    /// Numbers rounded to half precision, in the low halves of words whose high halves are zero.
    pub(super) fn half_bits(&mut self, numbers: Value) -> Value {
        let ([w, f], lanes) = (self.types(["W", "F"]), self.shape.lanes());
        let halves = self.loop_value(format_args!("fptrunc {f} {numbers} to <{lanes} x half>"));
        let halves =
            self.loop_value(format_args!("bitcast <{lanes} x half> {halves} to <{lanes} x i16>"));
        self.loop_value(format_args!("zext <{lanes} x i16> {halves} to {w}"))
    }

    /// A result as half a word: rounded to half precision if it is a number.
    pub(super) fn half(&mut self, result: Value, is_number: bool) -> Value {
        let w = self.shape.named("W");
        match is_number {
            true => self.half_bits(result),
            false => self.loop_value(format_args!("and {w} {result}, {}", Value::Splat(0xffff))),
        }
    }

    /// Words of two halves each.
    pub(super) fn both_halves(&mut self, low: Value, high: Value) -> Value {
        let w = self.shape.named("W");
        let high = self.loop_value(format_args!("shl {w} {high}, {}", Value::Splat(16)));
        self.loop_value(format_args!("or {w} {low}, {high}"))
    }
}
