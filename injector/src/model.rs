//! Fault models: which faults a register can suffer, and what each does to its value.

use flipwave_isa::Register;
use std::fmt;
use std::str::FromStr;

/// How a destination register is corrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultModel {
    /// One bit inverted: 32 faults per 32-bit register.
    FlipOneBit,
    /// Two neighbouring bits inverted: 31 faults per 32-bit register.
    FlipTwoAdjacentBits,
    /// The value replaced by a uniformly random one: one place per register.
    RandomValue,
    /// The value replaced by zero: one fault per register.
    ZeroValue,
}

/// What happens to the value of one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The bits of this mask are inverted.
    Flip(u32),
    /// The value is replaced.
    Set(u32),
}

impl FaultModel {
    /// Every model, in the order documentation lists them.
    pub const ALL: [FaultModel; 4] = [
        FaultModel::FlipOneBit,
        FaultModel::FlipTwoAdjacentBits,
        FaultModel::RandomValue,
        FaultModel::ZeroValue,
    ];

    /// The model's name in campaign files.
    pub fn name(self) -> &'static str {
        match self {
            FaultModel::FlipOneBit => "flip_one_bit",
            FaultModel::FlipTwoAdjacentBits => "flip_two_adjacent_bits",
            FaultModel::RandomValue => "random_value",
            FaultModel::ZeroValue => "zero_value",
        }
    }

    /// How many places one value of `register` adds to the population: the positions at which
    /// a bit flip can strike; 1 for the models that replace the whole value. Two adjacent bits
    /// do not fit a one-bit register: 0 places.
    pub fn places(self, register: Register) -> u32 {
        match self {
            FaultModel::FlipOneBit => register.bits(),
            FaultModel::FlipTwoAdjacentBits => register.bits() - 1,
            FaultModel::RandomValue | FaultModel::ZeroValue => 1,
        }
    }

    /// The fault at `place` (below [`FaultModel::places`]) of `register`. `random` is the word
    /// that [`FaultModel::RandomValue`] stores; the other models ignore it.
    pub(crate) fn action(self, register: Register, place: u32, random: u32) -> Action {
        match self {
            FaultModel::FlipOneBit => Action::Flip(1 << place),
            FaultModel::FlipTwoAdjacentBits => Action::Flip(0b11 << place),
            FaultModel::RandomValue => Action::Set(random & value_mask(register)),
            FaultModel::ZeroValue => Action::Set(0),
        }
    }
}

impl Action {
    /// The value that a register holding `before` has after the fault.
    pub fn apply(self, before: u32) -> u32 {
        match self {
            Action::Flip(mask) => before ^ mask,
            Action::Set(value) => value,
        }
    }

    /// The bits of the register that the fault names: those inverted, or those set to one.
    pub(crate) fn word(self) -> u32 {
        match self {
            Action::Flip(word) | Action::Set(word) => word,
        }
    }
}

/// The bits that a register of its width can hold.
pub(crate) fn value_mask(register: Register) -> u32 {
    u32::MAX >> (32 - register.bits())
}

impl fmt::Display for FaultModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for FaultModel {
    type Err = UnknownModel;

    fn from_str(name: &str) -> Result<FaultModel, UnknownModel> {
        FaultModel::ALL
            .into_iter()
            .find(|model| model.name() == name)
            .ok_or_else(|| UnknownModel(name.to_owned()))
    }
}

/// A name that no fault model has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not a fault model; expected one of: {names}",
    name = .0,
    names = FaultModel::ALL.map(FaultModel::name).join(", ")
)]
pub struct UnknownModel(pub String);

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_isa::Vgpr;

    const V0: Register = Register::Vgpr(Vgpr(0));

    /// Bit patterns at which arithmetic detours go wrong: zero, all ones, both neighbours of
    /// every power of two (2^24 and 2^31 are where floats and signed integers give up).
    fn words() -> impl Iterator<Item = u32> {
        let near = |bit: u32| {
            let power = 1u32 << bit;
            [power.wrapping_sub(1), power, power.wrapping_add(1), !power]
        };
        (0..32).flat_map(near).chain([0, u32::MAX, 0x7f80_0000, 0x7fc0_0000, 0xdead_beef])
    }

    #[test]
    fn one_bit_flips_change_exactly_the_bit_drawn() {
        for before in words() {
            for bit in 0..32 {
                let after = FaultModel::FlipOneBit.action(V0, bit, 0x5555_5555).apply(before);
                assert_eq!((before ^ after).trailing_zeros(), bit);
                assert_eq!((before ^ after).count_ones(), 1);
            }
        }
    }

    #[test]
    fn two_bit_flips_change_exactly_two_neighbours() {
        for before in words() {
            for bit in 0..31 {
                let action = FaultModel::FlipTwoAdjacentBits.action(V0, bit, 0x5555_5555);
                let changed = before ^ action.apply(before);
                assert_eq!(changed.trailing_zeros(), bit);
                assert_eq!(changed.leading_zeros(), 30 - bit);
                assert_eq!(changed.count_ones(), 2);
            }
        }
    }

    #[test]
    fn zeroing_zeroes_every_word() {
        for before in words() {
            assert_eq!(FaultModel::ZeroValue.action(V0, 0, 0x5555_5555).apply(before), 0);
        }
    }

    #[test]
    fn a_random_value_is_stored_as_drawn() {
        for before in words() {
            for random in words() {
                let action = FaultModel::RandomValue.action(V0, 0, random);
                assert_eq!(action.apply(before), random);
            }
        }
    }

    #[test]
    fn the_one_bit_condition_code_keeps_its_width() {
        let scc = Register::Scc;
        assert_eq!(FaultModel::ALL.map(|model| model.places(scc)), [1, 0, 1, 1]);
        assert_eq!(FaultModel::FlipOneBit.action(scc, 0, 0), Action::Flip(1));
        assert_eq!(FaultModel::RandomValue.action(scc, 0, 0xffff_fffe), Action::Set(0));
        assert_eq!(FaultModel::RandomValue.action(scc, 0, 0xffff_ffff), Action::Set(1));
    }

    #[test]
    fn words_of_a_register_have_the_documented_places() {
        assert_eq!(FaultModel::ALL.map(|model| model.places(V0)), [32, 31, 1, 1]);
    }

    #[test]
    fn names_round_trip_and_unknown_ones_are_refused() {
        for model in FaultModel::ALL {
            assert_eq!(model.to_string().parse(), Ok(model));
        }
        let error = "flip".parse::<FaultModel>().unwrap_err().to_string();
        assert!(error.contains("`flip`") && error.contains("flip_two_adjacent_bits"), "{error}");
    }
}
