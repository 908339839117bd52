//! How exact a run is executed, for files, tables and other processes: which operations are exact,
//! and what results decide that no document settles, or that are within an error.

mod exactness;
mod line;

pub use exactness::{Exactness, NoExactness};

use flipwave_sim::{Doubt, DoubtfulDecision, Fidelity, OperationFidelity};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// The fidelity of a run, as `run.json` has it. As text it is one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FidelityRecord {
    /// Wave instructions executed, by how exact they are. One that consists of two operations counts
    /// twice.
    pub executions: FidelityCounts,
    /// The operations executed, the least certain ones first, then in the order of their names.
    pub operations: Vec<OperationRecord>,
    /// What results that are not settled decide, in the order in which it was met, and what results
    /// within an error may decide.
    pub decisions: Vec<DecisionRecord>,
}

/// Numbers by how exact something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FidelityCounts {
    /// The bits that the ISA defines.
    pub exact: u64,
    /// Within an error that is stated.
    pub within_error: u64,
    /// No document settles all bits.
    pub not_settled: u64,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRecord {
    /// Its name.
    pub operation: String,
    /// How often waves executed it.
    pub executions: u64,
    /// How exact it is.
    pub fidelity: Exactness,
}

/// Why results are in doubt, as files have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DoubtRecord {
    /// No document settles all bits.
    #[serde(rename = "not settled")]
    NotSettled,
    /// They are within an error that is stated.
    #[serde(rename = "within a stated error")]
    WithinError,
}

/// An instruction that results in doubt decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Why they are in doubt.
    pub fidelity: DoubtRecord,
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

impl FidelityRecord {
    /// The record of what was found.
    pub fn of(fidelity: &Fidelity) -> FidelityRecord {
        let operations: Vec<_> = fidelity.operations.iter().map(operation).collect();
        FidelityRecord {
            executions: FidelityCounts::of(&operations),
            operations,
            decisions: fidelity.decisions.iter().map(decision).collect(),
        }
    }

    /// Adds what else was found: in another dispatch, on another GPU, in another process.
    pub fn add(&mut self, other: FidelityRecord) {
        for new in other.operations {
            let mut known = self.operations.iter_mut();
            match known.find(|own| own.operation == new.operation) {
                Some(own) => own.add(new),
                None => self.operations.push(new),
            }
        }
        self.operations.sort_by(|a, b| a.order().cmp(&b.order()));
        self.executions = FidelityCounts::of(&self.operations);
        for new in other.decisions {
            match self.decisions.iter_mut().find(|own| own.identity() == new.identity()) {
                Some(own) => own.times += new.times,
                None => self.decisions.push(new),
            }
        }
        self.decisions.sort_by_key(|own| own.fidelity);
    }
}

impl FidelityCounts {
    fn of(operations: &[OperationRecord]) -> FidelityCounts {
        let mut counts = FidelityCounts::default();
        for own in operations {
            let count = match own.fidelity {
                Exactness::Exact => &mut counts.exact,
                Exactness::WithinError(_) => &mut counts.within_error,
                Exactness::NotSettled(_) => &mut counts.not_settled,
            };
            *count += own.executions;
        }
        counts
    }
}

impl OperationRecord {
    /// Adds more executions. The same operation may be more exact in one encoding than in another.
    fn add(&mut self, other: OperationRecord) {
        self.executions += other.executions;
        if other.fidelity.doubt() > self.fidelity.doubt() {
            self.fidelity = other.fidelity;
        }
    }

    /// Where it is in a record.
    fn order(&self) -> (Reverse<u8>, &str) {
        (Reverse(self.fidelity.doubt()), &self.operation)
    }
}

impl DecisionRecord {
    /// What is counted as one: the same instruction of a kernel, of which the same is decided.
    fn identity(&self) -> (DoubtRecord, [&str; 4]) {
        (self.fidelity, [&self.kernel, &self.pc, &self.instruction, &self.decides])
    }
}

fn operation(own: &OperationFidelity) -> OperationRecord {
    OperationRecord {
        operation: own.operation.clone(),
        executions: own.executions,
        fidelity: own.treatment.into(),
    }
}

fn decision(own: &DoubtfulDecision) -> DecisionRecord {
    DecisionRecord {
        fidelity: match own.doubt {
            Doubt::NotSettled => DoubtRecord::NotSettled,
            Doubt::WithinError => DoubtRecord::WithinError,
        },
        kernel: own.kernel.clone(),
        pc: own.pc.to_string(),
        line: own.line.as_ref().map(|line| format!("{}:{}", line.file, line.line)),
        instruction: own.text.split_whitespace().collect::<Vec<_>>().join(" "),
        registers: own.registers.iter().map(ToString::to_string).collect(),
        decides: own.purpose.to_string(),
        times: own.count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of operations with their executions and words, and of decisions with the kernel,
    /// the address and how often.
    fn record(operations: &[(&str, u64, &str)], decisions: &[(&str, &str, u64)]) -> FidelityRecord {
        let operation = |own: &(&str, u64, &str)| OperationRecord {
            operation: own.0.to_owned(),
            executions: own.1,
            fidelity: Exactness::try_from(own.2.to_owned()).expect("a word"),
        };
        let decision = |own: &(&str, &str, u64)| DecisionRecord {
            fidelity: DoubtRecord::NotSettled,
            kernel: own.0.to_owned(),
            pc: own.1.to_owned(),
            line: None,
            instruction: "s_cbranch_scc1 4".to_owned(),
            registers: vec!["scc".to_owned()],
            decides: "decides a branch".to_owned(),
            times: own.2,
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
    fn a_record_is_the_same_after_its_way_through_a_file() {
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
        let other = text.replace("within 1 ULP", "roughly");
        let error = serde_json::from_str::<FidelityRecord>(&other).expect_err("no such word");
        assert!(error.to_string().contains("`roughly` is not how exact"), "{error}");
    }
}
