//! What is found of the fidelity of a run.

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
    /// The operations executed: those that are not settled first, then those with an error; in the
    /// order of their names.
    pub operations: Vec<OperationFidelity>,
    /// What results that are not settled decided, in the order in which it was met; then what results
    /// within an error may have decided, by kernel and address.
    pub decisions: Vec<DoubtfulDecision>,
}

/// How exact an operation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationFidelity {
    /// Its name.
    pub operation: String,
    /// How it is executed.
    pub treatment: Treatment,
    /// How often waves executed it.
    pub executions: u64,
}

/// What values decide that come from results in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoubtfulDecision {
    /// Why the results are in doubt.
    pub doubt: Doubt,
    /// The kernel of the dispatch that met it first.
    pub kernel: String,
    /// The code object of the instruction.
    pub module: ModuleId,
    /// Its ELF virtual address.
    pub pc: Pc,
    /// As the assembler prints it.
    pub text: String,
    /// Its source line, where the code object has line tables.
    pub line: Option<SourceLine>,
    /// What is decided.
    pub purpose: Purpose,
    /// The registers that hold the values, the first time.
    pub registers: Vec<RegisterRange>,
    /// The wave that met it first; `None` where all executions of the instruction count.
    pub wave: Option<WaveId>,
    /// How often it was met.
    pub count: u64,
}

/// What is found, as it is found.
#[derive(Default)]
pub struct Findings {
    operations: BTreeMap<String, (Treatment, u64)>,
    decisions: Vec<DoubtfulDecision>,
    /// The index of each decision.
    known: FxHashMap<(ModuleId, Pc, Purpose, Doubt), usize>,
}

impl Findings {
    /// Adds what a dispatch executed.
    pub fn count(&mut self, executions: impl Iterator<Item = (Arc<Instruction>, u64)>) {
        for (instruction, count) in executions {
            for (name, treatment) in &instruction.operations {
                let known = self.operations.get_mut(name);
                match known {
                    // The same operation may be more exact in one encoding than in another.
                    Some((own, executions)) => {
                        *executions += count;
                        *own = if rank(treatment) > rank(own) { *treatment } else { *own };
                    }
                    None => _ = self.operations.insert(name.clone(), (*treatment, count)),
                }
            }
        }
    }

    /// Adds what an instruction decided by results that are not settled.
    pub fn decide(
        &mut self,
        kernel: &str,
        instruction: &Instruction,
        wave: WaveId,
        decision: Decision,
    ) {
        let Decision { registers, purpose, .. } = decision;
        let own = self.decision(kernel, instruction, Doubt::NotSettled, purpose, || registers);
        own.wave.get_or_insert(wave);
        own.count += 1;
    }

    /// Adds executions of an instruction in which results within an error may have decided something.
    pub fn may_have_decided(
        &mut self,
        kernel: &str,
        instruction: &Instruction,
        executions: u64,
        purpose: Purpose,
        registers: &[RegisterRange],
    ) {
        let registers = || registers.to_vec();
        let own = self.decision(kernel, instruction, Doubt::WithinError, purpose, registers);
        own.count += executions;
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

    /// All of it.
    pub fn into_fidelity(self) -> Fidelity {
        let operations = self.operations.into_iter().filter(|(_, (own, _))| rank(own) < FAULT);
        let mut operations: Vec<OperationFidelity> = operations
            .map(|(operation, (treatment, executions))| OperationFidelity {
                operation,
                treatment,
                executions,
            })
            .collect();
        operations.sort_by_key(|own| Reverse(rank(&own.treatment)));
        let mut decisions = self.decisions;
        decisions.sort_by_key(|own| own.doubt);
        Fidelity { operations, decisions }
    }
}

/// What ends a dispatch in place of being executed.
const FAULT: u8 = 3;

/// Treatments by how little is certain.
fn rank(treatment: &Treatment) -> u8 {
    match treatment {
        Treatment::Exact => 0,
        Treatment::Within(_) => 1,
        Treatment::Unsettled(_) => 2,
        Treatment::NotCompute(_) | Treatment::Gap(_) => FAULT,
    }
}
