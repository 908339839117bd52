//! What is known of a register's content, relative to the beginning of a seam.

use flipwave_isa::Register;

/// What 32 bits hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// What this register held at the beginning. In a vector register: of another vector register
    /// the same lane, of a scalar register its value in each lane. SCC is 0 or 1.
    Own(Register),
    /// The inverse of what this register held.
    Inverse(Register),
    /// In these bits what the register is to hold, which has zeros in the others.
    Wider {
        /// The register.
        register: Register,
        /// The bits.
        bits: u32,
    },
    /// A number.
    Constant(u32),
    /// A part of the lanes that this half of EXEC had at the beginning.
    Within(Register),
    /// So many bits of MODE from `offset` on, as they were at the beginning.
    ModeField {
        /// The lowest bit.
        offset: u8,
        /// How many.
        size: u8,
    },
    /// The low half of a code address, which is added to the load address.
    AddressLow(u64),
    /// The high half of a code address.
    AddressHigh(u64),
    /// The carry of the addition that made the low half of this address. The second number is the
    /// address that the sum began with.
    Carry(u64, u64),
    /// A word of the address of the kernel's arguments, where the original kernel did not have it
    /// in registers.
    Kernarg(u8),
    /// Anything.
    Unknown,
}

use Content::{Constant, Inverse, Own, Unknown, Within};

/// All ones.
pub const ONES: Content = Constant(u32::MAX);

impl Content {
    /// What is left of it in some bits.
    pub fn masked(self, mask: Content) -> Content {
        match (self, mask) {
            (Content::Wider { register, bits }, Constant(mask)) if bits == mask => Own(register),
            _ => Unknown,
        }
    }

    /// What is known where one of two ways was taken.
    pub fn join(self, other: Content) -> Content {
        match (self.within(), other.within()) {
            _ if self == other => self,
            (Some(own), Some(half)) if own == half => Within(half),
            (Some(half), _) if other == Constant(0) => Within(half),
            (_, Some(half)) if self == Constant(0) => Within(half),
            _ => Unknown,
        }
    }

    /// The half of EXEC whose lanes, and no others, may be in it.
    fn within(self) -> Option<Register> {
        match self {
            Within(half) => Some(half),
            Own(half @ (Register::ExecLo | Register::ExecHi)) => Some(half),
            _ => None,
        }
    }

    /// Bitwise inverse.
    pub fn not(self) -> Content {
        match self {
            Own(register) if register != Register::Scc => Inverse(register),
            Inverse(register) => Own(register),
            Constant(value) => Constant(!value),
            _ => Unknown,
        }
    }

    /// Bitwise and.
    pub fn and(self, other: Content) -> Content {
        match (self, other) {
            (Constant(one), Constant(two)) => Constant(one & two),
            (Constant(0), _) | (_, Constant(0)) => Constant(0),
            (ONES, value) | (value, ONES) => value,
            _ if self == other => self,
            _ => self.within().or(other.within()).map_or(Unknown, Within),
        }
    }

    /// Bitwise or.
    pub fn or(self, other: Content) -> Content {
        match (self, other) {
            (Constant(one), Constant(two)) => Constant(one | two),
            (Constant(0), value) | (value, Constant(0)) => value,
            (ONES, _) | (_, ONES) => ONES,
            _ if self == other => self,
            _ => match (self.within(), other.within()) {
                (Some(one), Some(two)) if one == two => {
                    let whole = self == Own(one) || other == Own(one);
                    if whole { Own(one) } else { Within(one) }
                }
                _ => Unknown,
            },
        }
    }

    /// Bitwise exclusive or.
    pub fn xor(self, other: Content) -> Content {
        match (self, other) {
            (Constant(one), Constant(two)) => Constant(one ^ two),
            (Constant(0), value) | (value, Constant(0)) => value,
            (ONES, value) | (value, ONES) => value.not(),
            (Unknown, _) | (_, Unknown) => Unknown,
            _ => match (self.within(), other.within()) {
                (Some(one), Some(two)) if one == two => Within(one),
                _ => Unknown,
            },
        }
    }

    /// This without the bits of the other.
    pub fn without(self, other: Content) -> Content {
        match (self.within(), other.not()) {
            (Some(half), Unknown) => Within(half),
            (_, inverse) => self.and(inverse),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXEC: Content = Own(Register::ExecLo);
    const PART: Content = Within(Register::ExecLo);
    const VCC: Content = Own(Register::VccLo);

    #[test]
    fn what_is_known_of_masks_is_true_of_every_mask() {
        // Each content with all values it stands for, where EXEC is 0b0110 and VCC 0b0101.
        let contents =
            [EXEC, PART, VCC, VCC.not(), EXEC.not(), ONES, Constant(0), Constant(3), Unknown];
        let (exec, vcc) = (0b0110u32, 0b0101u32);
        let stands_for = |content: Content, value: u32| match content {
            Own(Register::ExecLo) => value == exec,
            Own(_) => value == vcc,
            Inverse(Register::ExecLo) => value == !exec,
            Inverse(_) => value == !vcc,
            Constant(own) => value == own,
            Within(_) => value & !exec == 0,
            _ => true,
        };
        let values = || (0..16).flat_map(|low| [low, !low]);
        for one in contents {
            for two in contents {
                for (x, y) in values().flat_map(|x| values().map(move |y| (x, y))) {
                    if !stands_for(one, x) || !stands_for(two, y) {
                        continue;
                    }
                    for (result, value) in [
                        (one.and(two), x & y),
                        (one.or(two), x | y),
                        (one.xor(two), x ^ y),
                        (one.without(two), x & !y),
                        (one.not(), !x),
                        (one.join(two), x),
                        (one.join(two), y),
                    ] {
                        assert!(stands_for(result, value), "{one:?} {two:?}: {result:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn narrowing_and_widening_again_gives_exec_back() {
        let taken = EXEC.and(VCC);
        assert_eq!(taken, PART);
        assert_eq!(EXEC.xor(taken), PART);
        assert_eq!(taken.or(EXEC), EXEC);
        assert_eq!(taken.or(VCC), Unknown);
        assert_eq!(EXEC.not().not(), EXEC);
    }
}
