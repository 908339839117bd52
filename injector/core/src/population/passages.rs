//! The places that waves pass by where they execute whole stretches of code.

use super::census::lanes_struck;
use super::instructions::{Instruction, Instructions};
use super::profile::Profile;
use flipwave_isa::LaneMask;
use flipwave_sim::Stretch;
use std::collections::{BTreeMap, HashMap};

/// The instructions of a dispatch, whose strata are those of a profile.
pub(super) struct Known<'a> {
    profile: &'a Profile,
    pub instructions: Instructions<'a>,
    /// By the number of a stratum of `instructions`, its number in the profile.
    strata: Vec<Option<usize>>,
}

/// Stretches that were executed.
#[derive(Default)]
pub(super) struct Passages {
    all: Vec<Passage>,
    /// The index of a stretch by its number.
    by_number: HashMap<u64, usize>,
    /// The number and the index of the last one.
    last: Option<(u64, usize)>,
}

/// What an execution of a stretch passes by.
pub(super) struct Passage {
    /// Places at most, whatever lanes are active, of the strata of which there are any.
    pub most: Vec<(usize, u64)>,
    parts: [Part; 2],
}

/// What is executed before EXEC changes, or after.
#[derive(Default)]
pub(super) struct Part {
    /// The numbers of the instructions.
    pub numbers: Vec<usize>,
    /// The active lanes last, if there was an execution.
    lanes: Option<LaneMask>,
    /// The places on these lanes, as [`Passage::most`].
    pub places: Vec<(usize, u64)>,
}

impl<'a> Known<'a> {
    /// Instructions of a dispatch of the profile's workload.
    pub fn new(profile: &'a Profile, instructions: Instructions<'a>) -> Known<'a> {
        Known { profile, instructions, strata: Vec::new() }
    }

    /// The stratum of an instruction, by its number in the profile.
    pub fn stratum(&mut self, number: usize) -> Option<usize> {
        for name in &self.instructions.strata()[self.strata.len()..] {
            let known = self.profile.strata.iter().position(|own| own.name == *name);
            self.strata.push(known);
        }
        self.strata[self.instructions.get(number).stratum]
    }

    /// The places of an execution on these lanes, and their stratum, if there are any.
    pub fn places(&mut self, number: usize, lanes: LaneMask) -> Option<(usize, u64)> {
        let lanes = lanes_struck(&self.profile.frame, lanes, lanes);
        let Instruction { places, .. } = self.instructions.get(number);
        let count = places.count(lanes);
        Some((self.stratum(number)?, count)).filter(|(_, count)| *count > 0)
    }

    /// The places of executions of several, by stratum.
    fn all_places(
        &mut self,
        numbers: impl IntoIterator<Item = usize>,
        lanes: LaneMask,
    ) -> Vec<(usize, u64)> {
        let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
        for number in numbers {
            if let Some((stratum, places)) = self.places(number, lanes) {
                *sums.entry(stratum).or_default() += places;
            }
        }
        sums.into_iter().collect()
    }
}

impl Passages {
    /// What a stretch passes by.
    pub fn of(&mut self, stretch: Stretch<'_>, known: &mut Known<'_>) -> &mut Passage {
        let index = match self.last {
            Some((number, index)) if number == stretch.number => index,
            _ => *self.by_number.entry(stretch.number).or_insert_with(|| {
                self.all.push(Passage::new(stretch, known));
                self.all.len() - 1
            }),
        };
        self.last = Some((stretch.number, index));
        &mut self.all[index]
    }
}

impl Passage {
    fn new(stretch: Stretch<'_>, known: &mut Known<'_>) -> Passage {
        let all: Vec<usize> =
            stretch.instructions().map(|own| known.instructions.number(own)).collect();
        let most = known.all_places(all, LaneMask::FULL);
        let mut parts = <[Part; 2]>::default();
        for (inst, is_after) in stretch.parts() {
            parts[usize::from(is_after)].numbers.push(known.instructions.number(inst));
        }
        Passage { most, parts }
    }

    /// Its parts, executed on these lanes.
    pub fn parts(&mut self, lanes: [LaneMask; 2], known: &mut Known<'_>) -> &[Part; 2] {
        for (part, lanes) in self.parts.iter_mut().zip(lanes) {
            if part.lanes != Some(lanes) {
                part.lanes = Some(lanes);
                part.places = known.all_places(part.numbers.iter().copied(), lanes);
            }
        }
        &self.parts
    }
}
