//! Packed operations: an operation on both elements of a pair. An integer element is half a word.

use super::emitter::{Emitter, NanCheck};
use super::halves::HalfKind;
use crate::compile::template::expand;
use crate::compile::value::Value;
use crate::compile::vector::{Lowering, Nan, Stored};
use crate::instruction::{Adapt, Op, Source, SourceAdapt};

/// An element of a pair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PairElement {
    Low,
    High,
}

impl Emitter<'_> {
    /// Emits an operation on pairs and writes its results.
    pub(super) fn pair(&mut self, op: &Op, lowering: &Lowering) {
        let none = Adapt::default();
        let adapt = op.adapt.as_deref().unwrap_or(&none);
        let are_halves = lowering.result != Stored::Whole;
        let kind = if lowering.nan == Nan::Any { HalfKind::Integer } else { HalfKind::Number };
        let [w, f] = self.types(["W", "F"]);
        // A move takes one word of each of two sources.
        if !are_halves && kind == HalfKind::Integer {
            let words = [0, 1].map(|source| {
                let word = usize::from(adapt.sources[source].low_from_high);
                self.lane_word(op.sources[source].words[word], NanCheck::Done)
            });
            for (word, value) in (0..).zip(words) {
                self.write_row(op.destination.plus(word), value, NanCheck::Done);
            }
            return;
        }
        let propagates_nan = lowering.nan == Nan::Propagates;
        let nan_check = if propagates_nan { NanCheck::Deferred } else { NanCheck::Done };
        let results = [PairElement::Low, PairElement::High].map(|element| {
            let mut arguments = Vec::new();
            for (source, modifiers) in op.sources.iter().zip(&adapt.sources).take(3) {
                let number = if are_halves {
                    self.half_of_pair(source, modifiers, element, kind)
                } else {
                    self.word_of_pair(source, modifiers, element, nan_check)
                };
                arguments.push(number);
            }
            if lowering.nan == Nan::NotAmongSources {
                for argument in &arguments {
                    self.bail_out_at_nan(*argument, f);
                }
            }
            let (number, shape) = (self.number(), self.shape);
            if let Some(lane_loop) = &mut self.lane_loop {
                expand(&mut lane_loop.body, lowering.code, &arguments, number, shape);
            }
            Value::Result(number)
        });
        if are_halves {
            let [low, high] = results.map(|result| {
                if propagates_nan {
                    self.bail_out_at_nan(result, f);
                }
                self.narrow_to_half(result, kind)
            });
            let both = self.combine_halves(low, high);
            self.write_row(op.destination, both, NanCheck::Done);
            return;
        }
        for (word, result) in (0..).zip(results) {
            let bits = self.loop_value(format_args!("bitcast {f} {result} to {w}"));
            self.write_row(op.destination.plus(word), bits, nan_check);
        }
    }

    /// A word of a source as a single-precision number.
    fn word_of_pair(
        &mut self,
        source: &Source,
        modifiers: &SourceAdapt,
        element: PairElement,
        nan_check: NanCheck,
    ) -> Value {
        let [w, f] = self.types(["W", "F"]);
        let word = is_high(modifiers, element);
        let value = self.lane_word(source.words[usize::from(word)], nan_check);
        let value = self.apply_sign(value, modifiers, element, 1 << 31);
        self.loop_value(format_args!("bitcast {w} {value} to {f}"))
    }

    /// A half of a source, converted to single precision if it is a number.
    fn half_of_pair(
        &mut self,
        source: &Source,
        modifiers: &SourceAdapt,
        element: PairElement,
        kind: HalfKind,
    ) -> Value {
        let w = self.shape.named("W");
        let mut value = self.lane_word(source.words[0], NanCheck::Done);
        if is_high(modifiers, element) {
            value = self.loop_value(format_args!("lshr {w} {value}, {}", Value::Splat(16)));
        }
        let value = self.apply_sign(value, modifiers, element, 1 << 15);
        match kind {
            HalfKind::Number => self.half_numbers(value),
            HalfKind::Integer => self.narrow_to_half(value, kind),
        }
    }

    /// Applies the sign modifiers of an element, whose sign bit is `sign`.
    fn apply_sign(
        &mut self,
        value: Value,
        modifiers: &SourceAdapt,
        element: PairElement,
        sign: u32,
    ) -> Value {
        let w = self.shape.named("W");
        let mut value = value;
        if modifiers.absolute {
            value = self.loop_value(format_args!("and {w} {value}, {}", Value::Splat(!sign)));
        }
        let negates = match element {
            PairElement::Low => modifiers.negate_low,
            PairElement::High => modifiers.negate_high,
        };
        if negates {
            value = self.loop_value(format_args!("xor {w} {value}, {}", Value::Splat(sign)));
        }
        value
    }
}

/// Returns `true` if an element of the result reads the high element of a source.
fn is_high(modifiers: &SourceAdapt, element: PairElement) -> bool {
    match element {
        PairElement::Low => modifiers.low_from_high,
        PairElement::High => !modifiers.high_from_low,
    }
}
