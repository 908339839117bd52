//! Fault models: how faults change values.

use super::{
    Action, FaultFunction, FaultTarget, FloatFormat, FunctionValues, MaskDistribution,
    MeasuredValues, RelativeError,
};
use crate::resolve::stream::Stream;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Model of a value's corruption.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultModel {
    /// Inverts one bit: 32 sites per 32-bit word.
    FlipOneBit,
    /// Inverts this many adjacent bits, n from 2 to 32: 33 - n sites per 32-bit word.
    FlipAdjacentBits(u8),
    /// Inverts this many different random bits, 2 to 32: one site per word.
    FlipRandomBits(u8),
    /// Inverts the bits of a mask: one site per word.
    FlipMask(u32),
    /// Inverts the bits of a mask drawn from a distribution: one site per word.
    FlipDrawnMask(Arc<MaskDistribution>),
    /// Corrupts a result like a measured result of the same operation: one site per number, or per word
    /// if the instruction does not compute numbers.
    DrawnValues(Arc<MeasuredValues>),
    /// Replaces the value by a uniformly random one: one site per word.
    RandomValue,
    /// Replaces the value by zero: one site per word.
    ZeroValue,
    /// Replaces the value by all ones: one site per word.
    OnesValue,
    /// Clears one bit: 32 sites per 32-bit word.
    StuckAtZero,
    /// Sets one bit: 32 sites per 32-bit word.
    StuckAtOne,
    /// Adds a relative error to a floating-point number: one site per number.
    RelativeError(RelativeError),
    /// Calls a user's function: one site per word or number.
    Function(FaultFunction),
}

impl FaultModel {
    /// Number of sites of one value of `bits` bits, 1 to 32: the positions of one or adjacent bits, or
    /// 1 for models that change the whole value. Models that do not fit the value have no sites there.
    /// `format` is the format of the number whose first word the value is, if it is one.
    pub fn sites(&self, bits: u32, format: Option<FloatFormat>) -> u32 {
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
            FaultModel::Function(function) => match function.values() {
                FunctionValues::Words => 1,
                FunctionValues::Numbers => u32::from(format.is_some()),
            },
        }
    }

    /// The action of the fault at `place` (below [`FaultModel::sites`]) of a value. `stream` supplies
    /// its random choices.
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
                // Values without a fitting pair have no sites.
                values.draw(bits, format, stream).unwrap_or(Action::Flip(0))
            }
            FaultModel::RandomValue => Action::Set(stream.word() & all),
            FaultModel::ZeroValue => Action::Set(0),
            FaultModel::OnesValue => Action::Set(all),
            FaultModel::StuckAtZero => Action::StuckAtZero(1 << place),
            FaultModel::StuckAtOne => Action::StuckAtOne(1 << place),
            FaultModel::RelativeError(error) => {
                // Values without a format have no sites.
                Action::Relative(format.unwrap_or(FloatFormat::F32), *error)
            }
            FaultModel::Function(function) => {
                Action::Function { function: *function, format, random: stream.wide() }
            }
        }
    }

    /// Returns `true` if the change itself is random, in addition to the site.
    pub fn is_drawn(&self) -> bool {
        matches!(
            self,
            FaultModel::FlipRandomBits(_)
                | FaultModel::FlipDrawnMask(_)
                | FaultModel::DrawnValues(_)
                | FaultModel::RandomValue
                | FaultModel::Function(_)
        )
    }

    /// Returns `true` if the model changes floating-point numbers, and not words.
    pub fn changes_numbers(&self) -> bool {
        match self {
            FaultModel::RelativeError(_) => true,
            FaultModel::Function(function) => function.values() == FunctionValues::Numbers,
            _ => false,
        }
    }

    /// The model for instructions of one operation.
    pub fn of_opcode(&self, opcode: &str) -> FaultModel {
        match self {
            FaultModel::DrawnValues(values) => {
                FaultModel::DrawnValues(Arc::new(values.of_opcode(opcode)))
            }
            model => model.clone(),
        }
    }

    /// Returns `true` if the model is applicable to the target.
    pub(crate) fn fits(&self, target: FaultTarget) -> bool {
        match self {
            model if model.changes_numbers() => target.is_typed(),
            FaultModel::DrawnValues(_) => target == FaultTarget::DestinationRegister,
            _ if target == FaultTarget::Branch => self.sites(1, None) > 0,
            _ => true,
        }
    }

    /// Description of the values that the model requires.
    pub(crate) fn needs(&self) -> &'static str {
        match self {
            model if model.changes_numbers() => {
                "it needs a floating-point number, the result or the operand of an instruction"
            }
            FaultModel::DrawnValues(_) => "it needs the result of an instruction",
            _ => "it needs more than one bit",
        }
    }
}

/// Change of the value that a fault strikes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Model")]
#[serde(expecting = "the name of a fault model, or a mapping from it to its number")]
pub enum WrittenFaultModel {
    /// Flips one bit.
    FlipOneBit,
    /// Flips two adjacent bits.
    FlipTwoAdjacentBits,
    /// Flips this many adjacent bits.
    FlipAdjacentBits(u8),
    /// Flips this many random bits of a word.
    FlipRandomBits(u8),
    /// Flips the bits that are set in this mask.
    FlipMask(u64),
    /// Flips the bits of a mask drawn from a table: CSV with the columns `mask,count`.
    FlipDrawnMask(PathBuf),
    /// Replaces a result by one drawn from a table: CSV with the columns `opcode,golden,faulty,count`,
    /// where `opcode` and `count` are optional.
    DrawnValues(PathBuf),
    /// Replaces the value by a random one.
    RandomValue,
    /// Replaces the value by zero.
    ZeroValue,
    /// Sets all bits.
    OnesValue,
    /// Clears a bit.
    StuckAtZero,
    /// Sets a bit.
    StuckAtOne,
    /// Multiplies a floating-point number by 1 plus this number.
    RelativeError(f64),
    /// Calls a function in this C file: `flipwave_fault_word` or `flipwave_fault_number`.
    C(PathBuf),
}

impl WrittenFaultModel {
    /// Validates the numbers and converts to a [`FaultModel`]; `read_masks`, `read_values` and
    /// `read_function` read the files that models refer to.
    ///
    /// # Errors
    /// The model's name, and the problem.
    pub fn checked(
        &self,
        read_masks: impl FnOnce(&Path) -> Result<MaskDistribution, String>,
        read_values: impl FnOnce(&Path) -> Result<MeasuredValues, String>,
        read_function: impl FnOnce(&Path) -> Result<FaultFunction, String>,
    ) -> Result<FaultModel, (&'static str, String)> {
        let bits = |name, count: u8| match count {
            2..=32 => Ok(count),
            _ => Err((name, format!("{count} is not a number of bits; expected 2 to 32"))),
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
            Self::FlipMask(0) => {
                return Err(("flip_mask", "the mask is 0; expected at least one bit".to_owned()));
            }
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
                    let message = "is not a relative error; 1 percent is 0.01";
                    ("relative_error", format!("{error:?} {message}"))
                })?)
            }
            Self::C(path) => {
                FaultModel::Function(read_function(path).map_err(|message| ("c", message))?)
            }
        })
    }
}

/// A word with this many low bits set.
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
            FaultModel::Function(function) => write!(f, "function {}", function.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_arch::Lane;

    /// Bit patterns that break naive arithmetic: zero, all ones, both neighbours of every power of two
    /// (2^24 and 2^31 are the limits of floats and signed integers).
    fn words() -> impl Iterator<Item = u32> {
        let near = |bit: u32| {
            let power = 1u32 << bit;
            [power.wrapping_sub(1), power, power.wrapping_add(1), !power]
        };
        (0..32).flat_map(near).chain([0, u32::MAX, 0x7f80_0000, 0x7fc0_0000, 0xdead_beef])
    }

    /// Applies the fault at a site of a word.
    fn after(model: &FaultModel, place: u32, before: u32) -> u32 {
        let mut stream = Stream::new(3, place.into());
        let action = model.action(32, None, place, &mut stream);
        action.apply(before.into(), 32, Lane(0)).expect("a value") as u32
    }

    #[test]
    fn one_bit_flips_change_exactly_one_bit() {
        for before in words() {
            for bit in 0..32 {
                let after = after(&FaultModel::FlipOneBit, bit, before);
                assert_eq!((before ^ after).trailing_zeros(), bit);
                assert_eq!((before ^ after).count_ones(), 1);
            }
        }
    }

    #[test]
    fn adjacent_flips_change_exactly_the_given_neighbours() {
        for count in 2..=32 {
            let model = FaultModel::FlipAdjacentBits(count);
            assert_eq!(model.sites(32, None), 33 - u32::from(count));
            for before in words() {
                for bit in 0..model.sites(32, None) {
                    let changed = before ^ after(&model, bit, before);
                    assert_eq!(changed.trailing_zeros(), bit);
                    assert_eq!(changed.leading_zeros(), 32 - u32::from(count) - bit);
                    assert_eq!(changed.count_ones(), u32::from(count));
                }
            }
        }
    }

    #[test]
    fn random_flips_change_the_given_number_of_bits() {
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
    fn models_replace_values_as_defined() {
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
    fn scc_keeps_its_width() {
        let sites = |model: FaultModel| model.sites(1, None);
        assert_eq!(sites(FaultModel::FlipOneBit), 1);
        assert_eq!(sites(FaultModel::FlipAdjacentBits(2)), 0);
        assert_eq!(sites(FaultModel::FlipRandomBits(2)), 0);
        assert_eq!((sites(FaultModel::FlipMask(1)), sites(FaultModel::FlipMask(2))), (1, 0));
        assert_eq!(sites(FaultModel::OnesValue), 1);
        let mut stream = Stream::new(0, 0);
        let mut action = |model: FaultModel| model.action(1, None, 0, &mut stream);
        assert_eq!(action(FaultModel::FlipOneBit), Action::Flip(1));
        assert_eq!(action(FaultModel::OnesValue), Action::Set(1));
        assert!((0..50).all(|_| action(FaultModel::RandomValue).word() <= 1));
    }

    #[test]
    fn relative_errors_strike_numbers_only() {
        let model = FaultModel::RelativeError(RelativeError::new(0.5).unwrap());
        assert_eq!(model.sites(32, None), 0);
        assert_eq!(model.sites(32, Some(FloatFormat::F64)), 1);
        let action = model.action(32, Some(FloatFormat::F64), 0, &mut Stream::new(0, 0));
        assert_eq!(action.apply(2.0f64.to_bits(), 32, Lane(0)), Ok(3.0f64.to_bits()));
    }
}
