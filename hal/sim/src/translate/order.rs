//! Whether the workgroups of a kernel may execute in any order, or at once.

use crate::instruction::control::Control;
use crate::instruction::{Op, Run, scalar_memory, vector_memory};
use crate::memory::atomic::Modify;
use crate::translate::coverage::unsettled_bits;
use crate::translate::program::Program;
use flipwave_isa::Control as Course;
use rustc_hash::FxHashSet;

/// What is seen of the code that waves can reach from a device address on. Nothing is seen of it all where
/// it is not seen what is reached: after calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Whether nothing in it shows a workgroup what others do meanwhile, or in which order: there are no
    /// loads that are coherent on the device, no atomic operations but ones that leave the same in any
    /// order, no global wave sync, and nothing else that workgroups share. So the results are the same in
    /// whatever order workgroups execute, unless the program has a data race.
    pub is_order_free: bool,
    /// Whether, besides, the results of all its operations are settled.
    pub is_settled: bool,
}

/// What is seen of the code that waves can reach from `start` on.
pub fn reached(program: &Program, start: u64) -> Reached {
    let mut is_settled = true;
    let (mut reached, mut waiting) = (FxHashSet::default(), vec![start]);
    // Those of different kinds leave something else where they meet.
    let mut met = None;
    while let Some(pc) = waiting.pop() {
        if !reached.insert(pc) {
            continue;
        }
        // Where nothing can be decoded execution ends.
        let Ok(op) = program.fetch(pc) else { continue };
        match commuting(op) {
            Some(kind) if *met.get_or_insert(kind) == kind => {}
            None if !op.inst.sees_other_workgroups(program.machine().generation) => {}
            _ => return Reached::default(),
        }
        is_settled &= unsettled_bits(op, program.machine()) == 0;
        if matches!(op.run, Run::Control(Control::Sync(_) | Control::AddPc) | Run::Tensor(_)) {
            return Reached::default();
        }
        let course = op.inst.control(program.machine().generation);
        if let Some(target) = op.inst.branch_target {
            waiting.push(program.device_address(target));
        }
        match course {
            Course::Next | Course::Branch | Course::Conditional | Course::End => {}
            Course::Jump | Course::Call | Course::Unknown(_) => return Reached::default(),
        }
        if course.may_fall_through() {
            waiting.push(pc.wrapping_add(op.size.into()));
        }
    }
    Reached { is_order_free: true, is_settled }
}

/// The kind of an atomic operation on memory that gives nothing back, and leaves with others of its kind
/// the same in any order; and its bytes.
fn commuting(op: &Op) -> Option<(Modify, u8)> {
    let (atomic, returns) = match op.run {
        Run::VectorMemory(access) => match access.transfer {
            vector_memory::Transfer::Atomic { atomic, returns } => (atomic, returns),
            _ => return None,
        },
        Run::ScalarMemory(access) => match access.transfer {
            scalar_memory::Transfer::Atomic { atomic, returns } => (atomic, returns),
            _ => return None,
        },
        _ => return None,
    };
    let kind = match atomic.modify {
        Modify::Add | Modify::Sub => Modify::Add,
        own @ (Modify::MinSigned
        | Modify::MinUnsigned
        | Modify::MaxSigned
        | Modify::MaxUnsigned
        | Modify::And
        | Modify::Or
        | Modify::Xor) => own,
        _ => return None,
    };
    (!returns).then_some((kind, atomic.bytes))
}

#[cfg(test)]
mod tests;
