//! How exact a campaign's program is executed: which operations are exact, and what results that no
//! document settles decide.

use crate::campaign::Campaign;
use crate::error::CampaignError;
use crate::program::prepare_emulated;
use flipwave_sim::{Fidelity, OperationFidelity, Treatment, UnsettledDecision};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The fidelity of a run, as `run.json` has it. As text it is one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FidelityRecord {
    /// Wave instructions executed, by how exact they are. One that consists of two operations counts
    /// twice.
    pub executions: FidelityCounts,
    /// The operations executed, the least certain ones first.
    pub operations: Vec<OperationRecord>,
    /// What results that are not settled decide.
    pub decisions: Vec<DecisionRecord>,
}

/// Numbers by how exact something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FidelityCounts {
    /// The bits that the ISA defines.
    pub exact: u64,
    /// Within an error that is stated.
    pub within_error: u64,
    /// No document settles all bits.
    pub not_settled: u64,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperationRecord {
    /// Its name.
    pub operation: String,
    /// How often waves executed it.
    pub executions: u64,
    /// How exact it is: `exact`, `within 1 ULP`, `not settled: ` and what is done.
    pub fidelity: String,
    /// The same as a type.
    #[serde(skip)]
    pub treatment: Treatment,
}

/// An instruction that results decide which are not settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionRecord {
    /// The kernel that met it first.
    pub kernel: String,
    /// Its address in the code object.
    pub pc: String,
    /// Its source line, where the code says it.
    pub line: Option<String>,
    /// The instruction.
    pub instruction: String,
    /// The registers with the results, the first time.
    pub registers: Vec<String>,
    /// What they decide: `is used as an address`, `decides a branch` and the like.
    pub decides: String,
    /// How often.
    pub times: u64,
}

/// Runs a campaign's program once without faults, and reports how exact it is executed.
///
/// # Errors
/// [`CampaignError`] if the program cannot be put together or does not complete.
pub fn fidelity(campaign: &Campaign) -> Result<FidelityRecord, CampaignError> {
    let run = prepare_emulated(campaign)?.workload.golden_with_fidelity();
    let (_, fidelity) = campaign.unless_stopped(run.map_err(Into::into))?;
    Ok(FidelityRecord::of(&fidelity))
}

impl FidelityRecord {
    pub(crate) fn of(fidelity: &Fidelity) -> FidelityRecord {
        let mut executions = FidelityCounts::default();
        for own in &fidelity.operations {
            *executions.of(own.treatment) += own.executions;
        }
        FidelityRecord {
            executions,
            operations: fidelity.operations.iter().map(operation).collect(),
            decisions: fidelity.decisions.iter().map(decision).collect(),
        }
    }

    /// The names of operations that are treated so.
    fn named(&self, is_so: fn(&Treatment) -> bool) -> Vec<&str> {
        let own = self.operations.iter().filter(|own| is_so(&own.treatment));
        own.map(|own| own.operation.as_str()).collect()
    }
}

impl FidelityCounts {
    fn of(&mut self, treatment: Treatment) -> &mut u64 {
        match treatment {
            Treatment::Exact => &mut self.exact,
            Treatment::Within(_) => &mut self.within_error,
            // The others end the run.
            Treatment::Unsettled(_) | Treatment::NotCompute(_) | Treatment::Gap(_) => {
                &mut self.not_settled
            }
        }
    }
}

fn operation(own: &OperationFidelity) -> OperationRecord {
    OperationRecord {
        operation: own.operation.clone(),
        executions: own.executions,
        fidelity: own.treatment.to_string(),
        treatment: own.treatment,
    }
}

fn decision(own: &UnsettledDecision) -> DecisionRecord {
    DecisionRecord {
        kernel: own.kernel.clone(),
        pc: own.pc.to_string(),
        line: own.line.as_ref().map(|line| format!("{}:{}", line.file, line.line)),
        instruction: own.text.split_whitespace().collect::<Vec<_>>().join(" "),
        registers: own.registers.iter().map(ToString::to_string).collect(),
        decides: own.purpose.to_string(),
        times: own.count,
    }
}

/// Most names that a line has.
const MOST_NAMES: usize = 4;

fn names(names: &[&str]) -> String {
    let (first, rest) = names.split_at(names.len().min(MOST_NAMES));
    match rest.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

impl fmt::Display for FidelityRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.operations.len();
        let within = self.named(|own| matches!(own, Treatment::Within(_)));
        let unsettled = self.named(|own| matches!(own, Treatment::Unsettled(_)));
        let exact = all - within.len() - unsettled.len();
        if exact == all {
            return write!(f, "all {all} operations executed are exact");
        }
        write!(f, "{exact} of {all} operations executed are exact")?;
        if !within.is_empty() {
            write!(f, ", {} within a stated error ({})", within.len(), names(&within))?;
        }
        if unsettled.is_empty() {
            return Ok(());
        }
        write!(f, ", {} not settled ({}), ", unsettled.len(), names(&unsettled))?;
        let mut decided: BTreeMap<&str, usize> = BTreeMap::new();
        self.decisions.iter().for_each(|own| *decided.entry(&own.decides).or_default() += 1);
        if decided.is_empty() {
            return f.write_str("whose results decide no address, branch or active lanes");
        }
        let decided = decided.iter().map(|(decides, count)| match count {
            1 => format!("{decides} at 1 instruction"),
            count => format!("{decides} at {count} instructions"),
        });
        write!(f, "a result of which {}", decided.collect::<Vec<_>>().join(", "))
    }
}
