//! The memory operations of a wave that are under way, and what is known of their counters.
//!
//! Nothing is ever assumed to have arrived by itself: an operation is under way until an
//! wait proves that it is not. `counter(n)` proves that of an operation whose queue is
//! ordered if at least n later ones of the same queue were issued, since all of those come back
//! after it; of the others only if n is 0.

use super::facts::Facts;
use super::violation::Finding;
use crate::shadow::Slots;
use flipwave_isa::counter::{Counter, Counters, Queue, WaitCounts};
use std::ops::Range;
use std::sync::Arc;

/// Operations under way, oldest first.
#[derive(Debug, Default)]
pub struct UnderWay {
    operations: Vec<Operation>,
    issued: u64,
}

/// What an instruction does with a register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// An operation under way.
#[derive(Debug)]
pub struct Operation {
    /// Its number among all that the wave has issued.
    pub number: u64,
    /// The instruction.
    pub facts: Arc<Facts>,
    /// The counters that may still count it.
    counted: Vec<(Counter, Queue)>,
    /// Whether its destination has not been complained about.
    delivers: bool,
    /// Bytes of LDS that it touches.
    pub lds: Vec<Range<u32>>,
}

impl UnderWay {
    /// Issues an operation; its number if it is counted.
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
            lds,
        });
        // A counter that is full lets no further operation be issued.
        for (counter, _) in counted {
            self.prove(*counter, counters.max_count(*counter).into());
        }
        Some(self.issued)
    }

    /// Notes what a wait for counters proves.
    pub fn wait(&mut self, counters: Counters, counts: WaitCounts) {
        for counter in counters.all() {
            if let Some(count) = counts.at_most(counter) {
                self.prove(counter, count.into());
            }
        }
    }

    /// Notes that all operations of a queue have come back.
    pub fn settle(&mut self, queue: Queue) {
        self.operations.retain(|operation| operation.counted.iter().all(|(_, own)| *own != queue));
    }

    /// Takes out what must have come back if `counter` is at most `count`.
    fn prove(&mut self, counter: Counter, count: usize) {
        if count > 0 && self.operations.len() <= count {
            return;
        }
        // So many later ones of each queue; there are few queues.
        let mut later: Vec<(Queue, usize)> = Vec::new();
        for operation in self.operations.iter_mut().rev() {
            operation.counted.retain(|(own, queue)| {
                if *own != counter {
                    return true;
                }
                let known = later.iter().position(|(own, _)| own == queue).unwrap_or(later.len());
                if known == later.len() {
                    later.push((*queue, 0));
                }
                let later = &mut later[known].1;
                let is_back = count == 0 || (queue.is_ordered() && *later >= count);
                *later += 1;
                !is_back
            });
        }
        self.operations.retain(|operation| !operation.counted.is_empty());
    }

    /// A store to private memory that is under way.
    pub fn private_store(&self) -> Option<&Operation> {
        let is_private = |operation: &&Operation| {
            operation.counted.iter().any(|(_, queue)| *queue == Queue::PrivateStore)
        };
        self.operations.iter().find(is_private)
    }

    /// Accesses to LDS that are under way.
    pub fn lds(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| !operation.lds.is_empty())
    }

    /// Whether the operation of this number is under way.
    pub fn contains(&self, number: u64) -> bool {
        self.operations.iter().any(|operation| operation.number == number)
    }

    /// What an instruction reads or overwrites before it has arrived, or been taken. Each
    /// operation is complained about once.
    pub fn check(&mut self, counters: Counters, facts: &Facts) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.sources_overwritten(counters, facts).collect();
        for index in 0..self.operations.len() {
            let operation = &self.operations[index];
            if !operation.delivers {
                continue;
            }
            // Loads of one queue write their halves of a register without regard to each other.
            let same_queue = facts.counted == operation.facts.counted;
            let awaited = |slots: &Slots, access: Access| {
                let is_whole = facts.waits_for_whole_registers
                    || access == Access::Write && !facts.counted.is_empty() && !same_queue;
                operation.facts.named.writes.iter().any(|(_, destination)| {
                    if is_whole { destination.meet(slots) } else { destination.overlap(slots) }
                })
            };
            // Loads that come back in order may follow each other into the same registers; a load
            // into half a register names the register as a source too.
            let in_order = facts.loads_in_order
                && operation.counted.iter().all(|(_, queue)| *queue == Queue::VectorMemory);
            let is_destination = |slots| facts.named.writes.iter().any(|(_, own)| own == slots);
            let read = facts.named.reads.iter().find(|(_, slots)| {
                awaited(slots, Access::Read) && !(in_order && is_destination(slots))
            });
            let written = facts.named.writes.iter();
            let written =
                written.into_iter().find(|(_, slots)| awaited(slots, Access::Write) && !in_order);
            let Some((registers, _)) = read.or(written) else { continue };
            let counts = self.needed(index);
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

    /// Vector sources that `expcnt` guards and the instruction overwrites.
    fn sources_overwritten(
        &self,
        counters: Counters,
        facts: &Facts,
    ) -> impl Iterator<Item = Finding> {
        self.operations.iter().enumerate().filter_map(move |(index, operation)| {
            // Most are not, and what they need is not for nothing.
            if !operation.counted.iter().any(|(counter, _)| *counter == Counter::Expcnt) {
                return None;
            }
            let is_source = |slots: &Slots| {
                let mut sources =
                    operation.facts.named.reads.iter().filter(|(_, own)| !own.rows().is_empty());
                sources.any(|(_, own)| own.overlap(slots))
            };
            let (registers, _) = facts.named.writes.iter().find(|(_, slots)| is_source(slots))?;
            let count =
                self.needed(index).into_iter().find(|(counter, _)| *counter == Counter::Expcnt)?;
            Some(Finding::StillASource {
                registers: *registers,
                count,
                wait: counters.wait_instructions(&[count]),
                operation: operation.facts.instruction(),
            })
        })
    }

    /// The highest counts that prove that an operation has come back.
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
