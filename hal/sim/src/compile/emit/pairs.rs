//! Packed operations: what an operation on one element does, on both of two. An integer is half a word.

use super::emitter::Emitter;
use crate::compile::template::expand;
use crate::compile::value::Value;
use crate::compile::vector::{Lowering, Nan, Stored};
use crate::instruction::{Adapt, Op, Source, SourceAdapt};

impl Emitter<'_> {
    /// Computes an operation on pairs, and writes its results.
    pub(super) fn pair(&mut self, op: &Op, lowering: &Lowering) {
        let none = Adapt::default();
        let adapt = op.adapt.as_deref().unwrap_or(&none);
        let are_halves = lowering.result != Stored::Whole;
        let are_numbers = lowering.nan != Nan::Any;
        let [w, f] = self.types(["W", "F"]);
        // A move takes the word that each of two sources has chosen as the low one.
        if !are_halves && !are_numbers {
            let words = [0, 1].map(|source| {
                let word = usize::from(adapt.sources[source].low_from_high);
                self.lane_word(op.sources[source].words[word], false)
            });
            for (word, value) in (0..).zip(words) {
                self.write_row(op.destination.plus(word), value, false);
            }
            return;
        }
        let keeps_nan = lowering.nan == Nan::Propagates;
        let results = [false, true].map(|high| {
            let mut arguments = Vec::new();
            for (source, how) in op.sources.iter().zip(&adapt.sources).take(3) {
                let number = match are_halves {
                    true => self.half_of_pair(source, how, high, are_numbers),
                    false => self.word_of_pair(source, how, high, keeps_nan),
                };
                arguments.push(number);
            }
            if lowering.nan == Nan::NotAmongSources {
                for argument in &arguments {
                    self.bail_out_at_nan(*argument, f);
                }
            }
            let (number, shape) = (self.number(), self.shape);
            if let Some(open) = &mut self.lane_loop {
                expand(&mut open.body, lowering.code, &arguments, number, shape);
            }
            Value::Result(number)
        });
        if are_halves {
            let [low, high] = results.map(|result| {
                if keeps_nan {
                    self.bail_out_at_nan(result, f);
                }
                self.half(result, are_numbers)
            });
            let both = self.both_halves(low, high);
            self.write_row(op.destination, both, false);
            return;
        }
        for (word, result) in (0..).zip(results) {
            let bits = self.loop_value(format_args!("bitcast {f} {result} to {w}"));
            self.write_row(op.destination.plus(word), bits, keeps_nan);
        }
    }

    /// A word of a source, as a number of single precision.
    fn word_of_pair(
        &mut self,
        source: &Source,
        how: &SourceAdapt,
        high: bool,
        keeps_nan: bool,
    ) -> Value {
        let [w, f] = self.types(["W", "F"]);
        let word = is_high(how, high);
        let value = self.lane_word(source.words[usize::from(word)], keeps_nan);
        let value = self.with_sign(value, how, high, 1 << 31);
        self.loop_value(format_args!("bitcast {w} {value} to {f}"))
    }

    /// A half of a source, as a number of single precision if it is one.
    fn half_of_pair(
        &mut self,
        source: &Source,
        how: &SourceAdapt,
        high: bool,
        is_number: bool,
    ) -> Value {
        let w = self.shape.named("W");
        let mut value = self.lane_word(source.words[0], false);
        if is_high(how, high) {
            value = self.loop_value(format_args!("lshr {w} {value}, {}", Value::Splat(16)));
        }
        let value = self.with_sign(value, how, high, 1 << 15);
        match is_number {
            true => self.half_numbers(value),
            false => self.half(value, false),
        }
    }

    fn with_sign(&mut self, value: Value, how: &SourceAdapt, high: bool, sign: u32) -> Value {
        let w = self.shape.named("W");
        let mut value = value;
        if how.absolute {
            value = self.loop_value(format_args!("and {w} {value}, {}", Value::Splat(!sign)));
        }
        if if high { how.negate_high } else { how.negate_low } {
            value = self.loop_value(format_args!("xor {w} {value}, {}", Value::Splat(sign)));
        }
        value
    }
}

/// Whether the high element of a source is the one for a result.
fn is_high(how: &SourceAdapt, high: bool) -> bool {
    if high { !how.high_from_low } else { how.low_from_high }
}
