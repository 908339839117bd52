//! The statement of what a campaign samples from.

use super::Group;
use flipwave_isa::Pc;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// The size of a population: every (dynamic instruction x word x lane x bit) of the selected
/// instructions, where the words are those of the fault's target, the lanes those of its scope,
/// and "bit" stands for the positions at which the fault model can strike a word. All 32 bits of a
/// register count, also where an instruction changes only a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Population {
    /// Places: the number of faults a plan chooses from, each with the same probability.
    pub places: u64,
    /// Places of what is selected that the way of injecting does not reach, and that no plan chooses
    /// from.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Wave instructions executed that offer at least one place: selected, with a word of the
    /// target, and on at least one lane where each has its own.
    pub hittable: u64,
    /// Wave instructions executed, selected or not.
    pub executed: u64,
    /// The same per primary group, for every group that was executed.
    pub groups: Vec<GroupPopulation>,
}

/// What one group adds to a [`Population`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPopulation {
    /// The primary group, as results are filed.
    pub group: Group,
    /// Its places.
    pub places: u64,
    /// Its wave instructions that offer at least one place.
    pub hittable: u64,
    /// Its wave instructions, selected or not.
    pub executed: u64,
}

/// One static instruction of a kernel and what it adds to a [`Population`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstructionPopulation {
    /// The kernel launched.
    pub kernel: String,
    /// ELF virtual address.
    #[serde(serialize_with = "as_text")]
    pub pc: Pc,
    /// The instruction, as the assembler prints it.
    pub text: String,
    /// The operation's canonical name.
    pub opcode: &'static str,
    /// Its primary group.
    pub group: Group,
    /// Its source line, `file:line`, where the code object says it.
    pub line: Option<String>,
    /// How often waves executed it.
    pub executions: u64,
    /// Executions that offer at least one place.
    pub hittable: u64,
    /// Its places over all executions.
    pub places: u64,
    /// Its places that the way of injecting does not reach.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Those of them that are known to be masked, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownPlaces>,
}

/// Places whose value nothing reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPlaces {
    /// It is overwritten.
    pub overwritten: u64,
    /// Its wave ends.
    pub dead: u64,
}

impl KnownPlaces {
    /// Adds others.
    pub(crate) fn add(&mut self, other: KnownPlaces) {
        self.overwritten += other.overwritten;
        self.dead += other.dead;
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn as_text<S: Serializer>(pc: &Pc, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(pc)
}

impl Population {
    /// Adds up static instructions.
    pub(crate) fn of(instructions: &[InstructionPopulation]) -> Population {
        let mut groups = BTreeMap::new();
        for instruction in instructions {
            let group = instruction.group;
            let sum = groups.entry(group).or_insert(GroupPopulation {
                group,
                places: 0,
                hittable: 0,
                executed: 0,
            });
            sum.places += instruction.places;
            sum.executed += instruction.executions;
            sum.hittable += instruction.hittable;
        }
        let groups: Vec<GroupPopulation> = groups.into_values().collect();
        Population {
            places: groups.iter().map(|group| group.places).sum(),
            left_out: instructions.iter().map(|own| own.left_out).sum(),
            hittable: groups.iter().map(|group| group.hittable).sum(),
            executed: groups.iter().map(|group| group.executed).sum(),
            groups,
        }
    }
}

impl Population {
    /// The share of the places of what is selected that no plan chooses from.
    pub fn share_left_out(&self) -> f64 {
        match self.left_out {
            0 => 0.0,
            left_out => left_out as f64 / (left_out as f64 + self.places as f64),
        }
    }

    /// Adds places of a group that are not those of one instruction.
    pub(crate) fn add_places(&mut self, group: Group, places: u64) {
        self.places += places;
        if let Some(own) = self.groups.iter_mut().find(|own| own.group == group) {
            own.places += places;
        }
    }
}

impl fmt::Display for Population {
    /// A table: one line per group, the sum last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<8} {:>16} {:>16} {:>20}", "group", "executed", "hittable", "places")?;
        for group in &self.groups {
            let GroupPopulation { group, places, hittable, executed } = group;
            writeln!(f, "{group:<8} {executed:>16} {hittable:>16} {places:>20}")?;
        }
        let Population { places, hittable, executed, .. } = self;
        write!(f, "{:<8} {executed:>16} {hittable:>16} {places:>20}", "sum")
    }
}

/// A profile with nothing to hit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing to inject into: {fault} has no place in this workload with {selection}, {reason}")]
pub struct EmptyPopulation {
    /// The fault, as text.
    pub fault: String,
    /// What is selected, as text.
    pub selection: String,
    /// Why there is none.
    pub reason: String,
}
