//! Decides which instructions are proxies: by their patterns and marks, for any instruction set.

use crate::pattern::Mismatch;
use crate::{ClosestMatch, EmulateError, Instruction, Matching};
use std::collections::BTreeMap;

/// The proxies in some code, by place.
#[derive(Clone, Debug)]
pub struct Sites<At> {
    /// The proxies, with indices of their instructions.
    pub proxies: BTreeMap<At, usize>,
    /// The closest match of each instruction that was added.
    pub closest: Vec<ClosestMatch>,
}

/// An instruction of the code, compared with a pattern.
pub struct Candidate<At> {
    /// Its place.
    pub at: At,
    /// `true` if it is marked as a proxy of the pattern's instruction.
    pub is_marked: bool,
    /// The difference from the pattern; `None` for another operation.
    pub result: Result<(), Option<Mismatch>>,
}

/// Formats instructions of the code for messages.
pub trait Locations<At> {
    /// Formats an instruction with its location.
    fn describe(&self, at: At) -> String;

    /// Formats an instruction that does not match for `reason`.
    fn closest_match(&self, at: At, reason: String) -> ClosestMatch;
}

impl<At> Default for Sites<At> {
    fn default() -> Sites<At> {
        Sites { proxies: BTreeMap::new(), closest: Vec::new() }
    }
}

impl<At: Copy + Ord> Sites<At> {
    /// Adds the proxies of the instruction with an index.
    ///
    /// # Errors
    /// [`EmulateError::Ambiguous`], [`EmulateError::MarkMismatch`] and [`EmulateError::Collision`].
    pub fn add(
        &mut self,
        index: usize,
        instructions: &[&Instruction],
        candidates: impl Iterator<Item = Candidate<At>>,
        locations: &dyn Locations<At>,
    ) -> Result<(), EmulateError> {
        let Some(instruction) = instructions.get(index) else { return Ok(()) };
        let (name, proxy) = (|| instruction.name.clone(), || instruction.proxy.clone());
        let mut closest: Option<(usize, ClosestMatch)> = None;
        let mut collisions = Vec::new();
        for Candidate { at, is_marked, result } in candidates {
            match result {
                Ok(()) if is_marked || instruction.matching == Matching::All => {
                    if let Some(first) = self.proxies.insert(at, index) {
                        let first = instructions.get(first).map(|first| first.name.clone());
                        return Err(EmulateError::Ambiguous {
                            location: locations.describe(at),
                            first: first.unwrap_or_default(),
                            second: name(),
                        });
                    }
                }
                Ok(()) => collisions.push(locations.describe(at)),
                Err(mismatch) if is_marked => {
                    return Err(EmulateError::MarkMismatch {
                        instruction: name(),
                        proxy: proxy(),
                        location: locations.describe(at),
                        reason: mismatch.map_or_else(
                            || "different operation".to_owned(),
                            |mismatch| mismatch.reason,
                        ),
                    });
                }
                Err(Some(Mismatch { matching_parts, reason })) => {
                    if closest.as_ref().is_none_or(|(most, _)| matching_parts > *most) {
                        closest = Some((matching_parts, locations.closest_match(at, reason)));
                    }
                }
                Err(None) => {}
            }
        }
        if !collisions.is_empty() {
            let (instruction, proxy) = (name(), proxy());
            return Err(EmulateError::Collision { instruction, proxy, locations: collisions });
        }
        self.closest.push(closest.map_or(ClosestMatch::NoOperation, |(_, closest)| closest));
        Ok(())
    }
}

/// Checks that names of instructions are unique.
///
/// # Errors
/// [`EmulateError::Duplicate`].
pub fn check_names(instructions: &[Instruction]) -> Result<(), EmulateError> {
    for (index, instruction) in instructions.iter().enumerate() {
        let mut earlier = instructions.iter().take(index);
        if earlier.any(|earlier| earlier.name == instruction.name) {
            return Err(EmulateError::Duplicate { instruction: instruction.name.clone() });
        }
    }
    Ok(())
}

/// Checks that a mark names a defined instruction. `location` describes its place.
///
/// # Errors
/// [`EmulateError::Undefined`].
pub fn check_mark(
    name: &str,
    instructions: &[Instruction],
    location: impl FnOnce() -> String,
) -> Result<(), EmulateError> {
    let names = || instructions.iter().map(|instruction| &instruction.name);
    if names().any(|defined| defined == name) {
        return Ok(());
    }
    let (instruction, location) = (name.to_owned(), location());
    Err(EmulateError::Undefined { instruction, location, defined: names().cloned().collect() })
}
