//! Fidelity of a run, for files, tables and other processes: the exactness of operations, and the
//! decisions that depend on results that are not settled or only within an error.

mod line;

use flipwave_machine::{Doubt, DoubtfulDecision, Exactness, Fidelity, OperationFidelity};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// The fidelity of a run, as stored in `run.json`. Its text form is one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FidelityRecord {
    /// Wave instructions executed, by exactness. An instruction that consists of two operations counts
    /// twice.
    pub executions: FidelityCounts,
    /// Executed operations, the least certain first, then by name.
    pub operations: Vec<OperationRecord>,
    /// Decisions that depend on results that are not settled, in the order of their first occurrence,
    /// and decisions that may depend on results within an error.
    pub decisions: Vec<DecisionRecord>,
}

/// Counts by exactness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FidelityCounts {
    /// Exactly the bits that the ISA defines.
    pub exact: u64,
    /// Within a stated error.
    pub within_error: u64,
    /// Not defined completely by any document.
    pub not_settled: u64,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRecord {
    /// Name of the operation.
    pub operation: String,
    /// Executions by waves.
    pub executions: u64,
    /// Exactness of the operation.
    pub fidelity: Exactness,
}

/// Reason why results are in doubt, as in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DoubtRecord {
    /// Not defined completely by any document.
    #[serde(rename = "not settled")]
    NotSettled,
    /// The results are within a stated error.
    #[serde(rename = "within a stated error")]
    WithinError,
}

/// An instruction whose behaviour depends on results in doubt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// The reason for the doubt.
    pub fidelity: DoubtRecord,
    /// The kernel in which the decision occurred first.
    pub kernel: String,
    /// Address in the code object.
    pub pc: String,
    /// Source line, if the code has line information.
    pub line: Option<String>,
    /// The instruction.
    pub instruction: String,
    /// The registers with the results, at the first occurrence.
    pub registers: Vec<String>,
    /// The decision: `is used as an address`, `decides a branch` and the like.
    pub decides: String,
    /// Number of occurrences.
    pub times: u64,
}

impl FidelityRecord {
    /// Converts the findings of a run.
    pub fn of(fidelity: &Fidelity) -> FidelityRecord {
        let operations: Vec<_> = fidelity.operations.iter().map(operation).collect();
        FidelityRecord {
            executions: FidelityCounts::of(&operations),
            operations,
            decisions: fidelity.decisions.iter().map(decision).collect(),
        }
    }

    /// Adds the record of another dispatch, GPU or process.
    pub fn add(&mut self, other: FidelityRecord) {
        for new in other.operations {
            let mut known = self.operations.iter_mut();
            match known.find(|operation| operation.operation == new.operation) {
                Some(operation) => operation.add(new),
                None => self.operations.push(new),
            }
        }
        self.operations.sort_by(|a, b| a.order().cmp(&b.order()));
        self.executions = FidelityCounts::of(&self.operations);
        for new in other.decisions {
            match self.decisions.iter_mut().find(|decision| decision.identity() == new.identity()) {
                Some(decision) => decision.times += new.times,
                None => self.decisions.push(new),
            }
        }
        self.decisions.sort_by_key(|decision| decision.fidelity);
    }
}

impl FidelityCounts {
    fn of(operations: &[OperationRecord]) -> FidelityCounts {
        let mut counts = FidelityCounts::default();
        for operation in operations {
            let count = match operation.fidelity {
                Exactness::Exact => &mut counts.exact,
                Exactness::WithinError(_) => &mut counts.within_error,
                Exactness::NotSettled(_) => &mut counts.not_settled,
            };
            *count += operation.executions;
        }
        counts
    }
}

impl OperationRecord {
    /// Adds executions. An operation may be more exact in one encoding than in another; the least exact
    /// one is kept.
    fn add(&mut self, other: OperationRecord) {
        self.executions += other.executions;
        if other.fidelity.doubt() > self.fidelity.doubt() {
            self.fidelity = other.fidelity;
        }
    }

    /// Sort key in a record.
    fn order(&self) -> (Reverse<u8>, &str) {
        (Reverse(self.fidelity.doubt()), &self.operation)
    }
}

impl DecisionRecord {
    /// Identity of a decision: the instruction of a kernel, and the kind of decision.
    fn identity(&self) -> (DoubtRecord, [&str; 4]) {
        (self.fidelity, [&self.kernel, &self.pc, &self.instruction, &self.decides])
    }
}

fn operation(found: &OperationFidelity) -> OperationRecord {
    OperationRecord {
        operation: found.operation.clone(),
        executions: found.executions,
        fidelity: found.exactness.clone(),
    }
}

fn decision(found: &DoubtfulDecision) -> DecisionRecord {
    DecisionRecord {
        fidelity: match found.doubt {
            Doubt::NotSettled => DoubtRecord::NotSettled,
            Doubt::WithinError => DoubtRecord::WithinError,
        },
        kernel: found.kernel.clone(),
        pc: found.pc.to_string(),
        line: found.line.as_ref().map(|line| format!("{}:{}", line.file, line.line)),
        instruction: found.text.split_whitespace().collect::<Vec<_>>().join(" "),
        registers: found.registers.clone(),
        decides: found.decides.clone(),
        times: found.count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of operations (name, executions, exactness) and of decisions (kernel, address,
    /// occurrences).
    fn record(operations: &[(&str, u64, &str)], decisions: &[(&str, &str, u64)]) -> FidelityRecord {
        let operation = |entry: &(&str, u64, &str)| OperationRecord {
            operation: entry.0.to_owned(),
            executions: entry.1,
            fidelity: Exactness::try_from(entry.2.to_owned()).expect("a word"),
        };
        let decision = |entry: &(&str, &str, u64)| DecisionRecord {
            fidelity: DoubtRecord::NotSettled,
            kernel: entry.0.to_owned(),
            pc: entry.1.to_owned(),
            line: None,
            instruction: "s_cbranch_scc1 4".to_owned(),
            registers: vec!["scc".to_owned()],
            decides: "decides a branch".to_owned(),
            times: entry.2,
        };
        let operations: Vec<_> = operations.iter().map(operation).collect();
        FidelityRecord {
            executions: FidelityCounts::of(&operations),
            operations,
            decisions: decisions.iter().map(decision).collect(),
        }
    }

    #[test]
    fn records_add_up() {
        let mut all = FidelityRecord::default();
        assert_eq!(all.to_string(), "no operation was executed");
        let first = record(&[("v_rcp_f32", 2, "within 1 ULP"), ("a", 3, "exact")], &[]);
        all.add(first.clone());
        assert_eq!(all, first);
        all.add(record(
            &[("b", 5, "not settled: so"), ("v_rcp_f32", 4, "exact"), ("c", 1, "exact")],
            &[("k", "0x10", 1), ("k", "0x20", 1), ("other", "0x10", 1)],
        ));
        all.add(record(&[("a", 1, "not settled: or so")], &[("k", "0x20", 6)]));
        let expected = record(
            &[
                ("a", 4, "not settled: or so"),
                ("b", 5, "not settled: so"),
                ("v_rcp_f32", 6, "within 1 ULP"),
                ("c", 1, "exact"),
            ],
            &[("k", "0x10", 1), ("k", "0x20", 7), ("other", "0x10", 1)],
        );
        assert_eq!(all, expected);
        let counts = FidelityCounts { exact: 1, within_error: 6, not_settled: 9 };
        assert_eq!(all.executions, counts);
    }

    #[test]
    fn records_round_trip_through_json() {
        let operations = [("a", 3, "not settled: so"), ("b", 2, "within 1 ULP"), ("c", 1, "exact")];
        let all = record(&operations, &[("k", "0x10", 5)]);
        let text = serde_json::to_string(&all).expect("a text");
        let expected = concat!(
            r#"{"executions":{"exact":1,"within_error":2,"not_settled":3},"operations":["#,
            r#"{"operation":"a","executions":3,"fidelity":"not settled: so"},"#,
            r#"{"operation":"b","executions":2,"fidelity":"within 1 ULP"},"#,
            r#"{"operation":"c","executions":1,"fidelity":"exact"}],"decisions":["#,
            r#"{"fidelity":"not settled","kernel":"k","pc":"0x10","line":null,"instruction":"s_cbranch_scc1 4","#,
            r#""registers":["scc"],"decides":"decides a branch","times":5}]}"#,
        );
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<FidelityRecord>(&text).expect("the record"), all);
        let invalid = text.replace("within 1 ULP", "roughly");
        let error = serde_json::from_str::<FidelityRecord>(&invalid).expect_err("no such word");
        assert!(error.to_string().contains("`roughly` is not an exactness"), "{error}");
    }
}
