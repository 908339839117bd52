//! Pending memory operations of a wave, and the known values of its counters.
//!
//! No operation is assumed to complete on its own: it is pending until a wait proves its
//! completion. `counter(n)` proves it for an operation of an ordered queue if at least n later ones
//! of the same queue were issued, since all of those complete after it; for operations of other
//! queues only if n is 0.

use super::facts::Facts;
use super::violation::Finding;
use crate::shadow::Slots;
use flipwave_isa::counter::{Counter, Counters, Queue, WaitCounts};
use flipwave_isa::{Register, RegisterRange};
use std::ops::Range;
use std::sync::Arc;

/// Pending operations, oldest first.
#[derive(Debug, Default)]
pub struct PendingOperations {
    operations: Vec<Operation>,
    issued: u64,
}

/// Kind of access to a register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// A pending operation.
#[derive(Debug)]
pub struct Operation {
    /// Number among all operations that the wave has issued.
    pub number: u64,
    /// The instruction.
    pub facts: Arc<Facts>,
    /// Counters that may still count it.
    counted: Vec<(Counter, Queue)>,
    /// `true` if an access to its destination is still to be reported.
    delivers: bool,
    /// `true` if a counter other than that of translations counts it until it is complete.
    completes: bool,
    /// Accessed bytes of LDS.
    pub lds: Vec<Range<u32>>,
}

impl Operation {
    /// Returns `true` if its results may be pending, and not only the translation of its addresses.
    fn has_result(&self) -> bool {
        self.counted.iter().any(|(counter, _)| *counter != Counter::Xcnt)
    }
}

impl PendingOperations {
    /// Issues an operation; returns its number if it is counted.
    pub fn issue(
        &mut self,
        counters: Counters,
        facts: &Arc<Facts>,
        counted: &[(Counter, Queue)],
        lds: Vec<Range<u32>>,
    ) -> Option<u64> {
        if counted.is_empty() {
            return None;
        }
        self.issued += 1;
        self.operations.push(Operation {
            number: self.issued,
            facts: Arc::clone(facts),
            counted: counted.to_vec(),
            delivers: true,
            completes: counted.iter().any(|(counter, _)| *counter != Counter::Xcnt),
            lds,
        });
        // A counter at its maximum blocks further operations.
        for (counter, _) in counted {
            self.prove(*counter, counters.max_count(*counter).into());
        }
        Some(self.issued)
    }

    /// Records a wait for counters.
    pub fn wait(&mut self, counters: Counters, counts: WaitCounts) {
        for counter in counters.all() {
            if let Some(count) = counts.at_most(counter) {
                self.prove(counter, count.into());
            }
        }
    }

    /// Records that all operations of a queue are complete.
    pub fn settle(&mut self, queue: Queue) {
        for operation in &mut self.operations {
            operation.counted.retain(|(_, its_queue)| *its_queue != queue);
        }
        self.operations.retain(|operation| !operation.counted.is_empty());
    }

    /// Removes the operations that must be complete if `counter` is at most `count`.
    fn prove(&mut self, counter: Counter, count: usize) {
        if count > 0 && self.operations.len() <= count {
            return;
        }
        // Number of later operations of each queue; there are few queues.
        let mut later: Vec<(Queue, usize)> = Vec::new();
        for operation in self.operations.iter_mut().rev() {
            operation.counted.retain(|(its_counter, queue)| {
                if *its_counter != counter {
                    return true;
                }
                let known = later
                    .iter()
                    .position(|(known_queue, _)| known_queue == queue)
                    .unwrap_or(later.len());
                if known == later.len() {
                    later.push((*queue, 0));
                }
                let later = &mut later[known].1;
                let is_back = count == 0 || (queue.is_ordered() && *later >= count);
                *later += 1;
                !is_back
            });
        }
        self.translate();
        self.operations.retain(|operation| !operation.counted.is_empty());
    }

    /// Records that complete operations have translated their addresses, and with them earlier ones of the
    /// same queue.
    fn translate(&mut self) {
        let mut translated: Vec<Queue> = Vec::new();
        for operation in self.operations.iter_mut().rev() {
            if operation.completes && !operation.has_result() {
                translated.extend(operation.counted.iter().map(|(_, queue)| *queue));
            }
            if !translated.is_empty() {
                operation.counted.retain(|(_, queue)| !translated.contains(queue));
            }
        }
    }

    /// Returns a pending store to private memory.
    pub fn private_store(&self) -> Option<&Operation> {
        let is_private = |operation: &&Operation| {
            operation.counted.iter().any(|(_, queue)| *queue == Queue::PrivateStore)
        };
        self.operations.iter().find(is_private)
    }

    /// Pending accesses to LDS.
    pub fn lds(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| !operation.lds.is_empty())
    }

    /// Returns `true` if the operation with this number is pending.
    pub fn contains(&self, number: u64) -> bool {
        self.operations.iter().any(|operation| operation.number == number)
    }

    /// Reports registers that an instruction reads or overwrites before their values have arrived
    /// or been read. Each operation is reported once.
    pub fn check(&mut self, counters: Counters, facts: &Facts) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.sources_overwritten(counters, facts).collect();
        for index in 0..self.operations.len() {
            let operation = &self.operations[index];
            if !operation.delivers || !operation.has_result() {
                continue;
            }
            // Loads of one queue write their halves of a register independently of each other.
            let same_queue = facts.counted == operation.facts.counted;
            let awaited = |slots: &Slots, access: Access| {
                let is_whole = facts.waits_for_whole_registers
                    || access == Access::Write && !facts.counted.is_empty() && !same_queue;
                operation.facts.named.writes.iter().any(|(_, destination)| {
                    if is_whole { destination.meet(slots) } else { destination.overlap(slots) }
                })
            };
            // Loads that complete in order may follow each other into the same registers; a load
            // into half a register names the register also as a source.
            let in_order = facts.loads_in_order
                && operation.counted.iter().all(|(_, queue)| *queue == Queue::VectorMemory);
            let is_destination =
                |slots| facts.named.writes.iter().any(|(_, written)| written == slots);
            let read = facts.named.reads.iter().find(|(_, slots)| {
                awaited(slots, Access::Read) && !(in_order && is_destination(slots))
            });
            let written = facts.named.writes.iter();
            let written =
                written.into_iter().find(|(_, slots)| awaited(slots, Access::Write) && !in_order);
            let Some((registers, _)) = read.or(written) else { continue };
            let mut counts = self.needed(index);
            counts.retain(|(counter, _)| *counter != Counter::Xcnt);
            findings.push(Finding::NotWaited {
                registers: *registers,
                is_read: read.is_some(),
                wait: counters.wait_instructions(&counts).replace('\n', " and "),
                counts,
                operation: operation.facts.instruction(),
            });
            self.operations[index].delivers = false;
        }
        findings
    }

    /// Sources that `expcnt` guards and the instruction overwrites. Those that `xcnt` guards are not reported:
    /// LLVM 22 leaves out waits that later versions insert (`SIInsertWaitcnts`, `applyXcnt`), so that every program
    /// that it compiles would have findings.
    fn sources_overwritten(
        &self,
        counters: Counters,
        facts: &Facts,
    ) -> impl Iterator<Item = Finding> {
        self.operations.iter().enumerate().filter_map(move |(index, operation)| {
            // Most operations are not guarded, and the remaining checks are expensive.
            let guard = *operation.counted.iter().find(|(counter, _)| counter.guards_sources())?;
            if guard.0 == Counter::Xcnt {
                return None;
            }
            let is_guarded = |range: &RegisterRange, slots: &Slots| match range.first {
                Register::Sgpr(_) | Register::VccLo | Register::VccHi => false,
                _ => !slots.rows().is_empty(),
            };
            let is_source = |slots: &Slots| {
                let sources = operation.facts.named.reads.iter();
                let mut sources = sources.filter(|(range, source)| is_guarded(range, source));
                sources.any(|(_, source)| source.overlap(slots))
            };
            let (registers, _) = facts.named.writes.iter().find(|(_, slots)| is_source(slots))?;
            let count = self.needed(index).into_iter().find(|(counter, _)| *counter == guard.0)?;
            Some(Finding::StillASource {
                registers: *registers,
                count,
                wait: counters.wait_instructions(&[count]),
                operation: operation.facts.instruction(),
            })
        })
    }

    /// Highest counts that prove that an operation is complete.
    fn needed(&self, index: usize) -> Vec<(Counter, u8)> {
        let later = |wanted: &(Counter, Queue)| {
            let later = self.operations[index + 1..].iter();
            let later = later.filter(|operation| operation.counted.contains(wanted)).count();
            later.min(u8::MAX.into()) as u8
        };
        let counted = self.operations[index].counted.iter();
        counted
            .map(|wanted| (wanted.0, if wanted.1.is_ordered() { later(wanted) } else { 0 }))
            .collect()
    }
}
