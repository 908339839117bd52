//! Fault models: which faults a value can suffer, and what each does to it.

use super::{Action, FaultTarget, FloatFormat, MaskDistribution, MeasuredValues, RelativeError};
use crate::resolve::stream::Stream;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a value is corrupted.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultModel {
    /// One bit inverted: 32 faults per 32-bit word.
    FlipOneBit,
    /// This many neighbouring bits inverted, 2 to 32: 33 less their number faults per 32-bit word.
    FlipAdjacentBits(u8),
    /// This many different random bits inverted, 2 to 32: one place per word.
    FlipRandomBits(u8),
    /// The bits of a mask inverted: one fault per word.
    FlipMask(u32),
    /// The bits of a mask inverted that is drawn from a distribution: one place per word.
    FlipDrawnMask(Arc<MaskDistribution>),
    /// A result wrong as one was seen to be of the same operation: one place per number, and per
    /// word where the instruction computes none.
    DrawnValues(Arc<MeasuredValues>),
    /// The value replaced by a uniformly random one: one place per word.
    RandomValue,
    /// The value replaced by zero: one fault per word.
    ZeroValue,
    /// The value replaced by all ones: one fault per word.
    OnesValue,
    /// One bit zero, whatever it was: 32 faults per 32-bit word.
    StuckAtZero,
    /// One bit one, whatever it was: 32 faults per 32-bit word.
    StuckAtOne,
    /// A floating-point number off by a part of itself: one fault per number.
    RelativeError(RelativeError),
}

impl FaultModel {
    /// How many places one value of `bits` bits, 1 to 32, adds to the population: the positions
    /// at which one or neighbouring bits can be struck; 1 for the models that take the whole
    /// value. What does not fit the value has no place there. `format` is that of the number of
    /// which the value is the first word, if it is one.
    pub fn places(&self, bits: u32, format: Option<FloatFormat>) -> u32 {
        let if_fits = |wanted: u32| u32::from(wanted <= bits);
        match self {
            FaultModel::FlipOneBit | FaultModel::StuckAtZero | FaultModel::StuckAtOne => bits,
            FaultModel::FlipAdjacentBits(count) => (bits + 1).saturating_sub((*count).into()),
            FaultModel::FlipRandomBits(count) => if_fits((*count).into()),
            FaultModel::FlipMask(mask) => if_fits(32 - mask.leading_zeros()),
            FaultModel::FlipDrawnMask(_) => if_fits(32),
            FaultModel::DrawnValues(values) => values.fit(bits, format).into(),
            FaultModel::RandomValue | FaultModel::ZeroValue | FaultModel::OnesValue => 1,
            FaultModel::RelativeError(_) => u32::from(format.is_some()),
        }
    }

    /// The fault at `place` (below [`FaultModel::places`]) of a value. What is random about it
    /// comes from `stream`.
    pub(crate) fn action(
        &self,
        bits: u32,
        format: Option<FloatFormat>,
        place: u32,
        stream: &mut Stream,
    ) -> Action {
        let all = all_ones(bits);
        match self {
            FaultModel::FlipOneBit => Action::Flip(1 << place),
            FaultModel::FlipAdjacentBits(count) => Action::Flip(all_ones((*count).into()) << place),
            FaultModel::FlipRandomBits(count) => Action::Flip(stream.bits(bits, (*count).into())),
            FaultModel::FlipMask(mask) => Action::Flip(*mask),
            FaultModel::FlipDrawnMask(masks) => Action::Flip(masks.draw(stream)),
            FaultModel::DrawnValues(values) => {
                // What no pair fits has no places.
                values.draw(bits, format, stream).unwrap_or(Action::Flip(0))
            }
            FaultModel::RandomValue => Action::Set(stream.word() & all),
            FaultModel::ZeroValue => Action::Set(0),
            FaultModel::OnesValue => Action::Set(all),
            FaultModel::StuckAtZero => Action::StuckAtZero(1 << place),
            FaultModel::StuckAtOne => Action::StuckAtOne(1 << place),
            FaultModel::RelativeError(error) => {
                // A value without a format has no places.
                Action::Relative(format.unwrap_or(FloatFormat::F32), *error)
            }
        }
    }

    /// Whether what a fault does is random besides where it strikes.
    pub fn is_drawn(&self) -> bool {
        matches!(
            self,
            FaultModel::FlipRandomBits(_)
                | FaultModel::FlipDrawnMask(_)
                | FaultModel::DrawnValues(_)
                | FaultModel::RandomValue
        )
    }

    /// What the model is for instructions of one operation.
    pub(crate) fn of_opcode(&self, opcode: &str) -> FaultModel {
        match self {
            FaultModel::DrawnValues(values) => {
                FaultModel::DrawnValues(Arc::new(values.of_opcode(opcode)))
            }
            other => other.clone(),
        }
    }

    /// Whether the model can mean anything for a target.
    pub(crate) fn fits(&self, target: FaultTarget) -> bool {
        match self {
            FaultModel::RelativeError(_) => target.is_typed(),
            FaultModel::DrawnValues(_) => target == FaultTarget::DestinationRegister,
            _ if target == FaultTarget::Branch => self.places(1, None) > 0,
            _ => true,
        }
    }

    /// What the model needs of what it strikes.
    pub(crate) fn needs(&self) -> &'static str {
        match self {
            FaultModel::RelativeError(_) => {
                "it needs a floating-point number, the result or the operand of an instruction"
            }
            FaultModel::DrawnValues(_) => "it needs the result of an instruction",
            _ => "it needs more than one bit",
        }
    }
}

/// What a fault does to the value that it strikes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Model")]
#[serde(expecting = "the name of a fault model, or a mapping from it to its number")]
pub enum WrittenFaultModel {
    /// Flips one bit.
    FlipOneBit,
    /// Flips two bits beside each other.
    FlipTwoAdjacentBits,
    /// Flips this many bits beside each other.
    FlipAdjacentBits(u8),
    /// Flips this many bits of a word.
    FlipRandomBits(u8),
    /// Flips the bits that are set.
    FlipMask(u64),
    /// Flips bits as a table says that they were seen to flip: CSV with the columns `mask,count`.
    FlipDrawnMask(PathBuf),
    /// Makes a result wrong as one was seen to be: CSV with the columns `opcode,golden,faulty,count`,
    /// of which `opcode` and `count` can be left out.
    DrawnValues(PathBuf),
    /// Puts a random value in its place.
    RandomValue,
    /// Puts zero in its place.
    ZeroValue,
    /// Sets all bits.
    OnesValue,
    /// Clears a bit.
    StuckAtZero,
    /// Sets a bit.
    StuckAtOne,
    /// Multiplies a floating-point number by 1 and this.
    RelativeError(f64),
}

impl WrittenFaultModel {
    /// The model, its numbers checked; `read_masks` and `read_values` read the table that a model
    /// names.
    ///
    /// # Errors
    /// The model's name, and what is wrong with what it says.
    pub fn checked(
        &self,
        read_masks: impl FnOnce(&Path) -> Result<MaskDistribution, String>,
        read_values: impl FnOnce(&Path) -> Result<MeasuredValues, String>,
    ) -> Result<FaultModel, (&'static str, String)> {
        let bits = |name, count: u8| match count {
            2..=32 => Ok(count),
            _ => Err((name, format!("{count} bits of a word; expected 2 to 32"))),
        };
        Ok(match self {
            Self::FlipOneBit => FaultModel::FlipOneBit,
            Self::FlipTwoAdjacentBits => FaultModel::FlipAdjacentBits(2),
            Self::FlipAdjacentBits(count) => {
                FaultModel::FlipAdjacentBits(bits("flip_adjacent_bits", *count)?)
            }
            Self::FlipRandomBits(count) => {
                FaultModel::FlipRandomBits(bits("flip_random_bits", *count)?)
            }
            Self::FlipMask(0) => return Err(("flip_mask", "0 names no bit".to_owned())),
            Self::FlipMask(mask) => FaultModel::FlipMask(u32::try_from(*mask).map_err(|_| {
                let message = "is wider than a word of 32 bits; expected up to 0xffffffff";
                ("flip_mask", format!("{mask:#x} {message}"))
            })?),
            Self::FlipDrawnMask(path) => {
                let masks = read_masks(path).map_err(|message| ("flip_drawn_mask", message))?;
                FaultModel::FlipDrawnMask(Arc::new(masks))
            }
            Self::DrawnValues(path) => {
                let values = read_values(path).map_err(|message| ("drawn_values", message))?;
                FaultModel::DrawnValues(Arc::new(values))
            }
            Self::RandomValue => FaultModel::RandomValue,
            Self::ZeroValue => FaultModel::ZeroValue,
            Self::OnesValue => FaultModel::OnesValue,
            Self::StuckAtZero => FaultModel::StuckAtZero,
            Self::StuckAtOne => FaultModel::StuckAtOne,
            Self::RelativeError(error) => {
                let relative = RelativeError::new(*error).filter(|_| *error != 0.0);
                FaultModel::RelativeError(relative.ok_or_else(|| {
                    let message = "is no error; one part in a hundred is 0.01";
                    ("relative_error", format!("{error:?} {message}"))
                })?)
            }
        })
    }
}

/// That many bits set, from the lowest on.
pub(crate) fn all_ones(bits: u32) -> u32 {
    u32::MAX.checked_shr(32u32.saturating_sub(bits)).unwrap_or(0)
}

impl fmt::Display for FaultModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultModel::FlipOneBit => f.write_str("flip_one_bit"),
            FaultModel::FlipAdjacentBits(2) => f.write_str("flip_two_adjacent_bits"),
            FaultModel::FlipAdjacentBits(count) => write!(f, "flip_adjacent_bits {count}"),
            FaultModel::FlipRandomBits(count) => write!(f, "flip_random_bits {count}"),
            FaultModel::FlipMask(mask) => write!(f, "flip_mask {mask:#010x}"),
            FaultModel::FlipDrawnMask(masks) => write!(f, "flip_drawn_mask {}", masks.name()),
            FaultModel::DrawnValues(values) => write!(f, "drawn_values {}", values.name()),
            FaultModel::RandomValue => f.write_str("random_value"),
            FaultModel::ZeroValue => f.write_str("zero_value"),
            FaultModel::OnesValue => f.write_str("ones_value"),
            FaultModel::StuckAtZero => f.write_str("stuck_at_zero"),
            FaultModel::StuckAtOne => f.write_str("stuck_at_one"),
            FaultModel::RelativeError(error) => write!(f, "relative_error {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit patterns at which arithmetic detours go wrong: zero, all ones, both neighbours of
    /// every power of two (2^24 and 2^31 are where floats and signed integers give up).
    fn words() -> impl Iterator<Item = u32> {
        let near = |bit: u32| {
            let power = 1u32 << bit;
            [power.wrapping_sub(1), power, power.wrapping_add(1), !power]
        };
        (0..32).flat_map(near).chain([0, u32::MAX, 0x7f80_0000, 0x7fc0_0000, 0xdead_beef])
    }

    /// What the fault at a place of a word makes of it.
    fn after(model: &FaultModel, place: u32, before: u32) -> u32 {
        let mut stream = Stream::new(3, place.into());
        model.action(32, None, place, &mut stream).apply(before.into()) as u32
    }

    #[test]
    fn one_bit_flips_change_exactly_the_bit_drawn() {
        for before in words() {
            for bit in 0..32 {
                let after = after(&FaultModel::FlipOneBit, bit, before);
                assert_eq!((before ^ after).trailing_zeros(), bit);
                assert_eq!((before ^ after).count_ones(), 1);
            }
        }
    }

    #[test]
    fn flips_of_adjacent_bits_change_exactly_that_many_neighbours() {
        for count in 2..=32 {
            let model = FaultModel::FlipAdjacentBits(count);
            assert_eq!(model.places(32, None), 33 - u32::from(count));
            for before in words() {
                for bit in 0..model.places(32, None) {
                    let changed = before ^ after(&model, bit, before);
                    assert_eq!(changed.trailing_zeros(), bit);
                    assert_eq!(changed.leading_zeros(), 32 - u32::from(count) - bit);
                    assert_eq!(changed.count_ones(), u32::from(count));
                }
            }
        }
    }

    #[test]
    fn flips_of_random_bits_change_that_many_bits_and_all_of_them_in_turn() {
        for count in [2, 5, 31, 32] {
            let model = FaultModel::FlipRandomBits(count);
            let masks: Vec<u32> = (0..2000).map(|index| after(&model, index, 0)).collect();
            assert!(masks.iter().all(|mask| mask.count_ones() == u32::from(count)));
            let hits = |bit: u32| masks.iter().filter(|mask| *mask >> bit & 1 != 0).count();
            let share = 2000.0 * f64::from(count) / 32.0;
            assert!((0..32).all(|bit| (hits(bit) as f64 - share).abs() < 90.0), "{count}");
        }
    }

    #[test]
    fn replaced_values_are_what_the_model_says() {
        let masks = Arc::new(MaskDistribution::new("m.csv", [(0x0f0f, 1)]).unwrap());
        for before in words() {
            assert_eq!(after(&FaultModel::ZeroValue, 0, before), 0);
            assert_eq!(after(&FaultModel::OnesValue, 0, before), u32::MAX);
            assert_eq!(after(&FaultModel::FlipMask(0xf00f), 0, before), before ^ 0xf00f);
            let drawn = FaultModel::FlipDrawnMask(masks.clone());
            assert_eq!(after(&drawn, 0, before), before ^ 0x0f0f);
            let random = after(&FaultModel::RandomValue, 0, before);
            assert_eq!(random, Stream::new(3, 0).word(), "whatever the value was");
            for bit in 0..32 {
                assert_eq!(after(&FaultModel::StuckAtZero, bit, before), before & !(1 << bit));
                assert_eq!(after(&FaultModel::StuckAtOne, bit, before), before | 1 << bit);
            }
        }
    }

    #[test]
    fn the_one_bit_condition_code_keeps_its_width() {
        let places = |model: FaultModel| model.places(1, None);
        assert_eq!(places(FaultModel::FlipOneBit), 1);
        assert_eq!(places(FaultModel::FlipAdjacentBits(2)), 0);
        assert_eq!(places(FaultModel::FlipRandomBits(2)), 0);
        assert_eq!((places(FaultModel::FlipMask(1)), places(FaultModel::FlipMask(2))), (1, 0));
        assert_eq!(places(FaultModel::OnesValue), 1);
        let mut stream = Stream::new(0, 0);
        let mut action = |model: FaultModel| model.action(1, None, 0, &mut stream);
        assert_eq!(action(FaultModel::FlipOneBit), Action::Flip(1));
        assert_eq!(action(FaultModel::OnesValue), Action::Set(1));
        assert!((0..50).all(|_| action(FaultModel::RandomValue).word() <= 1));
    }

    #[test]
    fn relative_errors_strike_numbers_only() {
        let model = FaultModel::RelativeError(RelativeError::new(0.5).unwrap());
        assert_eq!(model.places(32, None), 0);
        assert_eq!(model.places(32, Some(FloatFormat::F64)), 1);
        let action = model.action(32, Some(FloatFormat::F64), 0, &mut Stream::new(0, 0));
        assert_eq!(action.apply(2.0f64.to_bits()), 3.0f64.to_bits());
    }
}
