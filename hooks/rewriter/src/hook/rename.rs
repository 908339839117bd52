//! Renaming of the registers of a body.

use super::{Body, HookError, IndexedAccess, RegisterGroup};
use flipwave_isa::{AccVgpr, Register, RegisterRange, Sgpr, Vgpr};

/// Returns `true` if a register of a body may be renamed.
pub(super) fn is_renamed(register: Register) -> bool {
    matches!(register, Register::Vgpr(_) | Register::AccVgpr(_) | Register::Sgpr(_))
}

/// Maps the registers of a body's groups to other registers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Renaming {
    vgprs: [u8; 256],
    acc_vgprs: [u8; 256],
    sgprs: [u8; 128],
}

impl Renaming {
    /// The identity.
    pub fn identity() -> Renaming {
        Renaming {
            vgprs: std::array::from_fn(|number| number as u8),
            acc_vgprs: std::array::from_fn(|number| number as u8),
            sgprs: std::array::from_fn(|number| number as u8),
        }
    }

    /// Maps the groups of `body` to registers starting at `firsts`.
    ///
    /// # Errors
    /// [`HookError::Renaming`] if the number of registers is wrong, or if a group is mapped to another
    /// register file, beyond its end, to a misaligned register, or to registers of another group.
    pub fn new(body: &Body, firsts: &[Register]) -> Result<Renaming, HookError> {
        let wrong = |reason: String| Err(HookError::Renaming(reason));
        if firsts.len() != body.groups.len() {
            let (given, groups) = (firsts.len(), body.groups.len());
            return wrong(format!("{given} registers are given for {groups} groups"));
        }
        let mut renaming = Renaming::identity();
        let mut taken: Vec<RegisterRange> = Vec::new();
        for (RegisterGroup { range, alignment }, first) in body.groups.iter().zip(firsts) {
            let new = RegisterRange::new(*first, range.words);
            let (number, file) = renaming.file(range.first, *first).ok_or_else(|| {
                HookError::Renaming(format!("{range} cannot become {first} in another file"))
            })?;
            let is_in_file = new.iter().count() == usize::from(range.words)
                && usize::from(number.1) + usize::from(range.words) <= file.len();
            if !is_in_file {
                return wrong(format!("{range} does not fit at {first}"));
            }
            if number.1 % (*alignment).max(1) != 0 {
                return wrong(format!(
                    "{range} must start at a multiple of {alignment}, not {first}"
                ));
            }
            if let Some(overlapped) = taken.iter().find(|range| range.overlaps(new)) {
                return wrong(format!("{range} at {new} would overlap {overlapped}"));
            }
            taken.push(new);
            for word in 0..range.words {
                file[usize::from(number.0) + usize::from(word)] = number.1 + word;
            }
        }
        Ok(renaming)
    }

    /// Old and new number of a register, and the map of their file; `None` if the files differ.
    fn file(&mut self, old: Register, new: Register) -> Option<((u8, u8), &mut [u8])> {
        match (old, new) {
            (Register::Vgpr(Vgpr(old)), Register::Vgpr(Vgpr(new))) => {
                let numbers = (u8::try_from(old).ok()?, u8::try_from(new).ok()?);
                Some((numbers, &mut self.vgprs))
            }
            (Register::AccVgpr(AccVgpr(old)), Register::AccVgpr(AccVgpr(new))) => {
                Some(((old, new), &mut self.acc_vgprs))
            }
            (Register::Sgpr(Sgpr(old)), Register::Sgpr(Sgpr(new))) => {
                Some(((old, new), &mut self.sgprs))
            }
            _ => None,
        }
    }

    /// The new register for a register; VCC, EXEC and other special registers do not change.
    pub fn register(&self, register: Register) -> Register {
        let new = |numbers: &[u8], number: u8| numbers[usize::from(number)];
        match register {
            Register::Vgpr(Vgpr(n)) => {
                let number = u8::try_from(n).map_or(n, |low| new(&self.vgprs, low).into());
                Register::Vgpr(Vgpr(number))
            }
            Register::AccVgpr(AccVgpr(n)) => Register::AccVgpr(AccVgpr(new(&self.acc_vgprs, n))),
            Register::Sgpr(Sgpr(n)) => Register::Sgpr(Sgpr(new(&self.sgprs, n))),
            special => special,
        }
    }

    /// The new registers for a range in one group.
    pub fn range(&self, range: RegisterRange) -> RegisterRange {
        RegisterRange::new(self.register(range.first), range.words)
    }

    /// Renames the registers of an access.
    pub fn indexed(&self, indexed: IndexedAccess) -> IndexedAccess {
        IndexedAccess {
            index: self.range(indexed.index),
            value: self.range(indexed.value),
            ..indexed
        }
    }

    /// Renames the registers in the text of an instruction.
    pub(super) fn text(&self, text: &str) -> String {
        let mut renamed = String::with_capacity(text.len() + 8);
        let mut rest = text;
        while let Some(start) = rest.find(is_word) {
            let (before, after) = rest.split_at(start);
            let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
            let (word, after) = after.split_at(end);
            renamed.push_str(before);
            rest = match self.token(word, after, &mut renamed) {
                Some(after) => after,
                None => {
                    renamed.push_str(word);
                    after
                }
            };
        }
        renamed.push_str(rest);
        renamed
    }

    /// If `word` starts a register or range, appends its new name to `renamed` and returns the text after
    /// it.
    fn token<'t>(&self, word: &str, after: &'t str, renamed: &mut String) -> Option<&'t str> {
        let register = |file: &str, number: u8| match file {
            "v" => Some(Register::Vgpr(Vgpr(number.into()))),
            "a" => Some(Register::AccVgpr(AccVgpr(number))),
            "s" => Some(Register::Sgpr(Sgpr(number))),
            _ => None,
        };
        // `a16` alone is a modifier of images, which hooks do not use.
        if let Some((file, digits)) = word.split_at_checked(1)
            && !digits.is_empty()
        {
            // `v3.l` and `v3.h` are halves.
            let (digits, half) =
                digits.split_once('.').map_or((digits, None), |(d, h)| (d, Some(h)));
            renamed.push_str(&self.register(register(file, digits.parse().ok()?)?).to_string());
            if let Some(half) = half {
                renamed.push('.');
                renamed.push_str(half);
            }
            return Some(after);
        }
        let (bounds, after) = after.strip_prefix('[')?.split_once(']')?;
        let (low, high) = bounds.split_once(':')?;
        let (low, high): (u8, u8) = (low.parse().ok()?, high.parse().ok()?);
        let words = high.checked_sub(low)?.checked_add(1)?;
        renamed.push_str(&self.range(RegisterRange::new(register(word, low)?, words)).to_string());
        Some(after)
    }
}

/// Returns `true` for characters of mnemonics, registers, numbers and modifiers.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}
