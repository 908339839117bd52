//! Changes of a value by a fault.

use super::{FaultFunction, FloatFormat, FunctionError, FunctionInput, RelativeError};
use flipwave_arch::Lane;

/// Change of a value: a word of at most 32 bits, or two words for [`FloatFormat::F64`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Inverts the bits of this mask.
    Flip(u32),
    /// Replaces the value.
    Set(u32),
    /// Clears the bits of this mask.
    StuckAtZero(u32),
    /// Sets the bits of this mask.
    StuckAtOne(u32),
    /// Adds a relative error to the number of this format in the value.
    Relative(FloatFormat, RelativeError),
    /// Calls a user's function.
    Function {
        /// The function.
        function: FaultFunction,
        /// Format of the number in the value, for functions of numbers.
        format: Option<FloatFormat>,
        /// Random number of the fault.
        random: u64,
    },
}

impl Action {
    /// Applies the action to the value `before` of `bits` bits in a lane; values that lanes share are in
    /// lane 0.
    ///
    /// # Errors
    /// [`FunctionError`] if a user's function did not compute a value.
    pub fn apply(self, before: u64, bits: u32, lane: Lane) -> Result<u64, FunctionError> {
        Ok(match self {
            Action::Flip(mask) => before ^ u64::from(mask),
            Action::Set(value) => value.into(),
            Action::StuckAtZero(mask) => before & !u64::from(mask),
            Action::StuckAtOne(mask) => before | u64::from(mask),
            Action::Relative(format, error) => error.apply(format, before),
            Action::Function { function, format, random } => {
                function.apply(format, before, FunctionInput { bits, lane, random })?
            }
        })
    }

    /// Number of consecutive words of the value.
    pub fn words(self) -> u8 {
        match self {
            Action::Relative(format, _) => format.words(),
            Action::Function { format, .. } => format.map_or(1, FloatFormat::words),
            _ => 1,
        }
    }

    /// The action's mask or value; 0 for computed values.
    pub(crate) fn word(self) -> u32 {
        match self {
            Action::Flip(word)
            | Action::Set(word)
            | Action::StuckAtZero(word)
            | Action::StuckAtOne(word) => word,
            Action::Relative(..) | Action::Function { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_change_values_as_named() {
        for (action, after) in [
            (Action::Flip(0xff), 0x1234_5687),
            (Action::Set(5), 5),
            (Action::StuckAtZero(0xff), 0x1234_5600),
            (Action::StuckAtOne(0xff), 0x1234_56ff),
        ] {
            let changed = action.apply(0x1234_5678, 32, Lane(0));
            assert_eq!(changed, Ok(after), "{action:?}");
            assert_eq!(action.words(), 1);
        }
        let double = RelativeError::new(1.0).unwrap();
        let action = Action::Relative(FloatFormat::F64, double);
        let doubled = action.apply(1.5f64.to_bits(), 32, Lane(0));
        assert_eq!((doubled, action.words()), (Ok(3.0f64.to_bits()), 2));
    }
}
