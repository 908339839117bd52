//! Memory operations that may be outstanding at each point of a program.
//!
//! Inserted code must not access the destination of an outstanding load, and must not overwrite a register
//! that an outstanding operation on global data share (GDS) has yet to read.
//!
//! An operation is outstanding until a wait proves that it has completed. In an ordered queue, a wait
//! `counter(n)` proves this if at least `n` younger operations of the queue were issued on every path; in
//! other queues, only if `n` is 0. Operations that inserted code adds to a counter only make the original
//! waits stricter: such a wait proves that more of the older operations have completed.

use crate::flow::{BlockIndex, Disassembly, EdgeKind, IndexVec, InstIndex};
use flipwave_isa::counter::{Counter, Counters, Queue};
use flipwave_isa::{Inst, RegisterSet};
use std::collections::BTreeMap;

/// Operations that may be outstanding at a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    operations: BTreeMap<InstIndex, OutstandingOperation>,
    /// Counters that may count operations of unknown callers or callees.
    unknown: Vec<Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OutstandingOperation {
    destinations: RegisterSet,
    /// Registers that the operation may still read while EXPCNT or XCNT counts it.
    sources: RegisterSet,
    /// The counters that may still count the operation.
    counts: Vec<Count>,
}

/// A counter that may still count an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    counter: Counter,
    queue: Queue,
    /// Lower bound of the number of younger operations in the same queue.
    younger: u8,
}

impl Outstanding {
    /// Destinations of known outstanding loads.
    pub fn registers(&self) -> RegisterSet {
        self.operations
            .values()
            .filter(|operation| operation.counts.iter().any(Count::guards_results))
            .fold(RegisterSet::EMPTY, |all, operation| all.union(operation.destinations))
    }

    /// Returns `true` if operations of unknown callers or callees may be outstanding.
    pub fn is_unknown(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// The counts to wait for before `registers` may be read or overwritten.
    pub fn needed(&self, registers: RegisterSet) -> Vec<(Counter, u8)> {
        let mut needed: BTreeMap<Counter, u8> =
            self.unknown.iter().map(|counter| (*counter, 0)).collect();
        if registers.is_empty() {
            return Vec::new();
        }
        for operation in self.operations.values() {
            let is_written = !operation.destinations.intersection(registers).is_empty();
            let is_read = !operation.sources.intersection(registers).is_empty();
            for count in &operation.counts {
                let Count { counter, queue, younger } = *count;
                let is_guarded =
                    is_written && count.guards_results() || is_read && counter.guards_sources();
                if !is_guarded {
                    continue;
                }
                let count = if queue.is_ordered() { younger } else { 0 };
                let minimum = needed.entry(counter).or_insert(count);
                *minimum = count.min(*minimum);
            }
        }
        needed.into_iter().collect()
    }

    /// The state in which any operation of a caller or callee may be outstanding.
    fn anything(counters: Counters) -> Outstanding {
        let unknown = counters.all().filter(|counter| counter.guards_registers()).collect();
        Outstanding { operations: BTreeMap::new(), unknown }
    }

    /// Updates the state by the effects of an instruction.
    fn execute(&mut self, counters: Counters, index: InstIndex, inst: &Inst) {
        if let Some(counts) = counters.wait_counts(inst) {
            for counter in counters.all() {
                if let Some(count) = counts.at_most(counter) {
                    self.limit(counter, count);
                }
            }
        }
        let completed = counters.completed_queues(inst);
        if !completed.is_empty() {
            for operation in self.operations.values_mut() {
                operation.counts.retain(|count| !completed.contains(&count.queue));
            }
            self.operations.retain(|_, operation| !operation.counts.is_empty());
        }
        let incremented = counters.incremented_by(inst);
        if incremented.is_empty() {
            return;
        }
        for (counter, queue) in incremented {
            let counts = self.operations.values_mut().flat_map(|operation| &mut operation.counts);
            let is_same = |count: &&mut Count| (count.counter, count.queue) == (*counter, *queue);
            counts
                .filter(is_same)
                .for_each(|count| count.younger = count.younger.saturating_add(1));
        }
        let destinations: RegisterSet = inst.writes.iter().copied().collect();
        let late = late_sources(incremented);
        let sources = inst.reads.iter().copied().collect::<RegisterSet>().intersection(late);
        if !destinations.is_empty() || !sources.is_empty() {
            let counts = incremented.iter();
            let counts = counts.map(|(counter, queue)| Count {
                counter: *counter,
                queue: *queue,
                younger: 0,
            });
            let counts = counts.collect();
            self.operations.insert(index, OutstandingOperation { destinations, sources, counts });
        }
    }

    /// Removes operations that have completed if `counter` is at most `max`.
    fn limit(&mut self, counter: Counter, max: u8) {
        if max == 0 {
            self.unknown.retain(|unknown| *unknown != counter);
        }
        for operation in self.operations.values_mut() {
            operation.counts.retain(|count| {
                count.counter != counter
                    || max != 0 && !(count.queue.is_ordered() && count.younger >= max)
            });
        }
        self.operations.retain(|_, operation| !operation.counts.is_empty());
    }

    /// Adds the operations that may be outstanding on another path. Returns `true` if this state has
    /// changed.
    fn join(&mut self, other: &Outstanding) -> bool {
        let before = self.clone();
        for (index, operation) in &other.operations {
            let Some(known) = self.operations.get_mut(index) else {
                self.operations.insert(*index, operation.clone());
                continue;
            };
            for count in &operation.counts {
                let is_same = |known: &&mut Count| {
                    (known.counter, known.queue) == (count.counter, count.queue)
                };
                match known.counts.iter_mut().find(is_same) {
                    Some(known) => known.younger = known.younger.min(count.younger),
                    None => known.counts.push(*count),
                }
            }
            known.counts.sort_by_key(|count| count.counter);
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

impl Count {
    /// Returns `true` if the counter guards the results of the operation.
    fn guards_results(&self) -> bool {
        self.counter != Counter::Xcnt
    }
}

/// Registers that an operation with these counters may read after it has been issued.
pub fn late_sources(counted: &[(Counter, Queue)]) -> RegisterSet {
    let vectors = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
    let counts = |wanted| counted.iter().any(|(counter, _)| *counter == wanted);
    if counts(Counter::Xcnt) {
        vectors.union(RegisterSet::SGPRS)
    } else if counts(Counter::Expcnt) {
        vectors
    } else {
        RegisterSet::EMPTY
    }
}

/// Operations that may be outstanding at the beginning of each block.
#[derive(Clone, Debug)]
pub struct OutstandingLoads {
    counters: Counters,
    entries: IndexVec<BlockIndex, Outstanding>,
}

impl OutstandingLoads {
    /// Analyzes all paths through the program. At the entry of a device function, after a call, and in
    /// functions with unresolved control flow, any operation may be outstanding.
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
                let has_changed = loads.entries[edge.to].join(&end);
                if has_changed && !std::mem::replace(&mut queued[edge.to], true) {
                    waiting.push(edge.to);
                }
            }
        }
        loads
    }

    /// Calls `visit` with each instruction of a block and the operations that may be outstanding before it.
    /// Returns those that may be outstanding at the end of the block, after the return of a call.
    pub fn walk(
        &self,
        program: &Disassembly,
        block: BlockIndex,
        mut visit: impl FnMut(InstIndex, &Outstanding),
    ) -> Outstanding {
        let mut state = self.entries[block].clone();
        let block = &program.blocks[block];
        // With unresolved control flow, control may reach any instruction of the function.
        let is_resolved = program.functions[block.function].unresolved.is_empty();
        for (index, inst) in program.insts_of(block.instructions) {
            if !is_resolved {
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

    /// The counts to wait for before overwriting v0 and v1, after each line.
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
    fn overwriting_operands_of_gds_requires_expcnt() {
        let found = needed(&["ds_gws_init v0 gds", "s_nop 0", "s_waitcnt expcnt(0)"]);
        let expcnt = vec![(Counter::Expcnt, 0)];
        assert_eq!(found[0], [expcnt.clone(), vec![]]);
        assert_eq!(found[1], found[0]);
        assert_eq!(found[2], [vec![], vec![]]);
        // LDS operations read their data before the next instruction is issued.
        assert_eq!(needed(&["ds_write_b32 v1, v0"])[0], [vec![], vec![]]);
    }
}
