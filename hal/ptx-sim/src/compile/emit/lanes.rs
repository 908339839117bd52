//! Operands and results of operations on lanes.

use super::Emitter;
use super::forms::lowering;
use super::value::{Value, vector};
use crate::compile::frame::offset;
use crate::program::{Destination, Source};
use crate::wave::Word;
use flipwave_ptx::{Form, SpecialOperand, SpecialRegister};

impl Emitter<'_> {
    /// Computes results from operands; returns `false`, without having emitted anything, for forms and
    /// operands that are not compiled.
    pub(super) fn compute(
        &mut self,
        form: &Form,
        sources: &[Source],
        destinations: &[Destination],
    ) -> bool {
        let Some(lowering) = lowering(form, sources.len(), destinations.len()) else {
            return false;
        };
        let are_sources = sources.len() == lowering.sources.len()
            && sources
                .iter()
                .zip(&lowering.sources)
                .all(|(source, bits)| is_source(*source, *bits));
        let are_results = destinations.len() <= lowering.results.len()
            && destinations
                .iter()
                .zip(&lowering.results)
                .all(|(destination, bits)| is_destination(*destination, *bits));
        if !are_sources || !are_results {
            return false;
        }
        let operands = sources.iter().zip(&lowering.sources);
        let operands: Vec<Value> =
            operands.map(|(source, bits)| self.operand(*source, *bits)).collect();
        let results = (lowering.build)(self, &operands);
        for (destination, result) in destinations.iter().zip(results) {
            self.set(*destination, result);
        }
        true
    }

    /// The lowest bits of an operand, for which [`is_source`] is true.
    pub(super) fn operand(&mut self, source: Source, bits: u32) -> Value {
        let value = match source {
            Source::Word { word, bits: 32 } => self.word(word),
            Source::Word { word, bits: part } => {
                let value = self.word(word);
                self.value(part, format_args!("trunc <32 x i32> {value} to {}", vector(part)))
            }
            Source::Pair(word) => self.pair(word),
            Source::Predicate { number, is_negated } => {
                let value = self.predicate(number);
                if is_negated {
                    self.value(1, format_args!("xor <32 x i1> {value}, splat (i1 true)"))
                } else {
                    value
                }
            }
            Source::Constant(value) => {
                let value = if bits == 64 { value } else { value & ((1 << bits) - 1) };
                return Value::Constant { value, bits };
            }
            Source::Frame(offset) => {
                let address = self.scalar(format_args!("add i64 %local.base, {offset}"));
                self.splat(64, &address)
            }
            Source::Special(special) => self.special(special),
            Source::Carry => Value::Constant { value: 0, bits },
        };
        self.resized(value, bits, false)
    }

    /// A special register, for which [`is_special`] is true.
    fn special(&mut self, special: SpecialOperand) -> Value {
        let element = usize::from(special.element);
        let place = match special.register {
            SpecialRegister::Ntid => 0,
            SpecialRegister::NctaId => 1,
            SpecialRegister::CtaId => 2,
            _ => {
                let threads = self.field("ptr", offset::THREADS);
                let at = element * size_of::<Word>();
                let row = self.scalar(format_args!("getelementptr i8, ptr {threads}, i64 {at}"));
                return self.value(32, format_args!("load <32 x i32>, ptr {row}, align 64"));
            }
        };
        let scalar = self.field("i32", offset::PLACES + 4 * (3 * place + element));
        self.splat(32, &scalar)
    }

    /// A scalar in all lanes.
    pub(super) fn splat(&mut self, bits: u32, scalar: &str) -> Value {
        let kind = vector(bits);
        let first =
            self.value(bits, format_args!("insertelement {kind} poison, i{bits} {scalar}, i64 0"));
        self.value(
            bits,
            format_args!("shufflevector {kind} {first}, {kind} poison, <32 x i32> zeroinitializer"),
        )
    }

    /// A value with another number of bits.
    pub(super) fn resized(&mut self, value: Value, bits: u32, is_signed: bool) -> Value {
        let cast = match value.bits().cmp(&bits) {
            std::cmp::Ordering::Equal => return value,
            std::cmp::Ordering::Greater => "trunc",
            std::cmp::Ordering::Less if is_signed => "sext",
            std::cmp::Ordering::Less => "zext",
        };
        let (from, to) = (vector(value.bits()), vector(bits));
        self.value(bits, format_args!("{cast} {from} {value} to {to}"))
    }

    /// Writes a result, for which [`is_destination`] is true.
    pub(super) fn set(&mut self, destination: Destination, value: Value) {
        match destination {
            Destination::Word { word, bits } => {
                let value = self.resized(value, bits, false);
                let value = self.resized(value, 32, false);
                self.set_words(word, value);
            }
            Destination::Pair(word) => self.set_words(word, value),
            Destination::Predicate(number) => {
                let value = self.resized(value, 1, false);
                self.set_predicate(number, value);
            }
            Destination::Carry | Destination::Sink => {}
        }
    }
}

/// Returns `true` if an operand has a number of bits and is compiled. The carry and most special registers are
/// not.
pub(super) fn is_source(source: Source, bits: u32) -> bool {
    match source {
        // Narrower registers are extended with zeroes.
        Source::Word { .. } => bits > 1,
        Source::Pair(_) | Source::Frame(_) => bits > 1,
        Source::Predicate { .. } => bits == 1,
        Source::Constant(_) => true,
        Source::Special(special) => bits >= 32 && is_special(special),
        Source::Carry => false,
    }
}

/// Returns `true` for positions of threads and workgroups, and for their numbers.
fn is_special(special: SpecialOperand) -> bool {
    use SpecialRegister::{CtaId, NctaId, Ntid, Tid};
    special.element < 3 && matches!(special.register, Tid | Ntid | CtaId | NctaId)
}

/// Returns `true` if a result with a number of bits can be written: the register must not be wider, because
/// the operation decides its other bits.
pub(super) fn is_destination(destination: Destination, bits: u32) -> bool {
    match destination {
        Destination::Word { bits: register, .. } => register <= bits,
        Destination::Pair(_) => bits == 64,
        Destination::Predicate(_) => bits == 1,
        Destination::Carry => false,
        Destination::Sink => true,
    }
}
