//! Fidelity of the embedded GPU in the common terms.

use crate::fidelity::{Doubt, DoubtfulDecision, Fidelity, OperationFidelity};
use crate::translate::coverage::Treatment;
use flipwave_machine::Exactness;

/// The exactness of an operation.
fn exactness(treatment: Treatment) -> Exactness {
    match treatment {
        Treatment::Exact => Exactness::Exact,
        Treatment::Within(_) => Exactness::WithinError(treatment.to_string()),
        // The others end the run.
        Treatment::Unsettled(_) | Treatment::NotCompute(_) | Treatment::Gap(_) => {
            Exactness::NotSettled(treatment.to_string())
        }
    }
}

impl From<OperationFidelity> for flipwave_machine::OperationFidelity {
    fn from(found: OperationFidelity) -> Self {
        let OperationFidelity { operation, treatment, executions } = found;
        Self { operation, exactness: exactness(treatment), executions }
    }
}

impl From<DoubtfulDecision> for flipwave_machine::DoubtfulDecision {
    fn from(found: DoubtfulDecision) -> Self {
        Self {
            doubt: match found.doubt {
                Doubt::NotSettled => flipwave_machine::Doubt::NotSettled,
                Doubt::WithinError => flipwave_machine::Doubt::WithinError,
            },
            kernel: found.kernel,
            module: found.module,
            pc: found.pc,
            text: found.text,
            line: found.line,
            decides: found.purpose.to_string(),
            registers: found.registers.iter().map(ToString::to_string).collect(),
            wave: found.wave,
            count: found.count,
        }
    }
}

impl From<Fidelity> for flipwave_machine::Fidelity {
    fn from(fidelity: Fidelity) -> Self {
        Self {
            operations: fidelity.operations.into_iter().map(Into::into).collect(),
            decisions: fidelity.decisions.into_iter().map(Into::into).collect(),
        }
    }
}
