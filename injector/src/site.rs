//! Fault sites: one event of one program, and what happens there, as one line of text.

use crate::model::{Action, value_mask};
use flipwave_isa::{Lane, Pc, Register};
use std::fmt;
use std::str::FromStr;

/// Where and when a fault strikes, and what it does. A site is absolute: it names the same
/// event on every run, host and device.
///
/// As text: `dispatch=0 workgroup=3,1,0 wave=2 pc=0x1a9c occurrence=5 lane=17 register=v4
/// flip=0x00000400` on one line, in this order. `lane` is absent for scalar registers; `set=`
/// stands in place of `flip=` where the value is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// Index of the dispatch in the workload, from 0.
    pub dispatch: u32,
    /// Position of the workgroup in the grid.
    pub workgroup: [u32; 3],
    /// Index of the wave in its workgroup.
    pub wave: u32,
    /// The instruction behind which the fault strikes, as ELF virtual address.
    pub pc: Pc,
    /// Which execution of the instruction by this wave, from 0.
    pub occurrence: u64,
    /// The lane, for registers that each lane has its own value of.
    pub lane: Option<Lane>,
    /// The register struck. Sites of a plan name a destination of the instruction; a site
    /// written by hand may name any register of the wave.
    pub register: Register,
    /// What happens to it.
    pub action: Action,
}

impl Site {
    /// Checks what the types leave open.
    ///
    /// # Errors
    /// [`SiteError`] if a lane is missing, superfluous or above 63, if nothing is flipped, or
    /// if the action names bits that the register does not have.
    pub fn check(&self) -> Result<(), SiteError> {
        let register = self.register;
        match self.lane {
            None if register.is_per_lane() => return Err(SiteError::LaneMissing(register)),
            Some(_) if !register.is_per_lane() => {
                return Err(SiteError::LaneSuperfluous(register));
            }
            Some(lane) if lane.0 > 63 => return Err(SiteError::NoSuchLane(lane)),
            _ => {}
        }
        if self.action == Action::Flip(0) {
            return Err(SiteError::NothingFlipped);
        }
        if self.action.word() & !value_mask(register) != 0 {
            return Err(SiteError::TooWide { register, word: self.action.word() });
        }
        Ok(())
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        write!(
            f,
            "dispatch={} workgroup={x},{y},{z} wave={} pc={} occurrence={}",
            self.dispatch, self.wave, self.pc, self.occurrence
        )?;
        if let Some(lane) = self.lane {
            write!(f, " lane={lane}")?;
        }
        match self.action {
            Action::Flip(mask) => write!(f, " register={} flip={mask:#010x}", self.register),
            Action::Set(value) => write!(f, " register={} set={value:#010x}", self.register),
        }
    }
}

impl FromStr for Site {
    type Err = SiteError;

    /// Reads the form that `Display` writes; any run of blanks separates the fields.
    fn from_str(text: &str) -> Result<Site, SiteError> {
        let mut fields = Fields { rest: text.split_ascii_whitespace().peekable() };
        let site = Site {
            dispatch: fields.number("dispatch")?,
            workgroup: fields.workgroup()?,
            wave: fields.number("wave")?,
            pc: Pc(fields.hexadecimal("pc")?),
            occurrence: fields.number("occurrence")?,
            lane: if fields.next_is("lane") { Some(Lane(fields.number("lane")?)) } else { None },
            register: fields.register()?,
            action: if fields.next_is("set") {
                Action::Set(fields.hexadecimal("set")?)
            } else {
                Action::Flip(fields.hexadecimal("flip")?)
            },
        };
        fields.end()?;
        site.check()?;
        Ok(site)
    }
}

/// The `key=value` fields of a site's text, taken from the front.
struct Fields<'a> {
    rest: std::iter::Peekable<std::str::SplitAsciiWhitespace<'a>>,
}

impl<'a> Fields<'a> {
    fn next_is(&mut self, key: &str) -> bool {
        self.rest.peek().is_some_and(|field| field.split('=').next() == Some(key))
    }

    fn value(&mut self, key: &'static str) -> Result<&'a str, SiteError> {
        let found = self.rest.next();
        found.and_then(|field| field.strip_prefix(key)?.strip_prefix('=')).ok_or_else(|| {
            SiteError::Field { expected: key, found: found.unwrap_or("the end").to_owned() }
        })
    }

    fn number<N: FromStr>(&mut self, key: &'static str) -> Result<N, SiteError> {
        let text = self.value(key)?;
        digits(text).and_then(|digits| digits.parse().ok()).ok_or_else(|| SiteError::Value {
            key,
            text: text.to_owned(),
            expected: "a number",
        })
    }

    fn hexadecimal<N: TryFrom<u64>>(&mut self, key: &'static str) -> Result<N, SiteError> {
        let text = self.value(key)?;
        text.strip_prefix("0x")
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .and_then(|number| N::try_from(number).ok())
            .ok_or_else(|| SiteError::Value {
                key,
                text: text.to_owned(),
                expected: "a hexadecimal number with 0x in front",
            })
    }

    fn workgroup(&mut self) -> Result<[u32; 3], SiteError> {
        let text = self.value("workgroup")?;
        let parts: Option<Vec<u32>> =
            text.split(',').map(|part| digits(part)?.parse().ok()).collect();
        parts.and_then(|parts| parts.try_into().ok()).ok_or_else(|| SiteError::Value {
            key: "workgroup",
            text: text.to_owned(),
            expected: "three numbers x,y,z",
        })
    }

    fn register(&mut self) -> Result<Register, SiteError> {
        let text = self.value("register")?;
        text.parse().map_err(|_| SiteError::Value {
            key: "register",
            text: text.to_owned(),
            expected: "a register like v4, a0, s12, vcc_lo, exec_hi, m0 or scc",
        })
    }

    fn end(&mut self) -> Result<(), SiteError> {
        match self.rest.next() {
            None => Ok(()),
            Some(field) => {
                Err(SiteError::Field { expected: "nothing more", found: field.to_owned() })
            }
        }
    }
}

/// `text` if it is digits only: `parse` would accept a sign.
fn digits(text: &str) -> Option<&str> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

/// A text that is no site, or a site that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// Another field stands where one is expected.
    #[error("a site needs `{expected}` where `{found}` stands")]
    Field {
        /// Key of the field expected.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A value that cannot be read.
    #[error("`{key}={text}` in a site: expected {expected}")]
    Value {
        /// Key of the field.
        key: &'static str,
        /// The value as written.
        text: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// A per-lane register without a lane.
    #[error("each lane has its own {0}: the site needs `lane`")]
    LaneMissing(Register),
    /// A scalar register with a lane.
    #[error("{0} is one register for the whole wave: the site must not name a lane")]
    LaneSuperfluous(Register),
    /// A lane that no wave has.
    #[error("lane {0} does not exist: a wave has lanes 0 to 63")]
    NoSuchLane(Lane),
    /// A flip without a bit.
    #[error("`flip` names no bit")]
    NothingFlipped,
    /// More bits than the register has.
    #[error("{word:#010x} does not fit {register}, which has {} bit(s)", register.bits())]
    TooWide {
        /// The register.
        register: Register,
        /// The mask or value.
        word: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "dispatch=0 workgroup=3,1,0 wave=2 pc=0x1a9c occurrence=5 lane=17 \
                        register=v4 flip=0x00000400";

    #[test]
    fn text_round_trips() {
        for text in [
            TEXT,
            "dispatch=4294967295 workgroup=0,0,4294967295 wave=15 pc=0xffffffffffffffff \
             occurrence=18446744073709551615 lane=63 register=a255 flip=0xffffffff",
            "dispatch=1 workgroup=0,0,0 wave=0 pc=0x0 occurrence=0 lane=0 register=v0 \
             set=0x00000000",
            "dispatch=1 workgroup=0,0,0 wave=0 pc=0x40 occurrence=0 register=s12 flip=0x80000000",
            "dispatch=1 workgroup=0,0,0 wave=0 pc=0x40 occurrence=0 register=exec_hi \
             set=0xdeadbeef",
            "dispatch=1 workgroup=0,0,0 wave=0 pc=0x40 occurrence=0 register=scc flip=0x00000001",
        ] {
            let site: Site = text.parse().unwrap();
            assert_eq!(site.to_string(), text);
            assert_eq!(site.to_string().parse(), Ok(site));
        }
    }

    #[test]
    fn text_has_the_documented_meaning() {
        let site: Site = TEXT.parse().unwrap();
        let expected = Site {
            dispatch: 0,
            workgroup: [3, 1, 0],
            wave: 2,
            pc: Pc(0x1a9c),
            occurrence: 5,
            lane: Some(Lane(17)),
            register: "v4".parse().unwrap(),
            action: Action::Flip(0x400),
        };
        assert_eq!(site, expected);
    }

    #[test]
    fn anything_else_is_refused_with_what_is_wrong() {
        for (from, to, message) in [
            ("dispatch=0 ", "", "`dispatch` where `workgroup=3,1,0`"),
            ("dispatch=0", "dispatch=+0", "`dispatch=+0`"),
            ("dispatch=0", "dispatch=", "`dispatch=`"),
            ("dispatch=0", "dispatch=4294967296", "expected a number"),
            ("3,1,0", "3,1", "expected three numbers"),
            ("3,1,0", "3,1,-0", "expected three numbers"),
            ("wave=2 ", "wave=2 wave=2 ", "`pc` where `wave=2`"),
            ("0x1a9c", "1a9c", "hexadecimal"),
            ("0x1a9c", "0x", "hexadecimal"),
            ("0x1a9c", "0x+1", "hexadecimal"),
            ("lane=17", "lane=64", "lane 64 does not exist"),
            ("lane=17", "lane=256", "expected a number"),
            ("lane=17 ", "", "each lane has its own v4"),
            ("register=v4", "register=s4", "s4 is one register for the whole wave"),
            ("register=v4", "register=v256", "expected a register"),
            ("flip=0x00000400", "flip=0x00000000", "names no bit"),
            ("flip=0x00000400", "flip=0x100000000", "`flip=0x100000000`"),
            ("flip=0x00000400", "", "`flip` where `the end`"),
            ("flip=0x00000400", "xor=0x00000400", "`flip` where `xor=0x00000400`"),
            ("0x00000400", "0x00000400 more", "`nothing more` where `more`"),
            ("lane=17 register=v4", "register=scc", "does not fit scc"),
        ] {
            let text = TEXT.replacen(from, to, 1);
            assert_ne!(text, TEXT);
            let error = text.parse::<Site>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}\n{error}");
        }
    }
}
