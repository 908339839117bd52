//! Size of the fault space that a campaign samples from.

use super::Group;
use flipwave_arch::Pc;
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
    pub sites: u64,
    /// Number of selected sites that the injection method cannot strike; plans do not draw them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Wave instructions executed with at least one site: selected, with a word of the target, and for
    /// per-lane words on at least one lane.
    pub eligible: u64,
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
    pub sites: u64,
    /// Wave instructions with at least one site.
    pub eligible: u64,
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
    pub eligible: u64,
    /// Number of sites of all executions.
    pub sites: u64,
    /// Number of sites that the injection method cannot strike.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Number of sites that are known to be masked, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<MaskedSites>,
}

/// Sites in values that nothing reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedSites {
    /// Sites in values that are overwritten.
    pub overwritten: u64,
    /// Sites in values that are dead when their wave ends.
    pub dead: u64,
}

impl MaskedSites {
    /// Adds counts.
    pub(crate) fn add(&mut self, other: MaskedSites) {
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
                sites: 0,
                eligible: 0,
                executed: 0,
            });
            sum.sites += instruction.sites;
            sum.executed += instruction.executions;
            sum.eligible += instruction.eligible;
        }
        let groups: Vec<GroupFaultSpace> = groups.into_values().collect();
        FaultSpace {
            sites: groups.iter().map(|group| group.sites).sum(),
            left_out: instructions.iter().map(|instruction| instruction.left_out).sum(),
            eligible: groups.iter().map(|group| group.eligible).sum(),
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
            left_out => left_out as f64 / (left_out as f64 + self.sites as f64),
        }
    }

    /// Adds sites of a group that do not belong to one instruction.
    pub(crate) fn add_sites(&mut self, group: Group, sites: u64) {
        self.sites += sites;
        if let Some(sum) = self.groups.iter_mut().find(|sum| sum.group == group) {
            sum.sites += sites;
        }
    }
}

impl fmt::Display for FaultSpace {
    /// Writes a table with one line per group and the sum in the last line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<8} {:>16} {:>16} {:>20}", "group", "executed", "eligible", "sites")?;
        for group in &self.groups {
            let GroupFaultSpace { group, sites, eligible, executed } = group;
            writeln!(f, "{group:<8} {executed:>16} {eligible:>16} {sites:>20}")?;
        }
        let FaultSpace { sites, eligible, executed, .. } = self;
        write!(f, "{:<8} {executed:>16} {eligible:>16} {sites:>20}", "sum")
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
