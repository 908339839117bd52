//! Size of the fault space that a campaign samples from.

use super::Group;
use flipwave_isa::Pc;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Size of a fault space: every (dynamic instruction × word × lane × bit) of the selected instructions.
/// The fault's target determines the words, its scope the lanes, and "bit" is a position at which the
/// fault model can strike a word. All 32 bits of a register count, even if an instruction changes only
/// some of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultSpace {
    /// Number of sites; a plan draws each with the same probability.
    pub places: u64,
    /// Number of selected sites that the injection method cannot strike; plans do not draw them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Wave instructions executed with at least one site: selected, with a word of the target, and for
    /// per-lane words on at least one lane.
    pub hittable: u64,
    /// Wave instructions executed, selected or not.
    pub executed: u64,
    /// Size per primary group, for every executed group.
    pub groups: Vec<GroupFaultSpace>,
}

/// Part of a [`FaultSpace`] in one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFaultSpace {
    /// The primary group.
    pub group: Group,
    /// Number of sites.
    pub places: u64,
    /// Wave instructions with at least one site.
    pub hittable: u64,
    /// Wave instructions executed, selected or not.
    pub executed: u64,
}

/// One static instruction of a kernel and its part of a [`FaultSpace`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstructionFaultSpace {
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
    /// Source line, `file:line`, if the code object has line information.
    pub line: Option<String>,
    /// Executions by waves.
    pub executions: u64,
    /// Executions with at least one site.
    pub hittable: u64,
    /// Number of sites of all executions.
    pub places: u64,
    /// Number of sites that the injection method cannot strike.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Number of sites that are known to be masked, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownPlaces>,
}

/// Sites in values that nothing reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPlaces {
    /// Sites in values that are overwritten.
    pub overwritten: u64,
    /// Sites in values that are dead when their wave ends.
    pub dead: u64,
}

impl KnownPlaces {
    /// Adds counts.
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

impl FaultSpace {
    /// Sums the counts of static instructions.
    pub(crate) fn of(instructions: &[InstructionFaultSpace]) -> FaultSpace {
        let mut groups = BTreeMap::new();
        for instruction in instructions {
            let group = instruction.group;
            let sum = groups.entry(group).or_insert(GroupFaultSpace {
                group,
                places: 0,
                hittable: 0,
                executed: 0,
            });
            sum.places += instruction.places;
            sum.executed += instruction.executions;
            sum.hittable += instruction.hittable;
        }
        let groups: Vec<GroupFaultSpace> = groups.into_values().collect();
        FaultSpace {
            places: groups.iter().map(|group| group.places).sum(),
            left_out: instructions.iter().map(|instruction| instruction.left_out).sum(),
            hittable: groups.iter().map(|group| group.hittable).sum(),
            executed: groups.iter().map(|group| group.executed).sum(),
            groups,
        }
    }
}

impl FaultSpace {
    /// Fraction of the selected sites that plans do not draw.
    pub fn share_left_out(&self) -> f64 {
        match self.left_out {
            0 => 0.0,
            left_out => left_out as f64 / (left_out as f64 + self.places as f64),
        }
    }

    /// Adds sites of a group that do not belong to one instruction.
    pub(crate) fn add_places(&mut self, group: Group, places: u64) {
        self.places += places;
        if let Some(sum) = self.groups.iter_mut().find(|sum| sum.group == group) {
            sum.places += places;
        }
    }
}

impl fmt::Display for FaultSpace {
    /// Writes a table with one line per group and the sum in the last line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<8} {:>16} {:>16} {:>20}", "group", "executed", "hittable", "places")?;
        for group in &self.groups {
            let GroupFaultSpace { group, places, hittable, executed } = group;
            writeln!(f, "{group:<8} {executed:>16} {hittable:>16} {places:>20}")?;
        }
        let FaultSpace { places, hittable, executed, .. } = self;
        write!(f, "{:<8} {executed:>16} {hittable:>16} {places:>20}", "sum")
    }
}

/// Error returned for an empty fault space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing to inject into: {fault} has no site in this workload with {selection}, {reason}")]
pub struct EmptyFaultSpace {
    /// The fault, as text.
    pub fault: String,
    /// The selection, as text.
    pub selection: String,
    /// The reason.
    pub reason: String,
}
