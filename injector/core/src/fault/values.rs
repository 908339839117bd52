//! Correct and wrong results of instructions measured by a study, for instance in RTL simulation.

use super::float::{number, with_number};
use super::{Action, FloatFormat, RelativeError};
use crate::resolve::stream::Stream;
use flipwave_arch::Architecture;
use std::num::NonZeroU64;

/// Pairs of a correct and a wrong result, by operation, with their frequencies.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredValues {
    /// Name in messages: the file's name.
    name: String,
    pairs: Vec<MeasuredPair>,
}

/// A measured wrong result.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPair {
    /// Canonical name of the operation; `None` for all operations without pairs of their own.
    pub opcode: Option<String>,
    /// The correct and the wrong result.
    pub results: Results,
    /// Frequency.
    pub count: u64,
}

/// A correct and a wrong result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Results {
    /// Contents of a register.
    Words([u32; 2]),
    /// Contents of two registers.
    DoubleWords([u64; 2]),
    /// Floating-point numbers of the instruction's data type.
    Numbers([f64; 2]),
}

/// Errors returned for invalid value tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// No pair has a count above zero.
    #[error("no pair of values has a count above 0")]
    Empty,
    /// The correct and the wrong value are equal.
    #[error("pair number {number} has equal values; expected a wrong result")]
    Same {
        /// Number of the pair, from 1.
        number: usize,
    },
    /// Floating-point numbers for an operation that computes none.
    #[error(
        "pair number {number} has floating-point numbers, which {opcode} does not compute; \
         expected words like 0x00000003"
    )]
    NoNumbers {
        /// Number of the pair, from 1.
        number: usize,
        /// The operation.
        opcode: String,
    },
    /// The sum of the counts overflows.
    #[error("the counts add up to more than {}", u64::MAX)]
    TooMany,
}

impl MeasuredValues {
    /// Builds the table from these pairs, for operations of an instruction set.
    ///
    /// # Errors
    /// [`ValuesError`].
    pub fn new(
        name: &str,
        pairs: Vec<MeasuredPair>,
        architecture: &dyn Architecture,
    ) -> Result<MeasuredValues, ValuesError> {
        let mut total = 0u64;
        for (number, MeasuredPair { opcode, results, count }) in (1..).zip(&pairs) {
            if results.are_the_same() {
                return Err(ValuesError::Same { number });
            }
            if let (Some(opcode), Results::Numbers(_)) = (opcode, results)
                && !architecture.computes_numbers(opcode)
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

    /// Name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pairs of one operation, or the general pairs if it has none.
    pub(crate) fn of_opcode(&self, opcode: &str) -> MeasuredValues {
        let pairs_of = |wanted: Option<&str>| -> Vec<MeasuredPair> {
            let matching = self.pairs.iter().filter(|pair| pair.opcode.as_deref() == wanted);
            matching.cloned().collect()
        };
        let matching = pairs_of(Some(opcode));
        let pairs = if matching.is_empty() { pairs_of(None) } else { matching };
        MeasuredValues { name: self.name.clone(), pairs }
    }

    /// Returns `true` if any pair fits a value of `bits` bits, which is a number of `format` if given.
    pub(crate) fn fit(&self, bits: u32, format: Option<FloatFormat>) -> bool {
        self.fitting(bits, format).next().is_some()
    }

    /// Draws the action of a fitting pair with a probability proportional to its count; `None` if no
    /// pair fits.
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

    /// The action that changes a correct value of `bits` bits into the wrong one: the relative error
    /// for numbers, or the differing bits if there is none (from zero, or to infinity) and for other
    /// words. `None` if the pair is of a different kind of value, or if bits of two registers differ.
    fn action(&self, bits: u32, format: Option<FloatFormat>) -> Option<Action> {
        let (mask, allowed) = match (*self, format) {
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
        let mask = mask & allowed;
        let fits = mask != 0 && 32 - mask.leading_zeros() <= bits;
        fits.then_some(Action::Flip(mask))
    }

    /// The two numbers of this format, and the registers that hold them.
    fn numbers(self, format: FloatFormat) -> Option<([f64; 2], [u64; 2])> {
        let decoded = |registers: [u64; 2]| (registers.map(|bits| number(format, bits)), registers);
        match self {
            Results::Words(words) if format.words() == 1 => Some(decoded(words.map(u64::from))),
            Results::DoubleWords(words) if format.words() == 2 => Some(decoded(words)),
            Results::Numbers(numbers) => {
                Some((numbers, numbers.map(|number| with_number(format, 0, number))))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::architecture;

    fn pair(opcode: &str, results: Results, count: u64) -> MeasuredPair {
        let opcode = (!opcode.is_empty()).then(|| opcode.to_owned());
        MeasuredPair { opcode, results, count }
    }

    fn relative(format: FloatFormat, error: f64) -> Option<Action> {
        Some(Action::Relative(format, RelativeError::new(error).unwrap()))
    }

    #[test]
    fn number_pairs_become_relative_errors() {
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

    /// Zero has no relative error, and infinity cannot be reached by one.
    #[test]
    fn pairs_without_relative_error_become_bit_flips() {
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
    fn pairs_are_drawn_per_operation_in_proportion_to_their_counts() {
        let values = MeasuredValues::new(
            "rtl.csv",
            vec![
                pair("v_add_f32", Results::Numbers([1.0, 2.0]), 10),
                pair("v_add_f32", Results::Numbers([1.0, 4.0]), 30),
                pair("v_add_f32", Results::Numbers([1.0, 8.0]), 0),
                pair("", Results::Words([0, 1]), 1),
            ],
            &architecture(),
        )
        .unwrap();
        let add = values.of_opcode("v_add_f32");
        let drawn: Vec<Option<Action>> = (0..4000)
            .map(|index| add.draw(32, Some(FloatFormat::F32), &mut Stream::new(1, index)))
            .collect();
        let count = |error| {
            let wanted = relative(FloatFormat::F32, error);
            drawn.iter().filter(|action| **action == wanted).count()
        };
        assert_eq!(count(1.0) + count(3.0), 4000);
        assert!((900..1100).contains(&count(1.0)), "{}", count(1.0));
        assert!(!add.fit(32, None), "its pairs are of numbers");
        let general = values.of_opcode("v_xor_b32");
        assert_eq!(general.draw(32, None, &mut Stream::new(1, 0)), Some(Action::Flip(1)));
        let specific = pair("v_add_f32", Results::Words([0, 1]), 1);
        let only = MeasuredValues::new("rtl.csv", vec![specific], &architecture()).unwrap();
        assert!(!only.of_opcode("v_xor_b32").fit(32, None), "none was measured");
    }

    #[test]
    fn invalid_value_tables_are_rejected() {
        let refused = |pairs: &[MeasuredPair]| {
            MeasuredValues::new("x", pairs.to_vec(), &architecture()).unwrap_err()
        };
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
