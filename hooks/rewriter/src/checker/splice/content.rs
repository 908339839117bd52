//! Symbolic values of registers, relative to the beginning of a splice.

use flipwave_isa::Register;

/// The symbolic value of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// The initial value of a register. In a vector register, this is the same lane of another
    /// vector register, or the value of a scalar register in each lane. SCC is 0 or 1.
    Initial(Register),
    /// The inverse of a register's initial value.
    Inverse(Register),
    /// The initial value of a register in `bits`, and anything in the other bits, where the initial
    /// value has zeros.
    WithExtraBits {
        /// The register.
        register: Register,
        /// The bits that equal the initial value.
        bits: u32,
    },
    /// A constant.
    Constant(u32),
    /// A lane mask that is a subset of the initial value of this half of EXEC.
    ExecSubset(Register),
    /// The initial value of a field of MODE.
    ModeField {
        /// The lowest bit.
        offset: u8,
        /// Number of bits.
        size: u8,
    },
    /// The low half of a code address, relative to the load address.
    AddressLow(u64),
    /// The high half of a code address, relative to the load address.
    AddressHigh(u64),
    /// The carry of the addition that computed the low half of a code address.
    Carry {
        /// The computed address.
        sum: u64,
        /// The address to which a constant was added.
        base: u64,
    },
    /// A word of the kernarg segment's address, if the original kernel did not have the address in
    /// registers.
    KernargPointer(u8),
    /// Anything.
    Unknown,
}

use Content::{Constant, ExecSubset, Initial, Inverse, Unknown};

/// All bits set.
pub const ONES: Content = Constant(u32::MAX);

impl Content {
    /// The bitwise and with a mask that may select the bits of [`Content::WithExtraBits`].
    pub fn masked(self, mask: Content) -> Content {
        match (self, mask) {
            (Content::WithExtraBits { register, bits }, Constant(mask)) if bits == mask => {
                Initial(register)
            }
            _ => Unknown,
        }
    }

    /// The value where two paths meet.
    pub fn join(self, other: Content) -> Content {
        match (self.exec_superset(), other.exec_superset()) {
            _ if self == other => self,
            (Some(first), Some(second)) if first == second => ExecSubset(first),
            (Some(half), _) if other == Constant(0) => ExecSubset(half),
            (_, Some(half)) if self == Constant(0) => ExecSubset(half),
            _ => Unknown,
        }
    }

    /// The half of EXEC whose initial value is known to include all lanes of this mask.
    fn exec_superset(self) -> Option<Register> {
        match self {
            ExecSubset(half) => Some(half),
            Initial(half @ (Register::ExecLo | Register::ExecHi)) => Some(half),
            _ => None,
        }
    }

    /// Bitwise inverse.
    pub fn not(self) -> Content {
        match self {
            Initial(register) if register != Register::Scc => Inverse(register),
            Inverse(register) => Initial(register),
            Constant(value) => Constant(!value),
            _ => Unknown,
        }
    }

    /// Bitwise and.
    pub fn and(self, other: Content) -> Content {
        match (self, other) {
            (Constant(first), Constant(second)) => Constant(first & second),
            (Constant(0), _) | (_, Constant(0)) => Constant(0),
            (ONES, value) | (value, ONES) => value,
            _ if self == other => self,
            _ => self.exec_superset().or(other.exec_superset()).map_or(Unknown, ExecSubset),
        }
    }

    /// Bitwise or.
    pub fn or(self, other: Content) -> Content {
        match (self, other) {
            (Constant(first), Constant(second)) => Constant(first | second),
            (Constant(0), value) | (value, Constant(0)) => value,
            (ONES, _) | (_, ONES) => ONES,
            _ if self == other => self,
            _ => match (self.exec_superset(), other.exec_superset()) {
                (Some(first), Some(second)) if first == second => {
                    let is_whole = self == Initial(first) || other == Initial(first);
                    if is_whole { Initial(first) } else { ExecSubset(first) }
                }
                _ => Unknown,
            },
        }
    }

    /// Bitwise exclusive or.
    pub fn xor(self, other: Content) -> Content {
        match (self, other) {
            (Constant(first), Constant(second)) => Constant(first ^ second),
            (Constant(0), value) | (value, Constant(0)) => value,
            (ONES, value) | (value, ONES) => value.not(),
            (Unknown, _) | (_, Unknown) => Unknown,
            _ => match (self.exec_superset(), other.exec_superset()) {
                (Some(first), Some(second)) if first == second => ExecSubset(first),
                _ => Unknown,
            },
        }
    }

    /// Bitwise and with the inverse of `other`.
    pub fn without(self, other: Content) -> Content {
        match (self.exec_superset(), other.not()) {
            (Some(half), Unknown) => ExecSubset(half),
            (_, inverse) => self.and(inverse),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXEC: Content = Initial(Register::ExecLo);
    const PART: Content = ExecSubset(Register::ExecLo);
    const VCC: Content = Initial(Register::VccLo);

    #[test]
    fn operations_hold_for_all_values_of_a_content() {
        // All values of each content, if EXEC is 0b0110 and VCC is 0b0101.
        let contents =
            [EXEC, PART, VCC, VCC.not(), EXEC.not(), ONES, Constant(0), Constant(3), Unknown];
        let (exec, vcc) = (0b0110u32, 0b0101u32);
        let includes = |content: Content, value: u32| match content {
            Initial(Register::ExecLo) => value == exec,
            Initial(_) => value == vcc,
            Inverse(Register::ExecLo) => value == !exec,
            Inverse(_) => value == !vcc,
            Constant(constant) => value == constant,
            ExecSubset(_) => value & !exec == 0,
            _ => true,
        };
        let values = || (0..16).flat_map(|low| [low, !low]);
        for first in contents {
            for second in contents {
                for (x, y) in values().flat_map(|x| values().map(move |y| (x, y))) {
                    if !includes(first, x) || !includes(second, y) {
                        continue;
                    }
                    for (result, value) in [
                        (first.and(second), x & y),
                        (first.or(second), x | y),
                        (first.xor(second), x ^ y),
                        (first.without(second), x & !y),
                        (first.not(), !x),
                        (first.join(second), x),
                        (first.join(second), y),
                    ] {
                        assert!(includes(result, value), "{first:?} {second:?}: {result:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn exec_is_restored_after_narrowing_and_widening() {
        let taken = EXEC.and(VCC);
        assert_eq!(taken, PART);
        assert_eq!(EXEC.xor(taken), PART);
        assert_eq!(taken.or(EXEC), EXEC);
        assert_eq!(taken.or(VCC), Unknown);
        assert_eq!(EXEC.not().not(), EXEC);
    }
}
