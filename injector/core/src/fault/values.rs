//! Right and wrong results of instructions as a study saw them, for instance in RTL simulation.

use super::{Action, FloatFormat, RelativeError};
use crate::resolve::stream::Stream;
use flipwave_isa::{DataType, Operation};
use std::num::NonZeroU64;

/// Pairs of a right result and a wrong one, by the operation that gave them, and how often each was
/// seen.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredValues {
    /// What they are called in messages: the file's name.
    name: String,
    pairs: Vec<MeasuredPair>,
}

/// A result that was seen to be wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPair {
    /// Canonical name of the operation; nothing for all that have no pairs of their own.
    pub opcode: Option<String>,
    /// What the result should have been, and what it was.
    pub results: Results,
    /// How often that was seen.
    pub count: u64,
}

/// A right result and a wrong one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Results {
    /// What a register holds.
    Words([u32; 2]),
    /// What two registers hold.
    DoubleWords([u64; 2]),
    /// Floating-point numbers, of the type that the instruction has.
    Numbers([f64; 2]),
}

/// A table of pairs that say nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// No pair has a count above zero.
    #[error("no pair of values has a count above 0")]
    Empty,
    /// Nothing was wrong.
    #[error("pair number {number} is of the same values: nothing was wrong")]
    Same {
        /// Which one, from 1.
        number: usize,
    },
    /// Numbers as results of what computes none.
    #[error(
        "pair number {number} is of floating-point numbers, which {opcode} does not compute; \
         expected words like 0x00000003"
    )]
    NoNumbers {
        /// Which one, from 1.
        number: usize,
        /// The operation.
        opcode: String,
    },
    /// The counts do not fit.
    #[error("the counts add up to more than {}", u64::MAX)]
    TooMany,
}

impl MeasuredValues {
    /// These pairs.
    ///
    /// # Errors
    /// [`ValuesError`].
    pub fn new(name: &str, pairs: Vec<MeasuredPair>) -> Result<MeasuredValues, ValuesError> {
        let mut total = 0u64;
        for (number, MeasuredPair { opcode, results, count }) in (1..).zip(&pairs) {
            if results.are_the_same() {
                return Err(ValuesError::Same { number });
            }
            if let (Some(opcode), Results::Numbers(_)) = (opcode, results)
                && !computes_numbers(opcode)
            {
                return Err(ValuesError::NoNumbers { number, opcode: opcode.clone() });
            }
            total = total.checked_add(*count).ok_or(ValuesError::TooMany)?;
        }
        match total {
            0 => Err(ValuesError::Empty),
            _ => Ok(MeasuredValues { name: name.to_owned(), pairs }),
        }
    }

    /// What they are called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Those of one operation; without any, those for all.
    pub(crate) fn of_opcode(&self, opcode: &str) -> MeasuredValues {
        let of = |wanted: Option<&str>| -> Vec<MeasuredPair> {
            let own = self.pairs.iter().filter(|pair| pair.opcode.as_deref() == wanted);
            own.cloned().collect()
        };
        let own = of(Some(opcode));
        let pairs = if own.is_empty() { of(None) } else { own };
        MeasuredValues { name: self.name.clone(), pairs }
    }

    /// Whether any of them can be that of a value of `bits` bits, which is a number of `format`.
    pub(crate) fn fit(&self, bits: u32, format: Option<FloatFormat>) -> bool {
        self.fitting(bits, format).next().is_some()
    }

    /// What one of them does to such a value, each as often as it was seen; nothing if none fits.
    pub(crate) fn draw(
        &self,
        bits: u32,
        format: Option<FloatFormat>,
        stream: &mut Stream,
    ) -> Option<Action> {
        let total = self.fitting(bits, format).map(|(_, count)| count).sum();
        let mut number = stream.below(NonZeroU64::new(total)?);
        let mut fitting = self.fitting(bits, format);
        let drawn = fitting.find(|(_, count)| {
            let is_found = number < *count;
            number -= if is_found { 0 } else { *count };
            is_found
        });
        drawn.map(|(action, _)| action)
    }

    fn fitting(
        &self,
        bits: u32,
        format: Option<FloatFormat>,
    ) -> impl Iterator<Item = (Action, u64)> {
        let seen = self.pairs.iter().filter(|pair| pair.count > 0);
        seen.filter_map(move |pair| Some((pair.results.action(bits, format)?, pair.count)))
    }
}

impl Results {
    fn are_the_same(&self) -> bool {
        match self {
            Results::Words([golden, faulty]) => golden == faulty,
            Results::DoubleWords([golden, faulty]) => golden == faulty,
            Results::Numbers([golden, faulty]) => golden.to_bits() == faulty.to_bits(),
        }
    }

    /// What makes a wrong value of a right one of `bits` bits: of a number the relative error, or if
    /// it has none (from zero, or to infinity) the bits that differ; of other words these. Nothing
    /// where they are of values of another kind, or bits of two registers differ.
    fn action(&self, bits: u32, format: Option<FloatFormat>) -> Option<Action> {
        let (mask, own) = match (*self, format) {
            (Results::Words([golden, faulty]), None) => (golden ^ faulty, u32::MAX),
            (_, None) => return None,
            (results, Some(format)) => {
                let ([golden, faulty], registers) = results.numbers(format)?;
                if let Some(error) = RelativeError::new(faulty / golden - 1.0)
                    && error.value() != 0.0
                {
                    return Some(Action::Relative(format, error));
                }
                let [golden, faulty] = registers;
                ((golden ^ faulty) as u32, format.bits_of_one_word()?)
            }
        };
        let mask = mask & own;
        let fits = mask != 0 && 32 - mask.leading_zeros() <= bits;
        fits.then_some(Action::Flip(mask))
    }

    /// The two numbers of this format, and the registers that hold them.
    fn numbers(self, format: FloatFormat) -> Option<([f64; 2], [u64; 2])> {
        let of = |registers: [u64; 2]| (registers.map(|own| format.number(own)), registers);
        match self {
            Results::Words(words) if format.words() == 1 => Some(of(words.map(u64::from))),
            Results::DoubleWords(words) if format.words() == 2 => Some(of(words)),
            Results::Numbers(numbers) => Some((numbers, numbers.map(|own| format.with(0, own)))),
            _ => None,
        }
    }
}

/// Whether an operation's type is one of floating-point numbers.
fn computes_numbers(opcode: &str) -> bool {
    matches!(
        Operation::named(opcode).data_type(),
        DataType::F64 | DataType::F32 | DataType::F16 | DataType::Bf16
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(opcode: &str, results: Results, count: u64) -> MeasuredPair {
        let opcode = (!opcode.is_empty()).then(|| opcode.to_owned());
        MeasuredPair { opcode, results, count }
    }

    fn relative(format: FloatFormat, error: f64) -> Option<Action> {
        Some(Action::Relative(format, RelativeError::new(error).unwrap()))
    }

    #[test]
    fn numbers_are_off_as_they_were_seen_to_be() {
        let halves = Results::Words([0x3c00_4000, 0x3c00_4200]);
        for (results, format, expected) in [
            (Results::Numbers([2.0, 3.0]), FloatFormat::F64, 0.5),
            (Results::Numbers([2.0, 0.0]), FloatFormat::Bf16High, -1.0),
            (Results::Words([0x4000_0000, 0x4040_0000]), FloatFormat::F32, 0.5),
            (Results::DoubleWords([0x3ff << 52, 0x400 << 52]), FloatFormat::F64, 1.0),
            (halves, FloatFormat::F16, 0.5),
        ] {
            let action = results.action(32, Some(format));
            assert_eq!(action, relative(format, expected), "{results:?}");
        }
        assert_eq!(halves.action(32, Some(FloatFormat::F16High)), None, "that half was right");
    }

    /// Zero has no part that an error could be, and infinity is no part of anything.
    #[test]
    fn what_is_no_relative_error_is_the_bits_that_differ() {
        let flip = |mask| Some(Action::Flip(mask));
        for (results, format, expected) in [
            (Results::Numbers([0.0, 1.0]), FloatFormat::F32, flip(0x3f80_0000)),
            (Results::Numbers([0.0, -0.0]), FloatFormat::F16High, flip(0x8000_0000)),
            (Results::Numbers([1.0, f64::INFINITY]), FloatFormat::F32, flip(0x4000_0000)),
            (Results::Numbers([1.0, f64::NAN]), FloatFormat::F16, flip(0x4200)),
            (Results::Words([0xffff_0000, 0x0001]), FloatFormat::Bf16, flip(0x0001)),
            (Results::Numbers([0.0, 1.0]), FloatFormat::F64, None),
            (Results::DoubleWords([0, 1]), FloatFormat::F32, None),
            (Results::Words([1, 2]), FloatFormat::F64, None),
        ] {
            assert_eq!(results.action(32, Some(format)), expected, "{results:?} {format:?}");
        }
        assert_eq!(Results::Words([5, 6]).action(32, None), flip(3));
        assert_eq!(Results::Words([5, 6]).action(1, None), None, "SCC has one bit");
        assert_eq!(Results::Numbers([5.0, 6.0]).action(32, None), None);
    }

    #[test]
    fn each_operation_has_its_own_pairs_as_often_as_they_were_seen() {
        let values = MeasuredValues::new(
            "rtl.csv",
            vec![
                pair("v_add_f32", Results::Numbers([1.0, 2.0]), 10),
                pair("v_add_f32", Results::Numbers([1.0, 4.0]), 30),
                pair("v_add_f32", Results::Numbers([1.0, 8.0]), 0),
                pair("", Results::Words([0, 1]), 1),
            ],
        )
        .unwrap();
        let add = values.of_opcode("v_add_f32");
        let drawn: Vec<Option<Action>> = (0..4000)
            .map(|index| add.draw(32, Some(FloatFormat::F32), &mut Stream::new(1, index)))
            .collect();
        let count = |error| {
            let wanted = relative(FloatFormat::F32, error);
            drawn.iter().filter(|own| **own == wanted).count()
        };
        assert_eq!(count(1.0) + count(3.0), 4000);
        assert!((900..1100).contains(&count(1.0)), "{}", count(1.0));
        assert!(!add.fit(32, None), "its pairs are of numbers");
        let other = values.of_opcode("v_xor_b32");
        assert_eq!(other.draw(32, None, &mut Stream::new(1, 0)), Some(Action::Flip(1)));
        let own = pair("v_add_f32", Results::Words([0, 1]), 1);
        let only = MeasuredValues::new("rtl.csv", vec![own]).unwrap();
        assert!(!only.of_opcode("v_xor_b32").fit(32, None), "none was measured");
    }

    #[test]
    fn tables_that_say_nothing_are_refused() {
        let refused =
            |pairs: &[MeasuredPair]| MeasuredValues::new("x", pairs.to_vec()).unwrap_err();
        let words = Results::Words([0, 1]);
        assert_eq!(refused(&[]), ValuesError::Empty);
        assert_eq!(refused(&[pair("", words, 0)]), ValuesError::Empty);
        let same = pair("", Results::Numbers([1.0, 1.0]), 1);
        assert_eq!(refused(&[pair("", words, 1), same]), ValuesError::Same { number: 2 });
        let integer = pair("v_add_u32", Results::Numbers([1.0, 2.0]), 1);
        let text = refused(&[integer]).to_string();
        assert!(text.contains("v_add_u32 does not compute"), "{text}");
        let many = [pair("", words, u64::MAX), pair("", words, 1)];
        assert_eq!(refused(&many), ValuesError::TooMany);
    }
}
