//! Which accesses to LDS are kept apart by barriers from those of other waves.
//!
//! Between a read and a write of LDS there is mostly a barrier. Where there is one on every way, it does not
//! matter which wave is first, and none has to be held up ([`Leads`](crate::Leads)).

use crate::instruction::control::{Control, SplitBarrier};
use crate::instruction::{Op, Run, Shared, Word};
use crate::translate::program::Program;
use flipwave_isa::Control as Course;
use rustc_hash::{FxHashMap, FxHashSet};

/// Kinds of accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kinds {
    read: bool,
    write: bool,
}

impl Kinds {
    const BOTH: Kinds = Kinds { read: true, write: true };

    fn and(self, other: Kinds) -> Kinds {
        Kinds { read: self.read || other.read, write: self.write || other.write }
    }

    fn of(shared: Shared) -> Kinds {
        Kinds { read: shared == Shared::Read, write: shared == Shared::Write }
    }
}

/// The accesses that may have been on a way to an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Before {
    /// Since the last barrier.
    since_barrier: Kinds,
    /// Since the last signal of a split barrier, which the wait for it does not order.
    since_signal: Kinds,
}

impl Before {
    const ANY: Before = Before { since_barrier: Kinds::BOTH, since_signal: Kinds::BOTH };

    fn and(self, other: Before) -> Before {
        Before {
            since_barrier: self.since_barrier.and(other.since_barrier),
            since_signal: self.since_signal.and(other.since_signal),
        }
    }

    /// What is before the instruction after `op`.
    fn after(self, op: &Op) -> Before {
        match op.run {
            Run::Control(Control::Barrier) => Before::default(),
            Run::Control(Control::SplitBarrier(operation)) if is_of_workgroup(op, operation) => {
                match operation {
                    SplitBarrier::Signal | SplitBarrier::SignalIsFirst => {
                        Before { since_signal: Kinds::default(), ..self }
                    }
                    SplitBarrier::Wait => Before { since_barrier: self.since_signal, ..self },
                    SplitBarrier::State | SplitBarrier::Init | SplitBarrier::Join => self,
                }
            }
            _ => {
                let own = Kinds::of(op.shared);
                self.and(Before { since_barrier: own, since_signal: own })
            }
        }
    }
}

/// Whether an instruction is about the barrier of the workgroup, which is number -1.
fn is_of_workgroup(op: &Op, operation: SplitBarrier) -> bool {
    match op.sources[0].words[0] {
        _ if operation == SplitBarrier::Wait => op.immediate as i16 == -1,
        Word::Constant(number) => number as i32 == -1,
        _ => false,
    }
}

/// The device addresses of the accesses to LDS, in the code that waves can reach from `start` on, between
/// which and any access of the other kind there is a barrier on every way. What is after a call is not kept
/// apart, nor is anything where it is not seen where waves jump.
pub fn kept_apart(program: &Program, start: u64) -> FxHashSet<u64> {
    let mut ops: FxHashMap<u64, Option<Op>> = FxHashMap::default();
    let mut before = FxHashMap::from_iter([(start, Before::default())]);
    let mut waiting = vec![start];
    while let Some(pc) = waiting.pop() {
        let own = before[&pc];
        // Where nothing can be decoded execution ends.
        let Some(op) = ops.entry(pc).or_insert_with(|| program.alone(pc).ok()) else { continue };
        let course = op.inst.control(program.machine().generation);
        let after = match course {
            Course::Jump | Course::Unknown(_) => return FxHashSet::default(),
            _ if matches!(op.run, Run::Control(Control::AddPc)) => return FxHashSet::default(),
            Course::Call => Before::ANY,
            _ => own.after(op),
        };
        let target = op.inst.branch_target.map(|target| program.device_address(target));
        let next = course.may_go_on().then(|| pc.wrapping_add(op.size.into()));
        for place in target.into_iter().chain(next) {
            let known = before.get(&place).copied();
            let all = known.map_or(after, |known| known.and(after));
            if known != Some(all) {
                before.insert(place, all);
                waiting.push(place);
            }
        }
    }
    let is_apart = |pc: &u64| {
        let Some(Some(op)) = ops.get(pc) else { return false };
        let Kinds { read, write } = before[pc].since_barrier;
        match op.shared {
            Shared::Nothing => false,
            Shared::Read => !write,
            Shared::Write => !read,
        }
    };
    before.keys().copied().filter(is_apart).collect()
}

#[cfg(test)]
mod tests;
