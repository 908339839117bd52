//! Analysis of which LDS accesses barriers order.
//!
//! Most kernels have a barrier between a read of LDS and a write to it. If there is one on every
//! path, the order of waves does not matter, and no wave has to wait for the others
//! ([`Leads`](crate::Leads)).

use crate::instruction::control::{Control, SplitBarrier};
use crate::instruction::{Op, Run, Shared, Word};
use flipwave_isa::{Control as ControlFlow, Generation};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

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

/// Accesses that may precede an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Before {
    /// Accesses since the last barrier.
    since_barrier: Kinds,
    /// Accesses since the last signal of a split barrier; the wait does not order these.
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

    /// The accesses before the next instruction, after one with this effect.
    fn after(self, effect: Effect) -> Before {
        match effect {
            Effect::Access(kinds) => self.and(Before { since_barrier: kinds, since_signal: kinds }),
            Effect::Barrier => Before::default(),
            Effect::Signal => Before { since_signal: Kinds::default(), ..self },
            Effect::Wait => Before { since_barrier: self.since_signal, ..self },
            Effect::Call => Before::ANY,
        }
    }
}

/// Effect of an instruction on the order of accesses.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// Accesses LDS in these ways, or not at all.
    Access(Kinds),
    /// All waves of the workgroup meet.
    Barrier,
    /// The wave signals the barrier of the workgroup.
    Signal,
    /// The wave waits for the barrier of the workgroup.
    Wait,
    /// Calls a function, which may access LDS and pass barriers.
    Call,
}

impl Effect {
    fn of(op: &Op) -> Effect {
        match op.run {
            Run::Control(Control::Barrier) => Effect::Barrier,
            Run::Control(Control::SplitBarrier(operation)) if is_of_workgroup(op, operation) => {
                match operation {
                    SplitBarrier::Signal | SplitBarrier::SignalIsFirst => Effect::Signal,
                    SplitBarrier::Wait => Effect::Wait,
                    SplitBarrier::State
                    | SplitBarrier::Init
                    | SplitBarrier::Join
                    | SplitBarrier::Leave => Effect::Access(Kinds::default()),
                }
            }
            _ => Effect::Access(Kinds::of(op.shared)),
        }
    }
}

/// Returns `true` if an instruction refers to the barrier of the workgroup, number -1.
fn is_of_workgroup(op: &Op, operation: SplitBarrier) -> bool {
    match op.sources[0].words[0] {
        _ if operation == SplitBarrier::Wait => op.immediate as i16 == -1,
        Word::Constant(number) => number as i32 == -1,
        _ => false,
    }
}

/// The part of an instruction that decides the order of accesses.
#[derive(Clone, Copy, Debug)]
struct Step {
    effect: Effect,
    /// Device addresses of the instructions that may follow: the branch target, and the next
    /// instruction.
    next: [Option<u64>; 2],
}

/// The control flow of a kernel is not known.
struct UnknownFlow;

impl Step {
    /// Extracts the step from an instruction of code for `generation`.
    fn of(instruction: &Placed, generation: Generation) -> Result<Step, UnknownFlow> {
        let Placed { op, pc, target } = instruction;
        let flow = op.inst.control(generation);
        let effect = match flow {
            ControlFlow::Jump | ControlFlow::Unknown(_) => return Err(UnknownFlow),
            _ if matches!(op.run, Run::Control(Control::AddPc)) => return Err(UnknownFlow),
            ControlFlow::Call => Effect::Call,
            _ => Effect::of(op),
        };
        let following = flow.may_fall_through().then(|| pc.wrapping_add(op.size.into()));
        Ok(Step { effect, next: [*target, following] })
    }
}

/// An instruction and its place in device memory.
pub struct Placed {
    /// The instruction.
    pub op: Op,
    /// Its device address.
    pub pc: u64,
    /// Device address of the branch target.
    pub target: Option<u64>,
}

/// Most instructions of a kernel that are walked; of larger ones, which compilers do not emit, no access counts
/// as ordered.
const MOST: usize = 1 << 20;

/// Finds the LDS accesses of a kernel, by device address: `true` for those that are ordered against each access
/// of the other kind, read or write, by a barrier on every path from `start`. Accesses after a call are not
/// ordered; if a jump has an unknown target, there are none. `code` decodes the instruction at a device
/// address; `None` ends execution there.
pub fn ordered_by_barriers(
    start: u64,
    generation: Generation,
    code: impl Fn(u64) -> Option<Placed>,
) -> FxHashMap<u64, bool> {
    let step = |pc| code(pc).map(|instruction| Step::of(&instruction, generation)).transpose();
    let Ok((steps, before)) = walk(start, step) else { return FxHashMap::default() };
    let accesses = steps.iter().filter_map(|(pc, step)| match step.as_ref()?.effect {
        Effect::Access(kinds) if kinds != Kinds::default() => Some((*pc, kinds)),
        _ => None,
    });
    let is_ordered = |(pc, kinds): (u64, Kinds)| {
        let Kinds { read, write } = before[&pc].since_barrier;
        (pc, kinds.read && !write || kinds.write && !read)
    };
    accesses.map(is_ordered).collect()
}

type Steps = FxHashMap<u64, Option<Step>>;

/// Walks the code that waves can reach. Returns its instructions, and the accesses that may precede each.
fn walk(
    start: u64,
    step: impl Fn(u64) -> Result<Option<Step>, UnknownFlow>,
) -> Result<(Steps, FxHashMap<u64, Before>), UnknownFlow> {
    let mut steps = Steps::default();
    let mut before = FxHashMap::from_iter([(start, Before::default())]);
    let mut waiting = vec![start];
    while let Some(pc) = waiting.pop() {
        let step = match steps.entry(pc) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(step(pc)?),
        };
        if steps.len() > MOST {
            return Err(UnknownFlow);
        }
        let Some(Step { effect, next }) = step else { continue };
        let after = before[&pc].after(effect);
        for address in next.into_iter().flatten() {
            let known = before.get(&address).copied();
            let all = known.map_or(after, |known| known.and(after));
            if known != Some(all) {
                before.insert(address, all);
                waiting.push(address);
            }
        }
    }
    Ok((steps, before))
}

#[cfg(test)]
mod tests;
