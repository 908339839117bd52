//! Report of the fidelity of a run.

use super::course::Doubt;
use super::executions::Instruction;
use crate::shadow::{Decision, Purpose};
use crate::translate::coverage::Treatment;
use flipwave_codeobj::SourceLine;
use flipwave_device::{ModuleId, WaveId};
use flipwave_isa::{Pc, RegisterRange};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The fidelity of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fidelity {
    /// Executed operations: unsettled ones first, then those with an error; within these by name.
    pub operations: Vec<OperationFidelity>,
    /// Decisions by unsettled results, in order of occurrence; then decisions that results within
    /// an error may have affected, by kernel and address.
    pub decisions: Vec<DoubtfulDecision>,
}

/// Exactness of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationFidelity {
    /// Name of the operation.
    pub operation: String,
    /// Treatment by the simulator.
    pub treatment: Treatment,
    /// Number of wave executions.
    pub executions: u64,
}

/// A decision that depends on doubtful results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoubtfulDecision {
    /// Reason why the results are in doubt.
    pub doubt: Doubt,
    /// Kernel of the first dispatch with this decision.
    pub kernel: String,
    /// Code object of the instruction.
    pub module: ModuleId,
    /// ELF virtual address.
    pub pc: Pc,
    /// Assembly text.
    pub text: String,
    /// Source line, if the code object has line tables.
    pub line: Option<SourceLine>,
    /// Kind of decision.
    pub purpose: Purpose,
    /// Registers that held the values at the first occurrence.
    pub registers: Vec<RegisterRange>,
    /// First wave with this decision; `None` if all executions of the instruction count.
    pub wave: Option<WaveId>,
    /// Number of occurrences.
    pub count: u64,
}

/// Findings in the order of occurrence.
#[derive(Default)]
pub struct Findings {
    operations: BTreeMap<String, (Treatment, u64)>,
    decisions: Vec<DoubtfulDecision>,
    /// Index of each decision.
    known: FxHashMap<(ModuleId, Pc, Purpose, Doubt), usize>,
}

impl Findings {
    /// Adds the executions of a dispatch.
    pub fn count(&mut self, executions: impl Iterator<Item = (Arc<Instruction>, u64)>) {
        for (instruction, count) in executions {
            for (name, treatment) in &instruction.operations {
                let known = self.operations.get_mut(name);
                match known {
                    // An operation may be more exact in one encoding than in another.
                    Some((worst, executions)) => {
                        *executions += count;
                        *worst = if rank(treatment) > rank(worst) { *treatment } else { *worst };
                    }
                    None => _ = self.operations.insert(name.clone(), (*treatment, count)),
                }
            }
        }
    }

    /// Adds a decision of an instruction by unsettled results.
    pub fn decide(
        &mut self,
        kernel: &str,
        instruction: &Instruction,
        wave: WaveId,
        decision: Decision,
    ) {
        let Decision { registers, purpose, .. } = decision;
        let decision = self.decision(kernel, instruction, Doubt::NotSettled, purpose, || registers);
        decision.wave.get_or_insert(wave);
        decision.count += 1;
    }

    /// Adds executions of an instruction in which results within an error may have affected a
    /// decision.
    pub fn may_have_decided(
        &mut self,
        kernel: &str,
        instruction: &Instruction,
        executions: u64,
        purpose: Purpose,
        registers: &[RegisterRange],
    ) {
        let registers = || registers.to_vec();
        let decision = self.decision(kernel, instruction, Doubt::WithinError, purpose, registers);
        decision.count += executions;
    }

    fn decision(
        &mut self,
        kernel: &str,
        instruction: &Instruction,
        doubt: Doubt,
        purpose: Purpose,
        registers: impl FnOnce() -> Vec<RegisterRange>,
    ) -> &mut DoubtfulDecision {
        let Instruction { module, pc, .. } = *instruction;
        let index = *self.known.entry((module, pc, purpose, doubt)).or_insert_with(|| {
            self.decisions.push(DoubtfulDecision {
                doubt,
                kernel: kernel.to_owned(),
                module,
                pc,
                text: instruction.text.clone(),
                line: None,
                purpose,
                registers: registers(),
                wave: None,
                count: 0,
            });
            self.decisions.len() - 1
        });
        &mut self.decisions[index]
    }

    /// Returns the complete report.
    pub fn into_fidelity(self) -> Fidelity {
        let operations =
            self.operations.into_iter().filter(|(_, (treatment, _))| rank(treatment) < FAULT);
        let mut operations: Vec<OperationFidelity> = operations
            .map(|(operation, (treatment, executions))| OperationFidelity {
                operation,
                treatment,
                executions,
            })
            .collect();
        operations.sort_by_key(|operation| Reverse(rank(&operation.treatment)));
        let mut decisions = self.decisions;
        decisions.sort_by_key(|decision| decision.doubt);
        Fidelity { operations, decisions }
    }
}

/// Rank of treatments that end a dispatch.
const FAULT: u8 = 3;

/// Ranks treatments by uncertainty.
fn rank(treatment: &Treatment) -> u8 {
    match treatment {
        Treatment::Exact => 0,
        Treatment::Within(_) => 1,
        Treatment::Unsettled(_) => 2,
        Treatment::NotCompute(_) | Treatment::Gap(_) => FAULT,
    }
}
