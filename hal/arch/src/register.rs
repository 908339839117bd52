//! Registers as class and number.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// A class of registers: a register file, or a special register of several words.
///
/// Instruction sets define their classes as statics.
#[derive(Debug)]
pub struct RegisterClass {
    /// Name of the instruction set.
    pub instruction_set: &'static str,
    /// Rank of the class among those of its instruction set. Fault sites of an instruction are numbered
    /// in the order of classes, then of registers.
    pub rank: u16,
    /// Names of the registers.
    pub names: RegisterNames,
    /// Number of registers of the class.
    pub count: u16,
    /// Width of a register in bits, at most 32. A wider value occupies consecutive registers.
    pub bits: u32,
    /// `true` if each lane has a separate value.
    pub is_per_lane: bool,
    /// `true` if all instructions that read a register of the class report it, so that the next use of
    /// its value can be determined.
    pub has_known_readers: bool,
}

/// Names of the registers of a class.
#[derive(Debug)]
pub enum RegisterNames {
    /// A prefix followed by the number: `v12`.
    Numbered(&'static str),
    /// One name per register: `vcc_lo`, `vcc_hi`.
    Listed(&'static [&'static str]),
    /// Names that a program declares. The number is that of the name in this process: the class has no registers of
    /// its own; once the program is known, a register of another class replaces it.
    Declared,
}

/// Names of declared registers, by number.
static DECLARED: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl RegisterClass {
    /// The register of this class with a name.
    pub fn parse(&'static self, name: &str) -> Option<RegisterId> {
        let number = match self.names {
            RegisterNames::Numbered(prefix) => {
                let digits = name.strip_prefix(prefix)?;
                let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit());
                digits.parse().ok().filter(|_| is_plain)?
            }
            RegisterNames::Listed(names) => names.iter().position(|known| *known == name)? as u16,
            RegisterNames::Declared => {
                let mut names = DECLARED.lock().unwrap_or_else(PoisonError::into_inner);
                let known = names.iter().position(|known| known == name);
                let number = known.unwrap_or_else(|| {
                    names.push(name.to_owned());
                    names.len() - 1
                });
                u16::try_from(number).ok()?
            }
        };
        (number < self.count).then_some(RegisterId { class: self, number })
    }
}

/// One register of at most 32 bits.
#[derive(Clone, Copy, Debug)]
pub struct RegisterId {
    /// The class.
    pub class: &'static RegisterClass,
    /// Number in the class, below [`RegisterClass::count`].
    pub number: u16,
}

impl RegisterId {
    /// Width in bits.
    pub fn bits(self) -> u32 {
        self.class.bits
    }

    /// Returns `true` for the name of a register that the program declares, see [`RegisterNames::Declared`].
    pub fn is_declared(self) -> bool {
        matches!(self.class.names, RegisterNames::Declared)
    }

    /// Returns `true` if each lane has a separate value.
    pub fn is_per_lane(self) -> bool {
        self.class.is_per_lane
    }

    /// The register `words` after this one in the same class; `None` beyond its end.
    pub fn offset(self, words: u16) -> Option<RegisterId> {
        let number = self.number.checked_add(words).filter(|number| *number < self.class.count)?;
        Some(RegisterId { number, ..self })
    }

    /// The values that identify and order a register.
    fn key(&self) -> (u16, u16, &'static str) {
        (self.class.rank, self.number, self.class.instruction_set)
    }
}

impl PartialEq for RegisterId {
    fn eq(&self, other: &RegisterId) -> bool {
        self.key() == other.key()
    }
}

impl Eq for RegisterId {}

impl PartialOrd for RegisterId {
    fn partial_cmp(&self, other: &RegisterId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RegisterId {
    fn cmp(&self, other: &RegisterId) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for RegisterId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for RegisterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class.names {
            RegisterNames::Numbered(prefix) => write!(f, "{prefix}{}", self.number),
            RegisterNames::Listed(names) => {
                f.write_str(names.get(usize::from(self.number)).copied().unwrap_or("?"))
            }
            RegisterNames::Declared => {
                let names = DECLARED.lock().unwrap_or_else(PoisonError::into_inner);
                f.write_str(names.get(usize::from(self.number)).map_or("?", String::as_str))
            }
        }
    }
}

/// Consecutive registers of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegisterSpan {
    /// The lowest register.
    pub first: RegisterId,
    /// Number of registers, at least 1.
    pub words: u16,
}

impl RegisterSpan {
    /// A span of `words` registers that starts at `first`.
    pub fn new(first: RegisterId, words: u16) -> RegisterSpan {
        RegisterSpan { first, words }
    }

    /// The registers in ascending order.
    pub fn iter(self) -> impl Iterator<Item = RegisterId> {
        (0..self.words).filter_map(move |word| self.first.offset(word))
    }

    /// Returns `true` if `register` is in the span.
    pub fn contains(self, register: RegisterId) -> bool {
        let first = self.first;
        first.class.rank == register.class.rank
            && first.class.instruction_set == register.class.instruction_set
            && register.number.checked_sub(first.number).is_some_and(|word| word < self.words)
    }
}

impl fmt::Display for RegisterSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RegisterSpan { first, words } = *self;
        let last = first.number.saturating_add(words.saturating_sub(1));
        match first.class.names {
            _ if words <= 1 => write!(f, "{first}"),
            RegisterNames::Declared => write!(f, "{first}"),
            RegisterNames::Numbered(prefix) => write!(f, "{prefix}[{}:{last}]", first.number),
            // Halves of one register: `vcc` for `vcc_lo` and `vcc_hi`.
            RegisterNames::Listed(names) => {
                let name = names.first().and_then(|name| name.rsplit_once('_'));
                f.write_str(name.map_or("?", |(name, _)| name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ROWS: RegisterClass = RegisterClass {
        instruction_set: "test",
        rank: 0,
        names: RegisterNames::Numbered("r"),
        count: 300,
        bits: 32,
        is_per_lane: true,
        has_known_readers: true,
    };
    static MASK: RegisterClass = RegisterClass {
        rank: 1,
        names: RegisterNames::Listed(&["mask_lo", "mask_hi"]),
        count: 2,
        is_per_lane: false,
        ..RegisterClass { ..COPY }
    };
    const COPY: RegisterClass = RegisterClass {
        instruction_set: "test",
        rank: 0,
        names: RegisterNames::Numbered(""),
        count: 0,
        bits: 32,
        is_per_lane: true,
        has_known_readers: true,
    };

    #[test]
    fn names_round_trip() {
        for name in ["r0", "r299"] {
            assert_eq!(
                ROWS.parse(name).map(|register| register.to_string()).as_deref(),
                Some(name)
            );
        }
        for name in ["mask_lo", "mask_hi"] {
            assert_eq!(
                MASK.parse(name).map(|register| register.to_string()).as_deref(),
                Some(name)
            );
        }
        for name in ["r300", "r", "r+1", "r99999", "s0", "mask", ""] {
            assert_eq!((ROWS.parse(name), MASK.parse(name)), (None, None), "{name}");
        }
    }

    #[test]
    fn registers_are_ordered_by_class_then_number() {
        let [r9, r10] = ["r9", "r10"].map(|name| ROWS.parse(name).unwrap());
        let low = MASK.parse("mask_lo").unwrap();
        assert!(r9 < r10 && r10 < low);
        assert_eq!(low.offset(1), MASK.parse("mask_hi"));
        assert_eq!(low.offset(2), None);
        let span = RegisterSpan::new(r9, 2);
        assert!(span.contains(r10) && !span.contains(low));
        assert_eq!(span.iter().collect::<Vec<_>>(), [r9, r10]);
        let masks = RegisterSpan::new(low, 2);
        assert_eq!([span.to_string(), masks.to_string()], ["r[9:10]", "mask"]);
        assert_eq!(RegisterSpan::new(low, 1).to_string(), "mask_lo");
    }
}
