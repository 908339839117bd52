//! Expert scheduling mode of gfx12: `s_wait_alu` must separate dependent vector arithmetic and
//! memory instructions. Instructions issued before a wave entered the mode are not checked.

use super::facts::Facts;
use super::violation::{Finding, Instruction};
use super::waits::PendingOperations;
use crate::execute::operand::scalar_word;
use crate::instruction::Op;
use crate::wave::Wave;
use flipwave_isa::counter::expert::{AluWait, EXPERT, Pipe, sched_mode_bits};
use flipwave_isa::{Generation, Vgpr};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;

/// Counters of `s_wait_alu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AluCounter {
    /// Results of vector arithmetic.
    VaVdst,
    /// Sources of memory instructions.
    VmVsrc,
}

impl fmt::Display for AluCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AluCounter::VaVdst => "va_vdst",
            AluCounter::VmVsrc => "vm_vsrc",
        })
    }
}

/// Expert scheduling state of a wave.
#[derive(Debug, Default)]
pub struct Expert {
    /// The SCHED_MODE register.
    mode: u32,
    /// Number of issued instructions per pipe.
    issued: [u64; Pipe::COUNT],
    /// Memory instructions that have not returned.
    outstanding: Vec<Outstanding>,
    /// The last returned instruction per pipe: earlier ones have read their sources.
    returned: [u64; Pipe::COUNT],
    /// For each register, the last instruction of each pipe that writes or reads it.
    accesses: FxHashMap<usize, Vec<Access>>,
}

/// A write of a result or read of a source that may be pending.
#[derive(Debug)]
struct Access {
    pipe: Pipe,
    /// Number in the pipe, starting at 1.
    number: u64,
    facts: Arc<Facts>,
}

/// A memory instruction that has not returned.
#[derive(Debug)]
struct Outstanding {
    pipe: Pipe,
    number: u64,
    /// Number among the memory pending operations.
    operation: u64,
}

impl Expert {
    fn is_on(&self) -> bool {
        self.mode & 3 == EXPERT
    }

    /// Returns a register that an instruction accesses too early.
    pub fn check(&mut self, facts: &Facts, pending: &PendingOperations) -> Option<Finding> {
        if !self.is_on() {
            return None;
        }
        let Expert { outstanding, returned, .. } = self;
        outstanding.retain(|instruction| {
            let is_back = !pending.contains(instruction.operation);
            if is_back {
                let last = &mut returned[instruction.pipe as usize];
                *last = instruction.number.max(*last);
            }
            !is_back
        });
        let is_valu = facts.pipe.is_some_and(Pipe::is_valu);
        let reads = facts.named.reads.iter().map(|(_, slots)| (slots, false));
        let writes = facts.named.writes.iter().map(|(_, slots)| (slots, true));
        for (slots, is_write) in reads.chain(writes) {
            for row in slots.rows() {
                let accesses = self.accesses.get(&row).into_iter().flatten();
                let meets = |access: &&Access| {
                    let is_awaited = if access.pipe.is_valu() { !is_valu } else { is_write };
                    is_awaited && access.number > self.returned[access.pipe as usize]
                };
                if let Some(access) = accesses.into_iter().find(meets) {
                    return Some(self.finding(row, access));
                }
            }
        }
        None
    }

    fn finding(&self, row: usize, access: &Access) -> Finding {
        let (needed, most) =
            if access.pipe.is_valu() { (AluCounter::VaVdst, 14) } else { (AluCounter::VmVsrc, 6) };
        let later = self.issued[access.pipe as usize] - access.number;
        let operation: Instruction = access.facts.instruction();
        Finding::NotWaitedByExpert {
            register: Vgpr(row as u16),
            operation,
            needed,
            count: later.min(most) as u8,
        }
    }

    /// Records the execution of an instruction. `operation` is its number among the memory
    /// pending operations.
    pub fn push(&mut self, wave: &Wave, op: &Op, facts: &Arc<Facts>, operation: Option<u64>) {
        let has_mode = wave.machine.generation >= Generation::Gfx12;
        if has_mode && let Some((position, mask)) = sched_mode_bits(&facts.inst) {
            let value = scalar_word(wave, op.sources[0].words[0]);
            self.mode = self.mode & !mask | value << position & mask;
            self.accesses.clear();
            self.outstanding.clear();
        }
        if !self.is_on() {
            return;
        }
        if let Some(AluWait { va_vdst, vm_vsrc }) = facts.alu_wait {
            self.retire(AluCounter::VaVdst, va_vdst);
            self.retire(AluCounter::VmVsrc, vm_vsrc);
        }
        let Some(pipe) = facts.pipe else { return };
        self.issued[pipe as usize] += 1;
        let number = self.issued[pipe as usize];
        let named = if pipe.is_valu() { &facts.named.writes } else { &facts.named.reads };
        for row in named.iter().flat_map(|(_, slots)| slots.rows()) {
            let accesses = self.accesses.entry(row).or_default();
            accesses.retain(|access| access.pipe != pipe);
            accesses.push(Access { pipe, number, facts: Arc::clone(facts) });
        }
        let outstanding = operation.map(|operation| Outstanding { pipe, number, operation });
        self.outstanding.extend(outstanding);
    }

    /// Removes all but the last `count` instructions of the pipes of a counter.
    fn retire(&mut self, counter: AluCounter, count: Option<u8>) {
        let Some(count) = count.map(u64::from) else { return };
        let (issued, is_valu) = (self.issued, counter == AluCounter::VaVdst);
        self.accesses.retain(|_, accesses| {
            accesses.retain(|access| {
                let later = issued[access.pipe as usize] - access.number;
                access.pipe.is_valu() != is_valu || count > 0 && later < count
            });
            !accesses.is_empty()
        });
    }
}
