//! Finds results that need not be compared, because all of their readers are duplicated.
//!
//! If every reader of a result within its basic block is duplicated and the copies of the readers read the
//! result's shadow, then a fault in the result makes the results of a reader and its copy differ. Comparing
//! those is sufficient.

use super::program::Program;
use flipwave_arch::{Instruction as _, RegisterId};
use flipwave_ptx::{Code, ControlFlow, FunctionCode, Inst, Register, Slot};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

/// Registers that are read after each block before they are written.
pub struct Liveness {
    after: Vec<HashSet<RegisterId>>,
}

impl Liveness {
    /// The liveness in a function.
    pub fn of(code: &Code, function: &FunctionCode, flow: &ControlFlow) -> Liveness {
        let returned: HashSet<RegisterId> = function
            .results
            .iter()
            .filter_map(|slot| match slot {
                Slot::Register(register) => Some(*register),
                Slot::Memory { .. } => None,
            })
            .flat_map(Register::iter)
            .collect();
        let mut before: Vec<HashSet<RegisterId>> = vec![HashSet::new(); flow.blocks.len()];
        let after = |before: &[HashSet<RegisterId>], number: usize| {
            let block = &flow.blocks[number];
            let mut live = if block.leaves { returned.clone() } else { HashSet::new() };
            for successor in &block.successors {
                live.extend(before[*successor].iter().copied());
            }
            live
        };
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for number in (0..flow.blocks.len()).rev() {
                let mut live = after(&before, number);
                for inst in code.instructions[flow.blocks[number].instructions.clone()].iter().rev()
                {
                    if !inst.overwrites_some_lanes() {
                        inst.for_each_written(&mut |register| _ = live.remove(&register));
                    }
                    inst.for_each_read(&mut |register| _ = live.insert(register));
                }
                has_changed |= live.len() > before[number].len();
                before[number] = live;
            }
        }
        Liveness { after: (0..flow.blocks.len()).map(|number| after(&before, number)).collect() }
    }
}

/// A basic block.
pub struct Block<'a> {
    pub program: &'a Program,
    /// Number of the function.
    pub function: usize,
    /// Number in the function.
    pub number: usize,
    pub instructions: Range<usize>,
}

impl Block<'_> {
    /// The readers of the result of an instruction. Returns `None` if there are no readers, or if the result may
    /// be read by an instruction for which `is_copied` returns `false` or whose copy cannot read the shadow.
    pub fn readers(
        &self,
        number: usize,
        is_copied: &dyn Fn(usize) -> bool,
    ) -> Option<BTreeSet<usize>> {
        let program = self.program;
        let [result] = &program.results.get(&number)?[..] else { return None };
        let register = result.register;
        let touches =
            |all: &[RegisterId]| all.iter().any(|word| register.iter().any(|known| known == *word));
        let inst = |number: usize| -> &Inst { &program.code.instructions[number] };
        if inst(number).guard.is_some() {
            return None;
        }
        let mut readers = BTreeSet::new();
        for reader in number + 1..self.instructions.end {
            let inst = inst(reader);
            if touches(&inst.accesses().sources) {
                // Inactive lanes have no shadow, and a guard decides for the original and its copy.
                let is_guard = inst.guard.is_some_and(|guard| touches(&[guard.register]));
                if is_guard || !is_copied(reader) || inst.reads_other_lanes() {
                    return None;
                }
                readers.insert(reader);
            }
            if touches(&inst.accesses().destinations) {
                let is_whole = inst.guard.is_none() && program.results.contains_key(&reader);
                return is_whole.then_some(readers).filter(|readers| !readers.is_empty());
            }
        }
        let live = &program.functions[self.function].liveness.after[self.number];
        let is_dead = register.iter().all(|word| !live.contains(&word));
        is_dead.then_some(readers).filter(|readers| !readers.is_empty())
    }
}
