//! Sites passed by waves that execute whole blocks of code.

use super::counter::lanes_struck;
use super::instructions::{CountedInstruction, Instructions};
use super::profile::Profile;
use flipwave_arch::LaneMask;
use flipwave_machine::Stretch;
use std::collections::{BTreeMap, HashMap};

/// Instructions of a dispatch, with their strata in the profile.
pub(super) struct Known<'a> {
    profile: &'a Profile,
    pub instructions: Instructions<'a>,
    /// Maps strata of `instructions` to strata of the profile.
    strata: Vec<Option<usize>>,
}

/// Blocks executed so far.
#[derive(Default)]
pub(super) struct Passages {
    all: Vec<Passage>,
    /// Indices of blocks by block number.
    by_number: HashMap<u64, usize>,
    /// Number and index of the last block.
    last: Option<(u64, usize)>,
}

/// Sites passed by one execution of a block.
pub(super) struct Passage {
    /// Maximum number of sites, for any active lanes, by stratum; strata without sites are omitted.
    pub most: Vec<(usize, u64)>,
    parts: [Part; 2],
}

/// The part of a block before, or after, EXEC changes.
#[derive(Default)]
pub(super) struct Part {
    /// Numbers of its instructions.
    pub numbers: Vec<usize>,
    /// Active lanes at the last execution.
    lanes: Option<LaneMask>,
    /// Sites on these lanes, by stratum like [`Passage::most`].
    pub sites: Vec<(usize, u64)>,
}

impl<'a> Known<'a> {
    /// Creates a table for a dispatch of the profile's workload.
    pub fn new(profile: &'a Profile, instructions: Instructions<'a>) -> Known<'a> {
        Known { profile, instructions, strata: Vec::new() }
    }

    /// Index of an instruction's stratum in the profile.
    pub fn stratum(&mut self, number: usize) -> Option<usize> {
        for name in &self.instructions.strata()[self.strata.len()..] {
            let known = self.profile.strata.iter().position(|stratum| stratum.name == *name);
            self.strata.push(known);
        }
        self.strata[self.instructions.get(number).stratum]
    }

    /// Stratum and number of sites of an execution on `lanes`, if it has any.
    pub fn sites(&mut self, number: usize, lanes: LaneMask) -> Option<(usize, u64)> {
        let lanes = lanes_struck(&self.profile.frame, lanes, lanes);
        let CountedInstruction { sites, .. } = self.instructions.get(number);
        let count = sites.count(lanes);
        Some((self.stratum(number)?, count)).filter(|(_, count)| *count > 0)
    }

    /// Sites of executions of several instructions, by stratum.
    fn all_places(
        &mut self,
        numbers: impl IntoIterator<Item = usize>,
        lanes: LaneMask,
    ) -> Vec<(usize, u64)> {
        let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
        for number in numbers {
            if let Some((stratum, sites)) = self.sites(number, lanes) {
                *sums.entry(stratum).or_default() += sites;
            }
        }
        sums.into_iter().collect()
    }
}

impl Passages {
    /// The passage of a block.
    pub fn of(&mut self, stretch: &dyn Stretch, known: &mut Known<'_>) -> &mut Passage {
        let index = match self.last {
            Some((number, index)) if number == stretch.number() => index,
            _ => *self.by_number.entry(stretch.number()).or_insert_with(|| {
                self.all.push(Passage::new(stretch, known));
                self.all.len() - 1
            }),
        };
        self.last = Some((stretch.number(), index));
        &mut self.all[index]
    }
}

impl Passage {
    fn new(stretch: &dyn Stretch, known: &mut Known<'_>) -> Passage {
        let mut all: Vec<usize> = Vec::new();
        stretch.for_each_instruction(&mut |inst| all.push(known.instructions.number(inst)));
        let most = known.all_places(all, LaneMask::FULL);
        let mut parts = <[Part; 2]>::default();
        stretch.for_each_part(&mut |part| {
            let number = known.instructions.number(part.inst);
            parts[usize::from(part.is_after_change)].numbers.push(number);
        });
        Passage { most, parts }
    }

    /// The parts of the block, executed on `lanes`.
    pub fn parts(&mut self, lanes: [LaneMask; 2], known: &mut Known<'_>) -> &[Part; 2] {
        for (part, lanes) in self.parts.iter_mut().zip(lanes) {
            if part.lanes != Some(lanes) {
                part.lanes = Some(lanes);
                part.sites = known.all_places(part.numbers.iter().copied(), lanes);
            }
        }
        &self.parts
    }
}
