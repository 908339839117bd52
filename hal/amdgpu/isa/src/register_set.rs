//! Sets of registers.

use crate::{AccVgpr, Register, RegisterRange, Sgpr, Ttmp, Vgpr};
use std::fmt;

/// A set of registers, of whatever files.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegisterSet([u64; WORDS]);

const WORDS: usize = 11;
const ACC_VGPRS: u16 = 256;
const SGPRS: u16 = 512;
const TTMPS: u16 = SGPRS + 106;
const FIXED: u16 = TTMPS + 16;

/// The registers that are not numbered, in the order of their places in a set.
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

/// The place of a register; none for numbers that no register has. VGPRs above v255 have none: sets
/// serve rewriting and its rules, and the only target that has such registers has no rules.
fn place(register: Register) -> Option<u16> {
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

/// The registers of a range as bits of two words of a set that follow each other, and the first
/// of these; none where one of them does not exist, or they are too many.
fn bits(range: RegisterRange) -> Option<(usize, u128)> {
    let last = range.first.offset(range.words.checked_sub(1)?)?;
    let (first, last) = (place(range.first)?, place(last)?);
    let words = u32::from(range.words);
    if words > 64 || first.checked_add(words as u16 - 1)? != last {
        return None;
    }
    Some((usize::from(first / 64), ((1 << words) - 1) << (first % 64)))
}

fn register(place: u16) -> Register {
    match place {
        0..ACC_VGPRS => Register::Vgpr(Vgpr(place)),
        ACC_VGPRS..SGPRS => Register::AccVgpr(AccVgpr((place - ACC_VGPRS) as u8)),
        SGPRS..TTMPS => Register::Sgpr(Sgpr((place - SGPRS) as u8)),
        TTMPS..FIXED => Register::Ttmp(Ttmp((place - TTMPS) as u8)),
        _ => UNNUMBERED[usize::from(place - FIXED) % UNNUMBERED.len()],
    }
}

impl RegisterSet {
    /// No register.
    pub const EMPTY: RegisterSet = RegisterSet([0; WORDS]);

    /// The 256 VGPRs.
    pub const VGPRS: RegisterSet = RegisterSet::words(0..4);

    /// The 256 AccVGPRs.
    pub const ACC_VGPRS: RegisterSet = RegisterSet::words(4..8);

    /// The 106 SGPRs.
    pub const SGPRS: RegisterSet = {
        let mut set = RegisterSet::EMPTY;
        let mut place = SGPRS;
        while place < TTMPS {
            set.0[(place / 64) as usize] |= 1 << (place % 64);
            place += 1;
        }
        set
    };

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
        if let Some(place) = place(register) {
            self.0[usize::from(place / 64)] |= 1 << (place % 64);
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

    /// Takes a register out.
    pub fn remove(&mut self, register: Register) {
        if let Some(place) = place(register) {
            self.0[usize::from(place / 64)] &= !(1 << (place % 64));
        }
    }

    /// Whether the register is in the set.
    pub fn contains(&self, register: Register) -> bool {
        place(register)
            .is_some_and(|place| self.0[usize::from(place / 64)] >> (place % 64) & 1 != 0)
    }

    /// Whether a register of the range is in the set.
    pub fn meets(&self, range: RegisterRange) -> bool {
        match bits(range) {
            Some((at, bits)) => self.two_words(at) & bits != 0,
            None => range.iter().any(|register| self.contains(register)),
        }
    }

    /// Whether all registers of the range are in the set.
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

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// What is in either.
    #[must_use]
    pub fn union(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    /// What is here and not in the other.
    #[must_use]
    pub fn difference(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    /// The registers: VGPRs, AccVGPRs, SGPRs, then the others, each by ascending number.
    pub fn iter(self) -> impl Iterator<Item = Register> {
        self.0.into_iter().enumerate().flat_map(|(at, word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                (rest != 0).then(|| {
                    rest &= rest - 1;
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
    /// Runs of numbered registers together: `v[0:3] v7 s[4:5] scc`.
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
    fn every_register_has_a_place_of_its_own() {
        for place in 0..FIXED + UNNUMBERED.len() as u16 {
            assert_eq!(super::place(register(place)), Some(place));
        }
        assert!(usize::from(FIXED) + UNNUMBERED.len() <= WORDS * 64);
    }

    #[test]
    fn a_range_is_its_registers_one_by_one() {
        let firsts = (0..FIXED + UNNUMBERED.len() as u16).map(register);
        for first in firsts {
            for words in [0, 1, 2, 3, 16, 31, 32, 33, 64, 65, 200] {
                let range = RegisterRange::new(first, words);
                let mut set = RegisterSet::EMPTY;
                set.insert_range(range);
                assert_eq!(set, range.iter().collect(), "{first} {words}");
                for other in range.iter().step_by(7).collect::<Vec<_>>() {
                    set.remove(other);
                }
                let each: Vec<bool> = range.iter().map(|own| set.contains(own)).collect();
                assert_eq!(set.meets(range), each.contains(&true), "{first} {words}");
                assert_eq!(set.contains_range(range), !each.contains(&false), "{first} {words}");
            }
        }
    }

    #[test]
    fn sets_are_sets() {
        let range = |text: &str, words| RegisterRange::new(text.parse().unwrap(), words);
        let mut set: RegisterSet = [range("v0", 4), range("v7", 1)].into_iter().collect();
        set.insert_range(range("vcc_lo", 2));
        set.insert(Register::Scc);
        assert_eq!(set.to_string(), "v[0:3] v7 vcc scc");
        assert_eq!(set.len(), 8);
        assert!(set.meets(range("v3", 2)) && !set.meets(range("v4", 3)));
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
