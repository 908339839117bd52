//! Sets of registers.

use crate::{AccVgpr, Register, RegisterRange, Sgpr, Ttmp, Vgpr};
use std::fmt;

/// A set of registers of any files.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegisterSet([u64; WORDS]);

/// Number of 64-bit words in a set.
const WORDS: usize = 11;
// Bit positions of the first register of each file; VGPRs start at 0.
const ACC_VGPRS: u16 = 256;
const SGPRS: u16 = 512;
const TTMPS: u16 = SGPRS + 106;
const FIXED: u16 = TTMPS + 16;

/// Unnumbered registers, in the order of their bits in a set.
const UNNUMBERED: [Register; 22] = [
    Register::VccLo,
    Register::VccHi,
    Register::ExecLo,
    Register::ExecHi,
    Register::FlatScratchLo,
    Register::FlatScratchHi,
    Register::XnackMaskLo,
    Register::XnackMaskHi,
    Register::M0,
    Register::Scc,
    Register::Mode,
    Register::Null,
    Register::Vccz,
    Register::Execz,
    Register::SharedBase,
    Register::SharedLimit,
    Register::PrivateBase,
    Register::PrivateLimit,
    Register::PopsExitingWaveId,
    Register::LdsDirect,
    Register::FlatScratchBaseLo,
    Register::FlatScratchBaseHi,
];

/// The bit position of a register; `None` for invalid numbers and for VGPRs above v255. Sets are used for
/// rewriting only, and the only target with VGPRs above v255 does not support rewriting.
fn bit_position(register: Register) -> Option<u16> {
    Some(match register {
        Register::Vgpr(Vgpr(n)) => Some(n).filter(|n| *n < ACC_VGPRS)?,
        Register::AccVgpr(AccVgpr(n)) => ACC_VGPRS + u16::from(n),
        Register::Sgpr(Sgpr(n)) => Some(SGPRS + u16::from(n)).filter(|at| *at < TTMPS)?,
        Register::Ttmp(Ttmp(n)) => Some(TTMPS + u16::from(n)).filter(|at| *at < FIXED)?,
        Register::VccLo => FIXED,
        Register::VccHi => FIXED + 1,
        Register::ExecLo => FIXED + 2,
        Register::ExecHi => FIXED + 3,
        Register::FlatScratchLo => FIXED + 4,
        Register::FlatScratchHi => FIXED + 5,
        Register::XnackMaskLo => FIXED + 6,
        Register::XnackMaskHi => FIXED + 7,
        Register::M0 => FIXED + 8,
        Register::Scc => FIXED + 9,
        Register::Mode => FIXED + 10,
        Register::Null => FIXED + 11,
        Register::Vccz => FIXED + 12,
        Register::Execz => FIXED + 13,
        Register::SharedBase => FIXED + 14,
        Register::SharedLimit => FIXED + 15,
        Register::PrivateBase => FIXED + 16,
        Register::PrivateLimit => FIXED + 17,
        Register::PopsExitingWaveId => FIXED + 18,
        Register::LdsDirect => FIXED + 19,
        Register::FlatScratchBaseLo => FIXED + 20,
        Register::FlatScratchBaseHi => FIXED + 21,
    })
}

/// The registers of a range as a bit mask of two consecutive words of a set, with the index of the first
/// word; `None` if the range has invalid registers or more than 64 registers.
fn bits(range: RegisterRange) -> Option<(usize, u128)> {
    let last = range.first.offset(range.words.checked_sub(1)?)?;
    let (first, last) = (bit_position(range.first)?, bit_position(last)?);
    let words = u32::from(range.words);
    if words > 64 || first.checked_add(words as u16 - 1)? != last {
        return None;
    }
    Some((usize::from(first / 64), ((1 << words) - 1) << (first % 64)))
}

/// The register at a bit position.
fn register(position: u16) -> Register {
    match position {
        0..ACC_VGPRS => Register::Vgpr(Vgpr(position)),
        ACC_VGPRS..SGPRS => Register::AccVgpr(AccVgpr((position - ACC_VGPRS) as u8)),
        SGPRS..TTMPS => Register::Sgpr(Sgpr((position - SGPRS) as u8)),
        TTMPS..FIXED => Register::Ttmp(Ttmp((position - TTMPS) as u8)),
        _ => UNNUMBERED[usize::from(position - FIXED) % UNNUMBERED.len()],
    }
}

impl RegisterSet {
    /// The empty set.
    pub const EMPTY: RegisterSet = RegisterSet([0; WORDS]);

    /// The 256 VGPRs.
    pub const VGPRS: RegisterSet = RegisterSet::words(0..4);

    /// The 256 AccVGPRs.
    pub const ACC_VGPRS: RegisterSet = RegisterSet::words(4..8);

    /// The 106 SGPRs.
    pub const SGPRS: RegisterSet = {
        let mut set = RegisterSet::EMPTY;
        let mut position = SGPRS;
        while position < TTMPS {
            set.0[(position / 64) as usize] |= 1 << (position % 64);
            position += 1;
        }
        set
    };

    /// The set with all bits of a range of words.
    const fn words(range: std::ops::Range<usize>) -> RegisterSet {
        let mut words = [0; WORDS];
        let mut at = range.start;
        while at < range.end {
            words[at] = u64::MAX;
            at += 1;
        }
        RegisterSet(words)
    }

    /// Adds a register.
    pub fn insert(&mut self, register: Register) {
        if let Some(position) = bit_position(register) {
            self.0[usize::from(position / 64)] |= 1 << (position % 64);
        }
    }

    /// Adds the registers of a range.
    pub fn insert_range(&mut self, range: RegisterRange) {
        match bits(range) {
            Some((at, bits)) => {
                self.0[at] |= bits as u64;
                if let Some(next) = self.0.get_mut(at + 1) {
                    *next |= (bits >> 64) as u64;
                }
            }
            None => range.iter().for_each(|register| self.insert(register)),
        }
    }

    /// Removes a register.
    pub fn remove(&mut self, register: Register) {
        if let Some(position) = bit_position(register) {
            self.0[usize::from(position / 64)] &= !(1 << (position % 64));
        }
    }

    /// Returns `true` if `register` is in the set.
    pub fn contains(&self, register: Register) -> bool {
        bit_position(register)
            .is_some_and(|position| self.0[usize::from(position / 64)] >> (position % 64) & 1 != 0)
    }

    /// Returns `true` if any register of the range is in the set.
    pub fn intersects(&self, range: RegisterRange) -> bool {
        match bits(range) {
            Some((at, bits)) => self.two_words(at) & bits != 0,
            None => range.iter().any(|register| self.contains(register)),
        }
    }

    /// Returns `true` if all registers of the range are in the set.
    pub fn contains_range(&self, range: RegisterRange) -> bool {
        match bits(range) {
            Some((at, bits)) => self.two_words(at) & bits == bits,
            None => range.iter().all(|register| self.contains(register)),
        }
    }

    fn two_words(&self, at: usize) -> u128 {
        let word = |at: usize| u128::from(self.0.get(at).copied().unwrap_or_default());
        word(at + 1) << 64 | word(at)
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The number of registers in the set.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The registers that are in either set.
    #[must_use]
    pub fn union(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    /// The registers that are in both sets.
    #[must_use]
    pub fn intersection(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    /// The registers of this set that are not in `other`.
    #[must_use]
    pub fn difference(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    /// The registers: VGPRs, AccVGPRs, SGPRs, TTMPs, each in ascending order, then the unnumbered ones.
    pub fn iter(self) -> impl Iterator<Item = Register> {
        self.0.into_iter().enumerate().flat_map(|(at, word)| {
            let mut remaining = word;
            std::iter::from_fn(move || {
                let bit = remaining.trailing_zeros();
                (remaining != 0).then(|| {
                    remaining &= remaining - 1;
                    register(at as u16 * 64 + bit as u16)
                })
            })
        })
    }
}

impl Default for RegisterSet {
    fn default() -> RegisterSet {
        RegisterSet::EMPTY
    }
}

impl FromIterator<Register> for RegisterSet {
    fn from_iter<I: IntoIterator<Item = Register>>(registers: I) -> RegisterSet {
        let mut set = RegisterSet::EMPTY;
        registers.into_iter().for_each(|register| set.insert(register));
        set
    }
}

impl FromIterator<RegisterRange> for RegisterSet {
    fn from_iter<I: IntoIterator<Item = RegisterRange>>(ranges: I) -> RegisterSet {
        let mut set = RegisterSet::EMPTY;
        ranges.into_iter().for_each(|range| set.insert_range(range));
        set
    }
}

impl fmt::Display for RegisterSet {
    /// Formats runs of consecutive registers as ranges: `v[0:3] v7 s[4:5] scc`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<RegisterRange> = Vec::new();
        for register in self.iter() {
            match runs.last_mut() {
                Some(run)
                    if run.words < u8::MAX && run.first.offset(run.words) == Some(register) =>
                {
                    run.words += 1;
                }
                _ => runs.push(RegisterRange::new(register, 1)),
            }
        }
        let texts: Vec<String> = runs.iter().map(RegisterRange::to_string).collect();
        f.write_str(&texts.join(" "))
    }
}

impl fmt::Debug for RegisterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_register_has_a_unique_bit() {
        for position in 0..FIXED + UNNUMBERED.len() as u16 {
            assert_eq!(bit_position(register(position)), Some(position));
        }
        assert!(usize::from(FIXED) + UNNUMBERED.len() <= WORDS * 64);
    }

    #[test]
    fn range_operations_match_single_register_operations() {
        let firsts = (0..FIXED + UNNUMBERED.len() as u16).map(register);
        for first in firsts {
            for words in [0, 1, 2, 3, 16, 31, 32, 33, 64, 65, 200] {
                let range = RegisterRange::new(first, words);
                let mut set = RegisterSet::EMPTY;
                set.insert_range(range);
                assert_eq!(set, range.iter().collect(), "{first} {words}");
                for removed in range.iter().step_by(7).collect::<Vec<_>>() {
                    set.remove(removed);
                }
                let each: Vec<bool> = range.iter().map(|register| set.contains(register)).collect();
                assert_eq!(set.intersects(range), each.contains(&true), "{first} {words}");
                assert_eq!(set.contains_range(range), !each.contains(&false), "{first} {words}");
            }
        }
    }

    #[test]
    fn set_operations_and_display() {
        let range = |text: &str, words| RegisterRange::new(text.parse().unwrap(), words);
        let mut set: RegisterSet = [range("v0", 4), range("v7", 1)].into_iter().collect();
        set.insert_range(range("vcc_lo", 2));
        set.insert(Register::Scc);
        assert_eq!(set.to_string(), "v[0:3] v7 vcc scc");
        assert_eq!(set.len(), 8);
        assert!(set.intersects(range("v3", 2)) && !set.intersects(range("v4", 3)));
        assert!(set.contains_range(range("v1", 3)) && !set.contains_range(range("v3", 2)));
        set.remove("v7".parse().unwrap());
        assert_eq!(set.intersection(RegisterSet::VGPRS).to_string(), "v[0:3]");
        assert_eq!(set.difference(RegisterSet::VGPRS).to_string(), "vcc scc");
        assert_eq!(set.iter().collect::<RegisterSet>(), set);
        assert!(RegisterSet::EMPTY.is_empty() && !set.is_empty());
        set.insert(Register::Sgpr(Sgpr(200)));
        assert!(!set.contains(Register::Sgpr(Sgpr(200))));
        assert_eq!(RegisterSet::SGPRS.to_string(), "s[0:105]");
    }
}
