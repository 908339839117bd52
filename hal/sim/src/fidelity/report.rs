//! Report of the fidelity of a run.

use super::executions::Instruction;
use crate::shadow::{Decision, Purpose};
use crate::translate::coverage::Treatment;
use flipwave_device::{ModuleId, WaveId};
use flipwave_isa::{Pc, RegisterRange};
use flipwave_machine::{Doubt, DoubtfulDecision, Exactness, Fidelity, OperationFidelity};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

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
                decides: purpose.to_string(),
                registers: registers().iter().map(ToString::to_string).collect(),
                wave: None,
                count: 0,
            });
            self.decisions.len() - 1
        });
        &mut self.decisions[index]
    }

    /// Returns the complete report.
    pub fn into_fidelity(self) -> Fidelity {
        let mut operations: Vec<(String, (Treatment, u64))> = self.operations.into_iter().collect();
        operations.sort_by_key(|(_, (treatment, _))| Reverse(rank(treatment)));
        let fidelity = |(operation, (treatment, executions))| {
            Some(OperationFidelity { operation, exactness: exactness(treatment)?, executions })
        };
        let operations = operations.into_iter().filter_map(fidelity).collect();
        let mut decisions = self.decisions;
        decisions.sort_by_key(|decision| decision.doubt);
        Fidelity { operations, decisions }
    }
}

/// Exactness of an operation; `None` for treatments that end a dispatch.
fn exactness(treatment: Treatment) -> Option<Exactness> {
    match treatment {
        Treatment::Exact => Some(Exactness::Exact),
        Treatment::Within(_) => Some(Exactness::WithinError(treatment.to_string())),
        Treatment::Unsettled(_) => Some(Exactness::NotSettled(treatment.to_string())),
        Treatment::NotCompute(_) | Treatment::Unspecified(_) | Treatment::Gap(_) => None,
    }
}

/// Ranks treatments by uncertainty.
fn rank(treatment: &Treatment) -> u8 {
    match treatment {
        Treatment::Exact => 0,
        Treatment::Within(_) => 1,
        Treatment::Unsettled(_) => 2,
        Treatment::NotCompute(_) | Treatment::Unspecified(_) | Treatment::Gap(_) => 3,
    }
}
