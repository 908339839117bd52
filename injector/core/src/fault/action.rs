//! What a fault does to one value.

use super::{FloatFormat, RelativeError};

/// What happens to a value: a word of 32 bits or fewer, of two words for
/// [`FloatFormat::F64`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The bits of this mask are inverted.
    Flip(u32),
    /// The value is replaced.
    Set(u32),
    /// The bits of this mask are zero.
    StuckAtZero(u32),
    /// The bits of this mask are one.
    StuckAtOne(u32),
    /// The number of this format in the value is off.
    Relative(FloatFormat, RelativeError),
}

impl Action {
    /// The value that what held `before` has after the fault.
    pub fn apply(self, before: u64) -> u64 {
        match self {
            Action::Flip(mask) => before ^ u64::from(mask),
            Action::Set(value) => value.into(),
            Action::StuckAtZero(mask) => before & !u64::from(mask),
            Action::StuckAtOne(mask) => before | u64::from(mask),
            Action::Relative(format, error) => error.apply(format, before),
        }
    }

    /// How many consecutive words the value has.
    pub fn words(self) -> u8 {
        match self {
            Action::Relative(format, _) => format.words(),
            _ => 1,
        }
    }

    /// The bits that the fault names: those inverted, forced, or set to one.
    pub(crate) fn word(self) -> u32 {
        match self {
            Action::Flip(word)
            | Action::Set(word)
            | Action::StuckAtZero(word)
            | Action::StuckAtOne(word) => word,
            Action::Relative(..) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_does_what_its_name_says() {
        for (action, after) in [
            (Action::Flip(0xff), 0x1234_5687),
            (Action::Set(5), 5),
            (Action::StuckAtZero(0xff), 0x1234_5600),
            (Action::StuckAtOne(0xff), 0x1234_56ff),
        ] {
            assert_eq!(action.apply(0x1234_5678), after, "{action:?}");
            assert_eq!(action.words(), 1);
        }
        let double = RelativeError::new(1.0).unwrap();
        let action = Action::Relative(FloatFormat::F64, double);
        assert_eq!((action.apply(1.5f64.to_bits()), action.words()), (3.0f64.to_bits(), 2));
    }
}
