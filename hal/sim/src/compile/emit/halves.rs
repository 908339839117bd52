//! Half words and half-precision numbers, which are converted to single precision for computations.

use super::emitter::Emitter;
use crate::compile::value::Value;

/// Meaning of a half word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HalfKind {
    /// Half-precision number.
    Number,
    Integer,
}

impl Emitter<'_> {
    /// Converts the low halves of words to single precision. NaNs become quiet.
    pub(super) fn half_numbers(&mut self, words: Value) -> Value {
        let ([w, f], lanes) = (self.types(["W", "F"]), self.shape.lanes());
        let halves = self.loop_value(format_args!("trunc {w} {words} to <{lanes} x i16>"));
        let halves =
            self.loop_value(format_args!("bitcast <{lanes} x i16> {halves} to <{lanes} x half>"));
        self.loop_value(format_args!("fpext <{lanes} x half> {halves} to {f}"))
    }

    /// Rounds numbers to half precision, into the low halves of words whose high halves are zero.
    pub(super) fn half_bits(&mut self, numbers: Value) -> Value {
        let ([w, f], lanes) = (self.types(["W", "F"]), self.shape.lanes());
        let halves = self.loop_value(format_args!("fptrunc {f} {numbers} to <{lanes} x half>"));
        let halves =
            self.loop_value(format_args!("bitcast <{lanes} x half> {halves} to <{lanes} x i16>"));
        self.loop_value(format_args!("zext <{lanes} x i16> {halves} to {w}"))
    }

    /// Converts a result to the low half of a word.
    pub(super) fn narrow_to_half(&mut self, result: Value, kind: HalfKind) -> Value {
        let w = self.shape.named("W");
        match kind {
            HalfKind::Number => self.half_bits(result),
            HalfKind::Integer => {
                self.loop_value(format_args!("and {w} {result}, {}", Value::Splat(0xffff)))
            }
        }
    }

    /// Combines the low halves of two values.
    pub(super) fn combine_halves(&mut self, low: Value, high: Value) -> Value {
        let w = self.shape.named("W");
        let high = self.loop_value(format_args!("shl {w} {high}, {}", Value::Splat(16)));
        self.loop_value(format_args!("or {w} {low}, {high}"))
    }
}
