//! Rule 4: no instruction reads or overwrites what a memory operation has yet to deliver, where
//! one of the two was inserted.
//!
//! An operation is outstanding until a wait proves that it is not. `counter(n)` proves that of an
//! operation whose queue is ordered if at least *n* younger ones of the same queue were issued on
//! every path, and of the others only if *n* is 0. At the entry of a device function, after a
//! call, and in functions that are not understood, any operation of the program may be outstanding
//! that somebody else began, until each counter was waited down to 0.

use super::Question;
use super::code::{ClaimedCode, ClaimedInst, ClaimedInstIndex};
use super::finding::{CheckRule, Finding};
use super::flow::Flow;
use flipwave_isa::counter::{Counter, Counters, Queue};
use flipwave_isa::{Register, RegisterRange, RegisterSet};
use std::collections::BTreeMap;

/// What is outstanding at a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pending {
    /// Operations by the index of the instruction in the new code.
    operations: BTreeMap<ClaimedInstIndex, Vec<Count>>,
    /// Counters in which anything may be outstanding.
    anything: Vec<Counter>,
}

/// A counter that may still count an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    counter: Counter,
    queue: Queue,
    /// Younger operations of the same queue, at least.
    younger: u8,
}

/// Follows all paths and checks each instruction.
pub fn check(
    question: &Question<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    findings: &mut Vec<Finding>,
) {
    let counters = question.rules.counters;
    let items = code.items();
    let anything = Pending { anything: counters.all().collect(), ..Pending::default() };
    // What is known where paths meet; elsewhere it follows from the instruction before.
    let mut known: BTreeMap<ClaimedInstIndex, Pending> = BTreeMap::new();
    let mut waiting: Vec<ClaimedInstIndex> = flow.kernels.iter().map(|(_, first)| *first).collect();
    known.extend(waiting.iter().map(|first| (*first, Pending::default())));
    for at in flow.entered_from_elsewhere() {
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
    let walk = |visit: &mut dyn FnMut(ClaimedInstIndex, &Pending)| {
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
    // Registers that operations of a caller or callee may deliver to, or have yet to read: control
    // leaves what is followed while they are outstanding.
    let mut deliverable = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
    walk(&mut |at, pending| {
        if flow.successors(at).is_empty() && !items[at].facts.inst.ends_wave() {
            let delivered = pending.operations.keys().map(|own| items[*own].facts.writes);
            deliverable = delivered.fold(deliverable, RegisterSet::union);
        }
    });
    walk(&mut |at, pending| {
        let deliverable = deliverable.difference(read_next(question, code, flow, at));
        pending.check(question, code, at, &items[at], deliverable, findings);
    });
}

impl Pending {
    fn execute(&mut self, counters: Counters, at: ClaimedInstIndex, item: &ClaimedInst) {
        let facts = &item.facts;
        if let Some(counts) = facts.waits {
            for counter in counters.all() {
                if let Some(count) = counts.at_most(counter) {
                    self.prove(counter, count);
                }
            }
        }
        if let Some(queue) = facts.settles {
            self.operations.retain(|_, counts| counts.iter().all(|own| own.queue != queue));
        }
        if facts.counted.is_empty() {
            return;
        }
        for (counter, queue) in facts.counted {
            let counts = self.operations.values_mut().flatten();
            for count in counts.filter(|own| (own.counter, own.queue) == (*counter, *queue)) {
                count.younger = count.younger.saturating_add(1);
            }
            // A counter that is full lets no further operation be issued.
            self.prove(*counter, counters.max_count(*counter));
        }
        let count = |(counter, queue): &(Counter, Queue)| Count {
            counter: *counter,
            queue: *queue,
            younger: 0,
        };
        self.operations.insert(at, facts.counted.iter().map(count).collect());
    }

    /// A counter is at most `most`.
    fn prove(&mut self, counter: Counter, most: u8) {
        if most == 0 {
            self.anything.retain(|own| *own != counter);
        }
        for counts in self.operations.values_mut() {
            counts.retain(|own| {
                own.counter != counter
                    || (most > 0 && !(own.queue.is_ordered() && own.younger >= most))
            });
        }
        self.operations.retain(|_, counts| !counts.is_empty());
    }

    /// What may be outstanding on one of two paths; whether that is more than on this one.
    fn join(&mut self, other: &Pending) -> bool {
        let mut is_more = false;
        for (at, counts) in &other.operations {
            let own = self.operations.entry(*at).or_default();
            for count in counts {
                let same = own
                    .iter_mut()
                    .find(|own| (own.counter, own.queue) == (count.counter, count.queue));
                match same {
                    Some(own) if own.younger <= count.younger => {}
                    Some(own) => {
                        own.younger = count.younger;
                        is_more = true;
                    }
                    None => {
                        own.push(*count);
                        is_more = true;
                    }
                }
            }
        }
        for counter in &other.anything {
            if !self.anything.contains(counter) {
                self.anything.push(*counter);
                is_more = true;
            }
        }
        is_more
    }

    fn check(
        &self,
        question: &Question<'_>,
        code: &ClaimedCode,
        at: ClaimedInstIndex,
        item: &ClaimedInst,
        deliverable: RegisterSet,
        findings: &mut Vec<Finding>,
    ) {
        let mut report = |register: Register, what: String| {
            let mut finding = Finding::at(CheckRule::Waits, item.pc, what).on(register);
            finding.old = code.original(at).map(|index| question.old(index));
            findings.push(finding);
        };
        let touched = item.facts.reads.union(item.facts.writes);
        if item.is_inserted()
            && let Some(counter) = self.anything.first()
            && let Some(register) = touched.intersection(deliverable).iter().next()
        {
            let what = format!(
                "`{}` without {counter}(0): a caller's or callee's load may be on its way to it",
                item.facts.inst
            );
            report(register, what);
        }
        for (operation, counts) in &self.operations {
            let other = &code.items()[*operation];
            if !item.is_inserted() && !other.is_inserted() {
                continue;
            }
            let is_guarded = counts.iter().any(|count| count.counter == Counter::Expcnt);
            let delivered = other.facts.writes;
            if delivered.is_empty() && !is_guarded {
                continue;
            }
            let meeting = if follows_in_order(item, other, counts) {
                item.facts.reads.difference(item.facts.writes).intersection(delivered)
            } else {
                touched.intersection(delivered)
            };
            if let Some(register) = meeting.iter().next() {
                let what = format!(
                    "`{}` does not wait for `{}` at {:#x}",
                    item.facts.inst, other.facts.inst, other.pc
                );
                report(register, what);
            }
            let sources = other.facts.reads.intersection(item.facts.writes);
            if let Some(register) = sources.iter().find(|own| own.is_per_lane() && is_guarded) {
                let what = format!(
                    "`{}` does not wait until `{}` at {:#x} has read it",
                    item.facts.inst, other.facts.inst, other.pc
                );
                report(register, what);
            }
        }
    }
}

/// What the next original instruction reads where only inserted code lies before it, in a straight
/// line: the program itself relies on these registers having been delivered.
fn read_next(
    question: &Question<'_>,
    code: &ClaimedCode,
    flow: &Flow,
    mut at: ClaimedInstIndex,
) -> RegisterSet {
    let original = loop {
        match (code.original(at), flow.successors(at)) {
            (Some(original), _) => break &question.program.instructions[original],
            // Not round a loop.
            (None, [next]) if *next > at => at = *next,
            (None, _) => return RegisterSet::EMPTY,
        }
    };
    let set = |registers: &[RegisterRange]| registers.iter().copied().collect::<RegisterSet>();
    let reads = set(&original.reads);
    if !question.rules.counters.incremented_by(original).is_empty() {
        // Half a register may be loaded while the other half is on its way.
        return reads.difference(set(&original.writes));
    }
    reads
}

/// Whether one load follows another in order, into the same registers too.
fn follows_in_order(item: &ClaimedInst, other: &ClaimedInst, counts: &[Count]) -> bool {
    item.facts.loads_in_order
        && other.facts.loads_in_order
        && counts.iter().all(|count| count.queue == Queue::VectorMemory)
}
