//! Analysis of whether a kernel's workgroups may execute in any order, or concurrently.

use crate::instruction::control::Control;
use crate::instruction::{Op, Run, scalar_memory, vector_memory};
use crate::memory::atomic::Modify;
use crate::translate::code::DecodedCode;
use crate::translate::coverage::unsettled_bits;
use flipwave_isa::Control as ControlFlow;
use rustc_hash::FxHashSet;

/// Properties of the code that waves can reach from a device address. All are `false` if the
/// reachable code is not known: after calls and indirect jumps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// `true` if no instruction shows a workgroup what other workgroups do, or in which order:
    /// there are no device-coherent loads, no atomic operations other than ones that commute and
    /// return nothing, no global wave sync, and no other resource that workgroups share. Results
    /// then do not depend on the order of workgroups, unless the code has a data race.
    pub is_order_free: bool,
    /// `true` if, in addition, the results of all operations are settled.
    pub is_settled: bool,
}

/// Analyses the code that waves can reach from `start`.
pub fn reached(code: &DecodedCode, start: u64) -> Reached {
    let mut is_settled = true;
    let (mut reached, mut waiting) = (FxHashSet::default(), vec![start]);
    // Atomic operations of different kinds do not commute with each other.
    let mut atomic_kind = None;
    while let Some(pc) = waiting.pop() {
        if !reached.insert(pc) {
            continue;
        }
        // Execution ends where nothing can be decoded.
        let Ok(op) = code.fetch(pc) else { continue };
        match commuting(op) {
            Some(kind) if *atomic_kind.get_or_insert(kind) == kind => {}
            None if !op.inst.sees_other_workgroups(code.machine().generation) => {}
            _ => return Reached::default(),
        }
        is_settled &= unsettled_bits(op, code.machine()) == 0;
        if matches!(op.run, Run::Control(Control::Sync(_) | Control::AddPc) | Run::Tensor(_)) {
            return Reached::default();
        }
        let flow = op.inst.control(code.machine().generation);
        if let Some(target) = op.inst.branch_target {
            waiting.push(code.device_address(target));
        }
        match flow {
            ControlFlow::Next
            | ControlFlow::Branch
            | ControlFlow::Conditional
            | ControlFlow::End => {}
            ControlFlow::Jump | ControlFlow::Call | ControlFlow::Unknown(_) => {
                return Reached::default();
            }
        }
        if flow.may_fall_through() {
            waiting.push(pc.wrapping_add(op.size.into()));
        }
    }
    Reached { is_order_free: true, is_settled }
}

/// Kind and size in bytes of an atomic memory operation that returns nothing and commutes with
/// operations of its kind; `None` for all other instructions.
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
        modify @ (Modify::MinSigned
        | Modify::MinUnsigned
        | Modify::MaxSigned
        | Modify::MaxUnsigned
        | Modify::And
        | Modify::Or
        | Modify::Xor) => modify,
        _ => return None,
    };
    (!returns).then_some((kind, atomic.bytes))
}

#[cfg(test)]
mod tests;
