//! Exactness of executed operations. Decisions that depend on approximations are not tracked.

use crate::program::Program;
use flipwave_machine::{Exactness, Fidelity, FidelityCheck, OperationFidelity};
use std::any::Any;
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

/// Executions by operation.
#[derive(Default)]
pub(super) struct Executions {
    /// Counts of dispatches that have ended.
    known: BTreeMap<&'static str, (Exactness, u64)>,
    /// The program of the current dispatch, and its counts by instruction.
    current: Option<(Arc<Program>, Vec<u64>)>,
}

impl Executions {
    /// Begins a dispatch.
    pub fn begin(&mut self) {
        let Some((program, counts)) = self.current.take() else { return };
        for (number, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let name = program.steps[number].inst.operation().name();
            let new = || (program.exactness(number).clone(), 0);
            self.known.entry(name).or_insert_with(new).1 += count;
        }
    }

    /// Continues a dispatch of a program.
    pub fn enter(&mut self, program: &Arc<Program>) {
        if !matches!(&self.current, Some((known, _)) if Arc::ptr_eq(known, program)) {
            self.begin();
            self.current = Some((Arc::clone(program), vec![0; program.steps.len()]));
        }
    }

    /// Counts an execution of the instruction with a number in the program that was entered.
    pub fn count(&mut self, number: usize) {
        if let Some((_, counts)) = &mut self.current {
            counts[number] += 1;
        }
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
        self.current = None;
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
