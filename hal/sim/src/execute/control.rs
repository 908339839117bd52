//! Control flow of a wave: branches, calls, barriers, traps and the end of the program.

use crate::execute::hardware_register;
use crate::execute::operand::scalar_word;
use crate::instruction::control::{Condition, Control, SplitBarrier};
use crate::instruction::sync::{SyncOperation, SyncRequest};
use crate::instruction::{Op, Word};
use crate::wave::{Mode, ScalarIndex, Wave};
use flipwave_device::FaultCause;
use flipwave_isa::{LaneMask, Opcode, VgprMsb};

/// Next action of a wave after an instruction.
#[derive(Debug)]
pub enum Step {
    /// Continue with the instruction at the wave's PC.
    Next,
    /// The wave waits at a barrier.
    Barrier,
    /// The high bits of the vector register numbers have changed (`s_set_vgpr_msb`).
    Banks,
    /// The wave performs an operation on a split barrier.
    SplitBarrier(BarrierRequest),
    /// The wave requests a resource of global wave sync.
    Sync(SyncRequest),
    /// The wave has halted itself.
    Halted,
    /// The wave has ended.
    Ended,
    /// The device stops the dispatch with a fault.
    Fault(FaultCause),
}

/// An operation on one of the split barriers of a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierRequest {
    /// Operation to perform.
    pub operation: SplitBarrier,
    /// Barrier number: -1 is the workgroup's barrier, 0 none, -2 the trap handlers' barrier, 1 to
    /// 16 are named barriers.
    pub barrier: i32,
    /// Number of signals that complete the barrier, if the instruction specifies it.
    pub members: Option<u32>,
    /// Register that receives the result.
    pub destination: ScalarIndex,
}

impl BarrierRequest {
    /// Returns `true` for the workgroup's barrier.
    pub fn is_of_workgroup(self) -> bool {
        self.barrier == -1
    }

    /// Number of the named barrier, if it is one.
    pub fn named(self) -> Option<usize> {
        usize::try_from(self.barrier).ok().filter(|barrier| (1..=16).contains(barrier))
    }
}

/// Executes a control operation. The wave's PC already points to the next instruction.
#[inline(always)]
pub fn execute(wave: &mut Wave, op: &Op, control: Control) -> Step {
    let target = wave.pc.wrapping_add_signed(op.immediate.wrapping_mul(4));
    match control {
        Control::Nothing => {}
        Control::Branch(condition) => {
            let taken = match condition {
                Condition::Always => true,
                Condition::Scc(set) => wave.scc == set,
                Condition::VccZero(zero) => (wave.vcc() == 0) == zero,
                Condition::ExecZero(zero) => (wave.exec() == LaneMask::EMPTY) == zero,
            };
            if taken {
                wave.pc = target;
            }
        }
        Control::EndProgram => return Step::Ended,
        Control::Barrier => return Step::Barrier,
        Control::Trap => return Step::Fault(FaultCause::Trap { id: op.immediate as u8 }),
        Control::GetPc => wave.write_scalar_pair(op.scalar_destination, wave.pc),
        Control::SetPc => wave.pc = register_target(wave, op),
        // Relative to the next instruction (LLVM, `SIInstrInfo::insertIndirectBranch`).
        Control::AddPc => wave.pc = wave.pc.wrapping_add(register_target(wave, op)),
        Control::SwapPc => {
            let target = register_target(wave, op);
            wave.write_scalar_pair(op.scalar_destination, wave.pc);
            wave.pc = target;
        }
        Control::Call => {
            wave.write_scalar_pair(op.scalar_destination, wave.pc);
            wave.pc = target;
        }
        Control::SetRegister => {
            let banks = wave.banks();
            set_register(wave, op);
            if wave.banks() != banks {
                return Step::Banks;
            }
        }
        Control::SetBanks => {
            wave.mode =
                Mode(VgprMsb::from_immediate(op.immediate as u8).apply_to_mode(wave.mode.0));
            return Step::Banks;
        }
        Control::Fork => fork(wave, op, target),
        Control::ForkToRegister => {
            let [low, high] = op.sources[1].words;
            let target =
                u64::from(scalar_word(wave, low)) | u64::from(scalar_word(wave, high)) << 32;
            fork(wave, op, target & !3);
        }
        Control::Join => join(wave, op),
        Control::SkipVectors => {
            let bit = scalar_word(wave, op.sources[1].words[0]) & 31;
            let skip = scalar_word(wave, op.sources[0].words[0]) >> bit & 1;
            wave.mode = Mode(wave.mode.0 & !Mode::SKIP_VECTORS | (skip * Mode::SKIP_VECTORS));
        }
        Control::Kill if op.immediate & 1 != 0 => return Step::Ended,
        Control::Halt if op.immediate & 1 != 0 => return Step::Halted,
        Control::HaltAlways => return Step::Halted,
        Control::Kill | Control::Halt => {}
        Control::Sync(operation) => return Step::Sync(sync_request(wave, op, operation)),
        Control::Illegal { word } => {
            return Step::Fault(FaultCause::IllegalInstruction { word });
        }
        Control::SplitBarrier(operation) => {
            return Step::SplitBarrier(barrier_request(wave, op, operation));
        }
        Control::SubvectorLoopBegin => begin_subvector_loop(wave, op, target),
        Control::SubvectorLoopEnd => end_subvector_loop(wave, op, target),
    }
    Step::Next
}

/// Decodes a barrier request; the barrier is an immediate, or M0[4:0].
#[cold]
#[inline(never)]
pub(crate) fn barrier_request(wave: &Wave, op: &Op, operation: SplitBarrier) -> BarrierRequest {
    let barrier = match op.sources[0].words[0] {
        _ if operation == SplitBarrier::Wait => i32::from(op.immediate as i16),
        Word::Scalar(index) => (wave.scalar(index) & 31) as i32,
        word => scalar_word(wave, word) as i32,
    };
    // M0[22:16], for named barriers (LLVM's lowering of `s.barrier.signal.var`).
    let members = match op.sources[0].words[0] {
        Word::Scalar(index) => Some(wave.scalar(index) >> 16 & 0x7f).filter(|count| *count > 0),
        _ => None,
    };
    BarrierRequest { operation, barrier, members, destination: op.scalar_destination }
}

/// Starts a subvector loop with the lower half of the wave, and keeps the lanes of the upper half
/// in a scalar register; skips the loop if no lane is active (RDNA 2 ISA,
/// "S_SUBVECTOR_LOOP_BEGIN").
#[cold]
#[inline(never)]
fn begin_subvector_loop(wave: &mut Wave, op: &Op, target: u64) {
    let exec = wave.exec().0;
    let (low, high) = (exec as u32, (exec >> 32) as u32);
    if exec == 0 {
        wave.pc = target;
    } else if low == 0 {
        wave.write_scalar(op.scalar_destination, low);
    } else {
        wave.write_scalar(op.scalar_destination, high);
        wave.set_exec(LaneMask(low.into()));
    }
}

/// Repeats the loop for the upper half of the wave, or makes both halves active again (RDNA 2 ISA,
/// "S_SUBVECTOR_LOOP_END").
#[cold]
#[inline(never)]
fn end_subvector_loop(wave: &mut Wave, op: &Op, target: u64) {
    let kept = match op.sources[0].words[0] {
        Word::Scalar(index) => index,
        _ => op.scalar_destination,
    };
    let (other, exec) = (wave.scalar(kept), wave.exec().0);
    if exec >> 32 != 0 {
        wave.set_exec(LaneMask(exec | u64::from(other)));
    } else if other != 0 {
        wave.write_scalar(kept, exec as u32);
        wave.set_exec(LaneMask(u64::from(other) << 32));
        wave.pc = target;
    }
}

/// Forks the wave: takes the branch direction with fewer lanes and pushes the other one, which runs
/// at the join (ISA manual, "S_CBRANCH_G_FORK"). The stack of pending directions lies in SGPRs,
/// four for each entry: the lanes, then the address.
#[cold]
#[inline(never)]
fn fork(wave: &mut Wave, op: &Op, target: u64) {
    let [low, high] = op.sources[0].words;
    let mask = u64::from(scalar_word(wave, low)) | u64::from(scalar_word(wave, high)) << 32;
    let exec = wave.exec().0;
    let (taken, not_taken) = (mask & exec, !mask & exec);
    if taken == exec {
        wave.pc = target;
    } else if not_taken != exec {
        let (now, pc, later, later_pc) = if not_taken.count_ones() < taken.count_ones() {
            (not_taken, wave.pc, taken, target)
        } else {
            (taken, target, not_taken, wave.pc)
        };
        let depth = wave.mode.branch_depth();
        let entry = ScalarIndex(depth as u8 * 4);
        wave.write_scalar_pair(entry, later);
        wave.write_scalar_pair(ScalarIndex(entry.0 + 2), later_pc);
        wave.mode = wave.mode.with_branch_depth(depth + 1);
        wave.set_exec(LaneMask(now));
        wave.pc = pc;
    }
}

/// Joins a fork: continues after the join if the stack is as deep as before the fork, else takes
/// the pending direction (ISA manual, "S_CBRANCH_JOIN"). The stack's depth has three bits. EXEC
/// stays that of the direction taken last: programs save it before a fork and restore it after the
/// join.
#[cold]
#[inline(never)]
fn join(wave: &mut Wave, op: &Op) {
    let depth = wave.mode.branch_depth();
    if depth == scalar_word(wave, op.sources[0].words[0]) {
        return;
    }
    let depth = depth.wrapping_sub(1) & 7;
    wave.mode = wave.mode.with_branch_depth(depth);
    let entry = ScalarIndex(depth as u8 * 4);
    wave.set_exec(LaneMask(wave.scalar_pair(entry)));
    wave.pc = wave.scalar_pair(ScalarIndex(entry.0 + 2)) & !3;
}

/// Decodes a global wave sync request. M0[21:16] and the offset name the resource; the operand
/// comes from the first active lane, or from lane 0 if none is active.
#[cold]
#[inline(never)]
fn sync_request(wave: &Wave, op: &Op, operation: SyncOperation) -> SyncRequest {
    let lane = wave.exec().nth(0).map_or(0, |lane| usize::from(lane.0));
    let value = match op.sources[0].row() {
        Some(row) => wave.row(row).0[lane],
        None => scalar_word(wave, op.sources[0].words[0]),
    };
    let base = wave.scalar(ScalarIndex::M0) >> 16 & 63;
    SyncRequest { operation, resource: base.wrapping_add(op.immediate as u32), value }
}

/// Reads a branch target from a register pair; its two lowest bits are ignored.
fn register_target(wave: &Wave, op: &Op) -> u64 {
    let [low, high] = op.sources[0].words;
    (u64::from(scalar_word(wave, low)) | u64::from(scalar_word(wave, high)) << 32) & !3
}

fn set_register(wave: &mut Wave, op: &Op) {
    let value = scalar_word(wave, op.sources[0].words[0]);
    let immediate = u32::from(op.immediate as u16);
    hardware_register::write(wave, immediate, value);
    if wave.machine.setreg_sets_banks
        && hardware_register::is_mode(immediate)
        && op.inst.operation.opcode() == Opcode::SSetregImm32
    {
        wave.mode = Mode(VgprMsb::from_mode(value).apply_to_mode(wave.mode.0));
    }
}

/// Register that a relative move accesses: the named one plus M0.
pub fn relative(index: ScalarIndex, wave: &Wave) -> ScalarIndex {
    ScalarIndex((u32::from(index.0).wrapping_add(wave.scalar(ScalarIndex::M0)) & 127) as u8)
}
