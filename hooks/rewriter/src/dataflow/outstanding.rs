//! Loads that may be outstanding at each point of a program.
//!
//! What is inserted must neither read nor overwrite a register that a load has yet to deliver to,
//! nor overwrite one that an operation on global data share has yet to read.
//! An operation is outstanding until a wait proves that it is not: `counter(n)` proves that
//! of an operation whose queue is ordered if at least `n` younger ones of the same queue were
//! issued on every way; of the others only if `n` is 0. Operations that inserted code adds to a
//! counter make the program's own waits stricter, never weaker: such a wait then proves that more
//! of the older operations have come back.

use crate::flow::{BlockIndex, Disassembly, EdgeKind, IndexVec, InstIndex};
use flipwave_isa::counter::{Counter, Counters, Queue};
use flipwave_isa::{Inst, RegisterSet};
use std::collections::BTreeMap;

/// Operations outstanding at a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    operations: BTreeMap<InstIndex, OutstandingOperation>,
    /// Counters that may count operations of a caller or callee that is not known.
    unknown: Vec<Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OutstandingOperation {
    destinations: RegisterSet,
    /// Vector registers that are read while EXPCNT counts it.
    sources: RegisterSet,
    /// The counters that may still count it, with the least number of younger operations of the
    /// same queue.
    counted: Vec<(Counter, Queue, u8)>,
}

impl Outstanding {
    /// Registers that loads have yet to deliver to, as far as the loads are known.
    pub fn registers(&self) -> RegisterSet {
        self.operations
            .values()
            .fold(RegisterSet::EMPTY, |all, operation| all.union(operation.destinations))
    }

    /// Whether something unknown may be outstanding.
    pub fn is_unknown(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// What counters must come to, at most, before `touched` may be read or overwritten.
    pub fn needed(&self, touched: RegisterSet) -> Vec<(Counter, u8)> {
        let mut needed: BTreeMap<Counter, u8> =
            self.unknown.iter().map(|counter| (*counter, 0)).collect();
        if touched.is_empty() {
            return Vec::new();
        }
        for operation in self.operations.values() {
            let is_delivered_to = !operation.destinations.intersection(touched).is_empty();
            let is_read = !operation.sources.intersection(touched).is_empty();
            for (counter, queue, younger) in &operation.counted {
                if !(is_delivered_to || is_read && *counter == Counter::Expcnt) {
                    continue;
                }
                let count = if queue.is_ordered() { *younger } else { 0 };
                let least = needed.entry(*counter).or_insert(count);
                *least = count.min(*least);
            }
        }
        needed.into_iter().collect()
    }

    /// Whatever a caller or callee may have left.
    fn anything(counters: Counters) -> Outstanding {
        let unknown = counters.all().collect();
        Outstanding { operations: BTreeMap::new(), unknown }
    }

    /// Executes an instruction.
    fn execute(&mut self, counters: Counters, index: InstIndex, inst: &Inst) {
        if let Some(counts) = counters.wait_counts(inst) {
            for counter in counters.all() {
                if let Some(count) = counts.at_most(counter) {
                    self.prove(counter, count);
                }
            }
        }
        if let Some(queue) = counters.completed_queue(inst) {
            let is_settled =
                |own: &OutstandingOperation| own.counted.iter().any(|(_, own, _)| *own == queue);
            self.operations.retain(|_, own| !is_settled(own));
        }
        let own = counters.incremented_by(inst);
        if own.is_empty() {
            return;
        }
        for (counter, queue) in own {
            for operation in self.operations.values_mut() {
                let same = operation
                    .counted
                    .iter_mut()
                    .filter(|(other, of, _)| (*other, *of) == (*counter, *queue));
                same.for_each(|(.., younger)| *younger = younger.saturating_add(1));
            }
        }
        let destinations: RegisterSet = inst.writes.iter().copied().collect();
        let is_guarded = own.iter().any(|(counter, _)| *counter == Counter::Expcnt);
        let sources = match is_guarded {
            true => inst.reads.iter().copied().collect::<RegisterSet>(),
            false => RegisterSet::EMPTY,
        };
        let sources = sources.intersection(RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS));
        if !destinations.is_empty() || !sources.is_empty() {
            let counted = own.iter().map(|(counter, queue)| (*counter, *queue, 0)).collect();
            self.operations.insert(index, OutstandingOperation { destinations, sources, counted });
        }
    }

    fn prove(&mut self, counter: Counter, count: u8) {
        if count == 0 {
            self.unknown.retain(|unknown| *unknown != counter);
        }
        for operation in self.operations.values_mut() {
            operation.counted.retain(|(own, queue, younger)| {
                *own != counter || count != 0 && !(queue.is_ordered() && *younger >= count)
            });
        }
        self.operations.retain(|_, operation| !operation.counted.is_empty());
    }

    /// What may be outstanding on either of two ways; whether that is more than on this one.
    fn join(&mut self, other: &Outstanding) -> bool {
        let before = self.clone();
        for (index, operation) in &other.operations {
            let Some(own) = self.operations.get_mut(index) else {
                self.operations.insert(*index, operation.clone());
                continue;
            };
            for (counter, queue, younger) in &operation.counted {
                let same = own.counted.iter_mut().find(|own| (own.0, own.1) == (*counter, *queue));
                match same {
                    Some((_, _, own)) => *own = (*own).min(*younger),
                    None => own.counted.push((*counter, *queue, *younger)),
                }
            }
            own.counted.sort_by_key(|(counter, ..)| *counter);
        }
        for counter in &other.unknown {
            if !self.unknown.contains(counter) {
                self.unknown.push(*counter);
                self.unknown.sort();
            }
        }
        *self != before
    }
}

/// What may be outstanding at the beginning of each block.
#[derive(Clone, Debug)]
pub struct OutstandingLoads {
    counters: Counters,
    entries: IndexVec<BlockIndex, Outstanding>,
}

impl OutstandingLoads {
    /// Follows all ways through the program. At the entry of a device function, after a call, and
    /// in functions that are not understood, anything may be outstanding.
    pub fn new(program: &Disassembly, counters: Counters) -> OutstandingLoads {
        let anything = Outstanding::anything(counters);
        let entries = IndexVec::filled(Outstanding::default(), program.blocks.len());
        let mut loads = OutstandingLoads { counters, entries };
        for function in program.functions.iter().filter(|function| function.kernel.is_none()) {
            loads.entries[function.blocks.start] = anything.clone();
        }
        let mut waiting: Vec<BlockIndex> = program.blocks.indices().iter().rev().collect();
        let mut queued = IndexVec::filled(true, program.blocks.len());
        while let Some(index) = waiting.pop() {
            queued[index] = false;
            let end = loads.walk(program, index, |_, _| {});
            for edge in &program.blocks[index].successors {
                let grown = loads.entries[edge.to].join(&end);
                if grown && !std::mem::replace(&mut queued[edge.to], true) {
                    waiting.push(edge.to);
                }
            }
        }
        loads
    }

    /// Visits the instructions of a block with what may be outstanding before each; gives what may
    /// be outstanding at its end, after a call when it has come back.
    pub fn walk(
        &self,
        program: &Disassembly,
        block: BlockIndex,
        mut visit: impl FnMut(InstIndex, &Outstanding),
    ) -> Outstanding {
        let mut state = self.entries[block].clone();
        let block = &program.blocks[block];
        // Of a function that is not understood, control may come to any instruction.
        let is_understood = program.functions[block.function].unresolved.is_empty();
        for (index, inst) in program.insts_of(block.instructions) {
            if !is_understood {
                state = Outstanding::anything(self.counters);
            }
            visit(index, &state);
            state.execute(self.counters, index, inst);
        }
        if block.successors.iter().any(|edge| edge.kind == EdgeKind::Return) {
            return Outstanding::anything(self.counters);
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_isa::{Isa, Pc, RegisterRange, Rules, Target};

    fn vgpr(name: &str) -> RegisterSet {
        [RegisterRange::new(name.parse().expect("a register"), 1)].into_iter().collect()
    }

    /// What is needed before v0 and v1 are overwritten, after each line.
    fn needed(lines: &[&str]) -> Vec<[Vec<(Counter, u8)>; 2]> {
        let target: Target = "gfx90a".parse().expect("a target");
        let isa = Isa::new(&target).expect("an ISA");
        let counters = Rules::of(&target, 64).expect("rules").counters;
        let mut state = Outstanding::default();
        let after = |(index, line): (usize, &&str)| {
            let bytes = isa.assemble(line).expect("an instruction");
            let inst = isa.decode(&bytes, Pc(0)).expect("an instruction");
            state.execute(counters, InstIndex(index as u32), &inst);
            ["v0", "v1"].map(|name| state.needed(vgpr(name)))
        };
        lines.iter().enumerate().map(after).collect()
    }

    #[test]
    fn what_global_data_share_has_yet_to_read_is_not_overwritten() {
        let found = needed(&["ds_gws_init v0 gds", "s_nop 0", "s_waitcnt expcnt(0)"]);
        let expcnt = vec![(Counter::Expcnt, 0)];
        assert_eq!(found[0], [expcnt.clone(), vec![]]);
        assert_eq!(found[1], found[0]);
        assert_eq!(found[2], [vec![], vec![]]);
        // LDS has read its data when the next instruction is issued.
        assert_eq!(needed(&["ds_write_b32 v1, v0"])[0], [vec![], vec![]]);
    }
}
