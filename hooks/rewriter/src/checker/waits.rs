//! Rule 4: no instruction reads or overwrites a register with an outstanding memory operation, if the
//! instruction or the operation is inserted.
//!
//! An operation is outstanding until a wait proves that it has completed. In an ordered queue, a wait
//! `counter(n)` proves this if at least *n* younger operations of the queue were issued on every path;
//! in other queues, only if *n* is 0. At the entry of a device function, after a call, and in functions
//! with unresolved control flow, any operation may be outstanding, until the code has waited for 0 on
//! each counter.

use super::code::{ClaimedCode, ClaimedInst, ClaimedInstIndex};
use super::context::CheckContext;
use super::finding::{CheckRule, Finding};
use super::flow::Flow;
use crate::dataflow::late_sources;
use flipwave_isa::counter::{Counter, Counters, Queue};
use flipwave_isa::{Register, RegisterRange, RegisterSet};
use std::collections::BTreeMap;

/// Memory operations that may be outstanding at a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Outstanding {
    /// Operations of known instructions, by their indices in the new code.
    operations: BTreeMap<ClaimedInstIndex, Vec<Count>>,
    /// Counters that may count operations of unknown instructions.
    unknown: Vec<Counter>,
}

/// A counter that may still count an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    counter: Counter,
    queue: Queue,
    /// Lower bound of the number of younger operations in the same queue.
    younger: u8,
}

/// Computes the outstanding operations on all paths, and checks each instruction.
pub fn check(
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    findings: &mut Vec<Finding>,
) {
    let counters = context.rules.counters;
    let items = code.items();
    let unknown = counters.all().filter(|counter| counter.guards_registers()).collect();
    let anything = Outstanding { unknown, ..Outstanding::default() };
    // Outstanding operations where paths begin or meet. They determine those at all other instructions.
    let mut known: BTreeMap<ClaimedInstIndex, Outstanding> = BTreeMap::new();
    let mut waiting: Vec<ClaimedInstIndex> = flow.kernels.iter().map(|entry| entry.first).collect();
    known.extend(waiting.iter().map(|first| (*first, Outstanding::default())));
    for at in flow.entered_from_unknown() {
        known.insert(at, anything.clone());
        waiting.push(at);
    }
    waiting.sort_unstable();
    while let Some(start) = waiting.pop() {
        let mut pending = known[&start].clone();
        let mut at = start;
        loop {
            pending.execute(counters, at, &items[at]);
            let next = match flow.successors(at) {
                [next] if flow.predecessors(*next).len() == 1 && !known.contains_key(next) => *next,
                successors => {
                    for next in successors {
                        let is_new = !known.contains_key(next);
                        if known.entry(*next).or_default().join(&pending) || is_new {
                            waiting.push(*next);
                        }
                    }
                    break;
                }
            };
            at = next;
        }
    }
    let walk = |visit: &mut dyn FnMut(ClaimedInstIndex, &Outstanding)| {
        for (start, pending) in &known {
            let (mut at, mut pending) = (*start, pending.clone());
            loop {
                visit(at, &pending);
                pending.execute(counters, at, &items[at]);
                match flow.successors(at) {
                    [next] if !known.contains_key(next) => at = *next,
                    _ => break,
                }
            }
        }
    };
    // Registers that operations of a caller or callee may still write or read: vector registers, and
    // those of operations that are outstanding where control reaches unknown code.
    let mut external = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
    walk(&mut |at, pending| {
        if flow.successors(at).is_empty() && !items[at].facts.inst.ends_wave() {
            let writes = pending.operations.keys().map(|index| items[*index].facts.writes);
            external = writes.fold(external, RegisterSet::union);
        }
    });
    walk(&mut |at, pending| {
        let external = external.difference(read_next(context, code, flow, at));
        pending.check(context, code, at, external, findings);
    });
}

impl Outstanding {
    /// Updates the state by the effects of an instruction.
    fn execute(&mut self, counters: Counters, at: ClaimedInstIndex, item: &ClaimedInst) {
        let facts = &item.facts;
        if let Some(counts) = facts.waits {
            for counter in counters.all() {
                if let Some(count) = counts.at_most(counter) {
                    self.limit(counter, count);
                }
            }
        }
        if !facts.settles.is_empty() {
            for counts in self.operations.values_mut() {
                counts.retain(|count| !facts.settles.contains(&count.queue));
            }
            self.operations.retain(|_, counts| !counts.is_empty());
        }
        if facts.counted.is_empty() {
            return;
        }
        for (counter, queue) in facts.counted {
            let counts = self.operations.values_mut().flatten();
            let is_same = |count: &&mut Count| (count.counter, count.queue) == (*counter, *queue);
            for count in counts.filter(is_same) {
                count.younger = count.younger.saturating_add(1);
            }
            // The hardware issues no operation while the counter is at its maximum.
            self.limit(*counter, counters.max_count(*counter));
        }
        let count = |(counter, queue): &(Counter, Queue)| Count {
            counter: *counter,
            queue: *queue,
            younger: 0,
        };
        self.operations.insert(at, facts.counted.iter().map(count).collect());
    }

    /// Removes operations that have completed if `counter` is at most `max`.
    fn limit(&mut self, counter: Counter, max: u8) {
        if max == 0 {
            self.unknown.retain(|unknown| *unknown != counter);
        }
        for counts in self.operations.values_mut() {
            counts.retain(|count| {
                count.counter != counter
                    || (max > 0 && !(count.queue.is_ordered() && count.younger >= max))
            });
        }
        self.operations.retain(|_, counts| !counts.is_empty());
    }

    /// Adds the operations that may be outstanding on another path. Returns `true` if this state has
    /// changed.
    fn join(&mut self, other: &Outstanding) -> bool {
        let mut has_changed = false;
        for (at, counts) in &other.operations {
            let known_counts = self.operations.entry(*at).or_default();
            for count in counts {
                let known = known_counts
                    .iter_mut()
                    .find(|known| (known.counter, known.queue) == (count.counter, count.queue));
                match known {
                    Some(known) if known.younger <= count.younger => {}
                    Some(known) => {
                        known.younger = count.younger;
                        has_changed = true;
                    }
                    None => {
                        known_counts.push(*count);
                        has_changed = true;
                    }
                }
            }
        }
        for counter in &other.unknown {
            if !self.unknown.contains(counter) {
                self.unknown.push(*counter);
                has_changed = true;
            }
        }
        has_changed
    }

    /// Checks an instruction against the operations that are outstanding before it. `external` are the
    /// registers of operations of unknown instructions.
    fn check(
        &self,
        context: &CheckContext<'_>,
        code: &ClaimedCode,
        at: ClaimedInstIndex,
        external: RegisterSet,
        findings: &mut Vec<Finding>,
    ) {
        let item = &code.items()[at];
        let mut report = |register: Register, message: String| {
            let mut finding =
                Finding::at(CheckRule::Waits, item.pc, message).with_register(register);
            finding.old = code.original(at).map(|index| context.old_pc(index));
            findings.push(finding);
        };
        let accessed = item.facts.reads.union(item.facts.writes);
        if item.is_inserted()
            && let Some(counter) = self.unknown.first()
            && let Some(register) = accessed.intersection(external).iter().next()
        {
            let message = format!(
                "`{}` without {counter}(0): a load of a caller or callee may be outstanding",
                item.facts.inst
            );
            report(register, message);
        }
        for (operation, counts) in &self.operations {
            let load = &code.items()[*operation];
            if !item.is_inserted() && !load.is_inserted() {
                continue;
            }
            let remaining: Vec<(Counter, Queue)> =
                counts.iter().map(|count| (count.counter, count.queue)).collect();
            // Operations of one kind translate their addresses in order.
            let follows = item
                .facts
                .counted
                .iter()
                .any(|counted| counted.0 == Counter::Xcnt && remaining.contains(counted));
            let late = if follows { RegisterSet::EMPTY } else { late_sources(&remaining) };
            let has_result = remaining.iter().any(|(counter, _)| *counter != Counter::Xcnt);
            let loaded = if has_result { load.facts.writes } else { RegisterSet::EMPTY };
            if loaded.is_empty() && late.is_empty() {
                continue;
            }
            let conflicts = if follows_in_order(item, load, counts) {
                item.facts.reads.difference(item.facts.writes).intersection(loaded)
            } else {
                accessed.intersection(loaded)
            };
            if let Some(register) = conflicts.iter().next() {
                let message = format!(
                    "`{}` does not wait for `{}` at {:#x}",
                    item.facts.inst, load.facts.inst, load.pc
                );
                report(register, message);
            }
            let sources = load.facts.reads.intersection(item.facts.writes).intersection(late);
            if let Some(register) = sources.iter().next() {
                let message = format!(
                    "`{}` does not wait until `{}` at {:#x} has read the register",
                    item.facts.inst, load.facts.inst, load.pc
                );
                report(register, message);
            }
        }
    }
}

/// Registers that the next original instruction reads, if only inserted code without branches precedes
/// it. The program itself relies on the completion of loads into these registers.
fn read_next(
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    mut at: ClaimedInstIndex,
) -> RegisterSet {
    let original = loop {
        match (code.original(at), flow.successors(at)) {
            (Some(original), _) => break &context.program.instructions[original],
            // Forward only, so that the search ends.
            (None, [next]) if *next > at => at = *next,
            (None, _) => return RegisterSet::EMPTY,
        }
    };
    let set = |registers: &[RegisterRange]| registers.iter().copied().collect::<RegisterSet>();
    let reads = set(&original.reads);
    if !context.rules.counters.incremented_by(original).is_empty() {
        // The instruction may load half a register while a load of the other half is outstanding.
        return reads.difference(set(&original.writes));
    }
    reads
}

/// Returns `true` if the loads `item` and `earlier` complete in order, so both may write the same register.
fn follows_in_order(item: &ClaimedInst, earlier: &ClaimedInst, counts: &[Count]) -> bool {
    item.facts.loads_in_order
        && earlier.facts.loads_in_order
        && counts.iter().all(|count| count.queue == Queue::VectorMemory)
}
