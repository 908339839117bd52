//! Exactness of executed operations. Decisions that depend on approximations are not tracked.

use crate::program::Program;
use flipwave_machine::{Exactness, Fidelity, FidelityCheck, OperationFidelity};
use std::any::Any;
use std::collections::BTreeMap;
use std::mem;

/// Executions by operation.
#[derive(Default)]
pub(super) struct Executions {
    /// Counts of dispatches that have ended.
    known: BTreeMap<&'static str, (Exactness, u64)>,
    /// Counts of the current dispatch.
    current: BTreeMap<&'static str, (Exactness, u64)>,
}

impl Executions {
    /// Begins a dispatch.
    pub fn begin(&mut self) {
        for (name, (exactness, count)) in mem::take(&mut self.current) {
            self.known.entry(name).or_insert((exactness, 0)).1 += count;
        }
    }

    /// Counts an execution of the instruction with a number.
    pub fn count(&mut self, program: &Program, number: usize) {
        let name = program.steps[number].inst.operation().name();
        let new = || (program.exactness(number).clone(), 0);
        self.current.entry(name).or_insert_with(new).1 += 1;
    }

    /// Takes the counts.
    pub fn take(&mut self) -> Fidelity {
        self.begin();
        let known = mem::take(&mut self.known).into_iter();
        let operations = known.map(|(name, (exactness, executions))| OperationFidelity {
            operation: name.to_owned(),
            exactness,
            executions,
        });
        let mut operations: Vec<OperationFidelity> = operations.collect();
        operations.sort_by_key(|found| std::cmp::Reverse(found.exactness.doubt()));
        Fidelity { operations, decisions: Vec::new() }
    }
}

impl FidelityCheck for Executions {
    fn only_count(&mut self) {}

    fn forget(&mut self) {
        self.current.clear();
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
